//! Product events: what happened in a customer's product (email-api.md, "Event endpoint").
//!
//! [`send`] reads an event and hands it to the hall (`queue/src/product_events.rs`); here events are found
//! again. [`counts`], [`funnel`] and [`conversions`] show what they add up to.

pub mod conversions;
pub mod counts;
pub mod funnel;
pub mod send;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use mail::credential::ApiKeyScope;
use mail::id::ProductEventId;
use mail::idempotency::IdempotencyScope as Keyed;
use mail::product_event::{NAME_BYTES_MAX, USER_ID_BYTES_MAX};
use mail::quota::Noun;
use serde_json::json;
use store::access::Tenant;
use store::product_event::ProductEventFilter;

use crate::call::{FromRequest, Request, RequestSpec};
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_PRODUCT_EVENT, PageParameters, after_id};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

use self::view::{ProductEventList, ProductEventResponse, ProductEventView};

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("events", summary);
    let get = |path, id, summary| of(Method::GET, path, id, summary);
    vec![
        of(Method::POST, "/events", "send_event", "Tell that something happened in your product")
            .idempotent_storage_cost(Keyed::SendEvent, &[(Noun::ProductEvents, 1), (Noun::ProductEventBytes, 0)])
            .api_key_or_session(ApiKeyScope::Sending, send::send),
        get("/events", "list_events", "List product events, newest first")
            .api_key_or_session(ApiKeyScope::Sending, list),
        get("/events/counts", "count_events", "Count product events, by the hour or day")
            .api_key_or_session(ApiKeyScope::Full, counts::get),
        get("/events/{id}", "get_event", "Get a product event").api_key_or_session(ApiKeyScope::Sending, get_event),
        get("/funnels", "get_funnel", "Count the people who took some steps, in order")
            .api_key_or_session(ApiKeyScope::Full, funnel::get),
        get("/conversions", "list_conversions", "List sign-ups and subscriptions, newest first")
            .api_key_or_session(ApiKeyScope::Full, conversions::list),
    ]
}

/// What `GET /events` takes.
#[derive(Debug)]
pub struct ListProductEvents {
    page: PageParameters,
    filter: ProductEventFilter,
}

impl FromRequest for ListProductEvents {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = |max: usize| json!({"type": "string", "maxLength": max});
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            schema::query_parameter("name", "Only events of this name", text(NAME_BYTES_MAX)),
            schema::query_parameter("email", "Only events of this address", text(mail::address::ADDRESS_BYTES_MAX)),
            schema::query_parameter("user_id", "Only events of this user", text(USER_ID_BYTES_MAX)),
            schema::time_parameter("created_after", "Only events that came after this time"),
            schema::time_parameter("created_before", "Only events that came before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let text = |name: &str, bytes_max: usize| match page::single_value(&given, name)? {
            Some(text) if text.len() > bytes_max => {
                Err(Problem::field(name, format!("is longer than {bytes_max} bytes")))
            }
            text => Ok(text.map(str::to_owned)),
        };
        let filter = ProductEventFilter {
            name: text("name", NAME_BYTES_MAX)?,
            email: text("email", mail::address::ADDRESS_BYTES_MAX)?,
            user_id: text("user_id", USER_ID_BYTES_MAX)?,
            sent_by: None,
            // All of a millisecond have ids between these two.
            since: page::parse_time(&given, "created_after")?.map(|after| ProductEventId::new(after, u128::MAX)),
            before: page::parse_time(&given, "created_before")?.map(first_id_at_or_after),
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter })
    }
}

/// The first id of an event that came at a time or later: events come at whole milliseconds.
fn first_id_at_or_after(time: Timestamp) -> ProductEventId {
    let whole = Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time);
    let next = time.as_millisecond().saturating_add(i64::from(whole < time));
    ProductEventId::new(Timestamp::from_millisecond(next).unwrap_or(time), 0)
}

/// `GET /events`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<AppState>, tenant: Tenant, asked: ListProductEvents) -> Result<ProductEventList, Problem> {
    let ListProductEvents { page, mut filter } = asked;
    filter.sent_by = tenant.confined_to();
    if let Some(cursor) = page.before_id(KIND_PRODUCT_EVENT)?.map(ProductEventId::from_bytes) {
        filter.before = Some(filter.before.map_or(cursor, |before| before.min(cursor)));
    }
    let account = tenant.account().id;
    let listed = store::product_event::list(room.intake.store(), account, &filter, page.limit).await?;
    Ok(ProductEventList {
        events: listed.events.into_iter().map(ProductEventView::from_event).collect(),
        has_more: listed.next.is_some(),
        next_cursor: listed.next.map(|id| after_id(KIND_PRODUCT_EVENT, id.to_bytes())),
    })
}

/// An event's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct ProductEventPath(ProductEventId);

impl FromRequest for ProductEventPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let id = schema::path_parameter("id", "The event's id (`ae_…`)");
        RequestSpec { parameters: vec![id], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        call.path_parameter("id").parse().map(Self).map_err(|_| Problem::not_found("event"))
    }
}

/// `GET /events/{id}`.
///
/// # Errors
/// No such event; the store cannot be read.
pub async fn get_event(
    room: Arc<AppState>,
    tenant: Tenant,
    ProductEventPath(id): ProductEventPath,
) -> Result<ProductEventResponse, Problem> {
    let found = store::product_event::get(room.intake.store(), tenant.account().id, id).await?;
    let own = tenant.confined_to();
    let found = found.filter(|kept| own.is_none() || kept.sent_by == own);
    let kept = found.ok_or_else(|| Problem::not_found("event"))?;
    Ok(ProductEventResponse { event: ProductEventView::from_event(kept.event) })
}

/// How long is waited for what was just told to be counted.
const COUNT_WAIT_MAX: Duration = Duration::from_millis(200);

/// Has what was told counted, and waits for it for a moment: for what is to show what was just done.
pub(crate) async fn wait_until_counted(room: &Arc<AppState>) {
    let events = room.intake.product_events();
    // Half a count would be done again: it goes on when the waiting ends.
    let counting = room.tasks.spawn(async move { events.aggregate().await });
    if let Ok(Ok(Err(error))) = tokio::time::timeout(COUNT_WAIT_MAX, counting).await {
        tracing::warn!(%error, "product events cannot be counted at the moment: counts may be behind");
    }
}
