//! Events of the payment processor that came in: a row each by the processor's id, and by what became of them.

use bytes::Bytes;
use jiff::Timestamp;
use mail::id::AccountId;
use mail::words;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

words! {
    /// What became of an event.
    EventStatus {
        /// All that follows from it is written.
        Done = "done",
        /// It could not be read or written; nothing of it is.
        Failed = "failed",
        /// It is none of the program's.
        Ignored = "ignored",
    }
}

/// An event that came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorEvent {
    /// The processor's id.
    pub id: String,
    /// Its type, in the processor's words.
    pub kind: String,
    /// What became of it.
    pub status: EventStatus,
    /// Why it failed, or is none of the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
    /// When it came first.
    pub received_at: Timestamp,
    /// What came, for another try; only of one that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether it never came: it is what the processor was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_asked: bool,
}

stored!(ProcessorEvent);

/// An event's row as it was read.
#[derive(Debug, Clone, Default)]
pub struct StoredProcessorEvent {
    /// What it says; nothing when it is new.
    pub event: Option<ProcessorEvent>,
    row: Option<Value>,
}

fn key_of(account: AccountId, id: &str) -> Key {
    key(Space::ProcessorEvent).account(account).text(id).build()
}

fn key_by(account: AccountId, event: &ProcessorEvent) -> Key {
    let at = key(Space::ProcessorEventBy).account(account).text(event.status.as_str());
    at.time(event.received_at).text(&event.id).build()
}

/// An event.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: &str) -> Result<StoredProcessorEvent, ReadError> {
    let row = store.get(&key_of(account, id)).await?;
    let event = row.as_deref().map(row::decode).transpose()?;
    Ok(StoredProcessorEvent { event, row })
}

/// Writes what became of an event that was looked for as `seen`; the commit conflicts when somebody else was quicker.
pub fn put(batch: &mut Batch, account: AccountId, seen: &StoredProcessorEvent, event: &ProcessorEvent) {
    let at = key_of(account, &event.id);
    batch.check(at.clone(), seen.row.clone());
    if let Some(before) = &seen.event {
        batch.delete(key_by(account, before));
    }
    batch.put(key_by(account, event), Vec::new());
    batch.put(at, row::encode(event));
}

/// Forgets an event that was looked for as `seen`, if there is one; the commit conflicts when somebody else was quicker.
pub fn delete(batch: &mut Batch, account: AccountId, seen: &StoredProcessorEvent) {
    if let Some(event) = &seen.event {
        let at = key_of(account, &event.id);
        batch.check(at.clone(), seen.row.clone());
        batch.delete(key_by(account, event));
        batch.delete(at);
    }
}

/// Where a list of events goes on: after one that came then, with this id.
pub type ProcessorEventCursor = (Timestamp, String);

/// Events that stand so, newest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    (status, after): (EventStatus, Option<&ProcessorEventCursor>),
    limit: usize,
) -> Result<Vec<ProcessorEvent>, ReadError> {
    let prefix = key(Space::ProcessorEventBy).account(account).text(status.as_str());
    let mut range = prefix.clone().range();
    if let Some((at, id)) = after {
        range.end = prefix.time(*at).text(id).build();
    }
    let mut keys = Vec::new();
    for (row_key, _) in store.scan(range, ScanOrder::Descending, limit).await? {
        let mut reader = KeyReader::new(Space::ProcessorEventBy, &row_key).map_err(row::damaged)?;
        reader.id().map_err(row::damaged)?;
        reader.text().and_then(|_| reader.time()).map_err(row::damaged)?;
        keys.push(key_of(account, &reader.text().map_err(row::damaged)?));
    }
    let rows: Vec<Option<Bytes>> = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}

/// How many events stand so, counted up to `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn count(store: &Store, account: AccountId, status: EventStatus, limit: usize) -> Result<usize, ReadError> {
    let range = key(Space::ProcessorEventBy).account(account).text(status.as_str()).range();
    Ok(store.scan(range, ScanOrder::Descending, limit).await?.len())
}

/// Forgets events that came before then, at most `limit`; how many they are.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    (account, before): (AccountId, Timestamp),
    limit: usize,
) -> Result<usize, ReadError> {
    let mut found = 0;
    for status in EventStatus::ALL {
        let prefix = key(Space::ProcessorEventBy).account(account).text(status.as_str());
        let range = prefix.clone().range().start..prefix.time(before).build();
        for (row_key, _) in store.scan(range, ScanOrder::Ascending, limit.saturating_sub(found)).await? {
            let mut reader = KeyReader::new(Space::ProcessorEventBy, &row_key).map_err(row::damaged)?;
            reader.id().and_then(|_| reader.text()).and_then(|_| reader.time()).map_err(row::damaged)?;
            // It may have been tried again since, and lie elsewhere.
            batch.check(row_key.clone(), Some(Value::new()));
            batch.delete(key_of(account, &reader.text().map_err(row::damaged)?));
            batch.delete(row_key);
            found += 1;
        }
    }
    Ok(found)
}
