//! The books of a report: to whom it goes, and how far that is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::Destination;
use crate::id::EmailId;

/// How long it is tried to send a report (RFC 8460 5.4 asks for a day).
pub const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How soon is tried again.
const AGAIN: SignedDuration = SignedDuration::from_mins(30);

/// How a report stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is tried again.
    Waiting,
    /// The domain asks for none.
    Unwanted,
    /// It was sent to somebody who is to have it.
    Sent,
    /// It reached nobody within a day.
    Failed,
}

/// How it stands with one of those who are to have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendingState {
    /// It is tried again; what was in the way the last time.
    Waiting(Option<String>),
    /// It is a message of ours by now, and goes the way of all mail.
    Mailed(EmailId),
    /// It was posted; the status of the answer.
    Posted(u16),
    /// It will not go there: why.
    Failed(String),
}

/// One who is to have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Where to.
    pub to: Destination,
    /// How that stands.
    pub state: SendingState,
}

impl Sending {
    fn waits(&self) -> bool {
        matches!(self.state, SendingState::Waiting(_))
    }
}

/// What became of the report of a domain's day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// How it stands.
    pub state: State,
    /// When it was first due.
    pub since: Timestamp,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Why it is not known whom to send it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who is to have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sendings: Vec<Sending>,
}

impl Book {
    /// One that was due at `since`, and goes to these; to nobody where nobody asks for it.
    #[must_use]
    pub fn open(since: Timestamp, to: Vec<Destination>) -> Self {
        let state = if to.is_empty() { State::Unwanted } else { State::Waiting };
        let sendings = to.into_iter().map(|to| Sending { to, state: SendingState::Waiting(None) });
        Self { state, since, next_at: None, error: None, sendings: sendings.collect() }
    }

    /// One of which it is not known whom it goes to: that is asked again, for a day.
    #[must_use]
    pub fn unknown(since: Timestamp, error: String, now: Timestamp) -> Self {
        let over = is_over(since, now);
        Self {
            state: if over { State::Failed } else { State::Waiting },
            since,
            next_at: (!over).then(|| later(now)),
            error: Some(error),
            sendings: Vec::new(),
        }
    }

    /// Whether nothing more comes of it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state != State::Waiting
    }

    /// Who still waits for it, by place.
    #[must_use]
    pub fn waiting(&self) -> Vec<(usize, Destination)> {
        let waiting = self.sendings.iter().enumerate().filter(|(_, sending)| sending.waits());
        waiting.map(|(at, sending)| (at, sending.to.clone())).collect()
    }

    /// The same, when this has become of one of those.
    #[must_use]
    pub fn with(&self, at: usize, state: SendingState, now: Timestamp) -> Self {
        let mut after = self.clone();
        let over = is_over(self.since, now);
        if let Some(sending) = after.sendings.get_mut(at) {
            sending.state = match state {
                SendingState::Waiting(why) if over => SendingState::Failed(why.unwrap_or_default()),
                other => other,
            };
        }
        let went =
            |sending: &Sending| matches!(sending.state, SendingState::Mailed(_) | SendingState::Posted(_));
        after.state = match () {
            () if after.sendings.iter().any(Sending::waits) => State::Waiting,
            () if after.sendings.iter().any(went) => State::Sent,
            () => State::Failed,
        };
        after.next_at = (after.state == State::Waiting).then(|| later(now));
        after
    }
}

fn is_over(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) >= TRIED_FOR
}

fn later(now: Timestamp) -> Timestamp {
    now.checked_add(AGAIN).unwrap_or(Timestamp::MAX)
}
