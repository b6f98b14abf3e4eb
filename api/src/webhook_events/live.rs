//! The stream of events as it grows: server-sent events (HTML Living Standard, 9.2).
//!
//! Who follows is woken when this node tells something, and looks now and then where other nodes tell too. A
//! comment comes when nothing else does, so that nobody between takes the connection for dead. It ends when the
//! door closes, and when the key or session behind it does not let in any more (`access::watch`); who follows comes back
//! with the `id` of the last event that it saw.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use queue::webhooks::follow::StreamSubscriber;
use store::access::Tenant;
use store::engine::ReadError;
use tokio::sync::mpsc;

use super::{ListWebhookEvents, WebhookEventView};
use crate::call::{BodyStream, BodyStreamError};
use crate::page::{self, KIND_STREAM};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;

/// How it begins: a comment, so that the client knows that it is connected; and when it is to come back.
pub(super) const BEGINNING: Bytes = Bytes::from_static(b": connected\nretry: 2000\n\n");
/// After so long without anything a comment is sent: the second one that nobody takes shows that the client is
/// gone, and gives its place to the next.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How often is looked what other nodes have told.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pieces that wait for the client.
const CHUNKS_BUFFERED: usize = 2;
/// Events of one piece.
const CHUNK_EVENTS: usize = 50;

/// Begins to follow: from the cursor, or from what is told from now on.
pub(super) async fn start(
    room: &Arc<AppState>,
    tenant: &Tenant,
    input: ListWebhookEvents,
) -> Result<BodyStream, Problem> {
    let account = tenant.account().id;
    let Some(follower) = room.intake.subscribe(account) else {
        let text = "Too many streams of events are open: close one";
        return Err(Problem::new(ErrorCode::SERVICE_UNAVAILABLE, text));
    };
    let seen = match input.cursor {
        Some(seen) => seen,
        None => store::stream::last_number(room.intake.store(), account).await?,
    };
    let (pieces, more) = mpsc::channel(CHUNKS_BUFFERED);
    let following =
        EventStreamWriter { room: Arc::clone(room), account, query: input, last_sent: seen, chunks: pieces };
    room.tasks.spawn(async move {
        let _ = following.run(&follower).await;
    });
    Ok(more)
}

struct EventStreamWriter {
    room: Arc<AppState>,
    account: mail::id::AccountId,
    query: ListWebhookEvents,
    last_sent: u64,
    chunks: mpsc::Sender<Result<Bytes, BodyStreamError>>,
}

impl EventStreamWriter {
    async fn run(mut self, follower: &StreamSubscriber) -> Result<(), ReadError> {
        let room = Arc::clone(&self.room);
        let shared = room.intake.store().is_shared();
        let mut quiet_since = tokio::time::Instant::now();
        loop {
            // What is told while the store is read counts.
            let told = follower.next_dispatch();
            let piece = self.read_chunk().await?;
            if let Some(piece) = piece {
                quiet_since = tokio::time::Instant::now();
                if !self.send_chunk(piece).await {
                    return Ok(());
                }
                continue;
            }
            tokio::select! {
                () = told => {}
                () = tokio::time::sleep(POLL_INTERVAL), if shared => {}
                () = tokio::time::sleep_until(quiet_since + HEARTBEAT_INTERVAL) => {
                    quiet_since = tokio::time::Instant::now();
                    if !self.send_chunk(Bytes::from_static(b":\n\n")).await {
                        return Ok(());
                    }
                }
                () = self.chunks.closed() => return Ok(()),
                () = room.shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// False: nobody reads any more, or the door closes.
    async fn send_chunk(&self, piece: Bytes) -> bool {
        tokio::select! {
            sent = self.chunks.send(Ok(piece)) => sent.is_ok(),
            () = self.room.shutdown.cancelled() => false,
        }
    }

    /// The next events, if there are any; what is not asked for is passed over.
    async fn read_chunk(&mut self) -> Result<Option<Bytes>, ReadError> {
        let hall = &self.room.intake;
        loop {
            let entries = store::stream::list_after(hall.store(), self.account, self.last_sent).await?;
            let Some(last) = entries.last().map(|entry| entry.number) else { return Ok(None) };
            let chosen: Vec<_> =
                entries.into_iter().filter(|entry| self.query.matches(entry)).take(CHUNK_EVENTS).collect();
            // With as many as fit it goes on behind the last of them.
            let full = chosen.len() == CHUNK_EVENTS;
            self.last_sent = chosen.last().map(|entry| entry.number).filter(|_| full).unwrap_or(last);
            let mut piece = String::new();
            for told in hall.dispatched_events(self.account, &chosen).await? {
                let (cursor, kind) = (page::after_number(KIND_STREAM, told.number), told.event.kind.name());
                let data = serde_json::to_string(&WebhookEventView::from(told)).unwrap_or_default();
                // JSON holds no line break.
                piece.push_str(&format!("id: {cursor}\nevent: {kind}\ndata: {data}\n\n"));
            }
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
    }
}
