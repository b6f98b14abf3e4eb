//! History of the exclusion flag of a customer or subscription: whether the object carried it when an invoice was paid.
//!
//! The answer follows from the processor's times. It does not depend on the order of arrival, except for an object with
//! more than [`VERSIONS_MAX`] versions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::processor::{ObjectStage, StateVersion};

/// Maximum versions stored per object; beyond that, versions that changed nothing are evicted first.
const VERSIONS_MAX: usize = 16;

/// Versions of an object in the processor's order, each with the flag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FlagHistory(BTreeSet<(Timestamp, ObjectStage, bool)>);

impl FlagHistory {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The history with its newest version, if it has none: earlier releases stored the newest version only.
    pub(super) fn or_newest(mut self, newest: Option<(StateVersion, bool)>) -> Self {
        if self.is_empty() {
            self.0.extend(newest.map(|(StateVersion { at, step }, is_flagged)| (at, step, is_flagged)));
        }
        self
    }

    /// Records a version. `created_at` is the object's own time, which the event of its creation may follow. Returns
    /// true if the flag changed for any time of a sale.
    pub(super) fn record(&mut self, as_of: StateVersion, created_at: Option<Timestamp>, is_flagged: bool) -> bool {
        let StateVersion { at, step } = as_of;
        let at = created_at.filter(|_| step == ObjectStage::Begun).map_or(at, |created_at| created_at.min(at));
        let before = [self.is_flagged_at(at), self.is_flagged_at(Timestamp::MIN)];
        self.0.insert((at, step, is_flagged));
        let is_changed = before != [self.is_flagged_at(at), self.is_flagged_at(Timestamp::MIN)];
        if self.0.len() > VERSIONS_MAX {
            self.evict_version();
        }
        is_changed
    }

    /// True if the object carried the flag at a time of the processor.
    pub(super) fn is_flagged_at(&self, time: Timestamp) -> bool {
        let newest = self.0.iter().rev().find(|(at, ..)| *at <= time);
        // If the oldest known version was fetched by a request, the flag may be as old as the object.
        let fetched = self.0.first().filter(|(_, step, _)| *step == ObjectStage::Fetched);
        newest.or(fetched).is_some_and(|(.., is_flagged)| *is_flagged)
    }

    /// True if any known version carries the flag.
    pub(super) fn was_ever_flagged(&self) -> bool {
        self.0.iter().any(|(.., is_flagged)| *is_flagged)
    }

    fn evict_version(&mut self) {
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        let unchanged = pairs.filter(|((.., before), (.., after))| before == after).map(|(_, version)| *version);
        let oldest = unchanged.min().or(self.0.first().copied());
        self.0.retain(|version| Some(*version) != oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(kind: &str, at: i64) -> StateVersion {
        StateVersion::event(kind, second(at))
    }

    #[test]
    fn the_newest_version_at_a_time_decides() {
        let versions = [
            (event("customer.created", 12), Some(second(10)), false),
            (event("customer.updated", 20), None, true),
            (event("customer.updated", 25), None, true),
            (event("customer.updated", 30), None, false),
        ];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut history = FlagHistory::default();
            for index in order {
                let (as_of, created_at, is_flagged) = versions[index];
                history.record(as_of, created_at, is_flagged);
                assert!(!history.record(as_of, created_at, is_flagged), "a repetition changes nothing");
            }
            let flags = [9, 10, 19, 20, 29, 30, 99].map(|at| history.is_flagged_at(second(at)));
            assert_eq!(flags, [false, false, false, true, true, false, false], "{order:?}");
        }
    }

    #[test]
    fn a_new_object_is_flagged_since_its_creation() {
        let mut history = FlagHistory::default();
        assert!(history.record(event("customer.subscription.created", 12), Some(second(10)), true));
        assert_eq!([9, 10].map(|at| history.is_flagged_at(second(at))), [false, true]);
        assert!(!history.record(event("customer.subscription.updated", 20), Some(second(10)), true));
    }

    #[test]
    fn a_fetched_object_was_flagged_before_unless_an_older_version_is_known() {
        let mut history = FlagHistory::default();
        assert!(history.record(StateVersion::fetched(second(50)), Some(second(10)), true));
        assert!(history.is_flagged_at(second(20)));
        assert!(history.record(event("customer.updated", 30), None, true), "sales before it are not excluded");
        assert_eq!([20, 30].map(|at| history.is_flagged_at(second(at))), [false, true]);
    }

    #[test]
    fn changes_of_the_flag_outlast_other_versions() {
        let mut history = FlagHistory::default();
        for at in 0..100 {
            history.record(event("customer.updated", at), None, (40..60).contains(&at));
        }
        assert_eq!(history.0.len(), VERSIONS_MAX);
        let flags = [39, 40, 59, 60, 99].map(|at| history.is_flagged_at(second(at)));
        assert_eq!(flags, [false, true, true, false, false]);
    }
}
