//! Request log: one row per API request, by account and time. Requests that the audit log records are in a space of
//! their own, because they are kept longer; the request log reads both.
//!
//! ```text
//! RequestLog · account · id  ─►  a request that only read
//! AuditLog   · account · id  ─►  a request that changed something, sent email or revealed a secret
//! ```

use model::id::{AccountId, RequestId};
use model::request_log::LoggedRequest;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(LoggedRequest);

/// The two parts of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPart {
    /// Requests that only read; older releases wrote all requests there.
    Reads,
    Audit,
}

impl LogPart {
    fn space(self) -> Space {
        match self {
            Self::Reads => Space::RequestLog,
            Self::Audit => Space::AuditLog,
        }
    }

    fn key_of(self, account: AccountId, id: RequestId) -> Key {
        key(self.space()).account(account).id(id.to_bytes()).build()
    }
}

pub fn record(batch: &mut Batch, request: &LoggedRequest) {
    let part = if request.audit.is_some() { LogPart::Audit } else { LogPart::Reads };
    batch.put(part.key_of(request.account, request.id), codec::encode(request));
}

pub async fn get(store: &Store, account: AccountId, id: RequestId) -> Result<Option<LoggedRequest>> {
    let rows = store.get_many(&[LogPart::Reads.key_of(account, id), LogPart::Audit.key_of(account, id)]).await?;
    rows.iter().flatten().next().map(|row| codec::decode(row)).transpose()
}

/// Lists an account's requests of both parts, newest first, from `since` (inclusive) to `before` (exclusive), at most
/// `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    since: Option<RequestId>,
    before: Option<RequestId>,
    limit: usize,
) -> Result<Vec<LoggedRequest>> {
    let mut all = list_part(store, LogPart::Reads, account, since, before, limit).await?;
    all.extend(list_part(store, LogPart::Audit, account, since, before, limit).await?);
    all.sort_unstable_by_key(|request| std::cmp::Reverse(request.id));
    all.truncate(limit);
    Ok(all)
}

/// Lists an account's requests of one part, as [`list`].
pub async fn list_part(
    store: &Store,
    part: LogPart,
    account: AccountId,
    since: Option<RequestId>,
    before: Option<RequestId>,
    limit: usize,
) -> Result<Vec<LoggedRequest>> {
    let mut range = key(part.space()).account(account).range();
    if let Some(since) = since {
        range.start = part.key_of(account, since);
    }
    if let Some(before) = before {
        range.end = part.key_of(account, before);
    }
    if range.start >= range.end {
        return Ok(Vec::new());
    }
    rows::scan(store, range, ScanOrder::Descending, limit).await
}

/// Deletes an account's requests of a part before an id, oldest first, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    part: LogPart,
    batch: &mut Batch,
    account: AccountId,
    before: RequestId,
    limit: usize,
) -> Result<usize> {
    let range = key(part.space()).account(account).build()..part.key_of(account, before);
    rows::delete_range(store, batch, range, limit).await
}
