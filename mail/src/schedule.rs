//! A schedule: when an email is to be sent that was accepted to be sent later, and what became of that.
//!
//! `waiting → released`, or `waiting → cancelled`; what is due and may not be sent (its domain is not
//! verified any more, say) is held and tried again, until it fails. The message lies composed and unsigned
//! until it is released: it is dated and signed then.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::recipient::DsnOptions;

/// Where a scheduled email is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleState {
    /// To be sent at its time; may be rescheduled and cancelled.
    Waiting,
    /// Due, and not to be sent yet.
    Held,
    /// In the queue, since then.
    Released(Timestamp),
    /// Taken back, then.
    Cancelled(Timestamp),
    /// Given up, then: it was due, and might not be sent.
    Failed(Timestamp),
}

/// The schedule of an email, and what its release needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// When it is to be sent.
    pub scheduled_at: Timestamp,
    /// Where it is.
    pub state: ScheduleState,
    /// When it is looked at next; `scheduled_at`, until it is held.
    pub due: Timestamp,
    /// The part of the task space whose owner releases it.
    pub partition: u16,
    /// The message needs SMTPUTF8.
    pub smtputf8: bool,
    /// REQUIRETLS was asked.
    pub require_tls: bool,
    /// What the client asked to be told of each recipient; none where nothing was asked.
    pub notify: Vec<DsnOptions>,
}

impl Schedule {
    /// Whether it is still to be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, ScheduleState::Waiting | ScheduleState::Held)
    }
}
