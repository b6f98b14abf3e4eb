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

#[derive(Debug)]
struct Entry {
    due: Timestamp,
    from: Key,
}

#[derive(Debug, Default)]
struct Entries {
    queues: HashMap<QueueName, Entry>,
    by_due: BTreeSet<(Timestamp, QueueName)>,
}

/// The queues with tasks on disk.
#[derive(Debug, Default)]
pub struct Scheduled {
    entries: Mutex<Entries>,
    changed: Notify,
}

impl Scheduled {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue has a task on disk that is due then, at `from` or behind it. The earlier of what was
    /// known and what is said counts.
    pub fn note(&self, queue: QueueName, due: Timestamp, from: Key) {
        let mut entries = self.lock();
        let earliest = entries.by_due.first().map(|(due, _)| *due);
        match entries.queues.get_mut(&queue) {
            Some(entry) => {
                entry.from = entry.from.clone().min(from);
                if due >= entry.due {
                    return;
                }
                let before = std::mem::replace(&mut entry.due, due);
                entries.by_due.remove(&(before, queue.clone()));
            }
            None => {
                entries.queues.insert(queue.clone(), Entry { due, from });
            }
        }
        entries.by_due.insert((due, queue));
        drop(entries);
        if earliest.is_none_or(|earliest| due < earliest) {
            self.changed.notify_one();
        }
    }

    /// The queue, if it is known, is to be looked at now.
    pub fn hasten(&self, queue: &QueueName, now: Timestamp) {
        let from = self.lock().queues.get(queue).map(|entry| entry.from.clone());
        if let Some(from) = from {
            self.note(queue.clone(), now, from);
        }
    }

    /// All these queues are to be looked at now.
    pub fn hasten_where(&self, are: impl Fn(&QueueName) -> bool, now: Timestamp) {
        let these: Vec<QueueName> = self.lock().queues.keys().filter(|queue| are(queue)).cloned().collect();
        these.iter().for_each(|queue| self.hasten(queue, now));
    }

    /// Takes out the queue that is due first, if it is due by `now`, with the key to read from. What
    /// is noted about it from then on makes a new entry.
    pub fn pop_due(&self, now: Timestamp) -> Option<(QueueName, Key)> {
        let mut entries = self.lock();
        if entries.by_due.first()?.0 > now {
            return None;
        }
        let (_, queue) = entries.by_due.pop_first()?;
        let entry = entries.queues.remove(&queue)?;
        Some((queue, entry.from))
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
    use mail::task::Class;

    fn queue(domain: &str) -> QueueName {
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        QueueName { partition: 0, domain: domain.parse().unwrap(), class: Class::Transactional, account }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_earliest_word_counts() {
        let scheduled = Scheduled::default();
        scheduled.note(queue("a.example"), at(10), Key::from_static(b"k2"));
        scheduled.note(queue("b.example"), at(7), Key::from_static(b"x"));
        scheduled.note(queue("a.example"), at(5), Key::from_static(b"k3"));
        scheduled.note(queue("a.example"), at(20), Key::from_static(b"k1"));
        assert_eq!(scheduled.pop_due(at(4)), None);
        assert_eq!(scheduled.pop_due(at(5)), Some((queue("a.example"), Key::from_static(b"k1"))));
        assert_eq!(scheduled.next_due(), Some(at(7)));
        assert_eq!(scheduled.len(), 1);
    }
}
