//! DMARC aggregate reports (RFC 7489 7.2): what receivers report about mail with a local sending domain in From.
//!
//! A report counts messages and their dispositions per source IP address. Sums per day and address and the list of
//! reports are stored. A report has no data about individual messages.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::words;

/// Retention: 13 months, so that a month can be compared with the same month of the previous year.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(396 * 24 * 3_600);
/// Maximum number of source addresses per day; the others are summed up.
pub const SOURCES_MAX: usize = 500;
/// Maximum number of counted reports per domain and day. A few dozen reporters exist.
pub const REPORTS_MAX: usize = 250;
/// Longest time range of a report. One day is usual.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);

words! {
    /// The policy for mail that fails DMARC (`p=`).
    #[derive(Default)]
    DmarcPolicy {
        /// No action.
        #[default]
        None = "none",
        /// Treat as spam.
        Quarantine = "quarantine",
        /// Reject during the SMTP transaction.
        Reject = "reject",
    }
}

/// The domain's policy as published at the time of the report (RFC 7489 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DmarcPolicyPublished {
    /// Policy of the domain.
    pub p: DmarcPolicy,
    /// Policy of its subdomains, if different.
    pub sp: Option<DmarcPolicy>,
    /// Strict DKIM alignment (`adkim=s`): the domains must be equal.
    pub strict_dkim: bool,
    /// Strict SPF alignment (`aspf=s`).
    pub strict_spf: bool,
}

/// Numbers of messages by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DmarcMessageCounts {
    /// All messages.
    pub messages: u64,
    /// Messages with aligned DKIM or SPF.
    pub passed: u64,
    pub dkim_aligned: u64,
    pub spf_aligned: u64,
    /// Messages treated as spam because of the policy.
    pub quarantined: u64,
    /// Messages rejected because of the policy.
    pub rejected: u64,
}

impl DmarcMessageCounts {
    pub fn failed(&self) -> u64 {
        self.messages.saturating_sub(self.passed)
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, other) in [
            (&mut self.messages, other.messages),
            (&mut self.passed, other.passed),
            (&mut self.dkim_aligned, other.dkim_aligned),
            (&mut self.spf_aligned, other.spf_aligned),
            (&mut self.quarantined, other.quarantined),
            (&mut self.rejected, other.rejected),
        ] {
            *sum = sum.saturating_add(other);
        }
    }
}

#[crate::row::omit_empty]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DmarcSource {
    /// The source address; `None` for the sum of the sources that are not listed.
    pub ip: Option<IpAddr>,
    /// True for an address of this service: it passes the SPF record that customers include.
    pub ours: bool,
    pub tally: DmarcMessageCounts,
}

/// An aggregate report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DmarcReport {
    /// The authenticated domain of the reporter, which cannot be forged.
    pub reporter: DomainName,
    /// The reporter's name for itself.
    pub org_name: String,
    /// The report's id. A report is counted once per reporter and id.
    pub report_id: String,
    /// Start of its time range.
    pub begins_at: Timestamp,
    /// End of its time range.
    pub ends_at: Timestamp,
    pub policy: DmarcPolicyPublished,
    /// Total of all sources.
    pub tally: DmarcMessageCounts,
    pub received_at: Timestamp,
}

impl DmarcReport {
    /// True if the time range is possible at `now`.
    pub fn has_plausible_range(&self, now: Timestamp) -> bool {
        let oldest = now.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
        // Allows for clock skew and for different time zones.
        let newest = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        self.begins_at >= oldest
            && self.begins_at <= newest
            && self.ends_at >= self.begins_at
            && self.ends_at.duration_since(self.begins_at) <= SPAN_MAX
    }
}

/// Limits the list to [`SOURCES_MAX`] entries: the sources with the most messages, and the sum of the others without an
/// address.
pub fn cap_sources(mut sources: Vec<DmarcSource>) -> Vec<DmarcSource> {
    sources.sort_unstable_by_key(|source| (std::cmp::Reverse(source.tally.messages), source.ip));
    if sources.len() > SOURCES_MAX {
        let mut rest = DmarcMessageCounts::default();
        for source in sources.drain(SOURCES_MAX - 1..) {
            rest.add(&source.tally);
        }
        sources.push(DmarcSource { ip: None, ours: false, tally: rest });
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_above_the_limit_are_summed_up() {
        let source = |n: u32| DmarcSource {
            ip: Some(IpAddr::from(n.to_be_bytes())),
            ours: false,
            tally: DmarcMessageCounts { messages: u64::from(n), ..DmarcMessageCounts::default() },
        };
        let all: Vec<DmarcSource> = (0..2_000).map(source).collect();
        let capped = cap_sources(all);
        assert_eq!(capped.len(), SOURCES_MAX);
        assert_eq!(capped.iter().map(|source| source.tally.messages).sum::<u64>(), (0..2_000).sum::<u64>());
        assert_eq!((capped[0].tally.messages, capped[SOURCES_MAX - 1].ip), (1_999, None));
        assert_eq!(cap_sources(vec![source(1), source(2)]).len(), 2);
    }
}
