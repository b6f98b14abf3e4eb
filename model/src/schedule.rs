//! The schedule of an email that is sent later.
//!
//! `waiting → released`, or `waiting → cancelled`. If the email is due but cannot be sent (for example, its domain is
//! no longer verified), it is held and retried until it fails. The message is stored composed but unsigned; it is dated
//! and signed at its release.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::recipient::DsnOptions;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleState {
    /// Waiting for its time; can be rescheduled and cancelled.
    Waiting,
    /// Due, but held.
    Held,
    /// In the queue since this time.
    Released(Timestamp),
    /// Cancelled at this time.
    Cancelled(Timestamp),
    /// Given up at this time: it was due, but could not be sent.
    Failed(Timestamp),
}

/// The schedule of an email, and the data for its release.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub scheduled_at: Timestamp,
    pub state: ScheduleState,
    /// Time of the next attempt to release the email; equals `scheduled_at` until one is refused.
    pub due: Timestamp,
    /// Task partition whose owner releases the email.
    pub partition: u16,
    /// The message needs SMTPUTF8.
    pub smtputf8: bool,
    /// The client requested REQUIRETLS.
    pub require_tls: bool,
    /// One recipient that is suppressed when the email is due fails it for all (`on_suppressed: fail`). Versions before
    /// this field skipped such recipients.
    pub fails_suppressed: bool,
    /// DSN options per recipient; empty if none were given.
    pub notify: Vec<DsnOptions>,
}

impl Schedule {
    /// Returns whether the email is still to be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.state, ScheduleState::Waiting | ScheduleState::Held)
    }
}
