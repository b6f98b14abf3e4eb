//! DMARC aggregate reports (RFC 7489 7.2): what receivers saw of mail that names a domain of ours as its author's.
//!
//! A report says of each address that sent such mail how many messages came from it, and what became of them.
//! Kept are sums by day and address, and who reported; the messages themselves nobody tells of.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::metric::Hour;

/// For how long it is kept: thirteen months, so that a month can be held against the same a year before.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(396 * 24 * 3_600);
/// Addresses that are told apart on a day; the rest is summed up.
pub const SOURCES_MAX: usize = 500;
/// Reports about a domain that are counted on a day: there are some dozens of reporters.
pub const REPORTS_MAX: usize = 250;
/// The longest time that a report may be about. A day is usual.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);

/// What the domain's owner wants done with mail that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DmarcDisposition {
    /// Nothing.
    None,
    /// Put it with spam.
    Quarantine,
    /// Refuse it.
    Reject,
}

/// The policy that a reporter found (RFC 7489 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DmarcPolicyPublished {
    /// Of the domain.
    pub p: DmarcDisposition,
    /// Of the domains under it, where that is another.
    pub sp: Option<DmarcDisposition>,
    /// The DKIM domain must be the author's, not only one of the same organisation.
    pub strict_dkim: bool,
    /// The same for SPF.
    pub strict_spf: bool,
}

/// Messages, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DmarcMessageCounts {
    /// All of them.
    pub messages: u64,
    /// Those that passed: by DKIM or by SPF, aligned.
    pub passed: u64,
    /// By DKIM, aligned.
    pub dkim_aligned: u64,
    /// By SPF, aligned.
    pub spf_aligned: u64,
    /// Put with spam, for the policy's sake.
    pub quarantined: u64,
    /// Refused, for the policy's sake.
    pub rejected: u64,
}

impl DmarcMessageCounts {
    /// Those that did not pass.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.messages.saturating_sub(self.passed)
    }

    /// And these.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.messages, more.messages),
            (&mut self.passed, more.passed),
            (&mut self.dkim_aligned, more.dkim_aligned),
            (&mut self.spf_aligned, more.spf_aligned),
            (&mut self.quarantined, more.quarantined),
            (&mut self.rejected, more.rejected),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// What came from one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmarcSource {
    /// From where; none is all those that are not told apart.
    pub ip: Option<IpAddr>,
    /// It is one of ours: the SPF record that customers include passes it.
    pub ours: bool,
    /// How much, and what became of it.
    pub tally: DmarcMessageCounts,
}

/// Who reported what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcReport {
    /// The domain that stands behind the report: nobody can make one in another's name.
    pub reporter: DomainName,
    /// What the reporter calls itself.
    pub org_name: String,
    /// The report's number; of one reporter each counts once.
    pub report_id: String,
    /// The time that it is about.
    pub begins_at: Timestamp,
    /// Its end.
    pub ends_at: Timestamp,
    /// The policy that was found.
    pub policy: DmarcPolicyPublished,
    /// What it says in all.
    pub tally: DmarcMessageCounts,
    /// When it came in.
    pub received_at: Timestamp,
}

impl DmarcReport {
    /// The day that it is counted on: that on which its time begins.
    #[must_use]
    pub fn day(&self) -> Hour {
        Hour::containing(self.begins_at).day()
    }

    /// Whether the time that it is about can be, seen from `now`.
    #[must_use]
    pub fn has_plausible_range(&self, now: Timestamp) -> bool {
        let oldest = now.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
        // Clocks differ, and so do the reporters' midnights.
        let newest = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        self.begins_at >= oldest
            && self.begins_at <= newest
            && self.ends_at >= self.begins_at
            && self.ends_at.duration_since(self.begins_at) <= SPAN_MAX
    }
}

/// At most so many sources, those with the most messages; the rest summed up as the one without an address.
#[must_use]
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
    fn many_sources_become_some_and_the_rest() {
        let source = |n: u32| DmarcSource {
            ip: Some(IpAddr::from(n.to_be_bytes())),
            ours: false,
            tally: DmarcMessageCounts { messages: u64::from(n), ..DmarcMessageCounts::default() },
        };
        let all: Vec<DmarcSource> = (0..2_000).map(source).collect();
        let apart = cap_sources(all);
        assert_eq!(apart.len(), SOURCES_MAX);
        assert_eq!(apart.iter().map(|source| source.tally.messages).sum::<u64>(), (0..2_000).sum::<u64>());
        assert_eq!((apart[0].tally.messages, apart[SOURCES_MAX - 1].ip), (1_999, None));
        assert_eq!(cap_sources(vec![source(1), source(2)]).len(), 2);
    }
}
