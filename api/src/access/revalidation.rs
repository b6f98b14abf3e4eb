//! Streaming responses (event stream, exports) outlive the check that authorized them. Their proofs of access are
//! checked again until the stream ends.
//!
//! ```text
//! streaming response ─► registers its proof (API key or session) ─┐
//! every second, and after an access change on this node ─► one read for all proofs ─► cancel revoked streams
//! ```
//!
//! One task revalidates the proofs of all streams. It exits when no stream is left.

use httpd::response::{BodyStream, BodyStreamError};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use accounts::credential_auth::CredentialAuthenticator;
use bytes::Bytes;
use net::clock::Clock;
use queue::services::Services;
use store::access::AuthProof;
use store::engine::{ReadError, Store};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::background_work::BackgroundWork;

/// Upper bound on how late a change made on another node takes effect.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Changes on this node within this time are handled by one check.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Proofs read from the store in one request.
const PROOFS_PER_READ_MAX: usize = 500;
/// Last comment of an event stream that is cancelled. The client reconnects and receives 401 or 403.
const END_COMMENT: Bytes = Bytes::from_static(b": ended: the API key or session is no longer valid\n\n");

/// Rechecks the access of open streaming responses while they run.
pub struct AccessRevalidator {
    store: Store,
    clock: Clock,
    credentials: Arc<CredentialAuthenticator>,
    /// Runs the streams and the revalidation.
    background: BackgroundWork,
    streams: Mutex<StreamRegistry>,
}

/// Open streaming responses by registration number.
#[derive(Debug, Default)]
struct StreamRegistry {
    next: u64,
    reader_running: bool,
    streams: HashMap<u64, (AuthProof, CancellationToken)>,
}

impl AccessRevalidator {
    pub(crate) fn new(
        services: &Services,
        credentials: Arc<CredentialAuthenticator>,
        background: BackgroundWork,
    ) -> Arc<Self> {
        let (store, clock) = (services.store.clone(), services.clock.clone());
        Arc::new(Self { store, clock, credentials, background, streams: Mutex::default() })
    }

    /// Forwards the response stream until its proof of access is revoked. An event stream then ends with a comment;
    /// any other stream is aborted.
    pub(crate) fn revalidate_while_streaming(
        self: &Arc<Self>,
        proof: AuthProof,
        mut chunks: BodyStream,
        is_event_stream: bool,
    ) -> BodyStream {
        let registration = self.register(proof);
        let (send, stream) = mpsc::channel(1);
        self.background.tasks.spawn(async move {
            loop {
                let chunk = tokio::select! {
                    biased;
                    () = registration.ended.cancelled() => break,
                    () = send.closed() => return,
                    chunk = chunks.recv() => chunk,
                };
                let Some(chunk) = chunk else { return };
                tokio::select! {
                    biased;
                    () = registration.ended.cancelled() => break,
                    sent = send.send(chunk) => if sent.is_err() { return },
                }
            }
            let last = if is_event_stream { Ok(END_COMMENT) } else { Err(BodyStreamError) };
            // A client that does not read is closed by the connection's write timeout.
            let _ = send.send(last).await;
        });
        stream
    }

    /// Registers a stream. Starts the revalidation with the first one.
    fn register(self: &Arc<Self>, proof: AuthProof) -> StreamRegistration {
        let ended = CancellationToken::new();
        let mut watched = self.lock();
        let id = watched.next;
        watched.next += 1;
        watched.streams.insert(id, (proof, ended.clone()));
        if !watched.reader_running {
            watched.reader_running = true;
            self.background.tasks.spawn(Arc::clone(self).run());
        }
        StreamRegistration { revalidator: Arc::clone(self), id, ended }
    }

    /// Revalidates all proofs until no stream is left.
    async fn run(self: Arc<Self>) {
        loop {
            // Subscribe before reading, so that a change during the read triggers another check.
            let changed = self.credentials.next_access_change();
            let Some(proofs) = self.live_proofs() else { return };
            if let Err(error) = self.revalidate_proofs(&proofs).await {
                tracing::warn!(%error, "cannot revalidate access of open streams; retrying");
            }
            tokio::select! {
                () = changed => tokio::time::sleep(DEBOUNCE).await,
                () = tokio::time::sleep(RECHECK_INTERVAL) => {}
                () = self.background.shutdown.cancelled() => return,
            }
        }
    }

    async fn revalidate_proofs(&self, proofs: &[(u64, AuthProof)]) -> Result<(), ReadError> {
        for chunk in proofs.chunks(PROOFS_PER_READ_MAX) {
            let chunk_proofs: Vec<AuthProof> = chunk.iter().map(|(_, proof)| proof.clone()).collect();
            let now = self.clock.now();
            let still_valid = store::access::revalidate_proofs(&self.store, &chunk_proofs, now).await?;
            for ((id, _), _) in chunk.iter().zip(still_valid).filter(|(_, still_valid)| !still_valid) {
                self.end_stream(*id);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, StreamRegistry> {
        self.streams.lock()
    }

    /// The proofs of all open streams. Returns `None` and marks the task as stopped if there are none.
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

/// Registration of one streaming response; dropping it unregisters.
struct StreamRegistration {
    revalidator: Arc<AccessRevalidator>,
    id: u64,
    ended: CancellationToken,
}

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.revalidator.lock().streams.remove(&self.id);
    }
}
