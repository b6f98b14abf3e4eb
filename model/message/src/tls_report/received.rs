//! A received TLS report about a local domain, with the fields that are stored.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Day, RETENTION};
use crate::address::DomainName;

/// Longest accepted period of a report; reports normally cover a day.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(8 * 24);

/// Count of equal failures.
#[crate::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedFailureDetail {
    /// Result type, as written by the reporter (RFC 8460 4.3).
    pub result: String,
    pub mx_host: Option<String>,
    pub sessions: u64,
    /// Description by the reporter.
    pub reason: Option<String>,
}

/// Session counts of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedPolicyCounts {
    /// Policy type, as written by the reporter.
    pub kind: String,
    pub succeeded: u64,
    pub failed: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ReceivedFailureDetail>,
}

/// A report about one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTlsReport {
    /// Organizational domain of the report's author.
    pub reporter: DomainName,
    /// Organization name that the report states.
    pub organization: String,
    pub report_id: String,
    /// Start of the report's period.
    pub begins_at: Timestamp,
    /// End of the report's period.
    pub ends_at: Timestamp,
    /// Counts per policy.
    pub policies: Vec<ReceivedPolicyCounts>,
    pub received_at: Timestamp,
}

impl ReceivedTlsReport {
    /// The day on which the report's period begins.
    pub fn day(&self) -> Day {
        Day::containing(self.begins_at)
    }

    /// Returns whether the report's period is plausible: recent, not in the future, and not too long.
    pub fn has_plausible_range(&self) -> bool {
        let oldest = self.received_at.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
        // Tolerance for clock differences and for the reporters' time zones.
        let newest = self.received_at.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        let span = self.ends_at.duration_since(self.begins_at);
        self.begins_at >= oldest && self.begins_at <= newest && (SignedDuration::ZERO..=SPAN_MAX).contains(&span)
    }
}
