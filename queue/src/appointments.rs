//! Appointments: when each partition of ours is to be looked at for what is due in it. One time for each,
//! however much lies there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

/// When each of our partitions is to be looked at. One that is not in the table was never looked at.
#[derive(Debug, Default)]
pub(crate) struct PartitionTimers {
    next_due: Mutex<BTreeMap<u16, Timestamp>>,
    changed: Notify,
}

impl PartitionTimers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Timestamp>> {
        self.next_due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something in the partition is due then.
    pub(crate) fn schedule(&self, partition: u16, due: Timestamp) {
        // One that was never looked at will be, for all that lies in it.
        if let Some(next) = self.lock().get_mut(&partition)
            && due < *next
        {
            *next = due;
            self.changed.notify_one();
        }
    }

    /// A look begins: what is noted from now on counts after it.
    pub(crate) fn begin_scan(&self, partition: u16) {
        self.lock().insert(partition, Timestamp::MAX);
    }

    /// Those of our partitions that are to be looked at now, and when the next one is. Forgets the others.
    pub(crate) fn due(&self, ours: &[u16], now: Timestamp) -> (Vec<u16>, Timestamp) {
        let mut next = self.lock();
        next.retain(|partition, _| ours.contains(partition));
        let due = ours.iter().copied().filter(|p| next.get(p).is_none_or(|at| *at <= now)).collect();
        (due, next.values().copied().filter(|at| *at > now).min().unwrap_or(Timestamp::MAX))
    }

    /// The partition has come to us: it is looked at.
    pub(crate) fn reset(&self, partition: u16) {
        self.lock().remove(&partition);
        self.changed.notify_one();
    }

    /// All are looked at: work may have come into them from elsewhere.
    pub(crate) fn reset_all(&self) {
        self.lock().clear();
        self.changed.notify_one();
    }

    /// Returns when something is due earlier than was known.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }
}
