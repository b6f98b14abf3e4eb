//! Lines: which endpoints have deliveries on disk, and when the first of each is due.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use store::delivery::LineName;
use tokio::sync::Notify;

#[derive(Debug)]
enum Line {
    /// Nobody serves it; its first delivery is due then.
    Waits(Timestamp),
    /// A task serves it; then something is due that the task may not have seen.
    Served(Option<Timestamp>, Arc<Notify>),
}

#[derive(Debug, Default)]
struct State {
    lines: HashMap<LineName, Line>,
    /// Those that wait, by when they are due.
    by_due: BTreeSet<(Timestamp, LineName)>,
}

/// All lines of our partitions.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    state: Mutex<State>,
    heard: Notify,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A delivery lies on disk and is due then.
    pub(crate) fn note(&self, name: LineName, due: Timestamp) {
        let mut state = self.lock();
        let State { lines, by_due } = &mut *state;
        match lines.entry(name).or_insert(Line::Waits(Timestamp::MAX)) {
            Line::Served(unseen, wake) => {
                *unseen = Some(unseen.map_or(due, |seen| seen.min(due)));
                wake.notify_one();
            }
            Line::Waits(first) => {
                if due < *first {
                    by_due.remove(&(*first, name));
                    by_due.insert((due, name));
                    *first = due;
                }
            }
        }
        self.heard.notify_one();
    }

    /// The lines that are due, to be served now, each with what says that something was noted; and when the next
    /// one is.
    pub(super) fn due(&self, now: Timestamp) -> (Vec<(LineName, Arc<Notify>)>, Timestamp) {
        let mut state = self.lock();
        let mut due = Vec::new();
        while let Some((at, name)) = state.by_due.first().copied() {
            if at > now {
                return (due, at);
            }
            state.by_due.pop_first();
            let wake = Arc::<Notify>::default();
            state.lines.insert(name, Line::Served(None, Arc::clone(&wake)));
            due.push((name, wake));
        }
        (due, Timestamp::MAX)
    }

    /// Who serves a line has seen the disk as it is now: what is noted from here on, it may not know of.
    pub(super) fn look(&self, name: LineName) {
        if let Some(Line::Served(unseen, _)) = self.lock().lines.get_mut(&name) {
            *unseen = None;
        }
    }

    /// A line is served no more; on disk the next delivery is due then, if there is one.
    pub(super) fn leave(&self, name: LineName, next: Option<Timestamp>) {
        let mut state = self.lock();
        let unseen = match state.lines.remove(&name) {
            Some(Line::Served(unseen, _)) => unseen,
            Some(Line::Waits(due)) => {
                state.by_due.remove(&(due, name));
                Some(due)
            }
            None => None,
        };
        if let Some(due) = [unseen, next].into_iter().flatten().min() {
            state.lines.insert(name, Line::Waits(due));
            state.by_due.insert((due, name));
            self.heard.notify_one();
        }
    }

    /// Returns when something was noted.
    pub(super) async fn heard(&self) {
        self.heard.notified().await;
    }

    /// How many lines there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::{AccountId, WebhookId};

    #[test]
    fn what_is_noted_while_a_line_is_served_is_not_lost() {
        let lines = Lines::default();
        let at = |s| Timestamp::from_second(s).unwrap();
        let name =
            LineName { partition: 1, account: AccountId::new(at(0), 1), webhook: WebhookId::new(at(0), 1) };
        lines.note(name, at(20));
        lines.note(name, at(10));
        let due = |now: i64| {
            let (due, next) = lines.due(at(now));
            (due.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), next)
        };
        assert_eq!(due(9), (vec![], at(10)));
        assert_eq!(due(10), (vec![name], Timestamp::MAX));
        lines.look(name);
        lines.note(name, at(11));
        assert_eq!(due(12), (vec![], Timestamp::MAX));
        lines.leave(name, Some(at(30)));
        assert_eq!(due(12), (vec![name], Timestamp::MAX));
        lines.leave(name, Some(at(30)));
        assert_eq!(due(12), (vec![], at(30)));
        assert_eq!(due(30), (vec![name], Timestamp::MAX));
        lines.leave(name, None);
        assert_eq!(lines.len(), 0);
    }
}
