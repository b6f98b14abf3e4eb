//! Writes answered requests to the request log.
//!
//! ```text
//! answered ─► buffer in memory (bounded; overflow is counted and dropped) ─► one commit per second
//! ```
//!
//! Requests do not wait for it, except those that delete something or concern secrets, money or the team: they are
//! written before they are answered. Reading the log flushes the buffer first, so that all requests answered by this node
//! are included.

use parking_lot::{Mutex, MutexGuard};
use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode};
use model::id::{AccountId, ApprovalId, RequestId, UserId};
use model::request_log::{AuditRecord, LoggedRequest, RequestSurface, redact_path};
use serde_json::Value;
use store::access::{Actor, Tenant};
use store::engine::{Batch, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::sdk::Risk;

/// Maximum number of buffered requests: some megabytes.
const ENTRIES_MAX: usize = 20_000;
/// Requests per commit; a full batch is written before the interval ends.
const BATCH_ENTRIES: usize = 1_000;
/// Interval of the commits.
const INTERVAL: Duration = Duration::from_secs(1);
/// Operations that programs call for each email or event. They are audited only for clients with a policy: emails and
/// events name the credential that sent them, and are as many as a product has customers.
const HIGH_VOLUME_OPERATIONS: [&str; 3] = ["send_email", "send_batch", "send_event"];
/// The operations that read the log are not logged themselves: a page that polls them would fill the log.
const READ_OPERATIONS: [&str; 2] = ["list_logs", "list_audit_log"];
/// Longer responses are not parsed for the id of the object.
const PARSED_RESPONSE_BYTES_MAX: usize = 8 << 10;

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
    pub surface: RequestSurface,
    /// The client's address, if known.
    pub address: Option<IpAddr>,
    /// The audit log records it ([`is_audited`]).
    pub is_audited: bool,
    /// The approval after which it was carried out, and who approved it.
    pub approved: Option<(ApprovalId, Option<UserId>)>,
}

/// Returns whether the audit log records an operation that this tenant calls.
pub fn is_audited(operation: &str, risk: Risk, tenant: &Tenant) -> bool {
    risk != Risk::Read
        && (!HIGH_VOLUME_OPERATIONS.contains(&operation)
            || !tenant.policy().is_empty()
            || tenant.delegation().is_some())
}

/// Returns whether requests with this risk are written before they are answered.
pub fn is_written_first(risk: Risk) -> bool {
    match risk {
        Risk::Read | Risk::Write | Risk::Send => false,
        Risk::Delete | Risk::Secret | Risk::Money | Risk::Team | Risk::Payout => true,
    }
}

/// A response as far as it is searched for ids; null if it is too long or no JSON.
fn parse_response(response: &[u8]) -> Value {
    match response.len() <= PARSED_RESPONSE_BYTES_MAX {
        true => serde_json::from_slice(response).unwrap_or_default(),
        false => Value::Null,
    }
}

/// The id of the object that a request concerns: the last id in its path, or else the id in its response; for a request
/// that waits for an approval, the approval.
fn object_id(path: &str, response: &Value) -> Option<String> {
    let from_path = path.split('/').rev().find(|segment| is_object_id(segment));
    let inner = || response.as_object()?.values().next()?.get("id");
    let from_response = || response.get("id").or_else(inner).or_else(|| response.get("approval_id"))?.as_str();
    from_path.or_else(from_response).filter(|id| is_object_id(id)).map(str::to_owned)
}

/// The approval that a held request waits for.
fn held_approval(status: u16, response: &Value) -> Option<ApprovalId> {
    let id = response.get("approval_id").filter(|_| status == StatusCode::ACCEPTED.as_u16())?;
    id.as_str()?.parse().ok()
}

/// True for texts such as `msg_01ARZ3NDEKTSV4RRFFQ69G5FAV`.
fn is_object_id(text: &str) -> bool {
    text.split_once('_').is_some_and(|(prefix, rest)| {
        prefix.len() <= 8
            && prefix.bytes().all(|byte| byte.is_ascii_lowercase())
            && rest.len() == 26
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
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
        self.entries.lock()
    }

    /// Buffers an answered request.
    pub fn record(&self, entry: RequestLogEntry, method: &Method, path: &str, response: &[u8]) {
        if READ_OPERATIONS.contains(&entry.operation) {
            return;
        }
        let audit = entry.is_audited.then(|| {
            let response = parse_response(response);
            let (approval, approved_by) = match entry.approved {
                Some((approval, by)) => (Some(approval), by),
                None => (held_approval(entry.status, &response), None),
            };
            let object = object_id(path, &response);
            AuditRecord { surface: entry.surface, address: entry.address, object, approval, approved_by }
        });
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
            audit,
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
    use model::id::ApiKeyId;
    use serde_json::json;

    #[tokio::test]
    async fn the_buffer_is_bounded_and_stores_no_addresses() {
        let (journal, store) = (RequestLogWriter::default(), Store::memory());
        let account = AccountId::from_bytes([1; 16]);
        let note = |n: u32, operation| {
            let caller = (account, Actor::ApiKey(ApiKeyId::from_bytes([2; 16])));
            let id = RequestId::new(jiff::Timestamp::UNIX_EPOCH, n.into());
            let duration = Duration::from_millis(3);
            let entry = RequestLogEntry {
                id,
                actor: caller,
                operation,
                status: 404,
                error_code: Some("not_found"),
                duration,
                surface: RequestSurface::Api,
                address: None,
                is_audited: false,
                approved: None,
            };
            journal.record(entry, &Method::GET, "/emails/x@y.example", b"");
        };
        for n in 0..u32::try_from(ENTRIES_MAX).unwrap() + 5 {
            note(n, "get_email");
        }
        note(0, READ_OPERATIONS[0]);
        assert_eq!(journal.lock().len(), ENTRIES_MAX);
        journal.flush(&store).await;
        assert!(journal.lock().is_empty());
        let found = store::request_log::list(&store, account, None, None, 1).await.unwrap();
        assert_eq!(found[0].path, "/emails/[redacted]");
        let text = format!("{found:?}");
        assert!(!text.contains("example"), "{text}");
    }

    #[test]
    fn the_object_is_named_by_the_path_or_the_response() {
        let id = "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let object_of = |path: &str, response: &str| object_id(path, &parse_response(response.as_bytes()));
        assert_eq!(object_of(&format!("/emails/{id}/cancel"), "{}").as_deref(), Some(id));
        assert_eq!(object_of("/emails", &format!(r#"{{"id":"{id}"}}"#)).as_deref(), Some(id));
        assert_eq!(object_of("/api-keys", &format!(r#"{{"api_key":{{"id":"{id}"}}}}"#)).as_deref(), Some(id));
        for other in [r#"{"id":"rnl_secret"}"#, r#"{"id":7}"#, "[]", "", r#"{"a":[{"id":"x"}]}"#] {
            assert_eq!(object_of("/emails/x@y.example", other), None, "{other}");
        }
    }

    #[test]
    fn a_held_request_names_its_approval() {
        let id = "apr_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let held = json!({"status": "approval_required", "message": "m", "approval_id": id, "url": "https://x/"});
        assert_eq!(object_id("/emails", &held).as_deref(), Some(id));
        assert_eq!(held_approval(202, &held).map(|id| id.to_string()).as_deref(), Some(id));
        assert_eq!(held_approval(200, &held), None);
        assert_eq!(held_approval(202, &json!({"approval_id": "x"})), None);
    }
}
