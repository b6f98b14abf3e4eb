//! The request log: a row each request, under the account, in the order of time.

use jiff::Timestamp;
use mail::id::{AccountId, ApiKeyId, RequestId, UserId};
use mail::request_log::LoggedRequest;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoggedRequest")]
struct LoggedRequestRow {
    id: RequestId,
    account: AccountId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key: Option<ApiKeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    method: String,
    path: String,
    operation: String,
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    duration_ms: u32,
    created_at: Timestamp,
}
stored!(LoggedRequest as LoggedRequestRow);

fn key_of(account: AccountId, id: RequestId) -> Key {
    key(Space::RequestLog).account(account).id(id.to_bytes()).build()
}

/// Records a request.
pub fn record(batch: &mut Batch, request: &LoggedRequest) {
    batch.put(key_of(request.account, request.id), row::encode(request));
}

/// A request of an account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: RequestId) -> Result<Option<LoggedRequest>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// An account's requests, newest first, from `since` (included) to `before` (not), at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    (since, before): (Option<RequestId>, Option<RequestId>),
    limit: usize,
) -> Result<Vec<LoggedRequest>, ReadError> {
    let mut range = key(Space::RequestLog).account(account).range();
    if let Some(since) = since {
        range.start = key_of(account, since);
    }
    if let Some(before) = before {
        range.end = key_of(account, before);
    }
    if range.start >= range.end {
        return Ok(Vec::new());
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}

/// Forgets an account's requests from before an id, the oldest first, at most `limit`. Says how many.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    (account, before): (AccountId, RequestId),
    limit: usize,
) -> Result<usize, ReadError> {
    let range = key(Space::RequestLog).account(account).build()..key_of(account, before);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, _) in rows {
        batch.delete(row_key);
    }
    Ok(count)
}
