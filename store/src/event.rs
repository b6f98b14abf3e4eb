//! Events: one row each under their subject, written in the commit that causes the event, and a key in the
//! [`crate::outbox`] until the event is dispatched.

use model::event::{Event, Subject};
use model::id::{AccountId, EventId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::outbox;
use crate::rows;
use crate::task::PARTITIONS;

stored!(Event);

fn key_of(account: AccountId, subject: Subject, id: EventId) -> Key {
    key(Space::Event).account(account).id(subject.to_bytes()).id(id.to_bytes()).build()
}

/// Records an event, to be dispatched by the owner of this partition.
pub fn record(batch: &mut Batch, event: &Event, partition: u16) {
    let row_key = key_of(event.account, event.subject, event.id);
    outbox::put(batch, partition, event, &row_key);
    batch.put(row_key, codec::encode(event));
}

/// Records an event that belongs to no partition; its id determines the partition that dispatches it.
pub fn record_in_any_partition(batch: &mut Batch, event: &Event) {
    // Spread by the last byte, so that all nodes dispatch some.
    let [.., last] = event.id.to_bytes();
    record(batch, event, u16::from(last) % PARTITIONS);
}

/// Deletes an event. If it is still in the outbox, it is not dispatched.
pub fn delete(batch: &mut Batch, account: AccountId, subject: Subject, id: EventId) {
    batch.delete(key_of(account, subject, id));
}

/// Reads several events of an account, in the order of `ids`; `None` for those not stored.
pub async fn get_each(store: &Store, account: AccountId, ids: &[(Subject, EventId)]) -> Result<Vec<Option<Event>>> {
    let keys: Vec<Key> = ids.iter().map(|(subject, id)| key_of(account, *subject, *id)).collect();
    rows::get_each(store, &keys).await
}

pub async fn get(store: &Store, account: AccountId, subject: Subject, id: EventId) -> Result<Option<Event>> {
    rows::get(store, &key_of(account, subject, id)).await
}

/// Deletes the events of a subject, at most `limit`.
pub async fn delete_by_subject(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    subject: Subject,
    limit: usize,
) -> Result<()> {
    let range = key(Space::Event).account(account).id(subject.to_bytes()).range();
    rows::delete_range(store, batch, range, limit).await.map(drop)
}

/// Lists the events of a subject, oldest first, at most `limit`.
pub async fn list(store: &Store, account: AccountId, subject: impl Into<Subject>, limit: usize) -> Result<Vec<Event>> {
    let range = key(Space::Event).account(account).id(subject.into().to_bytes()).range();
    rows::scan(store, range, ScanOrder::Ascending, limit).await
}
