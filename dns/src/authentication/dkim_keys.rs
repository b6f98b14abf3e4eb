//! Fetches and checks the public keys of a message's signatures. All are queried in parallel, each name once. mail-auth
//! then verifies with these keys and does no lookups of its own.
//!
//! mail-auth accepts some keys that RFC 6376 3.2 and 3.6.1 do not: a duplicate tag, a key for another hash, service or
//! version. These get an objection here. A key for TLS reports only counts for them and for nothing else
//! (RFC 8460 3).

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::join_all;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use mail_auth::common::parse::TxtRecordParser as _;
use mail_auth::common::verify::DomainKey;
use mail_auth::{DnsError, Error, MessageAuthenticator, ResolverCache, Txt};
use tokio::time::timeout;

use super::DkimKeySource;
use crate::resolver::{parse_wire_name, txt_strings};

/// Maximum TXT records considered at one name.
const RECORDS_MAX: usize = 8;

/// Keys by record name.
pub(super) struct FetchedKeys(Vec<FetchedKey>);

struct FetchedKey {
    /// `sel._domainkey.example.com.` in lower case.
    name: Box<str>,
    found: Txt,
    objection: Option<KeyObjection>,
}

/// Why signatures with a key are not accepted even if they verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyObjection {
    /// The key is not suitable for any mail; the text is the reason.
    Unsuitable(&'static str),
    /// The key is for TLS reports, not for other mail (`s=tlsrpt`, RFC 8460 3).
    TlsReportsOnly,
}

impl KeyObjection {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Unsuitable(reason) => reason,
            Self::TlsReportsOnly => "the key is for TLS reports only (s=)",
        }
    }
}

impl FetchedKeys {
    /// Fetches the keys of these names (`sel._domainkey.example.com.`). A key that does not arrive in time is a
    /// temporary error.
    pub(super) async fn fetch(names: &[String], source: &DkimKeySource, within: Duration) -> Self {
        let mut names_to_fetch: Vec<Box<str>> = names.iter().map(|name| name.to_lowercase().into_boxed_str()).collect();
        names_to_fetch.sort_unstable();
        names_to_fetch.dedup();
        Self(join_all(names_to_fetch.into_iter().map(|name| fetch_key(name, source, within))).await)
    }

    /// The reason why signatures with the key of a name are not accepted even if they verify.
    pub(super) fn objection(&self, name: &str) -> Option<KeyObjection> {
        let name = name.to_lowercase();
        self.0.iter().find(|key| *key.name == *name).and_then(|key| key.objection)
    }
}

async fn fetch_key(name: Box<str>, source: &DkimKeySource, within: Duration) -> FetchedKey {
    let temporary = || Err(Txt::Error(Error::Dns(DnsError::Resolver("no answer".to_owned()))));
    let texts = match source {
        DkimKeySource::Fixed(records) => {
            let is_same_name =
                |record_name: &str| record_name.trim_end_matches('.').eq_ignore_ascii_case(name.trim_end_matches('.'));
            let found = records.iter().filter(|(record_name, _)| is_same_name(record_name));
            Ok(found.map(|(_, value)| value.clone()).collect::<Vec<String>>())
        }
        DkimKeySource::Dns(resolver) => match parse_wire_name(&name) {
            None => Ok(Vec::new()),
            Some(wire) => match timeout(within, resolver.records(&wire, RecordType::TXT)).await {
                Err(_) | Ok(Err(_)) => temporary(),
                Ok(Ok(found)) => Ok(txt_strings(found.as_deref()).take(RECORDS_MAX).collect()),
            },
        },
    };
    let texts = match texts {
        Ok(texts) => texts,
        Err(found) => return FetchedKey { name, found, objection: None },
    };
    // RFC 6376 3.6.2.2: of several records, any can be used; a suitable one is preferred.
    let text = texts.iter().find(|text| key_objection(text).is_none()).or(texts.first());
    let (found, objection) = match text {
        None => (Txt::Error(Error::Dns(DnsError::RecordNotFound(ResponseCode::NXDomain))), None),
        Some(text) => match DomainKey::parse(text.as_bytes()) {
            Ok(key) => (key.into(), key_objection(text)),
            Err(error) => (Txt::Error(error), None),
        },
    };
    FetchedKey { name, found, objection }
}

/// The reason why a key is not suitable for signing email (RFC 6376 3.2 and 3.6.1, RFC 8301 3.1).
fn key_objection(text: &str) -> Option<KeyObjection> {
    let mut names: Vec<&str> = text.split(';').filter_map(|part| Some(part.split_once('=')?.0.trim())).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Some(KeyObjection::Unsuitable("a tag of the key record occurs twice"));
    }
    let tag = |name: &str| {
        let mut tags = text.split(';').filter_map(|part| part.split_once('='));
        tags.find(|(tag, _)| tag.trim() == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let lists = |list: &str, wanted: &[&str]| {
        list.split(':').any(|word| wanted.iter().any(|accepted| word.trim().eq_ignore_ascii_case(accepted)))
    };
    if tag("v").is_some_and(|version| version != "DKIM1") {
        return Some(KeyObjection::Unsuitable("the key is of another version (v=)"));
    }
    if tag("h").is_some_and(|hashes| !lists(hashes, &["sha256"])) {
        return Some(KeyObjection::Unsuitable("the key is for another hash (h=)"));
    }
    match tag("s") {
        Some(services) if lists(services, &["*", "email"]) => None,
        Some(services) if lists(services, &["tlsrpt"]) => Some(KeyObjection::TlsReportsOnly),
        Some(_) => Some(KeyObjection::Unsuitable("the key is not for email (s=)")),
        None => None,
    }
}

/// A verifier without DNS servers: all its lookups are answered by [`FetchedKeys`].
pub(super) fn offline_authenticator() -> Option<&'static MessageAuthenticator> {
    static OFFLINE: OnceLock<Option<MessageAuthenticator>> = OnceLock::new();
    OFFLINE
        .get_or_init(|| {
            let nowhere = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
            MessageAuthenticator::new(nowhere, ResolverOpts::default()).ok()
        })
        .as_ref()
}

/// Answers every lookup, so that none reaches the DNS.
impl ResolverCache<Box<str>, Txt> for FetchedKeys {
    fn get<Q>(&self, name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let key = self.0.iter().find(|key| <Box<str> as Borrow<Q>>::borrow(&key.name) == name);
        Some(match key {
            Some(key) => key.found.clone(),
            None => Txt::Error(Error::Dns(DnsError::RecordNotFound(ResponseCode::NXDomain))),
        })
    }

    fn remove<Q>(&self, _: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _: Box<str>, _: Txt, _: std::time::Instant) {}
}

#[cfg(test)]
mod tests {
    use super::{KeyObjection, key_objection};

    #[test]
    fn keys_for_another_purpose_are_refused() {
        for good in ["p=A", "v=DKIM1; k=rsa; h=sha1:sha256; s=email; p=A", "s=*;h=;p=A", "v=DKIM1;s=other:Email;p=A"] {
            assert_eq!(key_objection(good), None, "{good}");
        }
        for (bad, why) in [
            ("v=DKIM2; p=A", "version"),
            ("v=DKIM1; h=sha1; p=A", "hash"),
            ("v=DKIM1; k=rsa; p=A; p=B", "twice"),
            ("s=email; s = email; p=A", "twice"),
            ("v=DKIM1; s=other; p=A", "email"),
            ("v=DKIM1; h=sha1; s=tlsrpt; p=A", "hash"),
        ] {
            let objection = key_objection(bad).unwrap();
            assert!(matches!(objection, KeyObjection::Unsuitable(reason) if reason.contains(why)), "{bad}");
        }
        assert_eq!(key_objection("v=DKIM1; s=other:TLSRPT; p=A"), Some(KeyObjection::TlsReportsOnly));
        assert_eq!(key_objection("v=DKIM1; s=tlsrpt:email; p=A"), None);
    }
}
