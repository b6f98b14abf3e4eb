//! `GET /webhook-events`: the account's event stream, for clients that poll instead of receiving webhooks
//! (docs/WEBHOOKS.md).
//!
//! With `order=asc` every page has a cursor, so a client that continues from it gets each event exactly once.
//! [`event_stream`] sends the same stream as server-sent events.

mod event_stream;
pub mod request;
mod view;

use httpd::paging::KIND_STREAM;
use httpd::response::{ExtraResponse, IntoResponse, Response};
use store::event_log::CHUNKS_MAX;

use self::request::{EVENT_STREAM, ListWebhookEvents, SortDirection};
use self::view::WebhookEventView;
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Longest wait of a request for the outbox, so that events just committed are in the stream.
const OUTBOX_WAIT_MAX: Duration = Duration::from_secs(2);
/// Most entries that one page scans, whatever the filter matches.
const SCANNED_ENTRIES_MAX: usize = 20_000;
/// Chunks of the event log in the first read of a page, and how many times as many the next one has.
const CHUNKS_FIRST: usize = 1;
const CHUNKS_GROWTH: usize = 8;

/// The operations on the event stream.
pub fn operations() -> Vec<Operation> {
    vec![
        OperationTag::new("webhooks")
            .get("/webhook-events", "List events, or stream them as server-sent events")
            .full_key_or_session(("list_webhook_events", "webhookEvents.list"), list),
    ]
}

/// A page of the stream
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "StreamEventList")]
struct WebhookEventPage {
    /// The events, in the requested order
    events: Vec<WebhookEventView>,
    /// Whether there are more events now
    has_more: bool,
    /// The `cursor` of the next page; with `asc` also on the last page, for polling
    next_cursor: Option<String>,
}

/// A page of events, or the live stream.
#[derive(Debug)]
pub struct WebhookEventsResponse(WebhookEventsBody);

#[derive(Debug)]
enum WebhookEventsBody {
    Page(WebhookEventPage),
    Live(httpd::response::BodyStream),
}

impl IntoResponse for WebhookEventsResponse {
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse {
        status: 200,
        media_type: Some(EVENT_STREAM),
        description: "The live stream, if `Accept` requests it: `id` is a cursor, `event` the type, `data` an entry of a \
                page",
    }];

    fn describe(schemas: &mut Schemas) -> Value {
        WebhookEventPage::schema(schemas)
    }

    fn into_response(self) -> Result<Response> {
        let (body, media_type, stream) = match self.0 {
            WebhookEventsBody::Live(stream) => (event_stream::BEGINNING, EVENT_STREAM, Some(stream)),
            WebhookEventsBody::Page(page) => {
                (serde_json::to_vec(&page).map_err(Problem::internal)?.into(), Self::MEDIA_TYPE, None)
            }
        };
        let media_type = http::HeaderValue::from_static(media_type);
        Ok(Response { status: Self::STATUS, media_type, headers: Vec::new(), body, stream })
    }
}

/// `GET /webhook-events`.
///
/// # Errors
/// The cursor is invalid; too many streams are open; the store cannot be read.
pub async fn list(state: State, tenant: Tenant, input: ListWebhookEvents) -> Result<WebhookEventsResponse> {
    if input.is_live {
        return event_stream::start(&state, &tenant, input)
            .await
            .map(|stream| WebhookEventsResponse(WebhookEventsBody::Live(stream)));
    }
    state.queue.events.outbox.dispatch_within(OUTBOX_WAIT_MAX).await;
    let (store, account) = (&state.services.store, tenant.account().id);
    let first = match input.direction {
        SortDirection::OldestFirst => 0,
        SortDirection::NewestFirst => u64::MAX,
    };
    let mut position = input.cursor.unwrap_or(first);
    let (mut chosen, mut scanned, mut has_more) = (Vec::new(), 0, true);
    // The first chunks usually have a page of events; a selective filter needs many.
    let mut chunks = CHUNKS_FIRST;
    'pages: while has_more && scanned < SCANNED_ENTRIES_MAX {
        let entries = match input.direction {
            SortDirection::OldestFirst => store::event_log::list_after(store, account, position, chunks).await?,
            SortDirection::NewestFirst => store::event_log::list_before(store, account, position, chunks).await?,
        };
        chunks = (chunks * CHUNKS_GROWTH).min(CHUNKS_MAX);
        has_more = !entries.is_empty();
        for entry in entries {
            if chosen.len() == input.limit && input.matches(&entry) {
                break 'pages;
            }
            (position, scanned) = (entry.number, scanned + 1);
            if input.matches(&entry) {
                chosen.push(entry);
            }
        }
    }
    let events = state.accounts.webhooks.dispatched_events(account, &chosen).await?;
    let is_continued = has_more || input.direction == SortDirection::OldestFirst;
    Ok(WebhookEventsResponse(WebhookEventsBody::Page(WebhookEventPage {
        events: events.into_iter().map(WebhookEventView::from).collect(),
        has_more,
        next_cursor: is_continued.then(|| paging::after_number(KIND_STREAM, position)),
    })))
}
