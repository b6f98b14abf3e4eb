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
use mail::credential::Scope;
use mail::id::ProductEventId;
use mail::idempotency::Operation as Keyed;
use mail::product_event::{NAME_BYTES_MAX, USER_ID_BYTES_MAX};
use mail::quota::Noun;
use serde_json::json;
use store::access::Tenant;
use store::product_event::Filter;

use crate::call::{Call, Input, Takes};
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_PRODUCT_EVENT, Page, after_id};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

use self::view::{EventList, OneEvent, ProductEventView};

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("events", summary);
    let get = |path, id, summary| of(Method::GET, path, id, summary);
    vec![
        of(Method::POST, "/events", "send_event", "Tell that something happened in your product")
            .stores_once(Keyed::SendEvent, &[(Noun::ProductEvents, 1), (Noun::ProductEventBytes, 0)])
            .either(Scope::Sending, send::send),
        get("/events", "list_events", "List product events, newest first").either(Scope::Sending, list),
        get("/events/counts", "count_events", "Count product events, by the hour or day")
            .either(Scope::Full, counts::get),
        get("/events/{id}", "get_event", "Get a product event").either(Scope::Sending, get_one),
        get("/funnels", "get_funnel", "Count the people who took some steps, in order")
            .either(Scope::Full, funnel::get),
        get("/conversions", "list_conversions", "List sign-ups and subscriptions, newest first")
            .either(Scope::Full, conversions::list),
    ]
}

/// What `GET /events` takes.
#[derive(Debug)]
pub struct ListEvents {
    page: Page,
    filter: Filter,
}

impl Input for ListEvents {
    fn describe(_: &mut Schemas) -> Takes {
        let text = |max: usize| json!({"type": "string", "maxLength": max});
        let mut parameters = Page::parameters();
        parameters.extend([
            schema::query_parameter("name", "Only events of this name", text(NAME_BYTES_MAX)),
            schema::query_parameter(
                "email",
                "Only events of this address",
                text(mail::address::ADDRESS_BYTES_MAX),
            ),
            schema::query_parameter("user_id", "Only events of this user", text(USER_ID_BYTES_MAX)),
            schema::time_parameter("created_after", "Only events that came after this time"),
            schema::time_parameter("created_before", "Only events that came before this time"),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let text = |name: &str, bytes_max: usize| match page::one(&given, name)? {
            Some(text) if text.len() > bytes_max => {
                Err(Problem::field(name, format!("is longer than {bytes_max} bytes")))
            }
            text => Ok(text.map(str::to_owned)),
        };
        let filter = Filter {
            name: text("name", NAME_BYTES_MAX)?,
            email: text("email", mail::address::ADDRESS_BYTES_MAX)?,
            user_id: text("user_id", USER_ID_BYTES_MAX)?,
            sent_by: None,
            // All of a millisecond have ids between these two.
            since: page::time(&given, "created_after")?.map(|after| ProductEventId::new(after, u128::MAX)),
            before: page::time(&given, "created_before")?.map(first_not_before),
        };
        Ok(Self { page: Page::read(&call.query)?, filter })
    }
}

/// The first id of an event that came at a time or later: events come at whole milliseconds.
fn first_not_before(time: Timestamp) -> ProductEventId {
    let whole = Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time);
    let next = time.as_millisecond().saturating_add(i64::from(whole < time));
    ProductEventId::new(Timestamp::from_millisecond(next).unwrap_or(time), 0)
}

/// `GET /events`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, asked: ListEvents) -> Result<EventList, Problem> {
    let ListEvents { page, mut filter } = asked;
    filter.sent_by = tenant.confined_to();
    if let Some(cursor) = page.before_id(KIND_PRODUCT_EVENT)?.map(ProductEventId::from_bytes) {
        filter.before = Some(filter.before.map_or(cursor, |before| before.min(cursor)));
    }
    let account = tenant.account().id;
    let listed = store::product_event::list(room.hall.store(), account, &filter, page.limit).await?;
    Ok(EventList {
        events: listed.events.into_iter().map(ProductEventView::of).collect(),
        has_more: listed.next.is_some(),
        next_cursor: listed.next.map(|id| after_id(KIND_PRODUCT_EVENT, id.to_bytes())),
    })
}

/// An event's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfEvent(ProductEventId);

impl Input for OfEvent {
    fn describe(_: &mut Schemas) -> Takes {
        let id = schema::path_parameter("id", "The event's id (`ae_…`)");
        Takes { parameters: vec![id], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter("id").parse().map(Self).map_err(|_| Problem::not_found("event"))
    }
}

/// `GET /events/{id}`.
///
/// # Errors
/// No such event; the store cannot be read.
pub async fn get_one(room: Arc<Room>, tenant: Tenant, OfEvent(id): OfEvent) -> Result<OneEvent, Problem> {
    let found = store::product_event::get(room.hall.store(), tenant.account().id, id).await?;
    let own = tenant.confined_to();
    let found = found.filter(|kept| own.is_none() || kept.sent_by == own);
    let kept = found.ok_or_else(|| Problem::not_found("event"))?;
    Ok(OneEvent { event: ProductEventView::of(kept.event) })
}

/// How long is waited for what was just told to be counted.
const COUNTED_WITHIN: Duration = Duration::from_millis(200);

/// Has what was told counted, and waits for it for a moment: for what is to show what was just done.
pub(crate) async fn counted(room: &Arc<Room>) {
    let events = room.hall.product_events();
    // Half a count would be done again: it goes on when the waiting ends.
    let counting = room.tasks.spawn(async move { events.count().await });
    if let Ok(Ok(Err(error))) = tokio::time::timeout(COUNTED_WITHIN, counting).await {
        tracing::warn!(%error, "product events cannot be counted at the moment: counts may be behind");
    }
}
