//! Leases: which node owns which partition of the task space, and since which epoch.
//!
//! The epoch is a row of its own that changes only when the owner does: every settle checks it, so
//! that a node that was thought dead and wakes up settles nothing any more (a fencing token).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, CommitError, Key, ReadError, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

/// Who owns a partition, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The node's name: new at every start.
    pub node: String,
    /// When it lapses unless it is renewed.
    pub expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Lease")]
struct LeaseRow {
    node: String,
    expires_at: Timestamp,
}
stored!(Lease as LeaseRow);

fn lease_key(partition: u16) -> Key {
    key(Space::Lease).u16(partition).build()
}

fn epoch_key(partition: u16) -> Key {
    key(Space::Epoch).u16(partition).build()
}

/// A partition that is ours: what every commit that settles one of its tasks must check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    partition: u16,
    epoch: Value,
}

impl Held {
    /// The partition.
    #[must_use]
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// Makes a commit fail when the partition has another owner by now.
    pub fn fence(&self, batch: &mut Batch) {
        batch.check(epoch_key(self.partition), Some(self.epoch.clone()));
    }
}

/// Takes over all partitions, whoever held them: for an engine that only one process can open.
///
/// # Errors
/// The store cannot be read or written.
pub async fn take_all(store: &Store, lease: &Lease) -> Result<Vec<Held>, TakeError> {
    let keys: Vec<Key> = (0..PARTITIONS).map(epoch_key).collect();
    let epochs = store.get_many(&keys).await?;
    let mut batch = Batch::progress();
    let mut held = Vec::with_capacity(keys.len());
    for ((partition, epoch_key), before) in (0..PARTITIONS).zip(keys).zip(epochs) {
        let number: u64 =
            before.as_deref().and_then(|v| std::str::from_utf8(v).ok()?.parse().ok()).unwrap_or(0);
        let epoch = Value::from((number + 1).to_string());
        batch.check(epoch_key.clone(), before);
        batch.put(epoch_key, epoch.clone());
        batch.put(lease_key(partition), row::encode(lease));
        held.push(Held { partition, epoch });
    }
    store.commit(batch).await?;
    Ok(held)
}

/// Why partitions could not be taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TakeError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written, or another node was quicker.
    #[error(transparent)]
    Commit(#[from] CommitError),
}
