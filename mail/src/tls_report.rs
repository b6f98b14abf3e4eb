//! How TLS went with a domain's mail hosts, counted by the day, and what the domain is told of it (RFC 8460).
//!
//! ```text
//! session (which policy held, what went wrong) ─► Counts of a domain's day ─► written: JSON, and the message it goes in
//! ```
//!
//! A session is one connection to a mail host, as it was protected for one recipient's domain. What a day may have is
//! bounded: beyond it sessions are counted, and not told apart.

mod book;
mod heard;
mod record;
pub mod write;

use std::net::IpAddr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::DomainName;

pub use book::{RETRY_FOR, ReportDelivery, ReportRecipient, ReportSendState, ReportState};
pub use heard::{ReceivedFailureDetail, ReceivedPolicyCounts, ReceivedTlsReport};
pub use record::{ReportDestination, report_destinations};

/// Policies of a domain's day that are told apart.
const POLICIES_MAX: usize = 20;
/// Failures under one policy that are told apart.
const DETAILS_MAX: usize = 30;
/// Of what went wrong, so much is kept.
const REASON_CHARS_MAX: usize = 160;
/// For how long days are kept.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(90 * 24 * 3600);

/// A day of UTC: what a report is about (RFC 8460 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    const SECONDS: i64 = 24 * 3600;

    /// The day that a moment lies in.
    #[must_use]
    pub fn containing(at: Timestamp) -> Self {
        Self(at.as_second().div_euclid(Self::SECONDS))
    }

    /// When it begins.
    #[must_use]
    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_second(self.0.saturating_mul(Self::SECONDS)).unwrap_or(Timestamp::MAX)
    }

    /// When it is over.
    #[must_use]
    pub fn ends_at(self) -> Timestamp {
        self.begins_at().checked_add(SignedDuration::from_secs(Self::SECONDS)).unwrap_or(Timestamp::MAX)
    }

    /// So many days earlier.
    #[must_use]
    pub fn days_before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Reads `2026-11-22`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let date: Date = text.parse().ok()?;
        Some(Self::containing(date.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.begins_at().to_zoned(TimeZone::UTC).date().fmt(f)
    }
}

/// What went wrong (RFC 8460 4.3). `dane-required` is not among them: nobody can ask for that here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsResultType {
    /// The host has no STARTTLS, or refuses it.
    StarttlsNotSupported,
    /// The certificate is for other names.
    CertificateHostMismatch,
    /// The certificate's time is over, or has not come.
    CertificateExpired,
    /// Nobody who is trusted has signed the certificate.
    CertificateNotTrusted,
    /// Something else.
    ValidationFailure,
    /// None of the host's TLSA records means its certificate.
    TlsaInvalid,
    /// The host's TLSA records could not be had as DNSSEC wants it.
    DnssecInvalid,
    /// The policy that is announced could not be fetched.
    StsPolicyFetchError,
    /// What was fetched is no policy.
    StsPolicyInvalid,
    /// The policy's web server could not be trusted.
    StsWebpkiInvalid,
}

/// Something that went wrong, with what was said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    /// What.
    pub result: TlsResultType,
    /// In words.
    pub reason: String,
}

impl TlsFault {
    /// A fault in words.
    #[must_use]
    pub fn new(result: TlsResultType, reason: impl Into<String>) -> Self {
        Self { result, reason: reason.into() }
    }
}

impl std::fmt::Display for TlsFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Whose word a session was protected by (RFC 8460 4.2, `policy-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsPolicyType {
    /// The domain's policy of MTA-STS.
    Sts,
    /// The host's TLSA records.
    Tlsa,
    /// Nobody's.
    NoPolicyFound,
}

/// The policy that held for a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AppliedTlsPolicy {
    /// Its kind.
    pub kind: TlsPolicyType,
    /// Its lines, or the TLSA records; none when it could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The hosts that it names; the host whose the records are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mx: Vec<String>,
}

impl AppliedTlsPolicy {
    /// None.
    #[must_use]
    pub fn no_policy() -> Self {
        Self { kind: TlsPolicyType::NoPolicyFound, lines: Vec::new(), mx: Vec::new() }
    }

    /// TLSA records that nobody can look for: the signatures on the way to the hosts do not hold.
    #[must_use]
    pub fn unverifiable_tlsa() -> Self {
        Self { kind: TlsPolicyType::Tlsa, ..Self::no_policy() }
    }

    /// A policy of MTA-STS that could not be had.
    #[must_use]
    pub fn missing_sts_policy() -> Self {
        Self { kind: TlsPolicyType::Sts, ..Self::no_policy() }
    }
}

/// A session that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsFailure {
    /// What went wrong.
    pub result: TlsResultType,
    /// Our address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending_ip: Option<IpAddr>,
    /// The host; none where none could be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mx_host: Option<DomainName>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiving_ip: Option<IpAddr>,
    /// What was said of it.
    pub reason: String,
}

impl TlsFailure {
    /// One of a host, or of none.
    #[must_use]
    pub fn new(fault: &TlsFault, sending_ip: Option<IpAddr>, host: Option<(DomainName, IpAddr)>) -> Self {
        let reason = fault.reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect();
        let (mx_host, receiving_ip) = host.unzip();
        Self { result: fault.result, sending_ip, mx_host, receiving_ip, reason }
    }
}

/// Failures that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFailureDetail {
    /// How.
    pub failure: TlsFailure,
    /// How many.
    pub sessions: u64,
}

/// What came of the sessions under one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPolicyCounts {
    /// The policy.
    pub applied: AppliedTlsPolicy,
    /// Sessions that were protected as it asks for.
    pub succeeded: u64,
    /// Sessions that were not.
    pub failed: u64,
    /// Those, as far as they are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<TlsFailureDetail>,
}

impl TlsPolicyCounts {
    fn record_failure(&mut self, detail: &TlsFailureDetail) {
        self.failed += detail.sessions;
        let known = self.details.iter_mut().find(|known| known.failure == detail.failure);
        if let Some(known) = known {
            known.sessions += detail.sessions;
        } else if self.details.len() < DETAILS_MAX {
            self.details.push(detail.clone());
        }
    }
}

/// The sessions of a domain's day.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DomainTlsCounts {
    /// By policy, in the order in which they were met.
    pub policies: Vec<TlsPolicyCounts>,
    /// Sessions under policies beyond those that are told apart.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl DomainTlsCounts {
    /// One session more; without a failure it went well.
    pub fn record_session(&mut self, applied: &AppliedTlsPolicy, failure: Option<TlsFailure>) {
        let Some(policy) = self.policy(applied) else {
            self.dropped += 1;
            return;
        };
        match failure {
            None => policy.succeeded += 1,
            Some(failure) => policy.record_failure(&TlsFailureDetail { failure, sessions: 1 }),
        }
    }

    /// As many more as these.
    pub fn add(&mut self, more: &Self) {
        self.dropped += more.dropped;
        for count in &more.policies {
            let Some(policy) = self.policy(&count.applied) else {
                self.dropped += count.succeeded + count.failed;
                continue;
            };
            policy.succeeded += count.succeeded;
            let told: u64 = count.details.iter().map(|detail| detail.sessions).sum();
            policy.failed += count.failed.saturating_sub(told);
            count.details.iter().for_each(|detail| policy.record_failure(detail));
        }
    }

    fn policy(&mut self, applied: &AppliedTlsPolicy) -> Option<&mut TlsPolicyCounts> {
        let at = match self.policies.iter().position(|known| known.applied == *applied) {
            Some(at) => at,
            None if self.policies.len() >= POLICIES_MAX => return None,
            None => {
                let (succeeded, failed, details) = (0, 0, Vec::new());
                self.policies.push(TlsPolicyCounts { applied: applied.clone(), succeeded, failed, details });
                self.policies.len() - 1
            }
        };
        self.policies.get_mut(at)
    }
}

/// A domain's day: what was counted, and what became of the report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainTlsDay {
    /// The sessions.
    pub counts: DomainTlsCounts,
    /// The report; none before it is due.
    pub book: Option<ReportDelivery>,
}

#[cfg(test)]
mod tests;
