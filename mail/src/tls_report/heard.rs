//! A report of others about a domain of ours, as far as it is kept.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Day, RETENTION};
use crate::address::DomainName;

/// The longest time that a report may be about: they are about a day.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(8 * 24);

/// Failures that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedFailureDetail {
    /// What went wrong, in the reporter's word (RFC 8460 4.3).
    pub result: String,
    /// At which host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mx_host: Option<String>,
    /// How often.
    pub sessions: u64,
    /// What was said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of the sessions under one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedPolicyCounts {
    /// Its kind, in the reporter's word.
    pub kind: String,
    /// Sessions that went well.
    pub succeeded: u64,
    /// Sessions that did not.
    pub failed: u64,
    /// Those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ReceivedFailureDetail>,
}

/// What somebody reports of one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTlsReport {
    /// The organisation of its author, by name.
    pub reporter: DomainName,
    /// What it calls itself.
    pub organization: String,
    /// The report's number.
    pub report_id: String,
    /// From when …
    pub begins_at: Timestamp,
    /// … to when it is about.
    pub ends_at: Timestamp,
    /// By policy.
    pub policies: Vec<ReceivedPolicyCounts>,
    /// When it came in.
    pub received_at: Timestamp,
}

impl ReceivedTlsReport {
    /// The day that it is about.
    #[must_use]
    pub fn day(&self) -> Day {
        Day::containing(self.begins_at)
    }

    /// Whether the time that it is about can be.
    #[must_use]
    pub fn has_plausible_range(&self) -> bool {
        let oldest = self.received_at.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
        // Clocks differ, and so do the reporters' midnights.
        let newest = self.received_at.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        let span = self.ends_at.duration_since(self.begins_at);
        self.begins_at >= oldest && self.begins_at <= newest && (SignedDuration::ZERO..=SPAN_MAX).contains(&span)
    }
}
