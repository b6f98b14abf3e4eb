//! Endpoint queues: which endpoints have deliveries on disk, and when the first of each is due.

use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use store::webhook_delivery::EndpointQueueName;
use tokio::sync::Notify;

#[derive(Debug)]
enum EndpointQueue {
    /// No task serves the queue; its first delivery is due then.
    Waiting(Timestamp),
    /// A task serves the queue; a delivery that it may not have read is due then.
    Serving(Option<Timestamp>, Arc<Notify>),
}

#[derive(Debug, Default)]
struct EndpointQueueState {
    queues: HashMap<EndpointQueueName, EndpointQueue>,
    /// Waiting queues by due time.
    by_due: BTreeSet<(Timestamp, EndpointQueueName)>,
    /// Number of queues that a task serves, by partition.
    serving: HashMap<u16, usize>,
}

impl EndpointQueueState {
    fn start_serving(&mut self, name: EndpointQueueName, wake: Arc<Notify>) {
        let former = self.queues.insert(name, EndpointQueue::Serving(None, wake));
        if !matches!(former, Some(EndpointQueue::Serving(..))) {
            *self.serving.entry(name.partition).or_default() += 1;
        }
    }

    /// Counts a queue of the partition as no longer served.
    fn count_served(&mut self, partition: u16) {
        if let Entry::Occupied(mut serving) = self.serving.entry(partition) {
            let count = serving.get_mut();
            *count = count.saturating_sub(1);
            if *count == 0 {
                serving.remove();
            }
        }
    }
}

/// Endpoint queues of the owned partitions.
#[derive(Debug, Default)]
pub(crate) struct EndpointQueues {
    state: Mutex<EndpointQueueState>,
    changed: Notify,
}

impl EndpointQueues {
    /// Records a delivery on disk that is due then.
    pub(crate) fn add(&self, name: EndpointQueueName, due: Timestamp) {
        let mut state = self.state.lock();
        let EndpointQueueState { queues, by_due, .. } = &mut *state;
        match queues.entry(name).or_insert(EndpointQueue::Waiting(Timestamp::MAX)) {
            EndpointQueue::Serving(unseen, wake) => {
                *unseen = Some(unseen.map_or(due, |earliest| earliest.min(due)));
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

    /// Takes the due queues, each with a notifier for new deliveries, and returns the due time of the next one.
    pub(super) fn take_due(&self, now: Timestamp) -> (Vec<(EndpointQueueName, Arc<Notify>)>, Timestamp) {
        let mut state = self.state.lock();
        let mut due = Vec::new();
        while let Some((at, name)) = state.by_due.first().copied() {
            if at > now {
                return (due, at);
            }
            state.by_due.pop_first();
            let wake = Arc::<Notify>::default();
            state.start_serving(name, Arc::clone(&wake));
            due.push((name, wake));
        }
        (due, Timestamp::MAX)
    }

    /// Makes all waiting queues due now: the clock was set back, so their times may be too late.
    pub(super) fn make_due(&self, now: Timestamp) {
        let mut state = self.state.lock();
        let EndpointQueueState { queues, by_due, .. } = &mut *state;
        *by_due = by_due.iter().map(|(due, name)| ((*due).min(now), *name)).collect();
        for queue in queues.values_mut() {
            if let EndpointQueue::Waiting(due) = queue {
                *due = (*due).min(now);
            }
        }
    }

    /// Records that the serving task has read the disk: only deliveries added later are unknown to it.
    pub(super) fn mark_seen(&self, name: EndpointQueueName) {
        if let Some(EndpointQueue::Serving(unseen, _)) = self.state.lock().queues.get_mut(&name) {
            *unseen = None;
        }
    }

    /// Ends serving a queue; `next` is the due time of its next delivery on disk.
    pub(super) fn finish_serving(&self, name: EndpointQueueName, next: Option<Timestamp>) {
        let mut state = self.state.lock();
        let unseen = match state.queues.remove(&name) {
            Some(EndpointQueue::Serving(unseen, _)) => {
                state.count_served(name.partition);
                unseen
            }
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

    /// Number of a partition's queues with attempts in progress, or with results that are not committed yet.
    pub(crate) fn serving_in(&self, partition: u16) -> usize {
        self.state.lock().serving.get(&partition).copied().unwrap_or_default()
    }

    /// Resolves when a delivery was added.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.state.lock().queues.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{AccountId, WebhookId};

    #[test]
    fn deliveries_added_while_a_queue_is_served_are_not_lost() {
        let queues = EndpointQueues::default();
        let at = |s| Timestamp::from_second(s).unwrap();
        let name =
            EndpointQueueName { partition: 1, account: AccountId::new(at(0), 1), webhook: WebhookId::new(at(0), 1) };
        queues.add(name, at(20));
        queues.add(name, at(10));
        let due = |now: i64| {
            let (due, next) = queues.take_due(at(now));
            (due.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), next)
        };
        assert_eq!(due(9), (vec![], at(10)));
        assert_eq!(queues.serving_in(1), 0);
        assert_eq!(due(10), (vec![name], Timestamp::MAX));
        assert_eq!((queues.serving_in(1), queues.serving_in(2)), (1, 0));
        queues.mark_seen(name);
        queues.add(name, at(11));
        assert_eq!(due(12), (vec![], Timestamp::MAX));
        queues.finish_serving(name, Some(at(30)));
        assert_eq!(due(12), (vec![name], Timestamp::MAX));
        queues.finish_serving(name, Some(at(30)));
        assert_eq!(queues.serving_in(1), 0);
        assert_eq!(due(12), (vec![], at(30)));
        assert_eq!(due(30), (vec![name], Timestamp::MAX));
        queues.finish_serving(name, None);
        assert_eq!(queues.len(), 0);

        // The queues of a partition are counted together.
        let second = EndpointQueueName { webhook: WebhookId::new(at(0), 2), ..name };
        queues.add(name, at(40));
        queues.add(second, at(40));
        assert_eq!(due(40).0.len(), 2);
        assert_eq!((queues.serving_in(1), queues.serving_in(2)), (2, 0));
        queues.finish_serving(name, Some(at(50)));
        assert_eq!(queues.serving_in(1), 1);
        queues.finish_serving(second, None);
        assert_eq!(queues.serving_in(1), 0);

        queues.make_due(at(41));
        assert_eq!(due(41), (vec![name], Timestamp::MAX), "the clock was set back");
    }
}
