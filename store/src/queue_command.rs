//! Bulk queue commands of the operator: for each command, one row in every partition where it is not carried out yet.
//!
//! ```text
//! QueueCommand · partition · command  ─►  the action and the filter of tasks
//! ```
//!
//! The owner of a partition carries out its commands and deletes the rows. A command therefore survives restarts, and
//! reaches the tasks of every node.

use model::task_filter::TaskFilter;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::codec::{self, SerdeRow, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::task::PARTITIONS;

/// A command for many tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkQueueCommand {
    /// The action, as named by the queue.
    pub order: String,
    /// The tasks to which it applies.
    pub filter: TaskFilter,
}
stored!(BulkQueueCommand);

/// The row of any release's command: a newer one may have conditions that this release does not know.
#[derive(Serialize, Deserialize)]
struct AnyReleaseCommand {
    order: String,
    filter: Json,
    #[serde(flatten)]
    unknown: serde_json::Map<String, Json>,
}

/// A command not carried out yet in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQueueCommand {
    pub partition: u16,
    pub id: [u8; 16],
    /// The action, as named by the queue.
    pub order: String,
    /// The tasks to which it applies, or why this release does not understand the filter. Such a command must not be
    /// carried out: it would apply to other tasks too.
    pub filter: Result<TaskFilter, UnknownFilter>,
}

/// Why a filter is not understood: it has a field or a value of a newer release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownFilter(String);

impl AnyReleaseCommand {
    fn read_filter(&self) -> Result<TaskFilter, UnknownFilter> {
        match self.unknown.keys().next() {
            Some(field) => Err(UnknownFilter(format!("unknown field `{field}`"))),
            None => TaskFilter::deserialize(&self.filter).map_err(|error| UnknownFilter(error.to_string())),
        }
    }
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
pub async fn list_pending(store: &Store, limit: usize) -> Result<Vec<PendingQueueCommand>> {
    let rows = store.scan(key(Space::QueueCommand).range(), ScanOrder::Ascending, limit).await?;
    let read = |(at, row): (Key, Value)| {
        let (partition, id) = read_key(&at)?;
        let SerdeRow(command) = codec::decode::<SerdeRow<AnyReleaseCommand>>(&row)?;
        let filter = command.read_filter();
        Ok(PendingQueueCommand { partition, id, order: command.order, filter })
    };
    rows.into_iter().map(read).collect()
}

fn read_key(at: &Key) -> Result<(u16, [u8; 16]), KeyDecodeError> {
    let mut reader = KeyReader::new(Space::QueueCommand, at)?;
    Ok((reader.u16()?, reader.id()?))
}

/// Counts the partitions in which a command is pending.
pub async fn count_pending(store: &Store, id: [u8; 16]) -> Result<usize> {
    let keys: Vec<Key> = (0..PARTITIONS).map(|partition| key_of(partition, id)).collect();
    Ok(store.get_many(&keys).await?.into_iter().flatten().count())
}

#[cfg(test)]
mod tests {
    use message::address::DomainName;

    use super::*;
    use crate::engine::Store;

    #[tokio::test]
    async fn a_filter_of_a_newer_release_is_not_widened() {
        let known = r#"{"order":"hold","filter":{"to":"dest.example","held":false}}"#;
        for (row, expected) in [
            (known, Ok(())),
            (r#"{"order":"hold","filter":{"to":"dest.example","tag":"a"}}"#, Err("unknown field `tag`")),
            (r#"{"order":"hold","filter":{"class":"urgent"}}"#, Err("urgent")),
            (r#"{"order":"hold","filter":{},"limit":5}"#, Err("unknown field `limit`")),
        ] {
            let store = Store::memory();
            let mut batch = Batch::progress();
            batch.put(key_of(7, [1; 16]), format!("[1,{row}]").into_bytes());
            store.commit(batch).await.unwrap();
            let pending = list_pending(&store, 10).await.unwrap().remove(0);
            assert_eq!((pending.partition, pending.order.as_str()), (7, "hold"));
            match (&pending.filter, expected) {
                (Ok(filter), Ok(())) => {
                    assert_eq!(
                        (filter.to.as_ref().map(DomainName::as_str), filter.held),
                        (Some("dest.example"), Some(false))
                    );
                }
                (Err(error), Err(reason)) => assert!(error.to_string().contains(reason), "{error}"),
                (found, _) => panic!("{row}: {found:?}"),
            }
        }
    }
}
