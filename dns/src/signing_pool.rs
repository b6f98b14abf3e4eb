//! A thread pool for signing, so that 0.3 ms of RSA does not block the event loop.
//!
//! ```text
//! run_job ─► permit (back-pressure) ─► SigningQueue ─► one thread per core ─► oneshot ─► caller
//! ```
//!
//! There is one thread per core, and all take jobs from one queue. Permits bound the queue: callers wait for one, which
//! is back-pressure on message intake. When the pool is dropped, the threads finish the queued jobs and exit.
//!
//! `spawn_blocking` is not used: its pool is shared with disk I/O, its queue is not bounded, and it wakes a thread per
//! job even if all are busy.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use message::address::Address;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::sign::{SignError, Signer, dkim2};

/// Queued jobs per thread: enough to keep it busy, and few enough that none waits longer than some 50 ms.
const JOBS_PER_THREAD: usize = 128;

/// The result of a job: header lines to prepend to a message.
type SignResult = Result<Vec<u8>, SignError>;

struct SigningJob {
    work: Box<dyn FnOnce() -> SignResult + Send>,
    answer: oneshot::Sender<SignResult>,
    /// Released when the job is done or dropped, so that the queue stays bounded.
    _permit: OwnedSemaphorePermit,
}

#[derive(Default)]
struct SigningQueue {
    jobs: VecDeque<SigningJob>,
    idle: usize,
    closed: bool,
}

#[derive(Default)]
struct SigningPoolInner {
    queue: Mutex<SigningQueue>,
    wake: Condvar,
}

pub struct SigningPool {
    shared: Arc<SigningPoolInner>,
    permits: Arc<Semaphore>,
}

impl std::fmt::Debug for SigningPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningPool").finish_non_exhaustive()
    }
}

impl SigningPool {
    /// Starts the threads; `None` means one per core.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn start(threads: Option<usize>) -> std::io::Result<Self> {
        let threads =
            threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1);
        let pool = Self { shared: Arc::default(), permits: Arc::new(Semaphore::new(threads * JOBS_PER_THREAD)) };
        for n in 0..threads {
            let shared = Arc::clone(&pool.shared);
            std::thread::Builder::new().name(format!("sign-{n}")).spawn(move || run_worker(&shared))?;
        }
        Ok(pool)
    }

    /// Signs a message.
    ///
    /// # Errors
    /// The message is invalid, or signing failed ([`SignError`]).
    pub async fn sign(&self, signer: Arc<Signer>, chunks: Vec<Bytes>, now: Timestamp) -> SignResult {
        self.run_job(move || signer.sign(&slices(&chunks), now)).await
    }

    /// Signs a message for [`Self::sign_transaction`] too: unless DKIM2 does not apply to it, the result begins with
    /// its [`dkim2::message_instance`].
    ///
    /// # Errors
    /// The message is invalid, or signing failed ([`SignError`]).
    pub async fn sign_with_instance(&self, signer: Arc<Signer>, chunks: Vec<Bytes>, now: Timestamp) -> SignResult {
        self.run_job(move || {
            let chunks = slices(&chunks);
            let signatures = signer.sign(&chunks, now)?;
            let mut lines = dkim2::message_instance(&chunks)?.unwrap_or_default();
            lines.extend_from_slice(&signatures);
            Ok(lines)
        })
        .await
    }

    /// Signs a message's instance for one transaction ([`Signer::sign_transaction`]).
    ///
    /// # Errors
    /// Signing failed ([`SignError`]).
    pub async fn sign_transaction(
        &self,
        signer: Arc<Signer>,
        instance: Bytes,
        sender: Option<Address>,
        recipient: Address,
        now: Timestamp,
    ) -> SignResult {
        self.run_job(move || signer.sign_transaction(&instance, sender.as_ref(), &recipient, now)).await
    }

    /// Runs a job on a thread of the pool, after waiting for a permit. If the caller is dropped, so is its job, unless
    /// it is already running.
    async fn run_job(&self, work: impl FnOnce() -> SignResult + Send + 'static) -> SignResult {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| SignError::Failed)?;
        let (answer, signed) = oneshot::channel();
        let wake = {
            let mut queue = self.shared.queue.lock();
            queue.jobs.push_back(SigningJob { work: Box::new(work), answer, _permit: permit });
            queue.idle > 0
        };
        // A busy thread checks the queue before it waits, so no wake-up is needed then.
        if wake {
            self.shared.wake.notify_one();
        }
        signed.await.map_err(|_| SignError::Failed)?
    }
}

impl Drop for SigningPool {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

fn slices(chunks: &[Bytes]) -> Vec<&[u8]> {
    chunks.iter().map(Bytes::as_ref).collect()
}

fn run_worker(shared: &SigningPoolInner) {
    while let Some(job) = next_job(shared) {
        if job.answer.is_closed() {
            continue;
        }
        // The signed message is untrusted: a panic on it ends this job, not the thread.
        let signed = catch_unwind(AssertUnwindSafe(job.work));
        // The caller may have been dropped meanwhile; then the result is not needed.
        drop(job.answer.send(signed.unwrap_or(Err(SignError::Failed))));
    }
}

fn next_job(shared: &SigningPoolInner) -> Option<SigningJob> {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.closed {
            return None;
        }
        queue.idle += 1;
        shared.wake.wait(&mut queue);
        queue.idle -= 1;
    }
}
