//! Figures of the worker: counters that are looked up by name once, not at every settlement.
//!
//! They count for the recorder that is installed when the worker is made.

use metrics::Counter;

use crate::settle::Next;

/// Attempts, by what they came to.
#[derive(Clone)]
pub(crate) struct Figures {
    delivered: Counter,
    deferred: Counter,
    bounced: Counter,
    failed: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        let attempts = |outcome| metrics::counter!("postrider_attempts_total", "outcome" => outcome);
        Self {
            delivered: attempts("delivered"),
            deferred: attempts("deferred"),
            bounced: attempts("bounced"),
            failed: attempts("failed"),
        }
    }
}

impl Figures {
    /// Counts an attempt.
    pub(crate) fn attempted(&self, next: &Next) {
        let counter = match next {
            Next::Delivered => &self.delivered,
            Next::Retry { .. } => &self.deferred,
            Next::Bounced { .. } => &self.bounced,
            Next::Failed { .. } => &self.failed,
        };
        counter.increment(1);
    }
}
