//! Requests for API keys and SMTP credentials.

use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use mail::cidr::IpNetwork;
use mail::credential::{ApiKeyScope, CredentialPolicy};
use mail::id::DomainId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::kind::{CreateCredential, CredentialKind};
use crate::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use crate::paging::PageParameters;
use crate::problem::Problem;
use crate::request::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};

const NAME_BYTES_MAX: usize = 200;
/// Maximum number of allowed networks per credential.
const NETWORKS_MAX: usize = 50;
/// Maximum grace period of a rotation: two weeks.
const GRACE_HOURS_MAX: u64 = 14 * 24;
const GRACE_HOURS_DEFAULT: u64 = 24;

const NAME: &str = "name";
const SCOPE: &str = "scope";
const DOMAIN: &str = "domain_id";
const ALLOWED: &str = "allowed_ips";
const EXPIRES: &str = "expires_at";
const ENABLED: &str = "enabled";
const GRACE: &str = "grace_hours";

/// Query of a list.
#[derive(Debug)]
pub struct ListCredentials<K> {
    pub page: PageParameters,
    kind: PhantomData<fn() -> K>,
}

/// Path of a credential.
#[derive(Debug)]
pub struct CredentialPath<K> {
    pub id: [u8; 16],
    kind: PhantomData<fn() -> K>,
}

/// Path and body of an update; `None` leaves a field unchanged.
#[derive(Debug)]
pub struct UpdateCredential<K> {
    pub id: [u8; 16],
    pub name: Option<String>,
    /// Networks from which the credential may be used; empty allows all.
    pub allowed: Option<Vec<IpNetwork>>,
    pub enabled: Option<bool>,
    kind: PhantomData<fn() -> K>,
}

/// Path and body of a rotation.
#[derive(Debug)]
pub struct RotateCredential<K> {
    pub id: [u8; 16],
    /// Grace period in which the previous secret stays valid.
    pub grace: Duration,
    kind: PhantomData<fn() -> K>,
}

fn note_error<T>(read: Result<T, String>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<T> {
    read.map_err(|text| notes.errors.add(name, text)).ok()
}

fn read_name(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<String> {
    let parsed = fields::parse_header_line(fields.value(NAME)?, NAME_BYTES_MAX).and_then(|text| {
        let text = text.trim().to_owned();
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text) }
    });
    note_error(parsed, NAME, notes)
}

fn parse_networks(value: &RawValue) -> Result<Vec<IpNetwork>, String> {
    let entries = fields::parse_list(value, NETWORKS_MAX)?;
    entries
        .into_iter()
        .map(|entry| {
            let text = fields::parse_text(entry)?;
            text.trim().parse().map_err(|error| format!("`{}`: {error}", fields::printable_name(&text)))
        })
        .collect()
}

fn read_allowed_networks(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<IpNetwork>> {
    note_error(parse_networks(fields.value(ALLOWED)?), ALLOWED, notes)
}

fn read_expires_at(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Timestamp> {
    let read = fields::parse_text(fields.value(EXPIRES)?)
        .and_then(|text| mail::timestamp::parse(&text).map_err(str::to_owned));
    note_error(read, EXPIRES, notes)
}

fn read_domain(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<DomainId> {
    let parsed = fields::parse_text(fields.value(DOMAIN)?)
        .and_then(|text| text.parse().map_err(|_| "is not the id of a domain (`dom_…`)".to_owned()));
    note_error(parsed, DOMAIN, notes)
}

fn read_scope(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<ApiKeyScope> {
    let Some(value) = fields.value(SCOPE) else {
        notes.errors.add(SCOPE, "is required; must be `full` or `sending`");
        return None;
    };
    let parsed = fields::parse_text(value).and_then(|text| match text.as_ref() {
        "full" => Ok(ApiKeyScope::Full),
        "sending" => Ok(ApiKeyScope::Sending),
        _ => Err("must be `full` or `sending`".to_owned()),
    });
    note_error(parsed, SCOPE, notes)
}

fn parse_bool(value: &RawValue) -> Result<bool, String> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn parse_hours(value: &RawValue) -> Result<u64, String> {
    let error = || format!("must be a whole number from 0 to {GRACE_HOURS_MAX}");
    if JsonKind::of_value(value) != JsonKind::Number {
        return Err(error());
    }
    value.get().parse().ok().filter(|hours| *hours <= GRACE_HOURS_MAX).ok_or_else(error)
}

fn allowed_schema() -> Value {
    json!({
        "type": "array", "items": {"type": "string"}, "maxItems": NETWORKS_MAX,
        "description": "Addresses and networks that may use the credential; empty allows all",
    })
}

fn name_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX, "description": "The name"})
}

fn parse_id<K: CredentialKind>(call: &Request) -> Result<[u8; 16], Problem> {
    K::id_of(call.path_parameter("id")).ok_or_else(super::kind::not_found::<K>)
}

fn id_parameter<K: CredentialKind>() -> Value {
    schema::path_parameter("id", &format!("The {}'s id (`{}…`)", K::NOUN, K::ID_PREFIX))
}

impl<K: CredentialKind> FromRequest for CreateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = "The only domain (`dom_…`) that the credential may send from; null allows all";
        let mut domain = schema::id(DomainId::PREFIX, text);
        schema::allow_null(&mut domain);
        let fields = [
            (NAME, name_schema()),
            (DOMAIN, domain),
            (ALLOWED, allowed_schema()),
            (EXPIRES, schema::nullable_time("When the credential expires")),
        ];
        let text = format!("A new {}", K::NOUN);
        let mut body = schema::object_with(&text, &[NAME], fields);
        if K::HAS_SCOPE {
            body["properties"][SCOPE] = schema::string_enum(&["full", "sending"], "The scope");
            body["required"] = json!([NAME, SCOPE]);
        }
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[(NAME, NAME), (DOMAIN, DOMAIN), (ALLOWED, ALLOWED), (EXPIRES, EXPIRES), (SCOPE, SCOPE)],
            foreign: &[],
        };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let name = read_name(&fields, &mut notes);
        if !fields.is_present_or_misnamed(NAME) {
            notes.errors.add(NAME, "is required");
        }
        let scope = if K::HAS_SCOPE { read_scope(&fields, &mut notes) } else { Some(ApiKeyScope::Sending) };
        let policy = CredentialPolicy {
            domain: read_domain(&fields, &mut notes),
            allowed: read_allowed_networks(&fields, &mut notes).unwrap_or_default(),
            expires_at: read_expires_at(&fields, &mut notes),
            ..CredentialPolicy::default()
        };
        match (name, scope) {
            (Some(name), Some(scope)) if notes.errors.is_empty() => {
                Ok(Self { name, scope, terms: policy, kind: PhantomData })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

impl<K: CredentialKind> FromRequest for ListCredentials<K> {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: PageParameters::parameters(), ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self { page: PageParameters::from_query(&call.query)?, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for CredentialPath<K> {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![id_parameter::<K>()], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self { id: parse_id::<K>(call)?, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for UpdateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let enabled = (ENABLED, schema::boolean("Whether the credential is enabled"));
        let fields = [(NAME, name_schema()), (ALLOWED, allowed_schema()), enabled];
        let body = schema::object_with("The fields to change", &[], fields);
        let parameters = vec![id_parameter::<K>()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames =
            FieldNames { known: &[(NAME, NAME), (ALLOWED, ALLOWED), (ENABLED, ENABLED)], foreign: &[] };
        let id = parse_id::<K>(call)?;
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let name = read_name(&fields, &mut notes);
        // Null clears the list.
        let cleared = fields.fields().iter().any(|(name, _)| *name == ALLOWED).then(Vec::new);
        let allowed = read_allowed_networks(&fields, &mut notes).or(cleared);
        let enabled = fields.value(ENABLED).and_then(|value| note_error(parse_bool(value), ENABLED, &mut notes));
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { id, name, allowed, enabled, kind: PhantomData })
    }
}

impl<K: CredentialKind> FromRequest for RotateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(_: &mut Schemas) -> RequestSpec {
        let grace = json!({
            "type": "integer", "minimum": 0, "maximum": GRACE_HOURS_MAX, "default": GRACE_HOURS_DEFAULT,
            "description": "For how many hours the previous secret stays valid",
        });
        let body = schema::object_with("Options of the rotation", &[], [(GRACE, grace)]);
        let parameters = vec![id_parameter::<K>()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(GRACE, GRACE)], foreign: &[] };
        let id = parse_id::<K>(call)?;
        let mut notes = FieldDiagnostics::default();
        let fields = call.optional_body_fields(&NAMES, &mut notes)?;
        let hours = fields.value(GRACE).map_or(Ok(GRACE_HOURS_DEFAULT), parse_hours);
        let hours = note_error(hours, GRACE, &mut notes);
        match hours {
            Some(hours) if notes.errors.is_empty() => {
                Ok(Self { id, grace: Duration::from_secs(hours * 3600), kind: PhantomData })
            }
            _ => Err(notes.errors.into()),
        }
    }
}
