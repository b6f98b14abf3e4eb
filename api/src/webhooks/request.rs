//! Request bodies and paths of webhook endpoints.

use mail::address_pattern::AddressPattern;
use mail::event::EventKind;
use mail::id::{DomainId, WebhookId};
use mail::webhook::{ADDRESSES_MAX, DESCRIPTION_BYTES_MAX, DOMAINS_MAX, RetryPolicy, is_event};
use queue::client::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::webhook_not_found;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::paging::PageParameters;
use crate::problem::Problem;
use crate::request::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};

pub(super) const ID: &str = "id";
/// Most event names of one endpoint; more than exist.
const EVENTS_MAX: usize = 100;
/// Default grace period in hours, during which a rotated secret still signs.
const GRACE_HOURS: u16 = 24;
/// Longest grace period in hours: a week.
const GRACE_HOURS_MAX: u16 = 168;

const NAMES: FieldNames = FieldNames {
    known: &[
        ("url", "url"),
        ("endpoint", "url"),
        ("events", "events"),
        ("enabled", "enabled"),
        ("description", "description"),
        ("domain_ids", "domain_ids"),
        ("domainIds", "domain_ids"),
        ("inbound_addresses", "inbound_addresses"),
        ("inboundAddresses", "inbound_addresses"),
        ("retry_policy", "retry_policy"),
        ("retryPolicy", "retry_policy"),
    ],
    foreign: &[("Url", "url"), ("Triggers", "events")],
};

/// The names of all events.
pub(super) fn event_names() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

/// The names of the events that a subscription to all events does not include.
fn named_events() -> Vec<&'static str> {
    let named = EventKind::ALL.iter().filter(|kind| kind.requires_explicit_subscription());
    named.map(|kind| kind.name()).collect()
}

#[derive(Debug, Clone, Copy)]
pub struct WebhookPath(pub WebhookId);

impl WebhookPath {
    pub(super) fn parameter() -> Value {
        schema::path_parameter(ID, "The endpoint's id (`whk_…`)")
    }

    /// A malformed id is answered 404, like an unknown one.
    pub(super) fn from_request(call: &Request) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| webhook_not_found())
    }
}

impl FromRequest for WebhookPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![Self::parameter()], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Self::from_request(call)
    }
}

/// Parameters of `GET /webhooks`.
#[derive(Debug)]
pub struct ListWebhooks(pub(super) PageParameters);

impl FromRequest for ListWebhooks {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: PageParameters::parameters(), ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        PageParameters::from_query(&call.query).map(Self)
    }
}

fn settings_schema() -> Vec<(&'static str, Value)> {
    let mut url = schema::string("URL for deliveries: https, at a public address");
    url["examples"] = json!(["https://example.com/hooks"]);
    url["maxLength"] = json!(URL_BYTES_MAX);
    let mut events = schema::list(
        schema::string_enum(&event_names(), "An event name"),
        &format!("The events to send; empty: all except {}, which must be named", named_events().join(", ")),
    );
    events["maxItems"] = json!(EVENTS_MAX);
    events["examples"] = json!([["email.delivered", "email.bounced"]]);
    let mut domains = schema::list(
        schema::id(DomainId::PREFIX, "A domain (`dom_…`)"),
        "Only events of these domains (`dom_…`) are sent; empty: all",
    );
    domains["maxItems"] = json!(DOMAINS_MAX);
    domains["examples"] = json!([[]]);
    let mut addresses = schema::list(
        schema::string("An address or a pattern"),
        "Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses \
         (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events \
         are not affected",
    );
    addresses["maxItems"] = json!(ADDRESSES_MAX);
    addresses["examples"] = json!([[]]);
    let mut description = schema::nullable_string("Your description");
    description["maxLength"] = json!(DESCRIPTION_BYTES_MAX);
    vec![
        ("url", url),
        ("events", events),
        ("enabled", schema::boolean("Whether events are sent; default: true")),
        ("description", description),
        ("domain_ids", domains),
        ("inbound_addresses", addresses),
        (
            "retry_policy",
            schema::string_enum(
                RetryPolicy::WORDS,
                "`default`: five attempts within five minutes; `extended`: eight within 28 hours",
            ),
        ),
    ]
}

/// The given fields; `None` for a missing one.
#[derive(Debug, Default)]
struct WebhookSettings {
    url: Option<String>,
    events: Option<Vec<String>>,
    enabled: Option<bool>,
    description: Option<Option<String>>,
    domain_ids: Option<Vec<DomainId>>,
    inbound_addresses: Option<Vec<AddressPattern>>,
    retry: Option<RetryPolicy>,
}

impl WebhookSettings {
    fn read(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Self {
        fn field<T>(
            fields: &ObjectFields<'_>,
            notes: &mut FieldDiagnostics,
            name: &str,
            parsed: impl Fn(&RawValue) -> Result<T, String>,
        ) -> Option<T> {
            let parsed = fields.value(name).map(parsed)?;
            parsed.map_err(|text| notes.errors.add(name, text)).ok()
        }
        let is_null = |name: &str| fields.is_null(name);
        let mut settings = Self {
            url: field(fields, notes, "url", |value| fields::parse_header_line(value, URL_BYTES_MAX)),
            events: field(fields, notes, "events", parse_events),
            enabled: field(fields, notes, "enabled", fields::parse_bool),
            description: field(fields, notes, "description", |value| {
                fields::parse_header_line(value, DESCRIPTION_BYTES_MAX).map(Some)
            }),
            domain_ids: field(fields, notes, "domain_ids", parse_domain_ids),
            inbound_addresses: field(fields, notes, "inbound_addresses", |value| {
                fields::parse_address_patterns(value, ADDRESSES_MAX)
            }),
            retry: field(fields, notes, "retry_policy", |value| {
                let text = fields::parse_text(value)?;
                RetryPolicy::from_word(&text).ok_or_else(|| "must be `default` or `extended`".to_owned())
            }),
        };
        if is_null("description") {
            settings.description = Some(None);
        }
        if is_null("events") {
            settings.events = Some(Vec::new());
        }
        if is_null("domain_ids") {
            settings.domain_ids = Some(Vec::new());
        }
        if is_null("inbound_addresses") {
            settings.inbound_addresses = Some(Vec::new());
        }
        settings
    }
}

/// Parses event names without duplicates; the error lists unknown ones.
pub(super) fn parse_events(value: &RawValue) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut unknown = Vec::new();
    for entry in fields::parse_list(value, EVENTS_MAX)? {
        let name = fields::parse_text(entry).map_err(|_| "must be a list of event names".to_owned())?;
        if !is_event(&name) {
            unknown.push(format!("`{}`", fields::printable_name(&name)));
        } else if !names.iter().any(|known| *known == name) {
            names.push(name.into_owned());
        }
    }
    if unknown.is_empty() {
        return Ok(names);
    }
    unknown.truncate(10);
    Err(format!("has unknown events: {}", unknown.join(", ")))
}

fn parse_domain_ids(value: &RawValue) -> Result<Vec<DomainId>, String> {
    let mut ids = Vec::new();
    for entry in fields::parse_list(value, DOMAINS_MAX)? {
        let id = fields::parse_text(entry)?.parse().map_err(|_| "must be a list of ids like `dom_…`".to_owned())?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The request body of `POST /webhooks`.
#[derive(Debug)]
pub struct CreateWebhook {
    pub(super) url: String,
    pub(super) events: Vec<String>,
    pub(super) enabled: bool,
    pub(super) description: Option<String>,
    pub(super) domain_ids: Vec<DomainId>,
    pub(super) inbound_addresses: Vec<AddressPattern>,
    pub(super) retry: RetryPolicy,
}

impl FromRequest for CreateWebhook {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas
            .component("CreateWebhook", |_| schema::object_with("The endpoint to create", &["url"], settings_schema()));
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let settings = WebhookSettings::read(&fields, &mut notes);
        if !fields.is_present_or_misnamed("url") {
            notes.errors.add("url", "is required");
        }
        match settings.url {
            Some(url) if notes.errors.is_empty() => Ok(Self {
                url,
                events: settings.events.unwrap_or_default(),
                enabled: settings.enabled.unwrap_or(true),
                description: settings.description.flatten(),
                domain_ids: settings.domain_ids.unwrap_or_default(),
                inbound_addresses: settings.inbound_addresses.unwrap_or_default(),
                retry: settings.retry.unwrap_or_default(),
            }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// The request body of `PATCH /webhooks/{id}`.
#[derive(Debug)]
pub struct UpdateWebhook {
    pub(super) url: Option<String>,
    pub(super) events: Option<Vec<String>>,
    pub(super) enabled: Option<bool>,
    pub(super) description: Option<Option<String>>,
    pub(super) domain_ids: Option<Vec<DomainId>>,
    pub(super) inbound_addresses: Option<Vec<AddressPattern>>,
    pub(super) retry: Option<RetryPolicy>,
}

impl FromRequest for (WebhookPath, UpdateWebhook) {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body =
            schemas.component("ChangeWebhook", |_| schema::object_with("The fields to change", &[], settings_schema()));
        let parameters = vec![WebhookPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let WebhookSettings { url, events, enabled, description, domain_ids, inbound_addresses, retry } =
            WebhookSettings::read(&fields, &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let change = UpdateWebhook { url, events, enabled, description, domain_ids, inbound_addresses, retry };
        Ok((WebhookPath::from_request(call)?, change))
    }
}

/// The request body of `POST /webhooks/{id}/rotate-secret`.
#[derive(Debug)]
pub struct RotateWebhookSecret {
    pub(super) grace_hours: u16,
}

impl FromRequest for (WebhookPath, RotateWebhookSecret) {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("RotateWebhookSecret", |_| {
            let grace = json!({
                "type": "integer", "minimum": 0, "maximum": GRACE_HOURS_MAX, "default": GRACE_HOURS,
                "description": "Hours during which the old secret still signs, in addition to the new one",
            });
            schema::object_with("The grace period", &[], [("grace_hours", grace)])
        });
        let parameters = vec![WebhookPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames =
            FieldNames { known: &[("grace_hours", "grace_hours"), ("graceHours", "grace_hours")], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.optional_body_fields(&NAMES, &mut notes)?;
        let grace_hours = match fields.value("grace_hours") {
            None => Some(GRACE_HOURS),
            Some(value) => value.get().parse().ok().filter(|hours| *hours <= GRACE_HOURS_MAX),
        };
        let Some(grace_hours) = grace_hours else {
            return Err(Problem::field("grace_hours", format!("must be a whole number from 0 to {GRACE_HOURS_MAX}")));
        };
        Ok((WebhookPath::from_request(call)?, RotateWebhookSecret { grace_hours }))
    }
}
