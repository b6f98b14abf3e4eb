//! The books of a report: to whom it goes, and how far that is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::ReportDestination;
use crate::id::EmailId;

/// How long it is tried to send a report (RFC 8460 5.4 asks for a day).
pub const RETRY_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How soon is tried again.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_mins(30);

/// How a report stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportState {
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
pub enum ReportSendState {
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
pub struct ReportRecipient {
    /// Where to.
    pub to: ReportDestination,
    /// How that stands.
    pub state: ReportSendState,
}

impl ReportRecipient {
    fn is_waiting(&self) -> bool {
        matches!(self.state, ReportSendState::Waiting(_))
    }
}

/// What became of the report of a domain's day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportDelivery {
    /// How it stands.
    pub state: ReportState,
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
    pub sendings: Vec<ReportRecipient>,
}

impl ReportDelivery {
    /// One that was due at `since`, and goes to these; to nobody where nobody asks for it.
    #[must_use]
    pub fn start(since: Timestamp, to: Vec<ReportDestination>) -> Self {
        let state = if to.is_empty() { ReportState::Unwanted } else { ReportState::Waiting };
        let sendings = to.into_iter().map(|to| ReportRecipient { to, state: ReportSendState::Waiting(None) });
        Self { state, since, next_at: None, error: None, sendings: sendings.collect() }
    }

    /// One of which it is not known whom it goes to: that is asked again, for a day.
    #[must_use]
    pub fn with_unknown_recipients(since: Timestamp, error: String, now: Timestamp) -> Self {
        let over = is_over(since, now);
        Self {
            state: if over { ReportState::Failed } else { ReportState::Waiting },
            since,
            next_at: (!over).then(|| next_retry(now)),
            error: Some(error),
            sendings: Vec::new(),
        }
    }

    /// Whether nothing more comes of it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state != ReportState::Waiting
    }

    /// Who still waits for it, by place.
    #[must_use]
    pub fn waiting(&self) -> Vec<(usize, ReportDestination)> {
        let waiting = self.sendings.iter().enumerate().filter(|(_, sending)| sending.is_waiting());
        waiting.map(|(at, sending)| (at, sending.to.clone())).collect()
    }

    /// The same, when this has become of one of those.
    #[must_use]
    pub fn with_result(&self, at: usize, state: ReportSendState, now: Timestamp) -> Self {
        let mut after = self.clone();
        let over = is_over(self.since, now);
        if let Some(sending) = after.sendings.get_mut(at) {
            sending.state = match state {
                ReportSendState::Waiting(why) if over => ReportSendState::Failed(why.unwrap_or_default()),
                other => other,
            };
        }
        let went = |sending: &ReportRecipient| {
            matches!(sending.state, ReportSendState::Mailed(_) | ReportSendState::Posted(_))
        };
        after.state = match () {
            () if after.sendings.iter().any(ReportRecipient::is_waiting) => ReportState::Waiting,
            () if after.sendings.iter().any(went) => ReportState::Sent,
            () => ReportState::Failed,
        };
        after.next_at = (after.state == ReportState::Waiting).then(|| next_retry(now));
        after
    }
}

fn is_over(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) >= RETRY_FOR
}

fn next_retry(now: Timestamp) -> Timestamp {
    now.checked_add(RETRY_INTERVAL).unwrap_or(Timestamp::MAX)
}
