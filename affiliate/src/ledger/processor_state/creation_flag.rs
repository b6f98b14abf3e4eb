//! Exclusion flag that a customer or subscription carried from its creation: which payments it excludes.
//!
//! Both facts only become true or earlier, so the answer does not depend on the order or repetition of versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::processor::{ObjectStage, StateVersion};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CreationFlag {
    /// Creation of the object, if the event of its creation shows the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_at: Option<Timestamp>,
    /// Time of the earliest known version without the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_at: Option<Timestamp>,
}

impl CreationFlag {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Records a version. `created_at` is the object's own time, which the event of its creation may follow.
    pub(super) fn record(&mut self, as_of: StateVersion, created_at: Option<Timestamp>, is_flagged: bool) {
        let earlier = |known: Option<Timestamp>, at: Timestamp| Some(known.map_or(at, |known| known.min(at)));
        if !is_flagged {
            self.removed_at = earlier(self.removed_at, as_of.at);
        } else if as_of.step == ObjectStage::Begun {
            self.set_at = earlier(self.set_at, created_at.map_or(as_of.at, |created_at| created_at.min(as_of.at)));
        }
    }

    /// The time from which payments are excluded, and the time from which they are not any more. `None` if the object
    /// was created without the flag, as far as known.
    pub(super) fn period(self) -> Option<(Timestamp, Option<Timestamp>)> {
        self.set_at.map(|set_at| (set_at, self.removed_at))
    }

    /// True if a payment at this time is excluded.
    pub(super) fn excludes(self, paid_at: Timestamp) -> bool {
        let was_set = self.set_at.is_some_and(|set_at| set_at <= paid_at);
        was_set && self.removed_at.is_none_or(|removed_at| paid_at < removed_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn it_excludes_from_the_creation_until_its_removal() {
        let versions = [
            ("customer.created", 12, Some(10), true),
            ("customer.updated", 20, Some(10), true),
            ("customer.updated", 30, Some(10), false),
            ("customer.updated", 40, Some(10), true),
            ("customer.updated", 50, Some(10), false),
        ];
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [4, 0, 2, 1, 3]] {
            let mut flag = CreationFlag::default();
            for index in order {
                let (kind, at, created_at, is_flagged) = versions[index];
                flag.record(StateVersion::event(kind, second(at)), created_at.map(second), is_flagged);
            }
            let excludes = [9, 10, 29, 30, 45, 99].map(|at| flag.excludes(second(at)));
            assert_eq!(excludes, [false, true, true, false, false, false], "{order:?}");
        }
    }

    #[test]
    fn a_flag_that_is_set_later_excludes_nothing() {
        let mut flag = CreationFlag::default();
        flag.record(StateVersion::event("customer.updated", second(20)), Some(second(10)), true);
        flag.record(StateVersion::fetched(second(30)), Some(second(10)), true);
        assert!(flag.is_empty() && !flag.excludes(second(25)));
    }
}
