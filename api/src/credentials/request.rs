//! What is asked about API keys and SMTP credentials, read.

use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use mail::credential::{Scope, Terms};
use mail::id::DomainId;
use mail::network::Network;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Kind;
use crate::call::{Call, Input, Media, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Given, Kind as JsonKind, Names, Notes};
use crate::page::Page;
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
pub struct Create<K> {
    /// What people call it.
    pub name: String,
    /// What it may do, where that can be chosen.
    pub scope: Scope,
    /// On which terms it lets in; still without a secret.
    pub terms: Terms,
    kind: PhantomData<fn() -> K>,
}

/// A page of the list.
#[derive(Debug)]
pub struct ListOf<K> {
    /// Which page.
    pub page: Page,
    kind: PhantomData<fn() -> K>,
}

/// One of them.
#[derive(Debug)]
pub struct Of<K> {
    /// Its id.
    pub id: [u8; 16],
    kind: PhantomData<fn() -> K>,
}

/// What changes.
#[derive(Debug)]
pub struct Change<K> {
    /// Of which.
    pub id: [u8; 16],
    /// What people call it.
    pub name: Option<String>,
    /// From where it may be used.
    pub allowed: Option<Vec<Network>>,
    /// Whether it lets in.
    pub enabled: Option<bool>,
    kind: PhantomData<fn() -> K>,
}

/// A new secret for one.
#[derive(Debug)]
pub struct Rotate<K> {
    /// For which.
    pub id: [u8; 16],
    /// How long the secret until now stays valid.
    pub grace: Duration,
    kind: PhantomData<fn() -> K>,
}

fn note<T>(read: Result<T, String>, name: &'static str, notes: &mut Notes) -> Option<T> {
    read.map_err(|text| notes.errors.add(name, text)).ok()
}

fn name(given: &Given<'_>, notes: &mut Notes) -> Option<String> {
    let read = fields::line(given.value(NAME)?, NAME_BYTES_MAX).and_then(|text| {
        let text = text.trim().to_owned();
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text) }
    });
    note(read, NAME, notes)
}

fn networks(value: &RawValue) -> Result<Vec<Network>, String> {
    let entries = fields::list(value, NETWORKS_MAX)?;
    entries
        .into_iter()
        .map(|entry| {
            let text = fields::text(entry)?;
            text.trim().parse().map_err(|error| format!("`{}`: {error}", fields::show(&text)))
        })
        .collect()
}

fn allowed(given: &Given<'_>, notes: &mut Notes) -> Option<Vec<Network>> {
    note(networks(given.value(ALLOWED)?), ALLOWED, notes)
}

fn expires_at(given: &Given<'_>, notes: &mut Notes) -> Option<Timestamp> {
    let read =
        fields::text(given.value(EXPIRES)?).and_then(|text| mail::moment::read(&text).map_err(str::to_owned));
    note(read, EXPIRES, notes)
}

fn domain(given: &Given<'_>, notes: &mut Notes) -> Option<DomainId> {
    let read = fields::text(given.value(DOMAIN)?)
        .and_then(|text| text.parse().map_err(|_| "is not the id of a domain (`dom_…`)".to_owned()));
    note(read, DOMAIN, notes)
}

fn scope(given: &Given<'_>, notes: &mut Notes) -> Option<Scope> {
    let Some(value) = given.value(SCOPE) else {
        notes.errors.add(SCOPE, "is required: `full` or `sending`");
        return None;
    };
    let read = fields::text(value).and_then(|text| match text.as_ref() {
        "full" => Ok(Scope::Full),
        "sending" => Ok(Scope::Sending),
        _ => Err("must be `full` or `sending`".to_owned()),
    });
    note(read, SCOPE, notes)
}

fn boolean(value: &RawValue) -> Result<bool, String> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn hours(value: &RawValue) -> Result<u64, String> {
    let wrong = || format!("must be a whole number from 0 to {GRACE_HOURS_MAX}");
    if JsonKind::of(value) != JsonKind::Number {
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

fn id<K: Kind>(call: &Call) -> Result<[u8; 16], Problem> {
    K::id_of(call.path_parameter("id")).ok_or_else(super::not_found::<K>)
}

fn id_parameter<K: Kind>() -> Value {
    schema::path_parameter("id", &format!("The {}'s id (`{}…`)", K::NOUN, K::ID_PREFIX))
}

impl<K: Kind> Input for Create<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let fields = [
            (NAME, name_schema()),
            (DOMAIN, schema::nullable_string("The one domain that it may send from")),
            (ALLOWED, allowed_schema()),
            (EXPIRES, schema::nullable_time("Until when it may be used")),
        ];
        let text = format!("A new {}", K::NOUN);
        let mut body = schema::object_with(&text, &[NAME], fields);
        if K::HAS_SCOPE {
            body["properties"][SCOPE] = schema::words(&["full", "sending"], "What it may do");
            body["required"] = json!([NAME, SCOPE]);
        }
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[(NAME, NAME), (DOMAIN, DOMAIN), (ALLOWED, ALLOWED), (EXPIRES, EXPIRES), (SCOPE, SCOPE)],
            foreign: &[],
        };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let name = name(&given, &mut notes);
        if !given.is_meant(NAME) {
            notes.errors.add(NAME, "is required");
        }
        let scope = if K::HAS_SCOPE { scope(&given, &mut notes) } else { Some(Scope::Sending) };
        let terms = Terms {
            domain: domain(&given, &mut notes),
            allowed: allowed(&given, &mut notes).unwrap_or_default(),
            expires_at: expires_at(&given, &mut notes),
            ..Terms::default()
        };
        match (name, scope) {
            (Some(name), Some(scope)) if notes.errors.is_empty() => {
                Ok(Self { name, scope, terms, kind: PhantomData })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

impl<K: Kind> Input for ListOf<K> {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: Page::parameters(), ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self { page: Page::read(&call.query)?, kind: PhantomData })
    }
}

impl<K: Kind> Input for Of<K> {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![id_parameter::<K>()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self { id: id::<K>(call)?, kind: PhantomData })
    }
}

impl<K: Kind> Input for Change<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let enabled = (ENABLED, schema::boolean("Whether it may be used"));
        let fields = [(NAME, name_schema()), (ALLOWED, allowed_schema()), enabled];
        let body = schema::object_with("What changes", &[], fields);
        let parameters = vec![id_parameter::<K>()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names =
            Names { known: &[(NAME, NAME), (ALLOWED, ALLOWED), (ENABLED, ENABLED)], foreign: &[] };
        let id = id::<K>(call)?;
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let name = name(&given, &mut notes);
        // Null is no network: as if the list were empty.
        let cleared = given.fields().iter().any(|(name, _)| *name == ALLOWED).then(Vec::new);
        let allowed = allowed(&given, &mut notes).or(cleared);
        let enabled = given.value(ENABLED).and_then(|value| note(boolean(value), ENABLED, &mut notes));
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { id, name, allowed, enabled, kind: PhantomData })
    }
}

impl<K: Kind> Input for Rotate<K> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(_: &mut Schemas) -> Takes {
        let grace = json!({
            "type": "integer", "minimum": 0, "maximum": GRACE_HOURS_MAX, "default": GRACE_HOURS_DEFAULT,
            "description": "How many hours the secret until now stays valid",
        });
        let body = schema::object_with("A rotation", &[], [(GRACE, grace)]);
        let parameters = vec![id_parameter::<K>()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[(GRACE, GRACE)], foreign: &[] };
        let id = id::<K>(call)?;
        let mut notes = Notes::default();
        let given = call.given_if_any(&NAMES, &mut notes)?;
        let given = given.value(GRACE).map_or(Ok(GRACE_HOURS_DEFAULT), hours);
        let hours = note(given, GRACE, &mut notes);
        match hours {
            Some(hours) if notes.errors.is_empty() => {
                Ok(Self { id, grace: Duration::from_secs(hours * 3600), kind: PhantomData })
            }
            _ => Err(notes.errors.into()),
        }
    }
}
