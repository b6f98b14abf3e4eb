//! Request bodies and paths of webhook endpoints.

use httpd::request_value::{AddressPatterns, Integer, Line};
use message::address_pattern::AddressPattern;
use model::event::EventKind;
use model::webhook::{ADDRESSES_MAX, DESCRIPTION_BYTES_MAX, DOMAINS_MAX, RetryPolicy, is_event};
use net::http_client::URL_BYTES_MAX;

use crate::prelude::*;

/// Most event names of one endpoint; more than exist.
const EVENTS_MAX: usize = 100;
/// Default grace period in hours, during which a rotated secret still signs.
const GRACE_HOURS: u64 = 24;
/// Longest grace period in hours: a week.
const GRACE_HOURS_MAX: i64 = 168;

pub(crate) fn event_names() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

/// The names of the events that a subscription to all events does not include.
fn named_events() -> Vec<&'static str> {
    let named = EventKind::ALL.iter().filter(|kind| kind.requires_explicit_subscription());
    named.map(|kind| kind.name()).collect()
}

id_path! { pub WebhookPath(WebhookId), "The endpoint's id (`whk_…`)", "webhook" }

/// Fields of a new and of a changed endpoint.
#[derive(Debug, RequestObject)]
pub(super) struct WebhookOptions {
    #[field(
        foreign = ["Triggers"], null = Vec::new(), parse = parse_events, schema = subscription_schema,
        examples = [["email.delivered", "email.bounced"]],
    )]
    pub(super) events: Option<Vec<String>>,
    /// Whether events are sent; default: true
    pub(super) enabled: Option<bool>,
    /// Your description
    #[field(reader = Line<DESCRIPTION_BYTES_MAX>)]
    pub(super) description: Option<Option<String>>,
    /// Only events of these domains (`dom_…`) are sent; empty: all
    #[field(
        aliases = ["domainIds"], null = Vec::new(), parse = parse_domain_ids,
        schema = json!({"type": "array", "items": schema::id(DomainId::PREFIX, "A domain (`dom_…`)"), "maxItems": DOMAINS_MAX}),
        examples = [[]],
    )]
    pub(super) domain_ids: Option<Vec<DomainId>>,
    /// Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
    /// (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events are not
    /// affected
    #[field(
        aliases = ["inboundAddresses"], null = Vec::new(), reader = AddressPatterns<ADDRESSES_MAX>, examples = [[]],
    )]
    pub(super) inbound_addresses: Option<Vec<AddressPattern>>,
    /// `default`: five attempts within five minutes; `extended`: eight within 28 hours
    #[field(aliases = ["retryPolicy"], parse = parse_retry_policy, schema = RetryPolicy::schema(schemas))]
    pub(super) retry_policy: Option<RetryPolicy>,
}

fn subscription_schema(schemas: &mut Schemas) -> Value {
    let text = format!("The events to send; empty: all except {}, which must be named", named_events().join(", "));
    schema::describe(events_schema(schemas), Some(&text))
}

/// Schema of what [`parse_events`] reads.
pub(super) fn events_schema(_: &mut Schemas) -> Value {
    json!({"type": "array", "items": schema::string_enum(&event_names(), "An event name"), "maxItems": EVENTS_MAX})
}

fn parse_retry_policy(value: &RawValue) -> Result<RetryPolicy, String> {
    let text = fields::parse_text(value)?;
    RetryPolicy::from_word(&text).ok_or_else(|| "must be `default` or `extended`".to_owned())
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

/// The endpoint to create
#[derive(Debug, RequestObject)]
#[schema(name = "CreateWebhook", body_bytes_max = SMALL_BYTES_MAX)]
pub struct CreateWebhook {
    /// URL for deliveries: https, at a public address
    #[field(
        aliases = ["endpoint"], foreign = ["Url"], reader = Line<URL_BYTES_MAX>,
        examples = ["https://example.com/hooks"],
    )]
    pub(super) url: String,
    #[field(flatten)]
    pub(super) options: WebhookOptions,
}

/// The fields to change
#[derive(Debug, RequestObject)]
#[schema(name = "ChangeWebhook", body_bytes_max = SMALL_BYTES_MAX)]
pub struct UpdateWebhook {
    /// URL for deliveries: https, at a public address
    #[field(
        aliases = ["endpoint"], foreign = ["Url"], reader = Line<URL_BYTES_MAX>,
        examples = ["https://example.com/hooks"],
    )]
    pub(super) url: Option<String>,
    #[field(flatten)]
    pub(super) options: WebhookOptions,
}

/// The grace period
#[derive(Debug, RequestObject)]
#[schema(name = "RotateWebhookSecret", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct RotateWebhookSecret {
    /// Hours during which the old secret still signs, in addition to the new one
    #[field(
        aliases = ["graceHours"], reader = Integer<u64, 0, GRACE_HOURS_MAX>, absent = GRACE_HOURS,
        default = GRACE_HOURS,
    )]
    pub(super) grace_hours: u64,
}
