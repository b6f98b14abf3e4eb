//! Leases: the nodes of the cluster, and the partition of the task space that each one owns.
//!
//! ```text
//! Node · name         one row each, rewritten by every heartbeat
//! Partition · number  the owner, and the epoch of its lease
//! ```
//!
//! A node's heartbeat renews all its leases with one small write. A partition's row changes only with its owner. Every
//! commit that settles or adds a task of the partition checks the row as a fencing token ([`FencingToken::fence`]). A
//! node that was considered dead and wakes up can therefore commit nothing, and a new owner sees everything that was
//! committed before it took over.
//!
//! This module reads no clock: callers decide whether a node is alive by whether its row changes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end};
use crate::task::PARTITIONS;

/// A node as the other nodes see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Unique name, new at every start.
    pub name: String,
    /// Heartbeat counter.
    pub beats: u64,
    pub started_at: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionLease {
    /// Incremented with every change of owner.
    pub epoch: u64,
    /// Name of the owner; `None` if the lease was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

stored!(Node);

stored!(PartitionLease);

fn node_key(name: &str) -> Key {
    key(Space::Node).text(name).build()
}

fn partition_key(partition: u16) -> Key {
    key(Space::Partition).u16(partition).build()
}

/// A node with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNode {
    pub node: Node,
    row: Value,
}

/// A partition's lease with the row it was read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredPartition {
    pub tenure: PartitionLease,
    row: Option<Value>,
}

/// All nodes and partition leases of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// Ordered by name.
    pub nodes: Vec<StoredNode>,
    /// One for each partition, by number.
    pub partitions: Vec<StoredPartition>,
}

/// Reads all nodes and all partition leases.
pub async fn read_view(store: &Store) -> Result<ClusterView> {
    // Bounds the number of dead nodes read at once; the next poll reads the others.
    const ROWS_MAX: usize = 4 * PARTITIONS as usize;
    let start = key(Space::Node).build();
    // The two spaces are adjacent, so one scan reads both from one snapshot.
    let rows = store.scan(start..prefix_end(&[Space::Partition.into()]), ScanOrder::Descending, ROWS_MAX).await?;
    let mut view = ClusterView { nodes: Vec::new(), partitions: vec![StoredPartition::default(); PARTITIONS.into()] };
    for (row_key, row) in rows {
        match KeyReader::new(Space::Partition, &row_key) {
            Ok(mut reader) => {
                let number = usize::from(reader.u16()?);
                let stored = StoredPartition { tenure: codec::decode(&row)?, row: Some(row) };
                if let Some(partition) = view.partitions.get_mut(number) {
                    *partition = stored;
                }
            }
            Err(_) => view.nodes.push(StoredNode { node: codec::decode(&row)?, row }),
        }
    }
    view.nodes.reverse();
    Ok(view)
}

/// Fencing token of a partition that this node owns: every commit about one of its tasks must check it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    partition: u16,
    row: Value,
}

impl FencingToken {
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// Makes the commit conflict if the partition has another owner.
    pub fn fence(&self, batch: &mut Batch) {
        batch.check(partition_key(self.partition), Some(self.row.clone()));
    }

    /// Returns whether this node still owns the partition according to `view`.
    pub fn is_current_in(&self, view: &ClusterView) -> bool {
        view.partitions.get(usize::from(self.partition)).is_some_and(|stored| stored.row.as_ref() == Some(&self.row))
    }

    /// Releases the lease, so that any node can acquire it.
    pub fn release(&self, batch: &mut Batch) {
        let epoch = codec::decode::<PartitionLease>(&self.row).map_or(0, |tenure| tenure.epoch);
        self.fence(batch);
        batch.put(partition_key(self.partition), codec::encode(&PartitionLease { epoch, node: None }));
    }
}

/// Acquires the lease of a partition as it was read. The commit conflicts if another node was faster.
pub fn acquire(batch: &mut Batch, partition: u16, stored: &StoredPartition, node: &str) -> FencingToken {
    let tenure = PartitionLease { epoch: stored.tenure.epoch + 1, node: Some(node.to_owned()) };
    let row = codec::encode(&tenure);
    batch.replace(partition_key(partition), stored.row.clone(), row.clone());
    FencingToken { partition, row }
}

/// Writes a heartbeat. `before` is the node's row as it last wrote it, `None` for a node that joins. The commit
/// conflicts if the node was evicted.
pub fn heartbeat(batch: &mut Batch, before: Option<&StoredNode>, node: Node) -> StoredNode {
    let row = codec::encode(&node);
    batch.replace(node_key(&node.name), before.map(|stored| stored.row.clone()), row.clone());
    StoredNode { node, row }
}

/// Removes a node that left or shows no heartbeat. The commit conflicts if it has sent one since it was read.
pub fn evict(batch: &mut Batch, stored: &StoredNode) {
    batch.remove(node_key(&stored.node.name), stored.row.clone());
}
