//! The access watch: whether what live streams were opened with still lets in.
//!
//! ```text
//! stream ─► watch(proof) ─► Watched ─┐
//!                                    ├─ once a second: one read for all ─► revoked ─► the stream ends
//! stream ─► watch(proof) ─► Watched ─┘
//! ```
//!
//! A request is authenticated when it begins; a stream goes on for an hour. So the key or session behind each stream is
//! checked again once a second, for all streams in one read, at whichever node it was deleted. The task runs only
//! while there are streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::access::Proof;
use tokio_util::sync::CancellationToken;

use crate::room::Room;

/// How often all are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Proofs of one read.
const PROOFS_AT_ONCE: usize = 1_000;

#[derive(Debug, Default)]
struct Streams {
    next_id: u64,
    by_id: HashMap<u64, (Proof, CancellationToken)>,
    is_running: bool,
}

/// The watch. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessWatch(Arc<Mutex<Streams>>);

impl AccessWatch {
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to check a proof, until the answer is dropped.
    pub(crate) fn watch(&self, room: &Arc<Room>, proof: Proof) -> Watched {
        let revoked = CancellationToken::new();
        let mut streams = self.lock();
        let id = streams.next_id;
        streams.next_id += 1;
        streams.by_id.insert(id, (proof, revoked.clone()));
        if !std::mem::replace(&mut streams.is_running, true) {
            room.tasks.spawn(self.clone().run(Arc::clone(room)));
        }
        Watched { watch: self.clone(), id, revoked }
    }

    async fn run(self, room: Arc<Room>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = room.closing.cancelled() => return,
            }
            let all: Vec<(Proof, CancellationToken)> = {
                let mut streams = self.lock();
                streams.is_running = !streams.by_id.is_empty();
                if !streams.is_running {
                    return;
                }
                streams.by_id.values().cloned().collect()
            };
            for some in all.chunks(PROOFS_AT_ONCE) {
                let proofs: Vec<Proof> = some.iter().map(|(proof, _)| proof.clone()).collect();
                match store::access::still_hold(room.hall.store(), &proofs, room.hall.clock().now()).await {
                    Ok(hold) => {
                        let ended = some.iter().zip(hold).filter(|(_, holds)| !holds);
                        ended.for_each(|((_, revoked), _)| revoked.cancel());
                    }
                    // The stream reads the same store, and ends by itself if that goes on.
                    Err(error) => tracing::warn!(%error, "the access of live streams cannot be checked"),
                }
            }
        }
    }
}

/// A proof that is checked; no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: AccessWatch,
    id: u64,
    revoked: CancellationToken,
}

impl Watched {
    /// Ends when the proof does not let in any more.
    pub(crate) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.lock().by_id.remove(&self.id);
    }
}
