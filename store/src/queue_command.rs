//! Bulk queue commands of the operator: for each command, one row in every partition where it is not carried out yet.
//!
//! ```text
//! QueueCommand · partition · command  ─►  the action and the filter of tasks
//! ```
//!
//! The owner of a partition carries out its commands and deletes the rows. A command therefore survives restarts, and
//! reaches the tasks of every node.

use jiff::Timestamp;
use mail::address::DomainName;
use mail::id::AccountId;
use mail::task::TaskClass;
use mail::task_filter::TaskFilter;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
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

/// A command for many tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkQueueCommand {
    /// The action, as named by the queue.
    pub order: String,
    /// The tasks to which it applies.
    #[serde(with = "TaskFilterRow")]
    pub filter: TaskFilter,
}
stored!(BulkQueueCommand as BulkQueueCommand);

/// A command not carried out yet in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQueueCommand {
    pub partition: u16,
    /// Id of the command.
    pub id: [u8; 16],
    pub order: BulkQueueCommand,
}

fn key_of(partition: u16, id: [u8; 16]) -> Key {
    key(Space::QueueCommand).u16(partition).id(id).build()
}

/// Writes a command to all partitions.
pub fn put(batch: &mut Batch, id: [u8; 16], order: &BulkQueueCommand) {
    let row = codec::encode(order);
    for partition in 0..PARTITIONS {
        batch.put(key_of(partition, id), row.clone());
    }
}

/// Marks a command as carried out in this partition.
pub fn complete(batch: &mut Batch, partition: u16, id: [u8; 16]) {
    batch.delete(key_of(partition, id));
}

/// Lists pending commands, oldest first within a partition, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_pending(store: &Store, limit: usize) -> Result<Vec<PendingQueueCommand>, ReadError> {
    let rows = store.scan(key(Space::QueueCommand).range(), ScanOrder::Ascending, limit).await?;
    let read = |(at, row): (Key, Value)| {
        let (partition, id) = read_key(&at).map_err(codec::damaged)?;
        Ok(PendingQueueCommand { partition, id, order: codec::decode(&row)? })
    };
    rows.into_iter().map(read).collect()
}

fn read_key(at: &Key) -> Result<(u16, [u8; 16]), KeyDecodeError> {
    let mut reader = KeyReader::new(Space::QueueCommand, at)?;
    Ok((reader.u16()?, reader.id()?))
}

/// Counts the partitions in which a command is pending.
///
/// # Errors
/// The store cannot be read.
pub async fn count_pending(store: &Store, id: [u8; 16]) -> Result<usize, ReadError> {
    let keys: Vec<Key> = (0..PARTITIONS).map(|partition| key_of(partition, id)).collect();
    Ok(store.get_many(&keys).await?.into_iter().flatten().count())
}
