//! Due index: which queues have tasks on disk, and when each is to be scanned.
//!
//! A queue (partition, destination domain, class, account) with tasks that are not in memory has one entry, however
//! many tasks it has. The entry holds the time of the next scan and the key to start from. Memory is bounded by queues,
//! not by messages, and startup reads one row per queue.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use model::task::QueueName;
use store::engine::Key;
use tokio::sync::Notify;

/// Time of a queue's scan and the key to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueScan {
    due: Timestamp,
    from: Key,
}

/// Scans of a queue. Two are separate, so that deferred tasks are not read again before their due time only because
/// the scan of later keys continues.
#[derive(Debug, Default)]
struct DueEntry {
    /// The next scan: a task at `from` or behind is due then.
    next_scan: Option<QueueScan>,
    /// The scan in progress: position of its next page.
    current_scan: Option<QueueScan>,
}

impl DueEntry {
    fn next_due(&self) -> Option<Timestamp> {
        self.next_scan.iter().chain(&self.current_scan).map(|look| look.due).min()
    }

    /// Takes the scan that is due first. If it starts before the position of the scan in progress, it replaces that
    /// one.
    fn take_next(&mut self) -> Option<QueueScan> {
        let is_later = match (&self.next_scan, &self.current_scan) {
            (Some(next_scan), Some(reading)) => next_scan.due <= reading.due,
            (next_scan, _) => next_scan.is_some(),
        };
        if !is_later {
            return self.current_scan.take();
        }
        let next_scan = self.next_scan.take()?;
        self.current_scan.take_if(|reading| next_scan.from <= reading.from);
        Some(next_scan)
    }
}

#[derive(Debug, Default)]
struct DueEntries {
    queues: HashMap<QueueName, DueEntry>,
    by_due: BTreeSet<(Timestamp, QueueName)>,
}

/// Index of the queues with tasks on disk.
#[derive(Debug, Default)]
pub struct DueIndex {
    entries: Mutex<DueEntries>,
    changed: Notify,
}

impl DueIndex {
    /// Records that the queue has a task at `from` or behind it which is due then. The earlier due time and the smaller
    /// key are retained.
    pub fn add(&self, queue: QueueName, due: Timestamp, from: Key) {
        self.update(queue, |entry| match &mut entry.next_scan {
            Some(scan) => {
                scan.from = scan.from.clone().min(from);
                scan.due = scan.due.min(due);
            }
            none => *none = Some(QueueScan { due, from }),
        });
    }

    /// Continues a scan at this key. Tasks deferred before the key are not read again by it.
    pub fn continue_from(&self, queue: QueueName, now: Timestamp, from: Key) {
        self.update(queue, |entry| match &mut entry.current_scan {
            // Another scan of the queue is at an earlier key: keep that, so that no task in between is skipped.
            Some(reading) => reading.from = reading.from.clone().min(from),
            none => *none = Some(QueueScan { due: now, from }),
        });
    }

    fn update(&self, queue: QueueName, change: impl FnOnce(&mut DueEntry)) {
        let mut entries = self.entries.lock();
        let earliest = entries.by_due.first().map(|(due, _)| *due);
        let entry = entries.queues.entry(queue.clone()).or_default();
        let before = entry.next_due();
        change(entry);
        let Some(due) = entry.next_due() else { return };
        if let Some(before) = before.filter(|before| *before != due) {
            entries.by_due.remove(&(before, queue.clone()));
        }
        entries.by_due.insert((due, queue));
        drop(entries);
        if earliest.is_none_or(|earliest| due < earliest) {
            self.changed.notify_one();
        }
    }

    /// Makes a queue due now, if it is in the index.
    pub fn make_due(&self, queue: &QueueName, now: Timestamp) {
        let first =
            |entry: &DueEntry| entry.next_scan.iter().chain(&entry.current_scan).map(|look| look.from.clone()).min();
        let from = self.entries.lock().queues.get(queue).and_then(first);
        if let Some(from) = from {
            self.add(queue.clone(), now, from);
        }
    }

    /// Makes all matching queues due now.
    pub fn make_due_where(&self, are: impl Fn(&QueueName) -> bool, now: Timestamp) {
        let queues: Vec<QueueName> = self.entries.lock().queues.keys().filter(|queue| are(queue)).cloned().collect();
        queues.iter().for_each(|queue| self.make_due(queue, now));
    }

    /// Takes the first scan that is due by `now`: the queue and the key to read from. Later records about the queue
    /// make a new entry.
    pub fn pop_due(&self, now: Timestamp) -> Option<(QueueName, Key)> {
        let mut entries = self.entries.lock();
        if entries.by_due.first()?.0 > now {
            return None;
        }
        let (_, queue) = entries.by_due.pop_first()?;
        let entry = entries.queues.get_mut(&queue)?;
        let look = entry.take_next();
        match entry.next_due() {
            Some(due) => _ = entries.by_due.insert((due, queue.clone())),
            None => _ = entries.queues.remove(&queue),
        }
        Some((queue, look?.from))
    }

    /// Returns the time of a queue's next scan; `None` if no tasks of it are known on disk.
    pub fn due_of(&self, queue: &QueueName) -> Option<Timestamp> {
        self.entries.lock().queues.get(queue).and_then(DueEntry::next_due)
    }

    /// Returns the time of the next scan of any queue.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.entries.lock().by_due.first().map(|(due, _)| *due)
    }

    /// Resolves when a queue becomes due earlier than all others.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Number of queues with tasks on disk.
    pub fn len(&self) -> usize {
        self.entries.lock().queues.len()
    }

    /// True if no queue has tasks on disk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::AccountId;
    use model::task::TaskClass;

    fn queue(domain: &str) -> QueueName {
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        QueueName { partition: 0, domain: domain.parse().unwrap(), class: TaskClass::Transactional, account }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_earliest_due_time_counts() {
        let scheduled = DueIndex::default();
        scheduled.add(queue("a.example"), at(10), Key::from_static(b"k2"));
        scheduled.add(queue("b.example"), at(7), Key::from_static(b"x"));
        scheduled.add(queue("a.example"), at(5), Key::from_static(b"k3"));
        scheduled.add(queue("a.example"), at(20), Key::from_static(b"k1"));
        assert_eq!(scheduled.pop_due(at(4)), None);
        assert_eq!(scheduled.pop_due(at(5)), Some((queue("a.example"), Key::from_static(b"k1"))));
        assert_eq!(scheduled.next_due(), Some(at(7)));
        assert_eq!(scheduled.len(), 1);
    }

    #[test]
    fn deferred_tasks_are_not_read_again_by_a_continued_scan() {
        let scheduled = DueIndex::default();
        let (k1, k5) = (Key::from_static(b"k1"), Key::from_static(b"k5"));
        scheduled.add(queue("a.example"), at(60), k1.clone());
        scheduled.continue_from(queue("a.example"), at(5), k5.clone());
        assert_eq!(scheduled.pop_due(at(5)), Some((queue("a.example"), k5.clone())));
        assert_eq!((scheduled.pop_due(at(59)), scheduled.next_due()), (None, Some(at(60))));
        // Made due, the queue is read once from its first key.
        scheduled.continue_from(queue("a.example"), at(9), k5);
        scheduled.make_due(&queue("a.example"), at(8));
        assert_eq!(scheduled.pop_due(at(9)), Some((queue("a.example"), k1)));
        assert!(scheduled.is_empty() && scheduled.pop_due(at(100)).is_none());
    }

    #[test]
    fn no_task_between_two_scans_is_skipped() {
        let scheduled = DueIndex::default();
        let [k3, k9, k12] = [&b"k03"[..], b"k09", b"k12"].map(Key::from_static);
        scheduled.continue_from(queue("a.example"), at(5), k3.clone());
        scheduled.add(queue("a.example"), at(4), k9.clone());
        assert_eq!(scheduled.pop_due(at(5)), Some((queue("a.example"), k9)));
        scheduled.continue_from(queue("a.example"), at(6), k12);
        assert_eq!(scheduled.pop_due(at(6)), Some((queue("a.example"), k3)));
        assert!(scheduled.is_empty());
    }
}
