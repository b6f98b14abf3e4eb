//! The operator's orders about many tasks: for each, a row in every partition that it is not carried out in yet.
//!
//! ```text
//! QueueOrder · partition · order      what is to be done, and to which tasks
//! ```
//!
//! The owner of a partition carries out what lies there and takes the row away. So an order survives restarts, and
//! reaches every node's tasks.

use jiff::Timestamp;
use mail::address::DomainName;
use mail::id::AccountId;
use mail::task::TaskClass;
use mail::task_filter::TaskFilter;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

#[derive(Serialize, Deserialize)]
#[serde(remote = "TaskFilter")]
struct TaskFilterRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<DomainName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<AccountId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<DomainName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<TaskClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts_min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_before: Option<Timestamp>,
}

/// What is to be done to many tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkQueueCommand {
    /// What, in the queue's word for it.
    pub order: String,
    /// To which.
    #[serde(with = "TaskFilterRow")]
    pub filter: TaskFilter,
}
stored!(BulkQueueCommand as BulkQueueCommand);

/// An order that lies in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQueueCommand {
    /// The partition.
    pub partition: u16,
    /// Which order.
    pub id: [u8; 16],
    /// What is to be done.
    pub order: BulkQueueCommand,
}

fn key_of(partition: u16, id: [u8; 16]) -> Key {
    key(Space::QueueCommand).u16(partition).id(id).build()
}

/// Writes an order into all partitions.
pub fn put(batch: &mut Batch, id: [u8; 16], order: &BulkQueueCommand) {
    let row = row::encode(order);
    for partition in 0..PARTITIONS {
        batch.put(key_of(partition, id), row.clone());
    }
}

/// The order is carried out in this partition.
pub fn complete(batch: &mut Batch, partition: u16, id: [u8; 16]) {
    batch.delete(key_of(partition, id));
}

/// What is not carried out yet, oldest first within a partition, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_pending(store: &Store, limit: usize) -> Result<Vec<PendingQueueCommand>, ReadError> {
    let rows = store.scan(key(Space::QueueCommand).range(), ScanOrder::Ascending, limit).await?;
    let read = |(at, row): (Key, Value)| {
        let (partition, id) = read_key(&at).map_err(row::damaged)?;
        Ok(PendingQueueCommand { partition, id, order: row::decode(&row)? })
    };
    rows.into_iter().map(read).collect()
}

fn read_key(at: &Key) -> Result<(u16, [u8; 16]), KeyDecodeError> {
    let mut reader = KeyReader::new(Space::QueueCommand, at)?;
    Ok((reader.u16()?, reader.id()?))
}

/// In how many partitions an order is not carried out yet.
///
/// # Errors
/// The store cannot be read.
pub async fn count_pending(store: &Store, id: [u8; 16]) -> Result<usize, ReadError> {
    let keys: Vec<Key> = (0..PARTITIONS).map(|partition| key_of(partition, id)).collect();
    Ok(store.get_many(&keys).await?.into_iter().flatten().count())
}
