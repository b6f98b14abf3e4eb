//! Request log: one row per API request, by account and time.

use jiff::Timestamp;
use mail::id::{AccountId, ApiKeyId, GrantId, RequestId, UserId};
use mail::request_log::LoggedRequest;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoggedRequest")]
struct LoggedRequestRow {
    id: RequestId,
    account: AccountId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key: Option<ApiKeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<GrantId>,
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

pub fn record(batch: &mut Batch, request: &LoggedRequest) {
    batch.put(key_of(request.account, request.id), codec::encode(request));
}

/// Reads a logged request of an account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: RequestId) -> Result<Option<LoggedRequest>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| codec::decode(&row)).transpose()
}

/// Lists an account's requests, newest first, from `since` (inclusive) to `before` (exclusive), at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    since: Option<RequestId>,
    before: Option<RequestId>,
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
    rows.iter().map(|(_, row)| codec::decode(row)).collect()
}

/// Deletes an account's requests before an id, oldest first, at most `limit`. Returns their number.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: RequestId,
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
