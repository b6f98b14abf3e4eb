//! Emails with pending DSNs, and when each DSN is due.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use store::pending_dsn::PendingDsnKey;
use tokio::sync::Notify;

/// Longest time that a DSN waits for other recipients.
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// Emails in memory.
const GROUPS_MAX: usize = 10_000;

/// An email with pending DSNs.
#[derive(Debug, Clone)]
pub(crate) struct DsnGroup {
    /// End of the wait for other recipients.
    pub(crate) until: Timestamp,
    /// Partitions with pending DSNs of the email.
    pub(crate) partitions: BTreeSet<u16>,
    /// All recipients before this index have been checked and are not awaited.
    pub(crate) next_awaited: u16,
    /// An outcome was recorded since the last check.
    changed: bool,
}

#[derive(Debug, Default)]
struct DsnState {
    groups: HashMap<PendingDsnKey, DsnGroup>,
    /// Partitions that may have pending DSNs which are not in `groups`.
    unread_partitions: BTreeSet<u16>,
}

/// Emails with pending DSNs.
#[derive(Debug, Default)]
pub struct PendingDsns {
    state: Mutex<DsnState>,
    /// Number of groups, read at every outcome without the lock.
    count: AtomicUsize,
    pub(crate) changed: Notify,
}

impl PendingDsns {
    /// Adds a pending DSN that was committed. Returns false if memory is full; the row is found on disk later.
    pub fn add(&self, key: PendingDsnKey, partition: u16, at: Timestamp) -> bool {
        let mut state = self.state.lock();
        let DsnState { groups, unread_partitions: unread } = &mut *state;
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
            unread.insert(partition);
            return false;
        }
        let group = groups.entry(key).or_insert_with(|| DsnGroup::waiting_until(window_end(at)));
        group.partitions.insert(partition);
        group.changed = true;
        self.count.store(groups.len(), Ordering::Release);
        self.changed.notify_one();
        true
    }

    /// Records that a recipient finished without a DSN; a DSN may have waited for it.
    pub(crate) fn recipient_finished(&self, key: PendingDsnKey) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(group) = self.state.lock().groups.get_mut(&key) {
            group.changed = true;
            self.changed.notify_one();
        }
    }

    /// Schedules a partition to be scanned for pending DSNs that are not in memory.
    pub(crate) fn scan_partition(&self, partition: u16) {
        self.state.lock().unread_partitions.insert(partition);
        self.changed.notify_one();
    }

    /// Returns a partition to scan, if there is capacity for its rows.
    pub(crate) fn next_unread(&self) -> Option<u16> {
        let mut state = self.state.lock();
        if state.groups.len() > GROUPS_MAX / 2 { None } else { state.unread_partitions.pop_first() }
    }

    /// Returns the groups to check now, and the time of the next check.
    pub(crate) fn due_groups(&self, now: Timestamp) -> (Vec<(PendingDsnKey, DsnGroup)>, Timestamp) {
        let (mut due, mut next) = (Vec::new(), Timestamp::MAX);
        for (key, group) in &mut self.state.lock().groups {
            if std::mem::take(&mut group.changed) || group.until <= now {
                due.push((*key, group.clone()));
            }
            next = next.min(group.until);
        }
        (due, next)
    }

    /// Records the recipient for which the group's DSN waits.
    pub(crate) fn wait_for(&self, key: PendingDsnKey, recipient: u16) {
        if let Some(group) = self.state.lock().groups.get_mut(&key) {
            group.next_awaited = recipient;
        }
    }

    /// Removes a reported group. If an outcome was recorded meanwhile, the group starts again for another DSN.
    pub(crate) fn finish(&self, key: PendingDsnKey, now: Timestamp) {
        let mut state = self.state.lock();
        if let Some(group) = state.groups.get_mut(&key) {
            if group.changed {
                (group.until, group.next_awaited) = (window_end(now), 0);
            } else {
                state.groups.remove(&key);
            }
        }
        self.count.store(state.groups.len(), Ordering::Release);
    }

    /// Schedules another check of the group after an error.
    pub(crate) fn retry(&self, key: PendingDsnKey) {
        if let Some(group) = self.state.lock().groups.get_mut(&key) {
            group.changed = true;
        }
    }
}

impl DsnGroup {
    fn waiting_until(until: Timestamp) -> Self {
        Self { until, partitions: BTreeSet::new(), next_awaited: 0, changed: false }
    }
}

fn window_end(at: Timestamp) -> Timestamp {
    at.checked_add(WINDOW).unwrap_or(Timestamp::MAX)
}
