//! Domain Connect: the page of a DNS provider at which a logged-in customer approves the records of a domain.
//!
//! ```text
//! TXT _domainconnect.<zone> ─► settings_url ─► fetch ─► template known? ─► connect_url ─► the customer's browser
//! ```
//!
//! The provider must have the operator's template, which has the records, with variables for what differs between
//! domains. The fetched URLs are chosen by the zone's owner ([`super::fetch`] restricts them); the other functions are
//! pure.
//!
//! Standard: draft-ietf-dconn-domainconnect.

use std::str::FromStr;

use message::address::DomainName;
use message::percent::encode;
use model::domain_setup::{DomainRecord, RecordPurpose};
use serde::Deserialize;
use thiserror::Error;

use super::{Publisher, RequestKey};
use dns::domain_check::{DomainChecker, QueryError, include_mechanisms};

/// Maximum length of a URL from the provider's settings, in bytes.
const ADDRESS_BYTES_MAX: usize = 500;
/// Maximum length of an id of a template, in bytes.
const ID_BYTES_MAX: usize = 253;
/// The label at which a zone publishes the server of its provider.
const LABEL: &str = "_domainconnect";

/// The operator's template, as registered with the providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainConnectTemplate {
    /// `providerId`: by convention the operator's own domain.
    pub provider_id: String,
    /// `serviceId`: one of the operator's templates.
    pub service_id: String,
}

/// Parses `providerId/serviceId`.
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

/// The text is not the name of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be the template's providerId and serviceId with a slash between them, like \"example.net/email\"")]
pub struct TemplateNameError;

/// The reason why there is no Domain Connect page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DomainConnectError {
    /// The operator has not configured a template.
    #[error("This service has no Domain Connect template")]
    NoTemplate,
    /// The zone's name servers did not answer.
    #[error("The domain's name servers did not answer the query for Domain Connect")]
    NoAnswer,
    /// The zone has no `_domainconnect` record.
    #[error("The domain's DNS provider does not offer Domain Connect")]
    NoProvider,
    /// The provider's server could not be reached.
    #[error("The DNS provider's Domain Connect server could not be reached: {0}")]
    Unreachable(&'static str),
    /// The provider's settings are invalid.
    #[error("The DNS provider's Domain Connect settings are invalid")]
    Malformed,
    /// The provider has no synchronous flow (`urlSyncUX`).
    #[error("The DNS provider does not offer the Domain Connect page for customers")]
    NotOffered,
    /// The provider has not registered the operator's template.
    #[error("The DNS provider does not know this service's Domain Connect template")]
    UnknownTemplate,
    /// The zone of the domain was not found.
    #[error("The zone of the domain was not found in the DNS")]
    NoZone,
}

impl DomainConnectError {
    /// The error code for programs.
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

    /// The URL at which the provider confirms a template: 200 if it is registered, 404 if not.
    fn template_url(&self, template: &DomainConnectTemplate) -> Result<Option<String>, DomainConnectError> {
        let Some(interface) = &self.interface else { return Ok(None) };
        let (provider, service) = (encode(&template.provider_id), encode(&template.service_id));
        let interface = settings_base_url(interface)?;
        Ok(Some(format!("{interface}/v2/domainTemplates/providers/{provider}/services/{service}")))
    }
}

impl Publisher {
    /// Returns the provider's page at which the customer approves these records.
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
        connect_url(&settings, template, self.request_key.as_ref(), &zone, domain, records)
    }
}

/// The URL of the provider's settings, from the texts at `_domainconnect` below the zone; `None` if there is none.
fn settings_url(texts: &[String], zone: &DomainName) -> Option<String> {
    let address = texts.iter().map(|text| text.trim()).find(|text| is_address(text))?;
    Some(format!("https://{address}/v2/{zone}/settings"))
}

/// The page for the customer, from the settings fetched from [`settings_url`].
fn connect_url(
    settings: &[u8],
    template: &DomainConnectTemplate,
    request_key: Option<&RequestKey>,
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
    let groups: Vec<&str> =
        GROUPS.iter().filter(|(_, group)| group.is_needed_for(records)).map(|(name, _)| *name).collect();
    query += &format!("&groupId={}", encode(&groups.join(",")));
    let mut keys = 0;
    for (name, value) in records.iter().flat_map(|record| variables(record, domain, &mut keys)) {
        query += &format!("&{name}={}", encode(&value));
    }
    let query = request_key.map_or_else(|| query.clone(), |key| key.sign(&query));
    Ok(format!("{page}?{query}"))
}

/// The groups of a template's records. Optional records have their own groups, so that they are published, and their
/// variables given, only if they are wanted.
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

/// The variables of a record; its other parts are in the template. The first key has the variables `dkimhost` and
/// `dkim`, the second `dkimhost2` and `dkim2`.
fn variables(record: &DomainRecord, domain: &DomainName, keys: &mut usize) -> Vec<(String, String)> {
    let value = record.value.clone();
    let label = || {
        let label = record.name.strip_suffix(domain.as_str()).unwrap_or(&record.name);
        label.trim_end_matches('.').to_owned()
    };
    let named: Vec<(&str, String)> = match record.purpose {
        RecordPurpose::Ownership => vec![("ownership", value)],
        RecordPurpose::Dkim => {
            *keys += 1;
            let number = if *keys > 1 { keys.to_string() } else { String::new() };
            return vec![(format!("dkimhost{number}"), label()), (format!("dkim{number}"), value)];
        }
        RecordPurpose::ReturnPath => vec![("returnpath", value)],
        // Providers merge SPF rules themselves (record type SPFM), so the variable has only the rules.
        RecordPurpose::Spf => vec![("spf", include_mechanisms(&value).join(" "))],
        RecordPurpose::Dmarc => vec![("dmarc", value)],
        RecordPurpose::Inbound => vec![("inbound", value)],
        RecordPurpose::Tracking => vec![("trackinghost", label()), ("tracking", value)],
    };
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A URL from the provider's settings, without a trailing slash.
fn settings_base_url(address: &str) -> Result<&str, DomainConnectError> {
    let bare = address.trim_end_matches('/');
    let is_base_url = bare.strip_prefix("https://").is_some_and(is_address);
    if is_base_url { Ok(bare) } else { Err(DomainConnectError::Malformed) }
}

/// Returns whether a text is a host with an optional path, without user, port or query.
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
    use model::domain_setup::RecordType;

    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn the_settings_url_is_read_from_the_zone() {
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
    fn the_template_url_contains_the_domains_variables() {
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
            connect_url(settings.as_bytes(), &template, None, &name(zone), &name("mail.shop.example"), &records)
        };
        assert_eq!(
            url(r#"{"providerName":"X","urlSyncUX":"https://connect.dns.example/"}"#, "shop.example").unwrap(),
            "https://connect.dns.example/v2/domainTemplates/providers/post.example/services/send%20mail/apply\
             ?domain=shop.example&host=mail&groupId=sending\
             &dkimhost=pr1._domainkey&dkim=v%3DDKIM1%3B%20p%3Da%2Bb\
             &dkimhost2=pr1e._domainkey&dkim2=v%3DDKIM1%3B%20p%3Dc&spf=include%3Aspf.post.example"
        );
        let settings = DomainConnectSettings::parse(br#"{"urlAPI":"https://api.dns.example/x/"}"#).unwrap();
        assert_eq!(
            settings.template_url(&template).unwrap().unwrap(),
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
