//! The stream of events as it grows: server-sent events (HTML Living Standard, 9.2).
//!
//! Who follows is woken when this node tells something, and looks now and then where other nodes tell too. A
//! comment comes when nothing else does, so that nobody between takes the connection for dead. It ends when the
//! door closes, and when the key or session behind it does not let in any more (`access::watch`); who follows comes back
//! with the `id` of the last event that it saw.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use queue::webhooks::follow::Follower;
use store::access::Tenant;
use store::engine::ReadError;
use tokio::sync::mpsc;

use super::{EventView, ListEvents};
use crate::call::{Broken, Pieces};
use crate::page::{self, KIND_STREAM};
use crate::problem::{Code, Problem};
use crate::room::Room;

/// How it begins: a comment, so that the client knows that it is connected; and when it is to come back.
pub(super) const BEGINNING: Bytes = Bytes::from_static(b": connected\nretry: 2000\n\n");
/// After so long without anything a comment is sent: the second one that nobody takes shows that the client is
/// gone, and gives its place to the next.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// How often is looked what other nodes have told.
const LOOK: Duration = Duration::from_secs(1);
/// Pieces that wait for the client.
const PIECES_AHEAD: usize = 2;
/// Events of one piece.
const PIECE_EVENTS: usize = 50;

/// Begins to follow: from the cursor, or from what is told from now on.
pub(super) async fn begin(room: &Arc<Room>, tenant: &Tenant, input: ListEvents) -> Result<Pieces, Problem> {
    let account = tenant.account().id;
    let Some(follower) = room.hall.follow(account) else {
        let text = "Too many streams of events are open: close one";
        return Err(Problem::new(Code::SERVICE_UNAVAILABLE, text));
    };
    let seen = match input.cursor {
        Some(seen) => seen,
        None => store::stream::head(room.hall.store(), account).await?,
    };
    let (pieces, more) = mpsc::channel(PIECES_AHEAD);
    let following = Following { room: Arc::clone(room), account, input, seen, pieces };
    room.tasks.spawn(async move {
        let _ = following.run(&follower).await;
    });
    Ok(more)
}

struct Following {
    room: Arc<Room>,
    account: mail::id::AccountId,
    input: ListEvents,
    seen: u64,
    pieces: mpsc::Sender<Result<Bytes, Broken>>,
}

impl Following {
    async fn run(mut self, follower: &Follower) -> Result<(), ReadError> {
        let room = Arc::clone(&self.room);
        let shared = room.hall.store().is_shared();
        let mut quiet_since = tokio::time::Instant::now();
        loop {
            // What is told while the store is read counts.
            let told = follower.told();
            let piece = self.read().await?;
            if let Some(piece) = piece {
                quiet_since = tokio::time::Instant::now();
                if !self.send(piece).await {
                    return Ok(());
                }
                continue;
            }
            tokio::select! {
                () = told => {}
                () = tokio::time::sleep(LOOK), if shared => {}
                () = tokio::time::sleep_until(quiet_since + QUIET_MAX) => {
                    quiet_since = tokio::time::Instant::now();
                    if !self.send(Bytes::from_static(b":\n\n")).await {
                        return Ok(());
                    }
                }
                () = self.pieces.closed() => return Ok(()),
                () = room.closing.cancelled() => return Ok(()),
            }
        }
    }

    /// False: nobody reads any more, or the door closes.
    async fn send(&self, piece: Bytes) -> bool {
        tokio::select! {
            sent = self.pieces.send(Ok(piece)) => sent.is_ok(),
            () = self.room.closing.cancelled() => false,
        }
    }

    /// The next events, if there are any; what is not asked for is passed over.
    async fn read(&mut self) -> Result<Option<Bytes>, ReadError> {
        let hall = &self.room.hall;
        loop {
            let entries = store::stream::after(hall.store(), self.account, self.seen).await?;
            let Some(last) = entries.last().map(|entry| entry.number) else { return Ok(None) };
            let chosen: Vec<_> =
                entries.into_iter().filter(|entry| self.input.takes(entry)).take(PIECE_EVENTS).collect();
            // With as many as fit it goes on behind the last of them.
            let full = chosen.len() == PIECE_EVENTS;
            self.seen = chosen.last().map(|entry| entry.number).filter(|_| full).unwrap_or(last);
            let mut piece = String::new();
            for told in hall.told_events(self.account, &chosen).await? {
                let (cursor, kind) = (page::after_number(KIND_STREAM, told.number), told.event.kind.name());
                let data = serde_json::to_string(&EventView::from(told)).unwrap_or_default();
                // JSON holds no line break.
                piece.push_str(&format!("id: {cursor}\nevent: {kind}\ndata: {data}\n\n"));
            }
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
    }
}
