//! Product events: events of a customer's own product.
//!
//! [`send`] parses an event and submits it (`events/src/product_events.rs`); this module lists and shows events.
//! [`counts`], [`funnel`] and [`conversions`] show their aggregates.

pub(crate) mod aggregation;
pub mod conversions;
pub mod counts;
pub mod funnel;
pub mod send;
pub mod view;

use httpd::paging::{KIND_PRODUCT_EVENT, after_id};
use message::address::ADDRESS_BYTES_MAX;
use model::idempotency::IdempotencyScope;
use model::product_event::{NAME_BYTES_MAX, USER_ID_BYTES_MAX};
use model::quota::Noun;
use store::product_event::ProductEventFilter;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

use self::view::{ProductEventList, ProductEventResponse, ProductEventView};

pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("events");
    vec![
        tag.post("/events", "Send a product event")
            .idempotent_storage_cost(
                IdempotencyScope::SendEvent,
                &[(Noun::ProductEvents, 1), (Noun::ProductEventBytes, 0)],
            )
            .mails_later()
            .sending_key_or_session(("send_event", "events.send"), send::send),
        tag.get("/events", "List product events, newest first")
            .sending_key_or_session(("list_events", "events.list"), list),
        tag.get("/events/counts", "Get product event counts by hour or day")
            .full_key_or_session(("count_events", "events.counts"), counts::get),
        tag.get("/events/{id}", "Get a product event").sending_key_or_session(("get_event", "events.get"), get_event),
        tag.get("/funnels", "Get a funnel: how many people did a sequence of steps")
            .full_key_or_session(("get_funnel", "funnels.get"), funnel::get),
        tag.get("/conversions", "List sign-ups and subscriptions, newest first")
            .full_key_or_session(("list_conversions", "conversions.list"), conversions::list),
    ]
}

/// Query of `GET /events`.
#[derive(Debug)]
pub struct ListProductEvents {
    page: PageParameters,
    filter: ProductEventFilter,
}

impl RequestQuery for ListProductEvents {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let filter = ProductEventFilter {
            name: query.bounded_text("name", "Filter by event name", NAME_BYTES_MAX)?,
            email: query.bounded_text("email", "Filter by email address", ADDRESS_BYTES_MAX)?,
            user_id: query.bounded_text("user_id", "Filter by user id", USER_ID_BYTES_MAX)?,
            sent_by: None,
            since: query.time("created_after", "Only events received after this time")?.map(last_id_at),
            before: query.time("created_before", "Only events received before this time")?.map(first_id_at_or_after),
        };
        Ok(Self { page, filter })
    }
}

/// The last id of a time's millisecond; event ids begin with their millisecond.
pub(crate) fn last_id_at(time: Timestamp) -> ProductEventId {
    ProductEventId::new(time, u128::MAX)
}

/// The first id at or after a time; event ids have whole milliseconds.
pub(crate) fn first_id_at_or_after(time: Timestamp) -> ProductEventId {
    let truncated = Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time);
    let next = time.as_millisecond().saturating_add(i64::from(truncated < time));
    ProductEventId::new(Timestamp::from_millisecond(next).unwrap_or(time), 0)
}

/// `GET /events`.
pub async fn list(state: State, tenant: Tenant, request: ListProductEvents) -> Result<ProductEventList> {
    let ListProductEvents { page, mut filter } = request;
    filter.sent_by = tenant.confined_to();
    if let Some(cursor) = page.before_id(KIND_PRODUCT_EVENT)?.map(ProductEventId::from_bytes) {
        filter.before = Some(filter.before.map_or(cursor, |before| before.min(cursor)));
    }
    let account = tenant.account().id;
    let listed = store::product_event::list(&state.services.store, account, &filter, page.limit).await?;
    Ok(ProductEventList::new(
        listed.events.into_iter().map(ProductEventView::from_event).collect(),
        listed.next.map(|id| after_id(KIND_PRODUCT_EVENT, id.to_bytes())),
    ))
}

id_path! { pub ProductEventPath(ProductEventId), "The event's id (`ae_…`)", "event" }

/// `GET /events/{id}`.
pub async fn get_event(
    state: State,
    tenant: Tenant,
    ProductEventPath(id): ProductEventPath,
) -> Result<ProductEventResponse> {
    let found = store::product_event::get(&state.services.store, tenant.account().id, id).await?;
    let credential = tenant.confined_to();
    let found = found.filter(|stored| credential.is_none() || stored.sent_by == credential);
    let stored = found.ok_or_else(|| Problem::not_found("event"))?;
    Ok(ProductEventResponse { event: ProductEventView::from_event(stored.event) })
}
