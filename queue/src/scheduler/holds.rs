//! Holds on queued mail, cached in memory, and their effects.
//!
//! ```text
//! an account is suspended · a store is restored ─►[ store ]─► every node, within one heartbeat
//!                                                             │ account: removed from ready queues, parked by queue
//!                                                             └ queue: no attempts at all
//! ```
//!
//! A hold does not rewrite tasks: it is checked when a task is dispatched, read from disk or attempted. A held queue
//! has one entry in the due index, without a time, and is not read before the hold is lifted. A task that the operator
//! holds is marked in its own row and stays held.

use parking_lot::RwLock;

use model::id::AccountId;
use store::queue_hold::{self, Hold};
use tokio::sync::watch;

/// Cache of all holds.
#[derive(Debug)]
pub(crate) struct HoldCache {
    stored: RwLock<queue_hold::QueueHolds>,
    /// True while the whole queue is held.
    queue_held: watch::Sender<bool>,
    /// One reload at a time: otherwise an older read could replace a newer one.
    pub(crate) reload_lock: tokio::sync::Mutex<()>,
}

impl Default for HoldCache {
    fn default() -> Self {
        Self { stored: RwLock::default(), queue_held: watch::Sender::new(false), reload_lock: Default::default() }
    }
}

impl HoldCache {
    pub(crate) fn read<T>(&self, see: impl FnOnce(&queue_hold::QueueHolds) -> T) -> T {
        see(&self.stored.read())
    }

    /// Returns whether an account's mail is held.
    pub(crate) fn is_account_held(&self, account: AccountId) -> bool {
        self.read(|holds| holds.accounts.get(&account).is_some_and(Hold::is_active))
    }

    /// Returns whether the whole queue is held.
    pub(crate) fn is_queue_held(&self) -> bool {
        *self.queue_held.borrow()
    }

    /// Watches the hold of the whole queue.
    pub(crate) fn watch_queue(&self) -> watch::Receiver<bool> {
        self.queue_held.subscribe()
    }

    /// Replaces the cache. Returns the accounts that became held, and those that were released.
    pub(crate) fn replace(&self, new: queue_hold::QueueHolds) -> (Vec<AccountId>, Vec<AccountId>) {
        let is_held = new.queue.is_some_and(|hold| hold.is_active());
        let mut holds = self.stored.write();
        let was_held = |account| holds.accounts.get(account).is_some_and(Hold::is_active);
        let changed = new.accounts.iter().filter(|(account, hold)| was_held(account) != hold.is_active());
        let (held, released): (Vec<_>, Vec<_>) = changed.partition(|(_, hold)| hold.is_active());
        let ids = |changes: Vec<(&AccountId, &Hold)>| changes.into_iter().map(|(account, _)| *account).collect();
        let changed = (ids(held), ids(released));
        *holds = new;
        drop(holds);
        self.queue_held.send_if_modified(|current| std::mem::replace(current, is_held) != is_held);
        changed
    }
}
