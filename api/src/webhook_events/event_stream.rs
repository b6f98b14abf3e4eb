//! The live event stream: server-sent events (HTML Living Standard, 9.2).
//!
//! A subscriber is woken when this node dispatches an event, and polls if the store is shared with other nodes. A
//! heartbeat comment keeps idle connections open. The stream ends at shutdown, and when its key or session loses
//! access (`access::revalidation`). The client reconnects with the `id` of the last event that it received.

use events::webhooks::stream_subscribers::StreamSubscriber;
use httpd::paging::KIND_STREAM;
use httpd::response::{BodyStream, BodyStreamError};
use store::engine::ReadError;
use store::event_log::CHUNKS_MAX;
use tokio::sync::mpsc;

use super::request::ListWebhookEvents;
use super::view::WebhookEventView;
use crate::prelude::*;

/// The start of the stream: a comment that confirms the connection, and the reconnection delay.
pub(super) const BEGINNING: Bytes = Bytes::from_static(b": connected\nretry: 2000\n\n");
/// Interval of heartbeat comments on an idle stream. The second one that is not read shows a dead connection,
/// and the stream ends.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Polling interval for events that other nodes dispatched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Chunks that wait for the client.
const CHUNKS_BUFFERED: usize = 2;
/// Most events in one chunk.
const CHUNK_EVENTS: usize = 50;

/// Starts the stream, after the cursor or with the next dispatched event.
pub(super) async fn start(state: &State, tenant: &Tenant, input: ListWebhookEvents) -> Result<BodyStream> {
    let account = tenant.account().id;
    let Some(subscriber) = state.accounts.webhooks.subscribe(account) else {
        let text = "Too many event streams are open: close one";
        return Err(Problem::new(ErrorCode::SERVICE_UNAVAILABLE, text));
    };
    let position = match input.cursor {
        Some(position) => position,
        None => store::event_log::last_number(&state.services.store, account).await?,
    };
    let (sender, stream) = mpsc::channel(CHUNKS_BUFFERED);
    // A client that loses the connection before its first event resumes here. The channel is empty, so this fits.
    let _ = sender.try_send(Ok(position_chunk(position)));
    let writer =
        EventStreamWriter { state: Arc::clone(state), account, query: input, last_sent: position, chunks: sender };
    state.background.tasks.spawn(async move {
        let _ = writer.run(&subscriber).await;
    });
    Ok(stream)
}

/// A chunk without an event: it keeps the connection open and tells the client where to resume.
fn position_chunk(position: u64) -> Bytes {
    format!(":\nid: {}\n\n", paging::after_number(KIND_STREAM, position)).into()
}

struct EventStreamWriter {
    state: State,
    account: model::id::AccountId,
    query: ListWebhookEvents,
    last_sent: u64,
    chunks: mpsc::Sender<Result<Bytes, BodyStreamError>>,
}

impl EventStreamWriter {
    async fn run(mut self, subscriber: &StreamSubscriber) -> Result<(), ReadError> {
        let state = Arc::clone(&self.state);
        let shared = state.services.store.is_shared();
        let mut last_write = tokio::time::Instant::now();
        loop {
            // Subscribe before reading the store, so that no event is missed in between.
            let dispatched = subscriber.next_dispatch();
            let chunk = self.read_chunk().await?;
            if let Some(chunk) = chunk {
                last_write = tokio::time::Instant::now();
                if !self.send_chunk(chunk).await {
                    return Ok(());
                }
                continue;
            }
            tokio::select! {
                () = dispatched => {}
                () = tokio::time::sleep(POLL_INTERVAL), if shared => {}
                () = tokio::time::sleep_until(last_write + HEARTBEAT_INTERVAL) => {
                    last_write = tokio::time::Instant::now();
                    if !self.send_chunk(position_chunk(self.last_sent)).await {
                        return Ok(());
                    }
                }
                () = self.chunks.closed() => return Ok(()),
                () = state.background.shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Sends a chunk; returns false when the client has disconnected or the server shuts down.
    async fn send_chunk(&self, chunk: Bytes) -> bool {
        tokio::select! {
            sent = self.chunks.send(Ok(chunk)) => sent.is_ok(),
            () = self.state.background.shutdown.cancelled() => false,
        }
    }

    /// Reads the next matching events; `None` if there are none yet.
    async fn read_chunk(&mut self) -> Result<Option<Bytes>, ReadError> {
        let AppState { services, accounts, .. } = &*self.state;
        loop {
            let entries =
                store::event_log::list_after(&services.store, self.account, self.last_sent, CHUNKS_MAX).await?;
            let Some(last) = entries.last().map(|entry| entry.number) else { return Ok(None) };
            let chosen: Vec<_> =
                entries.into_iter().filter(|entry| self.query.matches(entry)).take(CHUNK_EVENTS).collect();
            // A full chunk ends at its last event; else all entries that were read are done.
            let full = chosen.len() == CHUNK_EVENTS;
            self.last_sent = chosen.last().map(|entry| entry.number).filter(|_| full).unwrap_or(last);
            let mut chunk = String::new();
            for dispatched in accounts.webhooks.dispatched_events(self.account, &chosen).await? {
                let (cursor, kind) =
                    (paging::after_number(KIND_STREAM, dispatched.number), dispatched.event.kind.name());
                let data = serde_json::to_string(&WebhookEventView::from(dispatched)).unwrap_or_default();
                // JSON contains no raw line breaks, so one `data` line is enough.
                chunk.push_str(&format!("id: {cursor}\nevent: {kind}\ndata: {data}\n\n"));
            }
            if !chunk.is_empty() {
                return Ok(Some(chunk.into()));
            }
        }
    }
}
