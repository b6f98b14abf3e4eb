//! Lines: which endpoints have deliveries on disk, and when the first of each is due.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use store::delivery::EndpointQueueName;
use tokio::sync::Notify;

#[derive(Debug)]
enum EndpointQueue {
    /// Nobody serves it; its first delivery is due then.
    Waiting(Timestamp),
    /// A task serves it; then something is due that the task may not have seen.
    Serving(Option<Timestamp>, Arc<Notify>),
}

#[derive(Debug, Default)]
struct EndpointQueueState {
    queues: HashMap<EndpointQueueName, EndpointQueue>,
    /// Those that wait, by when they are due.
    by_due: BTreeSet<(Timestamp, EndpointQueueName)>,
}

/// All lines of our partitions.
#[derive(Debug, Default)]
pub(crate) struct EndpointQueues {
    state: Mutex<EndpointQueueState>,
    changed: Notify,
}

impl EndpointQueues {
    fn lock(&self) -> MutexGuard<'_, EndpointQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A delivery lies on disk and is due then.
    pub(crate) fn add(&self, name: EndpointQueueName, due: Timestamp) {
        let mut state = self.lock();
        let EndpointQueueState { queues: lines, by_due } = &mut *state;
        match lines.entry(name).or_insert(EndpointQueue::Waiting(Timestamp::MAX)) {
            EndpointQueue::Serving(unseen, wake) => {
                *unseen = Some(unseen.map_or(due, |seen| seen.min(due)));
                wake.notify_one();
            }
            EndpointQueue::Waiting(first) => {
                if due < *first {
                    by_due.remove(&(*first, name));
                    by_due.insert((due, name));
                    *first = due;
                }
            }
        }
        self.changed.notify_one();
    }

    /// The lines that are due, to be served now, each with what says that something was noted; and when the next
    /// one is.
    pub(super) fn take_due(&self, now: Timestamp) -> (Vec<(EndpointQueueName, Arc<Notify>)>, Timestamp) {
        let mut state = self.lock();
        let mut due = Vec::new();
        while let Some((at, name)) = state.by_due.first().copied() {
            if at > now {
                return (due, at);
            }
            state.by_due.pop_first();
            let wake = Arc::<Notify>::default();
            state.queues.insert(name, EndpointQueue::Serving(None, Arc::clone(&wake)));
            due.push((name, wake));
        }
        (due, Timestamp::MAX)
    }

    /// Who serves a line has seen the disk as it is now: what is noted from here on, it may not know of.
    pub(super) fn mark_seen(&self, name: EndpointQueueName) {
        if let Some(EndpointQueue::Serving(unseen, _)) = self.lock().queues.get_mut(&name) {
            *unseen = None;
        }
    }

    /// A line is served no more; on disk the next delivery is due then, if there is one.
    pub(super) fn finish_serving(&self, name: EndpointQueueName, next: Option<Timestamp>) {
        let mut state = self.lock();
        let unseen = match state.queues.remove(&name) {
            Some(EndpointQueue::Serving(unseen, _)) => unseen,
            Some(EndpointQueue::Waiting(due)) => {
                state.by_due.remove(&(due, name));
                Some(due)
            }
            None => None,
        };
        if let Some(due) = [unseen, next].into_iter().flatten().min() {
            state.queues.insert(name, EndpointQueue::Waiting(due));
            state.by_due.insert((due, name));
            self.changed.notify_one();
        }
    }

    /// Returns when something was noted.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How many lines there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().queues.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::{AccountId, WebhookId};

    #[test]
    fn what_is_noted_while_a_line_is_served_is_not_lost() {
        let lines = EndpointQueues::default();
        let at = |s| Timestamp::from_second(s).unwrap();
        let name =
            EndpointQueueName { partition: 1, account: AccountId::new(at(0), 1), webhook: WebhookId::new(at(0), 1) };
        lines.add(name, at(20));
        lines.add(name, at(10));
        let due = |now: i64| {
            let (due, next) = lines.take_due(at(now));
            (due.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), next)
        };
        assert_eq!(due(9), (vec![], at(10)));
        assert_eq!(due(10), (vec![name], Timestamp::MAX));
        lines.mark_seen(name);
        lines.add(name, at(11));
        assert_eq!(due(12), (vec![], Timestamp::MAX));
        lines.finish_serving(name, Some(at(30)));
        assert_eq!(due(12), (vec![name], Timestamp::MAX));
        lines.finish_serving(name, Some(at(30)));
        assert_eq!(due(12), (vec![], at(30)));
        assert_eq!(due(30), (vec![name], Timestamp::MAX));
        lines.finish_serving(name, None);
        assert_eq!(lines.len(), 0);
    }
}
