//! Delivery state of a TLS report: its recipients, and the result for each.

use jiff::{SignedDuration, Timestamp};
use message::tls_report::{DomainTlsCounts, ReportDestination};
use serde::{Deserialize, Serialize};

use crate::id::EmailId;

/// How long delivery of a report is retried (RFC 8460 5.4: a day).
pub const RETRY_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Interval between retries.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_mins(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportState {
    /// Waiting for a retry.
    Waiting,
    /// The domain requests no reports.
    Unwanted,
    /// Sent to at least one recipient.
    Sent,
    /// No recipient was reached within [`RETRY_FOR`].
    Failed,
}

/// State of the delivery to one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportSendState {
    /// Waiting for a retry, with the cause of the last failure.
    Waiting(Option<String>),
    /// Submitted as an email, which the queue delivers.
    Mailed(EmailId),
    /// Sent by HTTP POST; the status of the response.
    Posted(u16),
    /// Given up, with the cause.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportRecipient {
    pub to: ReportDestination,
    pub state: ReportSendState,
}

impl ReportRecipient {
    fn is_waiting(&self) -> bool {
        matches!(self.state, ReportSendState::Waiting(_))
    }
}

/// A domain's day: its counts, and the delivery of its report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DomainTlsDay {
    pub counts: DomainTlsCounts,
    /// Delivery state of the report; `None` before it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<ReportDelivery>,
}

/// Delivery of the report of a domain's day.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportDelivery {
    pub state: ReportState,
    /// Time at which the report became due.
    pub since: Timestamp,
    /// Time of the next retry.
    pub next_at: Option<Timestamp>,
    /// Error of the look-up of the recipients.
    pub error: Option<String>,
    pub sendings: Vec<ReportRecipient>,
}

impl ReportDelivery {
    /// Starts the delivery of a report due at `since` to these destinations; without any, the report is unwanted.
    pub fn start(since: Timestamp, to: Vec<ReportDestination>) -> Self {
        let state = if to.is_empty() { ReportState::Unwanted } else { ReportState::Waiting };
        let sendings = to.into_iter().map(|to| ReportRecipient { to, state: ReportSendState::Waiting(None) });
        Self { state, since, next_at: None, error: None, sendings: sendings.collect() }
    }

    /// Creates the state of a report whose recipients could not be looked up. The look-up is retried for [`RETRY_FOR`].
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

    /// Returns whether delivery has ended.
    pub fn is_done(&self) -> bool {
        self.state != ReportState::Waiting
    }

    /// Recipients waiting for delivery, with their indexes.
    pub fn waiting(&self) -> Vec<(usize, ReportDestination)> {
        let waiting = self.sendings.iter().enumerate().filter(|(_, sending)| sending.is_waiting());
        waiting.map(|(at, sending)| (at, sending.to.clone())).collect()
    }

    /// Returns the state after a delivery result for the recipient with index `at`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_record_their_results() {
        let since = Timestamp::from_second(1_800_000_000).unwrap();
        let at = |hours| since.checked_add(SignedDuration::from_hours(hours)).unwrap();
        let to = vec![
            ReportDestination::Web("https://a.example/".to_owned()),
            ReportDestination::Web("https://b.example/".to_owned()),
        ];
        let delivery = ReportDelivery::start(since, to);
        assert_eq!((delivery.state, delivery.waiting().len()), (ReportState::Waiting, 2));
        let half = delivery.with_result(0, ReportSendState::Posted(201), at(0));
        assert_eq!((half.state, half.waiting()[0].0), (ReportState::Waiting, 1));
        assert_eq!(
            half.with_result(1, ReportSendState::Waiting(Some("503".to_owned())), at(1)).state,
            ReportState::Waiting
        );
        let over = half.with_result(1, ReportSendState::Waiting(Some("503".to_owned())), at(24));
        assert_eq!(
            (over.state, &over.sendings[1].state),
            (ReportState::Sent, &ReportSendState::Failed("503".to_owned()))
        );
        assert_eq!(ReportDelivery::start(since, Vec::new()).state, ReportState::Unwanted);
        assert_eq!(ReportDelivery::with_unknown_recipients(since, "x".to_owned(), at(0)).state, ReportState::Waiting);
        assert!(ReportDelivery::with_unknown_recipients(since, "x".to_owned(), at(24)).is_done());
        let mailed = delivery.with_result(0, ReportSendState::Mailed(EmailId::new(since, 1)), at(0));
        let json = serde_json::to_string(&mailed).unwrap();
        assert_eq!(serde_json::from_str::<ReportDelivery>(&json).unwrap(), mailed);
    }
}
