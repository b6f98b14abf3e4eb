//! Received events of the payment processor: one row each by the processor's id, and an index by status and time.

use jiff::Timestamp;
use message::words;
use model::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::rows;

words! {
    /// Result of processing an event.
    EventStatus {
        /// All changes that follow from it are committed.
        Done = "done",
        /// It could not be parsed or committed; no changes were made.
        Failed = "failed",
        /// It does not concern the program.
        Ignored = "ignored",
    }
}

/// A received event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorEvent {
    pub id: String,
    /// The processor's event type.
    pub kind: String,
    pub status: EventStatus,
    /// Why it failed or was ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of times it was processed.
    pub attempts: u32,
    /// Time of the first receipt.
    pub received_at: Timestamp,
    /// The raw event, stored only while it failed, for a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// True for an object that was fetched from the processor instead of received as an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_asked: bool,
}

stored!(ProcessorEvent);

/// An event with the row it was read from.
#[derive(Debug, Clone, Default)]
pub struct StoredProcessorEvent {
    /// `None` if the event is new.
    pub event: Option<ProcessorEvent>,
    row: Option<Value>,
}

fn key_of(account: AccountId, id: &str) -> Key {
    key(Space::ProcessorEvent).account(account).text(id).build()
}

fn key_by(account: AccountId, event: &ProcessorEvent) -> Key {
    let at = key(Space::ProcessorEventBy).account(account).text(event.status.word());
    at.time(event.received_at).text(&event.id).build()
}

pub async fn get(store: &Store, account: AccountId, id: &str) -> Result<StoredProcessorEvent> {
    let row = store.get(&key_of(account, id)).await?;
    let event = row.as_deref().map(codec::decode).transpose()?;
    Ok(StoredProcessorEvent { event, row })
}

/// Writes the result of an event that was read as `stored`. The commit conflicts if the row has changed since.
pub fn put(batch: &mut Batch, account: AccountId, stored: &StoredProcessorEvent, event: &ProcessorEvent) {
    let at = key_of(account, &event.id);
    batch.check(at.clone(), stored.row.clone());
    if let Some(before) = &stored.event {
        batch.delete(key_by(account, before));
    }
    batch.put(key_by(account, event), Vec::new());
    batch.put(at, codec::encode(event));
}

/// Deletes an event that was read as `stored`, if it exists. The commit conflicts if the row has changed since.
pub fn delete(batch: &mut Batch, account: AccountId, stored: &StoredProcessorEvent) {
    if let Some(event) = &stored.event {
        let at = key_of(account, &event.id);
        batch.check(at.clone(), stored.row.clone());
        batch.delete(key_by(account, event));
        batch.delete(at);
    }
}

/// Position in a list of events: time of receipt and id of the last one.
pub type ProcessorEventCursor = (Timestamp, String);

/// Lists the events with a status, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    status: EventStatus,
    after: Option<&ProcessorEventCursor>,
    limit: usize,
) -> Result<Vec<ProcessorEvent>> {
    let prefix = key(Space::ProcessorEventBy).account(account).text(status.word());
    let mut range = prefix.clone().range();
    if let Some((at, id)) = after {
        range.end = prefix.time(*at).text(id).build();
    }
    let mut keys = Vec::new();
    for (row_key, _) in store.scan(range, ScanOrder::Descending, limit).await? {
        let mut reader = KeyReader::new(Space::ProcessorEventBy, &row_key)?;
        reader.id()?;
        reader.text().and_then(|_| reader.time())?;
        keys.push(key_of(account, &reader.text()?));
    }
    rows::get_existing(store, &keys).await
}

/// Counts the events with a status, up to `limit`.
pub async fn count(store: &Store, account: AccountId, status: EventStatus, limit: usize) -> Result<usize> {
    let range = key(Space::ProcessorEventBy).account(account).text(status.word()).range();
    rows::count(store, range, limit).await
}

/// Deletes events received before a time, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: Timestamp,
    limit: usize,
) -> Result<usize> {
    let mut found = 0;
    for status in EventStatus::ALL {
        let prefix = key(Space::ProcessorEventBy).account(account).text(status.word());
        let range = prefix.clone().range().start..prefix.time(before).build();
        for (row_key, _) in store.scan(range, ScanOrder::Ascending, limit.saturating_sub(found)).await? {
            let mut reader = KeyReader::new(Space::ProcessorEventBy, &row_key)?;
            reader.id().and_then(|_| reader.text()).and_then(|_| reader.time())?;
            // A concurrent retry may have moved the entry to another status.
            batch.check(row_key.clone(), Some(Value::new()));
            batch.delete(key_of(account, &reader.text()?));
            batch.delete(row_key);
            found += 1;
        }
    }
    Ok(found)
}
