//! Version of an object's state: the newest version wins, whatever the order of arrival.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Version of an object's state; the greater is newer.
///
/// The processor's clock has whole seconds, and an object may be created and changed within one. So versions of the
/// same second are ordered by [`ObjectStage`]. If that is equal too, the fact decides ([`super::Charge`]), or the order
/// does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateVersion {
    /// The processor's time.
    pub at: Timestamp,
    /// Orders versions within the same second.
    pub step: ObjectStage,
}

/// Stage of an object's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectStage {
    /// State fetched by a request; it may miss the last changes of its second.
    Fetched,
    Begun,
    Changed,
    /// Deleted, closed, voided or failed.
    Ended,
}

impl StateVersion {
    /// Returns the version of an event of this type, created then.
    pub fn event(kind: &str, created: Timestamp) -> Self {
        let step = match kind.rsplit('.').next() {
            Some("created") => ObjectStage::Begun,
            Some("deleted" | "closed" | "voided" | "failed") => ObjectStage::Ended,
            _ => ObjectStage::Changed,
        };
        Self { at: created, step }
    }

    /// Returns the version of a fetched object. `answered_at` is the response's `Date`, the processor's time: the local
    /// clock may be ahead, and later events would then seem older than the response.
    pub fn fetched(answered_at: Timestamp) -> Self {
        Self { at: answered_at, step: ObjectStage::Fetched }
    }

    /// Returns the version as the end of the object's life cycle.
    pub(super) fn ended(self) -> Self {
        Self { step: ObjectStage::Ended, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_one_second_are_ordered() {
        let (now, earlier) = (Timestamp::from_second(100).unwrap(), Timestamp::from_second(99).unwrap());
        let order = [
            StateVersion::event("customer.subscription.deleted", earlier),
            StateVersion::fetched(now),
            StateVersion::event("customer.subscription.created", now),
            StateVersion::event("customer.subscription.updated", now),
            StateVersion::event("customer.subscription.deleted", now),
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }
}
