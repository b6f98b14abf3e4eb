//! The scheduled stage: which queues have tasks on disk, and when each is to be looked at.
//!
//! A queue (destination domain, class, account) with tasks that are not in memory has one entry
//! here, however many tasks it has: when its first task is due, and from which key on to read. Memory
//! is bounded by queues, not by messages, and start-up reads one row a queue.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use mail::task::QueueName;
use store::engine::Key;
use tokio::sync::Notify;

/// When a queue is to be looked at, and from where on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QueueScan {
    due: Timestamp,
    from: Key,
}

/// What is known of a queue: these are two facts, for what was put off is not read again before its time because more lies
/// behind it.
#[derive(Debug, Default)]
struct DueEntry {
    /// There is something due then, or behind it.
    next_scan: Option<QueueScan>,
    /// The queue is being read: this is how far.
    current_scan: Option<QueueScan>,
}

impl DueEntry {
    fn next_due(&self) -> Option<Timestamp> {
        self.next_scan.iter().chain(&self.current_scan).map(|look| look.due).min()
    }

    /// The look that is due first. One that begins before where the queue is being read reads all of it.
    fn take_next(&mut self) -> Option<QueueScan> {
        let is_later = match (&self.next_scan, &self.current_scan) {
            (Some(later), Some(reading)) => later.due <= reading.due,
            (later, _) => later.is_some(),
        };
        if !is_later {
            return self.current_scan.take();
        }
        let later = self.next_scan.take()?;
        self.current_scan.take_if(|reading| later.from <= reading.from);
        Some(later)
    }
}

#[derive(Debug, Default)]
struct DueEntries {
    queues: HashMap<QueueName, DueEntry>,
    by_due: BTreeSet<(Timestamp, QueueName)>,
}

/// The queues with tasks on disk.
#[derive(Debug, Default)]
pub struct DueIndex {
    entries: Mutex<DueEntries>,
    changed: Notify,
}

impl DueIndex {
    fn lock(&self) -> MutexGuard<'_, DueEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue has a task on disk that is due then, at `from` or behind it. The earlier of what was
    /// known and what is said counts.
    pub fn add(&self, queue: QueueName, due: Timestamp, from: Key) {
        self.update(queue, |entry| match &mut entry.next_scan {
            Some(later) => {
                later.from = later.from.clone().min(from);
                later.due = later.due.min(due);
            }
            none => *none = Some(QueueScan { due, from }),
        });
    }

    /// The queue was read up to here, and is to be read on. What was put off before is not read again by that.
    pub fn continue_from(&self, queue: QueueName, now: Timestamp, from: Key) {
        self.update(queue, |entry| match &mut entry.current_scan {
            // It is being read from further before, too: what lies between is not to be left out.
            Some(reading) => reading.from = reading.from.clone().min(from),
            none => *none = Some(QueueScan { due: now, from }),
        });
    }

    fn update(&self, queue: QueueName, change: impl FnOnce(&mut DueEntry)) {
        let mut entries = self.lock();
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

    /// The queue, if it is known, is to be looked at now.
    pub fn make_due(&self, queue: &QueueName, now: Timestamp) {
        let first =
            |entry: &DueEntry| entry.next_scan.iter().chain(&entry.current_scan).map(|look| look.from.clone()).min();
        let from = self.lock().queues.get(queue).and_then(first);
        if let Some(from) = from {
            self.add(queue.clone(), now, from);
        }
    }

    /// All these queues are to be looked at now.
    pub fn make_due_where(&self, are: impl Fn(&QueueName) -> bool, now: Timestamp) {
        let these: Vec<QueueName> = self.lock().queues.keys().filter(|queue| are(queue)).cloned().collect();
        these.iter().for_each(|queue| self.make_due(queue, now));
    }

    /// Takes out the queue that is due first, if it is due by `now`, with the key to read from. What
    /// is noted about it from then on makes a new entry.
    pub fn pop_due(&self, now: Timestamp) -> Option<(QueueName, Key)> {
        let mut entries = self.lock();
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

    /// When a queue is looked at next; none when nothing of it is known to lie on disk.
    #[must_use]
    pub fn due_of(&self, queue: &QueueName) -> Option<Timestamp> {
        self.lock().queues.get(queue).and_then(DueEntry::next_due)
    }

    /// When the next queue is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.lock().by_due.first().map(|(due, _)| *due)
    }

    /// Returns when some queue has become due earlier than all others.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How many queues have tasks on disk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().queues.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::AccountId;
    use mail::task::TaskClass;

    fn queue(domain: &str) -> QueueName {
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        QueueName { partition: 0, domain: domain.parse().unwrap(), class: TaskClass::Transactional, account }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_earliest_word_counts() {
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
    fn what_was_put_off_is_not_read_again_because_more_lies_behind_it() {
        let scheduled = DueIndex::default();
        let (k1, k5) = (Key::from_static(b"k1"), Key::from_static(b"k5"));
        scheduled.add(queue("a.example"), at(60), k1.clone());
        scheduled.continue_from(queue("a.example"), at(5), k5.clone());
        assert_eq!(scheduled.pop_due(at(5)), Some((queue("a.example"), k5.clone())));
        assert_eq!((scheduled.pop_due(at(59)), scheduled.next_due()), (None, Some(at(60))));
        // Hastened, all of it is read, and once.
        scheduled.continue_from(queue("a.example"), at(9), k5);
        scheduled.make_due(&queue("a.example"), at(8));
        assert_eq!(scheduled.pop_due(at(9)), Some((queue("a.example"), k1)));
        assert!(scheduled.is_empty() && scheduled.pop_due(at(100)).is_none());
    }

    #[test]
    fn what_lies_between_two_readings_is_not_left_out() {
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
