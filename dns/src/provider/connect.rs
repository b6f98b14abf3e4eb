//! Domain Connect: the page at a provider where a customer, logged in there, agrees to a domain's records.
//!
//! ```text
//! TXT _domainconnect.<zone> ─► settings_url ─► (the caller fetches it) ─► connect_url ─► the customer's browser
//! ```
//!
//! The provider must know the operator's template: which records they are, with variables for what differs between
//! domains. Both functions are pure; what is fetched in between is a stranger's word for an address, so it is the
//! caller's guarded client that fetches it. Standard: draft-ietf-dconn-domainconnect.

use mail::address::Name;
use mail::setup::{Purpose, Record};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use thiserror::Error;

use crate::setup::spf;

/// What stands as it is in a query (RFC 3986 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Bytes of an address that a stranger gives.
const ADDRESS_BYTES_MAX: usize = 500;

/// The operator's template, as registered with the providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// `providerId`: the operator's own domain, by custom.
    pub provider_id: String,
    /// `serviceId`: which of the operator's templates.
    pub service_id: String,
}

/// Why there is no page to send the customer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// What the provider answered is not what Domain Connect says.
    #[error("the provider's Domain Connect settings make no sense")]
    Malformed,
    /// It has no page of this kind.
    #[error("the provider does not offer Domain Connect's synchronous page")]
    NotOffered,
    /// The domain is not in the zone.
    #[error("the domain is not in the zone")]
    NoZone,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(rename = "urlSyncUX")]
    page: Option<String>,
}

/// Where a zone's provider says how it is to be asked, given the texts at `_domainconnect` below the zone; `None` when
/// it does not take part.
#[must_use]
pub fn settings_url(texts: &[String], zone: &Name) -> Option<String> {
    let address = texts.iter().map(|text| text.trim()).find(|text| is_address(text))?;
    Some(format!("https://{address}/v2/{zone}/settings"))
}

/// The page to send the customer to, given what was fetched from the zone's [`settings_url`].
///
/// # Errors
/// [`ConnectError`].
pub fn connect_url(
    settings: &[u8],
    template: &Template,
    zone: &Name,
    domain: &Name,
    records: &[Record],
) -> Result<String, ConnectError> {
    let settings: Settings = serde_json::from_slice(settings).map_err(|_| ConnectError::Malformed)?;
    let page = settings.page.ok_or(ConnectError::NotOffered)?;
    let page = page.trim_end_matches('/');
    if !page.strip_prefix("https://").is_some_and(is_address) {
        return Err(ConnectError::Malformed);
    }
    let host = domain.as_str().strip_suffix(zone.as_str()).ok_or(ConnectError::NoZone)?;
    if !host.is_empty() && !host.ends_with('.') {
        return Err(ConnectError::NoZone);
    }
    let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let mut url = format!(
        "{page}/v2/domainTemplates/providers/{}/services/{}/apply?domain={zone}",
        encode(&template.provider_id),
        encode(&template.service_id)
    );
    if !host.is_empty() {
        url += &format!("&host={}", encode(host.trim_end_matches('.')));
    }
    for (name, value) in records.iter().flat_map(|record| variables(record, domain)) {
        url += &format!("&{name}={}", encode(&value));
    }
    Ok(url)
}

/// What a template is told of a record: the rest of it is in the template.
fn variables(record: &Record, domain: &Name) -> Vec<(&'static str, String)> {
    let value = record.value.clone();
    let label = || {
        let below = record.name.strip_suffix(domain.as_str()).unwrap_or(&record.name);
        below.trim_end_matches('.').to_owned()
    };
    match record.purpose {
        Purpose::Ownership => vec![("ownership", value)],
        Purpose::Dkim => vec![("dkimhost", label()), ("dkim", value)],
        Purpose::ReturnPath => vec![("returnpath", value)],
        // Providers merge SPF rules themselves (record type SPFM), so that they are told the rules alone.
        Purpose::Spf => {
            vec![("spf", spf::mechanisms(&value).join(" "))]
        }
        Purpose::Dmarc => vec![("dmarc", value)],
        Purpose::Inbound => vec![("inbound", value)],
        Purpose::Tracking => vec![("trackinghost", label()), ("tracking", value)],
    }
}

/// A host, with a path if need be, and nothing else: no user, no port, no query.
fn is_address(text: &str) -> bool {
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.len() <= ADDRESS_BYTES_MAX
        && host.contains('.')
        && host.parse::<Name>().is_ok()
        && path.bytes().all(plain)
        && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use mail::setup::RecordType;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn the_settings_are_where_the_zone_says() {
        let at = |text: &str| settings_url(&[text.to_owned()], &name("shop.example"));
        assert_eq!(
            at("api.cloudflare.com/client/v4/dns/domainconnect").as_deref(),
            Some("https://api.cloudflare.com/client/v4/dns/domainconnect/v2/shop.example/settings")
        );
        let strange = [
            "",
            "v=spf1 -all",
            "user@host.example",
            "host.example:8080",
            "127.0.0.1",
            "localhost",
            "a.example/../x",
            "a.example?x",
        ];
        for text in strange {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn the_page_is_told_what_differs_between_domains() {
        let template =
            Template { provider_id: "post.example".to_owned(), service_id: "send mail".to_owned() };
        let record = |purpose, record_name: &str, value: &str| Record {
            purpose,
            record_type: RecordType::Txt,
            name: record_name.to_owned(),
            value: value.to_owned(),
            ttl_s: 3_600,
            priority: None,
            required: true,
        };
        let records = [
            record(Purpose::Dkim, "pr1._domainkey.mail.shop.example", "v=DKIM1; p=a+b"),
            record(Purpose::Spf, "mail.shop.example", "v=spf1 include:spf.post.example ~all"),
        ];
        let url = |settings: &str, zone: &str| {
            connect_url(settings.as_bytes(), &template, &name(zone), &name("mail.shop.example"), &records)
        };
        assert_eq!(
            url(r#"{"providerName":"X","urlSyncUX":"https://connect.dns.example/"}"#, "shop.example")
                .unwrap(),
            "https://connect.dns.example/v2/domainTemplates/providers/post.example/services/send%20mail/apply\
             ?domain=shop.example&host=mail&dkimhost=pr1._domainkey&dkim=v%3DDKIM1%3B%20p%3Da%2Bb\
             &spf=include%3Aspf.post.example"
        );
        assert_eq!(url("{}", "shop.example"), Err(ConnectError::NotOffered));
        assert_eq!(url("<html>", "shop.example"), Err(ConnectError::Malformed));
        let page = r#"{"urlSyncUX":"javascript:alert(1)"}"#;
        assert_eq!(url(page, "shop.example"), Err(ConnectError::Malformed));
        let page = r#"{"urlSyncUX":"https://dns.example"}"#;
        assert_eq!(url(page, "hop.example"), Err(ConnectError::NoZone));
    }
}
