//! As of when a fact holds: by this the newest of what is told of one object wins, in whatever order it comes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// As of when a fact holds. The greater is the newer one.
///
/// The processor's clock ticks in seconds, and much happens within one: an object is made and changed at once. So what
/// is of one second is put in the order of its [`Step`]s. Where those are the same too, the fact says which wins
/// ([`super::Charge`]), or it does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateVersion {
    /// By the processor's clock.
    pub at: Timestamp,
    /// What can have come before it in the same second.
    pub step: ObjectStage,
}

/// Where in an object's life an account of it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectStage {
    /// It was asked for: of the answer's second, what happened last it may not know.
    Fetched,
    /// It was made.
    Begun,
    /// Something became of it.
    Changed,
    /// It ended: deleted, closed, voided, failed.
    Ended,
}

impl StateVersion {
    /// Of an event of this type, created then.
    #[must_use]
    pub fn event(kind: &str, created: Timestamp) -> Self {
        let step = match kind.rsplit('.').next() {
            Some("created") => ObjectStage::Begun,
            Some("deleted" | "closed" | "voided" | "failed") => ObjectStage::Ended,
            _ => ObjectStage::Changed,
        };
        Self { at: created, step }
    }

    /// Of an object that was asked for and answered then, by the processor's clock (the answer's `Date`): ours may be
    /// ahead, and then events of the meantime would seem older than the answer.
    #[must_use]
    pub fn fetched(answered_at: Timestamp) -> Self {
        Self { at: answered_at, step: ObjectStage::Fetched }
    }

    /// The same, of an object that turns out to have ended.
    pub(super) fn ended(self) -> Self {
        Self { step: ObjectStage::Ended, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_one_second_has_an_order() {
        let (now, then) = (Timestamp::from_second(100).unwrap(), Timestamp::from_second(99).unwrap());
        let order = [
            StateVersion::event("customer.subscription.deleted", then),
            StateVersion::fetched(now),
            StateVersion::event("customer.subscription.created", now),
            StateVersion::event("customer.subscription.updated", now),
            StateVersion::event("customer.subscription.deleted", now),
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }
}
