//! Requests for domains.

use std::borrow::Cow;

use mail::address::DomainName;
use mail::address_pattern::AddressPattern;
use mail::domain::{DeliverySettings, DomainState, INBOUND_ADDRESSES_MAX, SendingDomain, TlsMode};
use mail::domain_name;
use mail::domain_setup::RETURN_PATH_LABEL;
use mail::id::DomainId;
use queue::domains::{ImportedKey, NewDomain};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use crate::paging::{self, PageParameters};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};

const ID_OR_NAME: &str = "id_or_name";
/// RFC 1035 2.3.4.
const LABEL_BYTES_MAX: usize = 63;
const TLS_MODES: &[&str] = &["opportunistic", "enforced"];
const STATUSES: &[&str] = &["unverified", "verified"];
/// Maximum length of a search text.
const Q_BYTES_MAX: usize = 253;

/// The domain in a path.
#[derive(Debug)]
pub(super) enum DomainKey {
    Id(DomainId),
    Name(DomainName),
}

impl DomainKey {
    pub(super) fn parameter() -> Value {
        schema::path_parameter(ID_OR_NAME, "The domain's id (`dom_…`) or name")
    }

    pub(super) fn from_request(call: &Request) -> Result<Self, Problem> {
        let text = call.path_text(ID_OR_NAME).ok_or_else(super::error::domain_not_found)?;
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        text.parse().map(Self::Name).map_err(|_| super::error::domain_not_found())
    }
}

/// Path of a domain.
#[derive(Debug)]
pub struct DomainPath(pub(super) DomainKey);

impl FromRequest for DomainPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![DomainKey::parameter()], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        DomainKey::from_request(call).map(Self)
    }
}

/// Settings to change; `None` leaves a setting unchanged.
#[derive(Debug, Default)]
struct DomainSettings {
    open_tracking: Option<bool>,
    click_tracking: Option<bool>,
    tls_mode: Option<TlsMode>,
    inbound_enabled: Option<bool>,
    inbound_addresses: Option<Vec<AddressPattern>>,
    /// `Some(None)`: null removes the custom host.
    tracking_host: Option<Option<DomainName>>,
}

impl DomainSettings {
    fn read(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Self {
        let mut boolean = |name| {
            let parsed = fields.value(name).map(fields::parse_bool).transpose();
            parsed.map_err(|text| notes.errors.add(name, text)).ok().flatten()
        };
        let (open_tracking, click_tracking) = (boolean("open_tracking"), boolean("click_tracking"));
        let inbound_enabled = boolean("inbound_enabled");
        let mode = fields.value("tls_mode").map(parse_tls_mode).transpose();
        let tls_mode = mode.map_err(|text| notes.errors.add("tls_mode", text)).ok().flatten();
        let host = fields.fields().iter().find(|(name, _)| *name == "tracking_host");
        let host = host.map(|(_, value)| parse_tracking_host(value)).transpose();
        let tracking_host = host.map_err(|text| notes.errors.add("tracking_host", text)).ok().flatten();
        let inbound_addresses = read_inbound_addresses(fields, notes);
        Self { open_tracking, click_tracking, tls_mode, inbound_enabled, inbound_addresses, tracking_host }
    }

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
        if let Some(addresses) = &self.inbound_addresses {
            inbound_addresses.clone_from(addresses);
        }
        if let Some(host) = &self.tracking_host {
            delivery.tracking_host.clone_from(host);
        }
    }

    fn properties() -> Vec<(&'static str, Value)> {
        let mut addresses = schema::list(
            schema::string("An address, or a pattern of addresses"),
            "Addresses that receive mail: `support@example.com`, sub-addresses \
             (`support+*@example.com`) or all (`*@example.com`); empty means all. `postmaster` always receives mail",
        );
        addresses["maxItems"] = json!(INBOUND_ADDRESSES_MAX);
        addresses["examples"] = json!([[]]);
        vec![
            ("open_tracking", schema::boolean("Whether opens are tracked by a pixel in the HTML")),
            ("click_tracking", schema::boolean("Whether links in the HTML are rewritten to track clicks")),
            (
                "tls_mode",
                schema::string_enum(
                    TLS_MODES,
                    "`opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS",
                ),
            ),
            ("inbound_enabled", schema::boolean("Whether mail to the domain is received")),
            ("inbound_addresses", addresses),
            (
                "tracking_host",
                schema::nullable_string("Your own host for tracking links; null uses the service's host"),
            ),
        ]
    }
}

/// Null means all addresses, like an empty list.
fn read_inbound_addresses(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<AddressPattern>> {
    const NAME: &str = "inbound_addresses";
    if fields.is_null(NAME) {
        return Some(Vec::new());
    }
    let parsed =
        fields.value(NAME).map(|value| fields::parse_address_patterns(value, INBOUND_ADDRESSES_MAX)).transpose();
    parsed.map_err(|text| notes.errors.add(NAME, text)).ok().flatten()
}

fn parse_tls_mode(value: &RawValue) -> Result<TlsMode, String> {
    match fields::parse_text(value)?.as_ref() {
        "opportunistic" => Ok(TlsMode::Opportunistic),
        "enforced" => Ok(TlsMode::Enforced),
        _ => Err(format!("must be one of {}", TLS_MODES.join(", "))),
    }
}

fn parse_tracking_host(value: &RawValue) -> Result<Option<DomainName>, String> {
    if JsonKind::of_value(value) == JsonKind::Null {
        return Ok(None);
    }
    let text = fields::parse_text(value)?;
    let name = text.parse::<DomainName>().ok().filter(|name| name.as_str().contains('.'));
    name.map(Some).ok_or_else(|| "must be a host name, like `links.example.com`".to_owned())
}

/// Body of `POST /domains`.
#[derive(Debug)]
pub struct CreateDomain(pub(super) NewDomain);

impl FromRequest for CreateDomain {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateDomain", |_| {
            let mut name = schema::string("The domain, like `example.com` or a subdomain, `mail.example.com`");
            name["examples"] = json!(["example.org"]);
            let mut selector = schema::string("The selector of the RSA key; generated if omitted");
            selector["examples"] = json!(["mail2026"]);
            let mut key =
                schema::string("An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted");
            key["examples"] = json!([null]);
            key["type"] = json!(["string", "null"]);
            let mut properties = vec![("name", name)];
            properties.extend(DomainSettings::properties());
            properties.extend([("dkim_selector", selector), ("dkim_private_key", key)]);
            schema::object_with("A domain to send from", &["name"], properties)
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[
                ("name", "name"),
                ("domain", "name"),
                ("open_tracking", "open_tracking"),
                ("click_tracking", "click_tracking"),
                ("tls_mode", "tls_mode"),
                ("tls", "tls_mode"),
                ("inbound_enabled", "inbound_enabled"),
                ("inbound_addresses", "inbound_addresses"),
                ("tracking_host", "tracking_host"),
                ("dkim_selector", "dkim_selector"),
                ("dkim_private_key", "dkim_private_key"),
            ],
            foreign: &[("Name", "name"), ("tracking_subdomain", "tracking_host")],
        };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let name = read_name(&fields, &mut notes);
        let settings = DomainSettings::read(&fields, &mut notes);
        let selector = fields.value("dkim_selector").map(parse_selector).transpose();
        let selector = selector.map_err(|text| notes.errors.add("dkim_selector", text)).ok().flatten();
        let rsa = fields.value("dkim_private_key").map(parse_private_key).transpose();
        let rsa = rsa.map_err(|text| notes.errors.add("dkim_private_key", text)).ok().flatten();
        if let Some((field, text)) = name.as_ref().and_then(|name| settings.find_mismatch(name)) {
            notes.errors.add(field, text);
        }
        match name {
            Some(name) if notes.errors.is_empty() => {
                let mut new = NewDomain { selector, rsa, ..NewDomain::with_name(name) };
                settings.apply(&mut new.delivery, &mut new.inbound_enabled, &mut new.inbound_addresses);
                Ok(Self(new))
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// Reads the domain's name from the field `name`.
pub(super) fn read_name(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<DomainName> {
    let parsed = match fields.value("name") {
        None if fields.is_present_or_misnamed("name") => return None,
        None => Err("is required".to_owned()),
        Some(value) => fields::parse_text(value)
            .and_then(|text: Cow<'_, str>| domain_name::parse(&text).map_err(|refused| refused.to_string())),
    };
    parsed.map_err(|text| notes.errors.add("name", text)).ok()
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

fn parse_private_key(value: &RawValue) -> Result<ImportedKey, String> {
    ImportedKey::from_pem(&fields::parse_text(value)?).map_err(|refused| refused.to_string())
}

/// Path and body of `PATCH /domains/{id_or_name}`.
#[derive(Debug)]
pub struct UpdateDomain {
    pub(super) domain_key: DomainKey,
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

impl FromRequest for UpdateDomain {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("UpdateDomain", |_| {
            schema::object_with("The fields to change", &[], DomainSettings::properties())
        });
        let parameters = vec![DomainKey::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[
                ("open_tracking", "open_tracking"),
                ("click_tracking", "click_tracking"),
                ("tls_mode", "tls_mode"),
                ("tls", "tls_mode"),
                ("inbound_enabled", "inbound_enabled"),
                ("inbound_addresses", "inbound_addresses"),
                ("tracking_host", "tracking_host"),
            ],
            foreign: &[("tracking_subdomain", "tracking_host")],
        };
        let domain_key = DomainKey::from_request(call)?;
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let settings = DomainSettings::read(&fields, &mut notes);
        if notes.errors.is_empty() { Ok(Self { domain_key, settings }) } else { Err(notes.errors.into()) }
    }
}

/// Path and query of `DELETE /domains/{id_or_name}`.
#[derive(Debug)]
pub struct DeleteDomain {
    pub(super) domain_key: DomainKey,
    pub(super) force: bool,
}

impl FromRequest for DeleteDomain {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let flag_schema = json!({"type": "boolean", "default": false});
        let force =
            schema::query_parameter("force", "Delete the domain even if emails from it are scheduled", flag_schema);
        RequestSpec { parameters: vec![DomainKey::parameter(), force], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self {
            domain_key: DomainKey::from_request(call)?,
            force: paging::parse_flag(&paging::parse_query(&call.query)?, "force")?,
        })
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

impl FromRequest for ListDomains {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let items = json!({"type": "array", "items": {"type": "string", "enum": STATUSES}});
        let mut status = schema::query_parameter("status", "Filter by verification status", items);
        (status["style"], status["explode"]) = (json!("form"), json!(false));
        let q = json!({"type": "string", "maxLength": Q_BYTES_MAX});
        let mut parameters = PageParameters::parameters();
        parameters.extend([status, schema::query_parameter("q", "Filter by text in the name", q)]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let q = paging::single_value(&parameters, "q")?.map(str::to_lowercase);
        if q.as_ref().is_some_and(|q| q.chars().count() > Q_BYTES_MAX) {
            return Err(Problem::field("q", format!("is longer than {Q_BYTES_MAX} characters")));
        }
        let from_word = |word: &str| match word {
            "unverified" => Some(DomainState::Unverified),
            "verified" => Some(DomainState::Verified),
            _ => None,
        };
        let statuses = paging::parse_words(&call.query, "status", STATUSES, from_word)?;
        Ok(Self { page: PageParameters::from_query(&call.query)?, statuses, q })
    }
}
