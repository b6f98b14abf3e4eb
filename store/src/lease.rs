//! Leases: which nodes there are, and which of them owns which partition of the task space.
//!
//! ```text
//! Node · name                 a row each, rewritten ("beats") while the node lives
//! Partition · number          who owns it, and since which epoch
//! ```
//!
//! A node that beats keeps all its partitions: one small write renews them. A partition's row changes only
//! when its owner does; whatever settles or takes on one of its tasks checks that the row is still as it
//! was ([`Held::fence`]), so that a node that was thought dead and wakes up settles nothing any more (a
//! fencing token), and what was committed before a take-over is seen by whoever takes over.
//!
//! Nothing here looks at a clock: whether a node still lives is judged by whether its row changes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

/// A node, as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name: new at every start.
    pub name: String,
    /// Raised with every sign of life.
    pub beats: u64,
    /// When it started.
    pub started_at: Timestamp,
}

/// Who owns a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionLease {
    /// Raised with every change of hands.
    pub epoch: u64,
    /// The owner's name; none when it was given up.
    pub node: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Node")]
struct NodeRow {
    name: String,
    beats: u64,
    started_at: Timestamp,
}
stored!(Node as NodeRow);

#[derive(Serialize, Deserialize)]
#[serde(remote = "PartitionLease")]
struct PartitionLeaseRow {
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}
stored!(PartitionLease as PartitionLeaseRow);

fn node_key(name: &str) -> Key {
    key(Space::Node).text(name).build()
}

fn partition_key(partition: u16) -> Key {
    key(Space::Partition).u16(partition).build()
}

/// A node and its row, as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNode {
    /// The node.
    pub node: Node,
    row: Value,
}

/// A partition and its row, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredPartition {
    /// Its owner.
    pub tenure: PartitionLease,
    row: Option<Value>,
}

/// All nodes and all partitions, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The nodes, by name.
    pub nodes: Vec<StoredNode>,
    /// One for each partition, by number.
    pub partitions: Vec<StoredPartition>,
}

/// Reads all nodes and all partitions.
///
/// # Errors
/// The store cannot be read.
pub async fn read_view(store: &Store) -> Result<ClusterView, ReadError> {
    // More dead nodes than this are not buried at once; the next look finds the others.
    const ROWS_MAX: usize = 4 * PARTITIONS as usize;
    let start = key(Space::Node).build();
    // The two spaces lie side by side, so that one scan sees both as of one moment.
    let rows = store.scan(start..prefix_end(&[Space::Partition.into()]), ScanOrder::Descending, ROWS_MAX).await?;
    let mut view = ClusterView { nodes: Vec::new(), partitions: vec![StoredPartition::default(); PARTITIONS.into()] };
    for (row_key, row) in rows {
        match KeyReader::new(Space::Partition, &row_key) {
            Ok(mut reader) => {
                let number = usize::from(reader.u16().map_err(row::damaged)?);
                let seen = StoredPartition { tenure: row::decode(&row)?, row: Some(row) };
                if let Some(partition) = view.partitions.get_mut(number) {
                    *partition = seen;
                }
            }
            Err(_) => view.nodes.push(StoredNode { node: row::decode(&row)?, row }),
        }
    }
    view.nodes.reverse();
    Ok(view)
}

/// A partition that is ours: what every commit about one of its tasks must check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    partition: u16,
    row: Value,
}

impl FencingToken {
    /// The partition.
    #[must_use]
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// Makes a commit fail when the partition has another owner by now.
    pub fn fence(&self, batch: &mut Batch) {
        batch.check(partition_key(self.partition), Some(self.row.clone()));
    }

    /// Whether it is still ours, going by what was read.
    #[must_use]
    pub fn is_current_in(&self, view: &ClusterView) -> bool {
        view.partitions.get(usize::from(self.partition)).is_some_and(|seen| seen.row.as_ref() == Some(&self.row))
    }

    /// Gives the partition up, for whoever wants it.
    pub fn release(&self, batch: &mut Batch) {
        let epoch = row::decode::<PartitionLease>(&self.row).map_or(0, |tenure| tenure.epoch);
        self.fence(batch);
        batch.put(partition_key(self.partition), row::encode(&PartitionLease { epoch, node: None }));
    }
}

/// Takes a partition, as it was seen; the commit conflicts when somebody else was quicker.
pub fn acquire(batch: &mut Batch, partition: u16, seen: &StoredPartition, node: &str) -> FencingToken {
    let tenure = PartitionLease { epoch: seen.tenure.epoch + 1, node: Some(node.to_owned()) };
    let row = row::encode(&tenure);
    batch.check(partition_key(partition), seen.row.clone());
    batch.put(partition_key(partition), row.clone());
    FencingToken { partition, row }
}

/// A sign of life: `before` is the node's row as it wrote it last, none for a node that joins. The commit
/// conflicts when others have buried it.
pub fn heartbeat(batch: &mut Batch, before: Option<&StoredNode>, node: Node) -> StoredNode {
    let row = row::encode(&node);
    batch.check(node_key(&node.name), before.map(|seen| seen.row.clone()));
    batch.put(node_key(&node.name), row.clone());
    StoredNode { node, row }
}

/// Takes a node off the list, as it was seen: it left, or it shows no sign of life. The commit conflicts
/// when it has shown one meanwhile.
pub fn evict(batch: &mut Batch, seen: &StoredNode) {
    batch.check(node_key(&seen.node.name), Some(seen.row.clone()));
    batch.delete(node_key(&seen.node.name));
}
