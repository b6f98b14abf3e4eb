//! Verdicts on messages of others: on their signatures, for the development inbox; and, with all that is known
//! of where they come from, for the MX door ([`arrival`]).
//!
//! What is read here was written by anybody: it is parsed on a blocking thread, few at a time, under
//! `catch_unwind`, within a deadline; of its signatures the first [`SIGNATURES_MAX`] are looked at.
//! Standards: RFC 6376 6, RFC 8301 3 (no SHA-1), RFC 8463.

pub mod arrival;
pub mod blocklist;

use std::borrow::Borrow;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::proto::op::ResponseCode;
use mail_auth::common::crypto::Algorithm;
use mail_auth::common::parse::TxtRecordParser as _;
use mail_auth::common::verify::DomainKey;
use mail_auth::dkim::Canonicalization;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DnsError, Error, MessageAuthenticator, Parameters,
    ResolverCache, Txt,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::lookup::Resolver;
use crate::relax::trim_end;

/// Signatures looked at per message; each may cost a lookup.
pub const SIGNATURES_MAX: usize = 10;
/// Messages looked at at once.
const VERDICTS_MAX: usize = 8;
/// How long one message may take, lookups included.
const DEADLINE: Duration = Duration::from_secs(30);

static PLACES: Semaphore = Semaphore::const_new(VERDICTS_MAX);

/// Where public keys come from.
#[derive(Debug, Clone)]
pub enum PublicKeys {
    /// From the DNS.
    Dns(Resolver),
    /// These, and no others: pairs of record name (`sel._domainkey.example.com`) and TXT value.
    Given(Vec<(String, String)>),
}

/// The result of one signature, in the words of RFC 8601 2.7.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DkimResultCode {
    /// It holds.
    Pass,
    /// It does not hold.
    Fail,
    /// It cannot be judged: written wrongly, expired, or the body is not the one signed.
    Neutral,
    /// The key could not be fetched now.
    TempError,
    /// The key is missing or unusable.
    PermError,
}

impl DkimResultCode {
    /// As it stands in an Authentication-Results field.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Neutral => "neutral",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

/// What became of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DkimVerdict {
    /// Who signed (`d=`); empty when the signature cannot be read.
    pub domain: String,
    /// The selector (`s=`).
    pub selector: String,
    /// The algorithm (`a=`).
    pub algorithm: &'static str,
    /// The result.
    pub result: DkimResultCode,
    /// Why, for a person to read; empty for a pass.
    pub reason: String,
}

impl DkimVerdict {
    fn without_signature(result: DkimResultCode, reason: &str) -> Self {
        Self {
            domain: String::new(),
            selector: String::new(),
            algorithm: "",
            result,
            reason: reason.to_owned(),
        }
    }
}

/// The verdicts on the DKIM signatures of a message, in the order of its header; none when it has none.
pub async fn dkim(message: Bytes, keys: PublicKeys) -> Vec<DkimVerdict> {
    // Never closed.
    let Ok(place) = PLACES.acquire().await else { return Vec::new() };
    let runtime = tokio::runtime::Handle::current();
    let judged = tokio::task::spawn_blocking(move || {
        let _place = place;
        // A bug met while reading it ends this verdict, nothing else.
        catch_unwind(AssertUnwindSafe(|| runtime.block_on(judge(&message, &keys))))
    });
    match judged.await {
        Ok(Ok(verdicts)) => verdicts,
        _ => vec![DkimVerdict::without_signature(DkimResultCode::Neutral, "the message could not be read")],
    }
}

async fn judge(raw: &[u8], keys: &PublicKeys) -> Vec<DkimVerdict> {
    let Some(mut message) = AuthenticatedMessage::parse(raw) else { return Vec::new() };
    message.dkim_headers.truncate(SIGNATURES_MAX);
    message.errors.truncate(SIGNATURES_MAX);
    mend_body_hashes(&mut message);
    let given = match keys {
        PublicKeys::Dns(_) => Given(&[]),
        PublicKeys::Given(records) => Given(records),
    };
    let verified = async {
        match keys {
            PublicKeys::Dns(resolver) => resolver.authenticator().verify_dkim(&message).await,
            PublicKeys::Given(_) => {
                let Some(authenticator) = offline() else { return Vec::new() };
                authenticator.verify_dkim(Parameters::new(&message).with_txt_cache(&given)).await
            }
        }
    };
    match timeout(DEADLINE, verified).await {
        Ok(outputs) => outputs.iter().map(verdict).collect(),
        Err(_) => {
            vec![DkimVerdict::without_signature(
                DkimResultCode::TempError,
                "the keys could not be fetched in time",
            )]
        }
    }
}

/// mail-auth counts blanks at the end of a relaxed body as a line; RFC 6376 3.4.4 does not. Where there
/// are some, the hash is made anew without them.
fn mend_body_hashes(message: &mut AuthenticatedMessage<'_>) {
    let offset = usize::try_from(message.body_offset).unwrap_or(usize::MAX);
    let body = message.raw_message.get(offset..).unwrap_or_default();
    let trimmed = trim_end(body);
    let tail = body.get(trimmed.len()..).unwrap_or_default();
    if !tail.iter().any(|b| matches!(b, b' ' | b'\t')) {
        return;
    }
    for (canonicalization, algorithm, limit, hash) in &mut message.body_hashes {
        if *canonicalization == Canonicalization::Relaxed && *limit == 0 {
            *hash = algorithm.hash(canonicalization.canonical_body(trimmed, 0)).as_ref().to_vec();
        }
    }
}

fn verdict(output: &DkimOutput<'_>) -> DkimVerdict {
    let (result, reason) = match output.result() {
        DkimResult::Pass => (DkimResultCode::Pass, String::new()),
        DkimResult::Fail(error) => (DkimResultCode::Fail, error.to_string()),
        DkimResult::Neutral(error) => (DkimResultCode::Neutral, error.to_string()),
        DkimResult::TempError(error) => (DkimResultCode::TempError, error.to_string()),
        DkimResult::PermError(error) => (DkimResultCode::PermError, error.to_string()),
        DkimResult::None => (DkimResultCode::Neutral, "no result".to_owned()),
    };
    let Some(signature) = output.signature() else { return DkimVerdict::without_signature(result, &reason) };
    let verdict = DkimVerdict {
        domain: signature.d.clone(),
        selector: signature.s.clone(),
        algorithm: signature.a.name(),
        result,
        reason,
    };
    // RFC 8301 3.1: a signature with SHA-1 is as good as none.
    if signature.a == Algorithm::RsaSha1 && result == DkimResultCode::Pass {
        let reason = "rsa-sha1 is not accepted (RFC 8301)".to_owned();
        return DkimVerdict { result: DkimResultCode::PermError, reason, ..verdict };
    }
    verdict
}

/// A resolver that knows no server: all that it will be asked stands in [`Given`].
fn offline() -> Option<&'static MessageAuthenticator> {
    static OFFLINE: OnceLock<Option<MessageAuthenticator>> = OnceLock::new();
    OFFLINE
        .get_or_init(|| {
            let nowhere = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
            MessageAuthenticator::new(nowhere, ResolverOpts::default()).ok()
        })
        .as_ref()
}

/// Answers every question from the list, so that none reaches the DNS.
struct Given<'a>(&'a [(String, String)]);

impl ResolverCache<Box<str>, Txt> for Given<'_> {
    fn get<Q>(&self, name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let record = self.0.iter().find(|(given, _)| {
            let fqdn = format!("{}.", given.trim_end_matches('.').to_ascii_lowercase()).into_boxed_str();
            <Box<str> as Borrow<Q>>::borrow(&fqdn) == name
        });
        Some(match record.map(|(_, value)| DomainKey::parse(value.as_bytes())) {
            Some(Ok(key)) => key.into(),
            Some(Err(error)) => Txt::Error(error),
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
