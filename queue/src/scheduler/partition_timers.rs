//! Partition timers: when each partition of this node is scanned next for due rows. One time for each partition,
//! however many rows it holds.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::services::Services;

/// Next scan time by partition. A partition without an entry was never scanned and is due at once.
#[derive(Debug, Default)]
pub struct PartitionTimers {
    next_due: Mutex<BTreeMap<u16, Timestamp>>,
    changed: Notify,
}

impl PartitionTimers {
    /// A row of the partition is due at `due`: scan it then at the latest.
    pub fn schedule(&self, partition: u16, due: Timestamp) {
        // A partition without an entry is scanned anyway, with all its rows.
        if let Some(next) = self.next_due.lock().get_mut(&partition)
            && due < *next
        {
            *next = due;
            self.changed.notify_one();
        }
    }

    /// Starts a scan. Rows reported from now on schedule the next one.
    pub fn begin_scan(&self, partition: u16) {
        self.next_due.lock().insert(partition, Timestamp::MAX);
    }

    /// Partitions of `owned` to scan now, and the time of the next scan. Forgets all other partitions.
    fn due(&self, owned: &[u16], now: Timestamp) -> (Vec<u16>, Timestamp) {
        let mut next = self.next_due.lock();
        next.retain(|partition, _| owned.contains(partition));
        let due = owned.iter().copied().filter(|p| next.get(p).is_none_or(|at| *at <= now)).collect();
        (due, next.values().copied().filter(|at| *at > now).min().unwrap_or(Timestamp::MAX))
    }

    /// Partitions of this node to scan now. If there are none, waits until that may change, or until shutdown. On a
    /// shared store, all are scanned after `poll`, because other nodes may have added rows.
    pub async fn due_or_wait(&self, services: &Services, poll: Option<Duration>) -> Vec<u16> {
        let (leases, changed) = (services.leases.changed(), self.changed.notified());
        let (due, next) = self.due(&services.leases.active(), services.clock.now());
        if due.is_empty() {
            tokio::select! {
                () = services.clock.sleep_until(next) => self.reset_if_early(services.clock.now(), next),
                () = changed => {}
                () = leases => {}
                () = tokio::time::sleep(poll.unwrap_or_default()), if poll.is_some() && services.store.is_shared() => {
                    self.next_due.lock().clear();
                }
                () = services.stop.cancelled() => {}
            }
        }
        due
    }

    /// Forces a scan of all partitions if the clock was set back during a sleep until `next`: times may have been
    /// counted from the wrong time.
    fn reset_if_early(&self, now: Timestamp, next: Timestamp) {
        if now < next {
            self.next_due.lock().clear();
        }
    }

    /// Forces a scan of a partition that this node acquired.
    pub fn reset(&self, partition: u16) {
        self.next_due.lock().remove(&partition);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_starts_a_new_scan() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let timers = PartitionTimers::default();
        for partition in [1, 2] {
            timers.begin_scan(partition);
            timers.schedule(partition, at(7_200));
        }
        assert_eq!(timers.due(&[1, 2], at(60)), (vec![], at(7_200)));
        timers.reset_if_early(at(7_200), at(7_200));
        assert_eq!(timers.due(&[1, 2], at(60)), (vec![], at(7_200)), "the sleep ended at its time");
        timers.reset_if_early(at(60), at(7_200));
        assert_eq!(timers.due(&[1, 2], at(60)).0, [1, 2]);
    }
}
