//! Answers that go on after the request was authorised: the stream of events, exports. What authorised them is checked
//! again while they go on.
//!
//! ```text
//! answer with more to come ─► its proof (key, session) ─┐
//! every second, and after a change at this node ─► one read for all proofs ─► those that hold no more end
//! ```
//!
//! There is one reader for all answers, not one for each, and none while there is no such answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use store::access::Proof;
use store::engine::ReadError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::call::{Broken, Pieces};
use crate::room::Room;

/// A change at another node is noticed within this time.
const CHECK: Duration = Duration::from_secs(1);
/// Changes at this node that follow each other so closely are one check.
const SETTLES: Duration = Duration::from_millis(50);
/// Proofs of one read.
const READ_MAX: usize = 500;
/// Why a stream of events ends, as its last comment. The client comes back and is told 401 or 403.
const ENDED: Bytes = Bytes::from_static(b": ended: the API key or session is no longer valid\n\n");

/// The answers that go on, by number.
#[derive(Debug, Default)]
pub struct AccessWatch(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    next: u64,
    /// The reader is at work.
    reads: bool,
    answers: HashMap<u64, (Proof, CancellationToken)>,
}

impl AccessWatch {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proofs now; none ends the reader.
    fn proofs(&self) -> Option<Vec<(u64, Proof)>> {
        let mut watched = self.lock();
        watched.reads = !watched.answers.is_empty();
        watched.reads.then(|| watched.answers.iter().map(|(id, (proof, _))| (*id, proof.clone())).collect())
    }

    fn end(&self, id: u64) {
        if let Some((_, ended)) = self.lock().answers.get(&id) {
            ended.cancel();
        }
    }
}

/// An answer that is watched, until it is dropped.
struct Ticket {
    room: Arc<Room>,
    id: u64,
    ended: CancellationToken,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.room.access_watch.lock().answers.remove(&self.id);
    }
}

impl Ticket {
    fn new(room: &Arc<Room>, proof: Proof) -> Self {
        let ended = CancellationToken::new();
        let mut watched = room.access_watch.lock();
        let id = watched.next;
        watched.next += 1;
        watched.answers.insert(id, (proof, ended.clone()));
        if !watched.reads {
            watched.reads = true;
            room.tasks.spawn(read(Arc::clone(room)));
        }
        Self { room: Arc::clone(room), id, ended }
    }
}

/// Checks all proofs again and again, while there are any.
async fn read(room: Arc<Room>) {
    loop {
        // What is changed while the store is read counts.
        let changed = room.hall.next_access_change();
        let Some(proofs) = room.access_watch.proofs() else { return };
        if let Err(error) = check(&room, &proofs).await {
            tracing::warn!(%error, "whether streams may go on could not be read");
        }
        tokio::select! {
            () = changed => tokio::time::sleep(SETTLES).await,
            () = tokio::time::sleep(CHECK) => {}
            () = room.closing.cancelled() => return,
        }
    }
}

async fn check(room: &Room, proofs: &[(u64, Proof)]) -> Result<(), ReadError> {
    for some in proofs.chunks(READ_MAX) {
        let asked: Vec<Proof> = some.iter().map(|(_, proof)| proof.clone()).collect();
        let held = store::access::still_hold(room.hall.store(), &asked, room.hall.clock().now()).await?;
        for ((id, _), _) in some.iter().zip(held).filter(|(_, held)| !held) {
            room.access_watch.end(*id);
        }
    }
    Ok(())
}

/// The rest of an answer, which ends when what authorised it holds no more: a stream of events with a comment that says
/// so, anything else by breaking off.
pub fn guarded(room: &Arc<Room>, proof: Proof, mut pieces: Pieces, is_event_stream: bool) -> Pieces {
    let ticket = Ticket::new(room, proof);
    let (send, more) = mpsc::channel(1);
    room.tasks.spawn(async move {
        loop {
            let piece = tokio::select! {
                biased;
                () = ticket.ended.cancelled() => break,
                () = send.closed() => return,
                piece = pieces.recv() => piece,
            };
            let Some(piece) = piece else { return };
            tokio::select! {
                biased;
                () = ticket.ended.cancelled() => break,
                sent = send.send(piece) => if sent.is_err() { return },
            }
        }
        let last = if is_event_stream { Ok(ENDED) } else { Err(Broken) };
        // Who does not read is put out by the connection's own bound.
        let _ = send.send(last).await;
    });
    more
}
