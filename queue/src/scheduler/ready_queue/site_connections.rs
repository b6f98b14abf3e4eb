//! Connections of a ready queue: their number, and the idle ones that wait for a task.

use std::sync::Arc;

use tokio::sync::Notify;

/// Connections of a ready queue.
#[derive(Debug, Default)]
pub(super) struct SiteConnections {
    /// Connections that are open, being opened, or waiting to be opened.
    pub(super) counted: u32,
    /// Open connections.
    pub(super) open: u32,
    /// Idle connections by number. Each is woken by one task and only once.
    idle: Vec<(u64, Arc<Notify>)>,
    next_waiter: u64,
}

impl SiteConnections {
    /// Counts another connection unless `max` is reached. Returns whether it was counted.
    pub(super) fn try_count(&mut self, max: u32) -> bool {
        let is_below = self.counted < max;
        self.counted += u32::from(is_below);
        is_below
    }

    /// Counts out a connection if there are more than `max`. Returns whether it was, so that only the surplus
    /// connections close.
    pub(super) fn try_uncount(&mut self, max: u32) -> bool {
        let is_above = self.counted > max;
        self.counted -= u32::from(is_above);
        is_above
    }

    /// Counts out a connection that ended.
    pub(super) fn uncount(&mut self) {
        self.counted = self.counted.saturating_sub(1);
    }

    /// Adds an idle connection and returns its number.
    pub(super) fn add_idle(&mut self, wake: Arc<Notify>) -> u64 {
        self.next_waiter += 1;
        self.idle.push((self.next_waiter, wake));
        self.next_waiter
    }

    /// Takes an idle connection, to be woken by the caller.
    pub(super) fn take_idle(&mut self) -> Option<Arc<Notify>> {
        self.idle.pop().map(|(_, wake)| wake)
    }

    /// Removes a finished or cancelled wait.
    pub(super) fn remove_idle(&mut self, waiter: u64) {
        self.idle.retain(|(number, _)| *number != waiter);
    }
}
