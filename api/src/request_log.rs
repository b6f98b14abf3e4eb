//! Writes answered requests to the request log.
//!
//! ```text
//! answered ─► buffer in memory (bounded; overflow is counted and dropped) ─► one commit per second
//! ```
//!
//! Requests do not wait for it. Reading the log flushes the buffer first, so that all requests answered by this node
//! are included.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use mail::id::{AccountId, RequestId};
use mail::request_log::{LoggedRequest, redact_path};
use store::access::Actor;
use store::engine::{Batch, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum number of buffered requests: some megabytes.
const ENTRIES_MAX: usize = 20_000;
/// Requests per commit; a full batch is written before the interval ends.
const BATCH_ENTRIES: usize = 1_000;
/// Interval of the commits.
const INTERVAL: Duration = Duration::from_secs(1);
/// The operation that reads the log is not logged itself: a page that polls it would fill the log.
const READ_OPERATION: &str = "list_logs";

/// An answered request.
#[derive(Debug)]
pub struct RequestLogEntry {
    pub id: RequestId,
    /// The account and the authenticated actor.
    pub actor: (AccountId, Actor),
    pub operation: &'static str,
    pub status: u16,
    pub error_code: Option<&'static str>,
    pub duration: Duration,
}

/// Buffer of requests that are not written yet.
#[derive(Debug, Default)]
pub struct RequestLogWriter {
    entries: Mutex<Vec<LoggedRequest>>,
    batch_full: Notify,
    /// Serializes writers, so that a reader that flushes finds everything written.
    writing: tokio::sync::Mutex<()>,
}

impl RequestLogWriter {
    fn lock(&self) -> MutexGuard<'_, Vec<LoggedRequest>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers an answered request.
    pub fn record(&self, entry: RequestLogEntry, method: &Method, path: &str) {
        if entry.operation == READ_OPERATION {
            return;
        }
        let (account, actor) = entry.actor;
        let logged = LoggedRequest {
            id: entry.id,
            account,
            api_key: if let Actor::ApiKey(id) = actor { Some(id) } else { None },
            user: if let Actor::User(id) = actor { Some(id) } else { None },
            grant: if let Actor::Grant(id) = actor { Some(id) } else { None },
            method: method.as_str().to_owned(),
            path: redact_path(path),
            operation: entry.operation.to_owned(),
            status: entry.status,
            error_code: entry.error_code.map(str::to_owned),
            duration_ms: u32::try_from(entry.duration.as_millis()).unwrap_or(u32::MAX),
            created_at: entry.id.born_at(),
        };
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            metrics::counter!("postrider_requests_not_logged_total").increment(1);
            return;
        }
        entries.push(logged);
        if entries.len() == BATCH_ENTRIES {
            self.batch_full.notify_one();
        }
    }

    /// Flushes the buffer periodically until `stop`.
    pub async fn run(&self, store: &Store, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.batch_full.notified() => {}
            }
            self.flush(store).await;
        }
    }

    /// Writes the buffered requests. Requests that cannot be written are counted and dropped: the log must not block a
    /// store that is failing.
    pub async fn flush(&self, store: &Store) {
        let _one = self.writing.lock().await;
        let all = std::mem::take(&mut *self.lock());
        for some in all.chunks(BATCH_ENTRIES) {
            let mut batch = Batch::intake();
            some.iter().for_each(|request| store::request_log::record(&mut batch, request));
            if let Err(error) = store.commit(batch).await {
                tracing::debug!(%error, "cannot write the request log");
                metrics::counter!("postrider_requests_not_logged_total").increment(some.len() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::ApiKeyId;

    #[tokio::test]
    async fn the_buffer_is_bounded_and_stores_no_addresses() {
        let (journal, store) = (RequestLogWriter::default(), Store::memory());
        let account = AccountId::from_bytes([1; 16]);
        let note = |n: u32, operation| {
            let caller = (account, Actor::ApiKey(ApiKeyId::from_bytes([2; 16])));
            let id = RequestId::new(jiff::Timestamp::UNIX_EPOCH, n.into());
            let duration = Duration::from_millis(3);
            journal.record(
                RequestLogEntry { id, actor: caller, operation, status: 404, error_code: Some("not_found"), duration },
                &Method::GET,
                "/emails/x@y.example",
            );
        };
        for n in 0..u32::try_from(ENTRIES_MAX).unwrap() + 5 {
            note(n, "get_email");
        }
        note(0, READ_OPERATION);
        assert_eq!(journal.lock().len(), ENTRIES_MAX);
        journal.flush(&store).await;
        assert!(journal.lock().is_empty());
        let found = store::request_log::list(&store, account, None, None, 1).await.unwrap();
        assert_eq!(found[0].path, "/emails/[redacted]");
        let text = format!("{found:?}");
        assert!(!text.contains("example"), "{text}");
    }
}
