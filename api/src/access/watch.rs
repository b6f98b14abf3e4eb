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
use store::access::AuthProof;
use store::engine::ReadError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::call::{BodyStream, BodyStreamError};
use crate::room::AppState;

/// A change at another node is noticed within this time.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Changes at this node that follow each other so closely are one check.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Proofs of one read.
const PROOFS_PER_READ_MAX: usize = 500;
/// Why a stream of events ends, as its last comment. The client comes back and is told 401 or 403.
const END_COMMENT: Bytes = Bytes::from_static(b": ended: the API key or session is no longer valid\n\n");

/// The answers that go on, by number.
#[derive(Debug, Default)]
pub struct AccessRevalidator(Mutex<StreamRegistry>);

#[derive(Debug, Default)]
struct StreamRegistry {
    next: u64,
    /// The reader is at work.
    reader_running: bool,
    streams: HashMap<u64, (AuthProof, CancellationToken)>,
}

impl AccessRevalidator {
    fn lock(&self) -> MutexGuard<'_, StreamRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proofs now; none ends the reader.
    fn live_proofs(&self) -> Option<Vec<(u64, AuthProof)>> {
        let mut watched = self.lock();
        watched.reader_running = !watched.streams.is_empty();
        watched.reader_running.then(|| watched.streams.iter().map(|(id, (proof, _))| (*id, proof.clone())).collect())
    }

    fn end_stream(&self, id: u64) {
        if let Some((_, ended)) = self.lock().streams.get(&id) {
            ended.cancel();
        }
    }
}

/// An answer that is watched, until it is dropped.
struct StreamRegistration {
    room: Arc<AppState>,
    id: u64,
    ended: CancellationToken,
}

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.room.revalidator.lock().streams.remove(&self.id);
    }
}

impl StreamRegistration {
    fn new(room: &Arc<AppState>, proof: AuthProof) -> Self {
        let ended = CancellationToken::new();
        let mut watched = room.revalidator.lock();
        let id = watched.next;
        watched.next += 1;
        watched.streams.insert(id, (proof, ended.clone()));
        if !watched.reader_running {
            watched.reader_running = true;
            room.tasks.spawn(run_revalidation(Arc::clone(room)));
        }
        Self { room: Arc::clone(room), id, ended }
    }
}

/// Checks all proofs again and again, while there are any.
async fn run_revalidation(room: Arc<AppState>) {
    loop {
        // What is changed while the store is read counts.
        let changed = room.intake.next_access_change();
        let Some(proofs) = room.revalidator.live_proofs() else { return };
        if let Err(error) = revalidate_proofs(&room, &proofs).await {
            tracing::warn!(%error, "whether streams may go on could not be read");
        }
        tokio::select! {
            () = changed => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(RECHECK_INTERVAL) => {}
            () = room.shutdown.cancelled() => return,
        }
    }
}

async fn revalidate_proofs(room: &AppState, proofs: &[(u64, AuthProof)]) -> Result<(), ReadError> {
    for some in proofs.chunks(PROOFS_PER_READ_MAX) {
        let asked: Vec<AuthProof> = some.iter().map(|(_, proof)| proof.clone()).collect();
        let held = store::access::revalidate_proofs(room.intake.store(), &asked, room.intake.clock().now()).await?;
        for ((id, _), _) in some.iter().zip(held).filter(|(_, held)| !held) {
            room.revalidator.end_stream(*id);
        }
    }
    Ok(())
}

/// The rest of an answer, which ends when what authorised it holds no more: a stream of events with a comment that says
/// so, anything else by breaking off.
pub fn revalidate_while_streaming(
    room: &Arc<AppState>,
    proof: AuthProof,
    mut pieces: BodyStream,
    is_event_stream: bool,
) -> BodyStream {
    let ticket = StreamRegistration::new(room, proof);
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
        let last = if is_event_stream { Ok(END_COMMENT) } else { Err(BodyStreamError) };
        // Who does not read is put out by the connection's own bound.
        let _ = send.send(last).await;
    });
    more
}
