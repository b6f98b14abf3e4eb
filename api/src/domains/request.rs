//! Requests for domains.

use accounts::domains::{ImportedKey, NewDomain};
use httpd::request_object::{RequestValue, bounded_text_schema};
use httpd::request_value::{AddressPatterns, HostName};
use message::address::{DomainName, NAME_TEXT_BYTES_MAX};
use message::address_pattern::AddressPattern;
use message::domain_name;
use model::domain::{DeliverySettings, DomainState, INBOUND_ADDRESSES_MAX, SendingDomain, TlsMode};
use model::domain_setup::RETURN_PATH_LABEL;

use crate::prelude::*;

const ID_OR_NAME: &str = "id_or_name";
/// RFC 1035 2.3.4.
const LABEL_BYTES_MAX: usize = 63;
/// Maximum length of a search text.
const Q_BYTES_MAX: usize = 253;

/// The domain in a path.
#[derive(Debug)]
pub enum DomainKey {
    Id(DomainId),
    Name(DomainName),
}

impl FromRequest for DomainKey {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter(ID_OR_NAME, "The domain's id (`dom_…`) or name")]
    }

    fn read(call: &Request) -> Result<Self> {
        let text = call.path_text(ID_OR_NAME).ok_or_else(super::error::domain_not_found)?;
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        text.parse().map(Self::Name).map_err(|_| super::error::domain_not_found())
    }
}

/// Settings to change; `None` leaves a setting unchanged.
#[derive(Debug, Default, RequestObject)]
struct DomainSettings {
    /// Whether opens are tracked by a pixel in the HTML
    open_tracking: Option<bool>,
    /// Whether links in the HTML are rewritten to track clicks
    click_tracking: Option<bool>,
    /// `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
    #[field(aliases = ["tls"], parse = parse_tls_mode, schema = json!({"type": "string", "enum": TlsMode::WORDS}))]
    tls_mode: Option<TlsMode>,
    /// Whether mail to the domain is received
    inbound_enabled: Option<bool>,
    /// Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
    /// (`*@example.com`); empty means all. `postmaster` always receives mail
    #[field(reader = AddressPatterns<INBOUND_ADDRESSES_MAX>, null = Vec::new(), examples = [[]])]
    inbound_addresses: Option<Vec<AddressPattern>>,
    /// Your own host for tracking links; null uses the service's host
    #[field(foreign = ["tracking_subdomain"], reader = HostName)]
    tracking_host: Option<Option<DomainName>>,
}

impl DomainSettings {
    /// The first setting that does not fit the domain: the field and the reason.
    fn find_mismatch(&self, domain: &DomainName) -> Option<(&'static str, String)> {
        if let Err(text) = self.check_tracking_host(domain) {
            return Some(("tracking_host", text.to_owned()));
        }
        let foreign = |pattern: &&AddressPattern| pattern.domain() != domain;
        let foreign_address = self.inbound_addresses.as_ref().and_then(|all| all.iter().find(foreign))?;
        Some(("inbound_addresses", format!("`{foreign_address}` is not an address of `{domain}`")))
    }

    /// The tracking host must be below the domain, because recipients attribute the links to it. `rp` is taken by the
    /// return path.
    fn check_tracking_host(&self, domain: &DomainName) -> Result<(), &'static str> {
        let Some(Some(host)) = &self.tracking_host else { return Ok(()) };
        let label = host.as_str().strip_suffix(domain.as_str()).and_then(|rest| rest.strip_suffix('.'));
        match label {
            None | Some("") => Err("must be a host below the domain, like `links.example.com` of `example.com`"),
            Some(RETURN_PATH_LABEL) => Err("is used by the return path; choose another label, like `links`"),
            Some(label) if label.contains('_') => Err("must be a host name, like `links.example.com`"),
            Some(_) => Ok(()),
        }
    }

    fn apply(
        &self,
        delivery: &mut DeliverySettings,
        inbound_enabled: &mut bool,
        inbound_addresses: &mut Vec<AddressPattern>,
    ) {
        delivery.open_tracking = self.open_tracking.unwrap_or(delivery.open_tracking);
        delivery.click_tracking = self.click_tracking.unwrap_or(delivery.click_tracking);
        delivery.tls_mode = self.tls_mode.unwrap_or(delivery.tls_mode);
        *inbound_enabled = self.inbound_enabled.unwrap_or(*inbound_enabled);
        set_given(inbound_addresses, &self.inbound_addresses);
        set_given(&mut delivery.tracking_host, &self.tracking_host);
    }
}

fn parse_tls_mode(value: &RawValue) -> Result<TlsMode, String> {
    let mode = TlsMode::from_word(&fields::parse_text(value)?);
    mode.ok_or_else(|| format!("must be one of {}", TlsMode::WORDS.join(", ")))
}

/// A domain to send from
#[derive(Debug, RequestObject)]
#[schema(name = "CreateDomain")]
struct NewDomainFields {
    /// The domain, like `example.com` or a subdomain, `mail.example.com`
    #[field(aliases = ["domain"], foreign = ["Name"], reader = SendingDomainName, examples = ["example.org"])]
    name: DomainName,
    #[field(flatten)]
    settings: DomainSettings,
    /// The selector of the RSA key; generated if omitted
    #[field(parse = parse_selector, schema = selector_schema, examples = ["mail2026"])]
    dkim_selector: Option<String>,
    /// An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted
    #[field(
        parse = parse_private_key, schema = bounded_text_schema(0, PRIVATE_KEY_BYTES_MAX), nullable, examples = [null],
    )]
    dkim_private_key: Option<ImportedKey>,
}

/// Body of `POST /domains`.
#[derive(Debug)]
pub struct CreateDomain(pub(super) NewDomain);

impl FromRequest for CreateDomain {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(NewDomainFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let fields = read_checked_body(call, |fields: &NewDomainFields, _, notes| {
            if let Some((field, text)) = fields.settings.find_mismatch(&fields.name) {
                notes.errors.add(field, text);
            }
        })?;
        let NewDomainFields { name, settings, dkim_selector, dkim_private_key } = fields;
        let mut new = NewDomain { selector: dkim_selector, rsa: dkim_private_key, ..NewDomain::with_name(name) };
        settings.apply(&mut new.delivery, &mut new.inbound_enabled, &mut new.inbound_addresses);
        Ok(Self(new))
    }
}

/// The name of a domain to send from.
pub(super) struct SendingDomainName;

impl RequestValue for SendingDomainName {
    type Value = DomainName;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(1, NAME_TEXT_BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<DomainName, String> {
        domain_name::parse(&fields::parse_text(value)?).map_err(|refused| refused.to_string())
    }
}

/// Parses a DKIM selector (RFC 6376 3.1). Only one label is accepted; the Ed25519 key's selector appends an `e` to it.
fn parse_selector(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?.to_ascii_lowercase();
    let is_ascii_label = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let edges = !text.starts_with('-') && !text.ends_with('-');
    if text.is_empty() || text.len() >= LABEL_BYTES_MAX || !is_ascii_label || !edges {
        return Err("must be letters, digits and hyphens, at most 62 of them".to_owned());
    }
    Ok(text)
}

fn selector_schema(_: &mut Schemas) -> Value {
    let mut schema = bounded_text_schema(1, LABEL_BYTES_MAX - 1);
    schema["pattern"] = json!("^[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?$");
    schema
}

/// Longest private key in bytes: PEM of 4,096 bits has 3,300, and may have comments.
const PRIVATE_KEY_BYTES_MAX: usize = 16 << 10;

fn parse_private_key(value: &RawValue) -> Result<ImportedKey, String> {
    let text = fields::parse_text(value)?;
    if text.len() > PRIVATE_KEY_BYTES_MAX {
        return Err(format!("is longer than {PRIVATE_KEY_BYTES_MAX} bytes"));
    }
    ImportedKey::from_pem(&text).map_err(|refused| refused.to_string())
}

/// The fields to change
#[derive(Debug, RequestObject)]
#[schema(name = "UpdateDomain", body_bytes_max = SMALL_BYTES_MAX)]
pub struct UpdateDomain {
    #[field(flatten)]
    settings: DomainSettings,
}

impl UpdateDomain {
    /// The problem for a setting that does not fit the domain.
    pub(super) fn find_mismatch(&self, domain: &DomainName) -> Option<Problem> {
        self.settings.find_mismatch(domain).map(|(field, text)| Problem::field(field, text))
    }

    pub(super) fn apply(&self, domain: &mut SendingDomain) {
        let SendingDomain { delivery, inbound_enabled, inbound_addresses, .. } = domain;
        self.settings.apply(delivery, inbound_enabled, inbound_addresses);
    }
}

/// Query of `DELETE /domains/{id_or_name}`.
#[derive(Debug)]
pub struct DeleteDomain {
    pub(super) force: bool,
}

impl RequestQuery for DeleteDomain {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self { force: query.flag("force", "Delete the domain even if emails from it are scheduled")? })
    }
}

/// Query of `GET /domains`.
#[derive(Debug)]
pub struct ListDomains {
    pub(super) page: PageParameters,
    statuses: Vec<DomainState>,
    q: Option<String>,
}

impl ListDomains {
    pub(super) fn matches(&self, domain: &SendingDomain) -> bool {
        let status = self.statuses.is_empty() || self.statuses.contains(&domain.state);
        let has = |q: &String| {
            let is_plain = q.is_ascii() || !domain.name.as_str().contains("xn--");
            domain.name.as_str().contains(q.as_str()) || !is_plain && domain.name.to_unicode().contains(q.as_str())
        };
        status && self.q.as_ref().is_none_or(has)
    }
}

impl RequestQuery for ListDomains {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let (words, from_word) = (DomainState::WORDS, DomainState::from_word);
        let statuses = query.words_of("status", "Filter by verification status", words, from_word)?;
        let q = || json!({"type": "string", "maxLength": Q_BYTES_MAX});
        let q = query.parameter("q", "Filter by text in the name", q)?.map(str::to_lowercase);
        if q.as_ref().is_some_and(|q| q.chars().count() > Q_BYTES_MAX) {
            return Err(Problem::field("q", format!("is longer than {Q_BYTES_MAX} characters")));
        }
        Ok(Self { page, statuses, q })
    }
}
