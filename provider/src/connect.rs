//! Domain Connect: the page at a provider where a customer, logged in there, agrees to a domain's records.
//!
//! ```text
//! TXT _domainconnect.<zone> ─► settings_url ─► [fetch] ─► is the template known? ─► connect_url ─► the customer's browser
//! ```
//!
//! The provider must know the operator's template: which records they are, with variables for what differs between
//! domains. What is fetched is a stranger's word for an address ([`super::fetch`] guards it); the rest is pure.
//! Standard: draft-ietf-dconn-domainconnect.

use std::str::FromStr;

use mail::address::DomainName;
use mail::setup::{DomainRecord, RecordPurpose};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use thiserror::Error;

use super::{Publisher, RequestKey};
use dns::setup::{DomainChecker, QueryError, include_mechanisms};

/// What stands as it is in a query (RFC 3986 2.3).
const ENCODE_SET: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Bytes of an address that a stranger gives.
const ADDRESS_BYTES_MAX: usize = 500;
/// Bytes of one of a template's ids.
const ID_BYTES_MAX: usize = 253;
/// Where a zone says how its provider is asked.
const LABEL: &str = "_domainconnect";

/// The operator's template, as registered with the providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainConnectTemplate {
    /// `providerId`: the operator's own domain, by custom.
    pub provider_id: String,
    /// `serviceId`: which of the operator's templates.
    pub service_id: String,
}

/// `providerId/serviceId`.
impl FromStr for DomainConnectTemplate {
    type Err = TemplateNameError;

    fn from_str(text: &str) -> Result<Self, TemplateNameError> {
        let is_id = |id: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(plain)
        };
        let ids = text.split_once('/').filter(|(provider, service)| is_id(provider) && is_id(service));
        let (provider, service) = ids.ok_or(TemplateNameError)?;
        Ok(Self { provider_id: provider.to_owned(), service_id: service.to_owned() })
    }
}

/// It is no template's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be the template's providerId and serviceId with a slash between them, like \"example.net/email\"")]
pub struct TemplateNameError;

/// Why there is no page to send the customer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DomainConnectError {
    /// The operator has registered no template.
    #[error("This service has no Domain Connect template")]
    NoTemplate,
    /// The zone's servers could not be asked.
    #[error("The name servers of the domain could not be asked whether its DNS provider offers Domain Connect")]
    NoAnswer,
    /// The zone says nothing of it.
    #[error("The domain's DNS provider does not offer Domain Connect")]
    NoProvider,
    /// The provider's server could not be asked.
    #[error("The DNS provider's Domain Connect server could not be asked: {0}")]
    Unreachable(&'static str),
    /// What the provider answered is not what Domain Connect says.
    #[error("The DNS provider's Domain Connect settings make no sense")]
    Malformed,
    /// It has no page of this kind.
    #[error("The DNS provider does not offer Domain Connect's page for customers")]
    NotOffered,
    /// It does not know our template.
    #[error("The DNS provider does not know this service's Domain Connect template")]
    UnknownTemplate,
    /// The domain is not in the zone.
    #[error("The domain is in no zone that the DNS leads to")]
    NoZone,
}

impl DomainConnectError {
    /// The error as one word, for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoTemplate => "no_template",
            Self::NoAnswer => "no_answer",
            Self::NoProvider | Self::NotOffered => "not_offered",
            Self::Unreachable(_) => "unreachable",
            Self::Malformed => "malformed",
            Self::UnknownTemplate => "unknown_template",
            Self::NoZone => "no_zone",
        }
    }
}

#[derive(Deserialize)]
struct DomainConnectSettings {
    #[serde(rename = "urlSyncUX")]
    page: Option<String>,
    #[serde(rename = "urlAPI")]
    interface: Option<String>,
}

impl DomainConnectSettings {
    fn parse(settings: &[u8]) -> Result<Self, DomainConnectError> {
        serde_json::from_slice(settings).map_err(|_| DomainConnectError::Malformed)
    }

    /// Where is asked whether the provider knows a template: 200 when it does, 404 when not.
    fn template_url(&self, template: &DomainConnectTemplate) -> Result<Option<String>, DomainConnectError> {
        let Some(interface) = &self.interface else { return Ok(None) };
        let (provider, service) = (encode(&template.provider_id), encode(&template.service_id));
        let interface = settings_base_url(interface)?;
        Ok(Some(format!("{interface}/v2/domainTemplates/providers/{provider}/services/{service}")))
    }
}

impl Publisher {
    /// The page at the domain's provider where the customer agrees to these records.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn domain_connect_url(
        &self,
        inspector: &DomainChecker,
        domain: &DomainName,
        records: &[DomainRecord],
    ) -> Result<String, DomainConnectError> {
        let template = self.template.as_ref().ok_or(DomainConnectError::NoTemplate)?;
        let (zone, texts) = inspector.txt_below_zone(domain, LABEL).await.ok_or(DomainConnectError::NoZone)?;
        let texts = texts.map_err(|_: QueryError| DomainConnectError::NoAnswer)?;
        let address = settings_url(&texts, &zone).ok_or(DomainConnectError::NoProvider)?;
        let page = self.fetch(&address).await?;
        let settings = match page.status {
            200 => page.body,
            404 => return Err(DomainConnectError::NoProvider),
            _ => return Err(DomainConnectError::Malformed),
        };
        if let Some(address) = DomainConnectSettings::parse(&settings)?.template_url(template)?
            && self.fetch(&address).await?.status == 404
        {
            return Err(DomainConnectError::UnknownTemplate);
        }
        connect_url(&settings, (template, self.request_key.as_ref()), &zone, domain, records)
    }
}

/// Where a zone's provider says how it is to be asked, given the texts at `_domainconnect` below the zone; `None` when
/// it does not take part.
fn settings_url(texts: &[String], zone: &DomainName) -> Option<String> {
    let address = texts.iter().map(|text| text.trim()).find(|text| is_address(text))?;
    Some(format!("https://{address}/v2/{zone}/settings"))
}

/// The page to send the customer to, given what was fetched from the zone's [`settings_url`].
///
/// # Errors
/// [`ConnectError`].
fn connect_url(
    settings: &[u8],
    (template, request_key): (&DomainConnectTemplate, Option<&RequestKey>),
    zone: &DomainName,
    domain: &DomainName,
    records: &[DomainRecord],
) -> Result<String, DomainConnectError> {
    let page = DomainConnectSettings::parse(settings)?.page.ok_or(DomainConnectError::NotOffered)?;
    let page = settings_base_url(&page)?;
    let host = domain.as_str().strip_suffix(zone.as_str()).ok_or(DomainConnectError::NoZone)?;
    if !host.is_empty() && !host.ends_with('.') {
        return Err(DomainConnectError::NoZone);
    }
    let (provider, service) = (encode(&template.provider_id), encode(&template.service_id));
    let page = format!("{page}/v2/domainTemplates/providers/{provider}/services/{service}/apply");
    let mut query = format!("domain={zone}");
    if !host.is_empty() {
        query += &format!("&host={}", encode(host.trim_end_matches('.')));
    }
    let groups: Vec<&str> = GROUPS.iter().filter(|(_, of)| of.is_needed_for(records)).map(|(name, _)| *name).collect();
    query += &format!("&groupId={}", encode(&groups.join(",")));
    let mut keys = 0;
    for (name, value) in records.iter().flat_map(|record| variables(record, domain, &mut keys)) {
        query += &format!("&{name}={}", encode(&value));
    }
    let query = request_key.map_or_else(|| query.clone(), |key| key.sign(&query));
    Ok(format!("{page}?{query}"))
}

/// The groups of a template's records: what a domain may go without has a group of its own, so that it is only
/// published, and its variables only given, where it is wanted.
const GROUPS: &[(&str, TemplateGroup)] = &[
    ("sending", TemplateGroup::Sending),
    ("dmarc", TemplateGroup::Only(RecordPurpose::Dmarc)),
    ("inbound", TemplateGroup::Only(RecordPurpose::Inbound)),
    ("tracking", TemplateGroup::Only(RecordPurpose::Tracking)),
];

enum TemplateGroup {
    Sending,
    Only(RecordPurpose),
}

impl TemplateGroup {
    fn is_needed_for(&self, records: &[DomainRecord]) -> bool {
        match self {
            Self::Sending => true,
            Self::Only(purpose) => records.iter().any(|record| record.purpose == *purpose),
        }
    }
}

/// What a template is told of a record: the rest of it is in the template. The first key has the variables `dkimhost`
/// and `dkim`, the second `dkimhost2` and `dkim2`.
fn variables(record: &DomainRecord, domain: &DomainName, keys: &mut usize) -> Vec<(String, String)> {
    let value = record.value.clone();
    let label = || {
        let below = record.name.strip_suffix(domain.as_str()).unwrap_or(&record.name);
        below.trim_end_matches('.').to_owned()
    };
    let told: Vec<(&str, String)> = match record.purpose {
        RecordPurpose::Ownership => vec![("ownership", value)],
        RecordPurpose::Dkim => {
            *keys += 1;
            let number = if *keys > 1 { keys.to_string() } else { String::new() };
            return vec![(format!("dkimhost{number}"), label()), (format!("dkim{number}"), value)];
        }
        RecordPurpose::ReturnPath => vec![("returnpath", value)],
        // Providers merge SPF rules themselves (record type SPFM), so that they are told the rules alone.
        RecordPurpose::Spf => vec![("spf", include_mechanisms(&value).join(" "))],
        RecordPurpose::Dmarc => vec![("dmarc", value)],
        RecordPurpose::Inbound => vec![("inbound", value)],
        RecordPurpose::Tracking => vec![("trackinghost", label()), ("tracking", value)],
    };
    told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODE_SET).to_string()
}

/// An address within the provider's settings, without a slash at its end.
fn settings_base_url(address: &str) -> Result<&str, DomainConnectError> {
    let bare = address.trim_end_matches('/');
    let is_one = bare.strip_prefix("https://").is_some_and(is_address);
    if is_one { Ok(bare) } else { Err(DomainConnectError::Malformed) }
}

/// A host, with a path if need be, and nothing else: no user, no port, no query.
fn is_address(text: &str) -> bool {
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.len() <= ADDRESS_BYTES_MAX
        && host.contains('.')
        && host.parse::<DomainName>().is_ok()
        && path.bytes().all(plain)
        && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use mail::setup::RecordType;

    use super::*;

    fn name(text: &str) -> DomainName {
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
            DomainConnectTemplate { provider_id: "post.example".to_owned(), service_id: "send mail".to_owned() };
        let record = |purpose, record_name: &str, value: &str| DomainRecord {
            purpose,
            record_type: RecordType::Txt,
            name: record_name.to_owned(),
            value: value.to_owned(),
            ttl_s: 3_600,
            priority: None,
            required: true,
        };
        let records = [
            record(RecordPurpose::Dkim, "pr1._domainkey.mail.shop.example", "v=DKIM1; p=a+b"),
            record(RecordPurpose::Dkim, "pr1e._domainkey.mail.shop.example", "v=DKIM1; p=c"),
            record(RecordPurpose::Spf, "mail.shop.example", "v=spf1 include:spf.post.example ~all"),
        ];
        let url = |settings: &str, zone: &str| {
            connect_url(settings.as_bytes(), (&template, None), &name(zone), &name("mail.shop.example"), &records)
        };
        assert_eq!(
            url(r#"{"providerName":"X","urlSyncUX":"https://connect.dns.example/"}"#, "shop.example").unwrap(),
            "https://connect.dns.example/v2/domainTemplates/providers/post.example/services/send%20mail/apply\
             ?domain=shop.example&host=mail&groupId=sending\
             &dkimhost=pr1._domainkey&dkim=v%3DDKIM1%3B%20p%3Da%2Bb\
             &dkimhost2=pr1e._domainkey&dkim2=v%3DDKIM1%3B%20p%3Dc&spf=include%3Aspf.post.example"
        );
        let asked = DomainConnectSettings::parse(br#"{"urlAPI":"https://api.dns.example/x/"}"#).unwrap();
        assert_eq!(
            asked.template_url(&template).unwrap().unwrap(),
            "https://api.dns.example/x/v2/domainTemplates/providers/post.example/services/send%20mail"
        );
        assert_eq!("post.example/mail".parse::<DomainConnectTemplate>().unwrap().service_id, "mail");
        assert!(
            ["post.example", "/mail", "a/b/c", "a/b?c"].iter().all(|t| t.parse::<DomainConnectTemplate>().is_err())
        );
        assert_eq!(url("{}", "shop.example"), Err(DomainConnectError::NotOffered));
        assert_eq!(url("<html>", "shop.example"), Err(DomainConnectError::Malformed));
        let page = r#"{"urlSyncUX":"javascript:alert(1)"}"#;
        assert_eq!(url(page, "shop.example"), Err(DomainConnectError::Malformed));
        let page = r#"{"urlSyncUX":"https://dns.example"}"#;
        assert_eq!(url(page, "hop.example"), Err(DomainConnectError::NoZone));
    }
}
