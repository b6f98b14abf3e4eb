//! What is asked about API keys and SMTP credentials, read.

use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use mail::credential::{ApiKeyScope, CredentialPolicy};
use mail::id::DomainId;
use mail::network::IpNetwork;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::CredentialKind;
use crate::call::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use crate::page::PageParameters;
use crate::problem::Problem;
use crate::schema::{self, Schemas};

/// A name's length.
const NAME_BYTES_MAX: usize = 200;
/// Networks of one credential.
const NETWORKS_MAX: usize = 50;
/// The longest grace: two weeks.
const GRACE_HOURS_MAX: u64 = 14 * 24;
const GRACE_HOURS_DEFAULT: u64 = 24;

const NAME: &str = "name";
const SCOPE: &str = "scope";
const DOMAIN: &str = "domain_id";
const ALLOWED: &str = "allowed_ips";
const EXPIRES: &str = "expires_at";
const ENABLED: &str = "enabled";
const GRACE: &str = "grace_hours";

/// What a new one is to be.
#[derive(Debug)]
pub struct CreateCredential<K> {
    /// What people call it.
    pub name: String,
    /// What it may do, where that can be chosen.
    pub scope: ApiKeyScope,
    /// On which terms it lets in; still without a secret.
    pub terms: CredentialPolicy,
    kind: PhantomData<fn() -> K>,
}

/// A page of the list.
#[derive(Debug)]
pub struct ListCredentials<K> {
    /// Which page.
    pub page: PageParameters,
    kind: PhantomData<fn() -> K>,
}

/// One of them.
#[derive(Debug)]
pub struct CredentialPath<K> {
    /// Its id.
    pub id: [u8; 16],
    kind: PhantomData<fn() -> K>,
}

/// What changes.
#[derive(Debug)]
pub struct UpdateCredential<K> {
    /// Of which.
    pub id: [u8; 16],
    /// What people call it.
    pub name: Option<String>,
    /// From where it may be used.
    pub allowed: Option<Vec<IpNetwork>>,
    /// Whether it lets in.
    pub enabled: Option<bool>,
    kind: PhantomData<fn() -> K>,
}

/// A new secret for one.
#[derive(Debug)]
pub struct RotateCredential<K> {
    /// For which.
    pub id: [u8; 16],
    /// How long the secret until now stays valid.
    pub grace: Duration,
    kind: PhantomData<fn() -> K>,
}

fn note_error<T>(read: Result<T, String>, name: &'static str, notes: &mut FieldDiagnostics) -> Option<T> {
    read.map_err(|text| notes.errors.add(name, text)).ok()
}

fn read_name(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<String> {
    let read = fields::parse_header_line(given.value(NAME)?, NAME_BYTES_MAX).and_then(|text| {
        let text = text.trim().to_owned();
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text) }
    });
    note_error(read, NAME, notes)
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

fn read_allowed_networks(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<IpNetwork>> {
    note_error(parse_networks(given.value(ALLOWED)?), ALLOWED, notes)
}

fn read_expires_at(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Timestamp> {
    let read =
        fields::parse_text(given.value(EXPIRES)?).and_then(|text| mail::moment::parse(&text).map_err(str::to_owned));
    note_error(read, EXPIRES, notes)
}

fn read_domain(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<DomainId> {
    let read = fields::parse_text(given.value(DOMAIN)?)
        .and_then(|text| text.parse().map_err(|_| "is not the id of a domain (`dom_…`)".to_owned()));
    note_error(read, DOMAIN, notes)
}

fn read_scope(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<ApiKeyScope> {
    let Some(value) = given.value(SCOPE) else {
        notes.errors.add(SCOPE, "is required: `full` or `sending`");
        return None;
    };
    let read = fields::parse_text(value).and_then(|text| match text.as_ref() {
        "full" => Ok(ApiKeyScope::Full),
        "sending" => Ok(ApiKeyScope::Sending),
        _ => Err("must be `full` or `sending`".to_owned()),
    });
    note_error(read, SCOPE, notes)
}

fn parse_bool(value: &RawValue) -> Result<bool, String> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn parse_hours(value: &RawValue) -> Result<u64, String> {
    let wrong = || format!("must be a whole number from 0 to {GRACE_HOURS_MAX}");
    if JsonKind::of_value(value) != JsonKind::Number {
        return Err(wrong());
    }
    value.get().parse().ok().filter(|hours| *hours <= GRACE_HOURS_MAX).ok_or_else(wrong)
}

fn allowed_schema() -> Value {
    json!({
        "type": "array", "items": {"type": "string"}, "maxItems": NETWORKS_MAX,
        "description": "From where it may be used: addresses and networks; from everywhere when empty",
    })
}

fn name_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX, "description": "What people call it"})
}

fn parse_id<K: CredentialKind>(call: &Request) -> Result<[u8; 16], Problem> {
    K::id_of(call.path_parameter("id")).ok_or_else(super::not_found::<K>)
}

fn id_parameter<K: CredentialKind>() -> Value {
    schema::path_parameter("id", &format!("The {}'s id (`{}…`)", K::NOUN, K::ID_PREFIX))
}

impl<K: CredentialKind> FromRequest for CreateCredential<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let fields = [
            (NAME, name_schema()),
            (DOMAIN, schema::nullable_string("The one domain that it may send from")),
            (ALLOWED, allowed_schema()),
            (EXPIRES, schema::nullable_time("Until when it may be used")),
        ];
        let text = format!("A new {}", K::NOUN);
        let mut body = schema::object_with(&text, &[NAME], fields);
        if K::HAS_SCOPE {
            body["properties"][SCOPE] = schema::string_enum(&["full", "sending"], "What it may do");
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
        let given = call.body_fields(&NAMES, &mut notes)?;
        let name = read_name(&given, &mut notes);
        if !given.is_present_or_misnamed(NAME) {
            notes.errors.add(NAME, "is required");
        }
        let scope = if K::HAS_SCOPE { read_scope(&given, &mut notes) } else { Some(ApiKeyScope::Sending) };
        let terms = CredentialPolicy {
            domain: read_domain(&given, &mut notes),
            allowed: read_allowed_networks(&given, &mut notes).unwrap_or_default(),
            expires_at: read_expires_at(&given, &mut notes),
            ..CredentialPolicy::default()
        };
        match (name, scope) {
            (Some(name), Some(scope)) if notes.errors.is_empty() => Ok(Self { name, scope, terms, kind: PhantomData }),
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
        let enabled = (ENABLED, schema::boolean("Whether it may be used"));
        let fields = [(NAME, name_schema()), (ALLOWED, allowed_schema()), enabled];
        let body = schema::object_with("What changes", &[], fields);
        let parameters = vec![id_parameter::<K>()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames =
            FieldNames { known: &[(NAME, NAME), (ALLOWED, ALLOWED), (ENABLED, ENABLED)], foreign: &[] };
        let id = parse_id::<K>(call)?;
        let mut notes = FieldDiagnostics::default();
        let given = call.body_fields(&NAMES, &mut notes)?;
        let name = read_name(&given, &mut notes);
        // Null is no network: as if the list were empty.
        let cleared = given.fields().iter().any(|(name, _)| *name == ALLOWED).then(Vec::new);
        let allowed = read_allowed_networks(&given, &mut notes).or(cleared);
        let enabled = given.value(ENABLED).and_then(|value| note_error(parse_bool(value), ENABLED, &mut notes));
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
            "description": "How many hours the secret until now stays valid",
        });
        let body = schema::object_with("A rotation", &[], [(GRACE, grace)]);
        let parameters = vec![id_parameter::<K>()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(GRACE, GRACE)], foreign: &[] };
        let id = parse_id::<K>(call)?;
        let mut notes = FieldDiagnostics::default();
        let given = call.optional_body_fields(&NAMES, &mut notes)?;
        let given = given.value(GRACE).map_or(Ok(GRACE_HOURS_DEFAULT), parse_hours);
        let hours = note_error(given, GRACE, &mut notes);
        match hours {
            Some(hours) if notes.errors.is_empty() => {
                Ok(Self { id, grace: Duration::from_secs(hours * 3600), kind: PhantomData })
            }
            _ => Err(notes.errors.into()),
        }
    }
}
