//! TLS session counts per recipient domain and day, and the TLS reports from them (TLS-RPT, RFC 8460).
//!
//! ```text
//! session (applied policy, failure) ─► DomainTlsCounts of a domain's day ─► write: JSON, and the message with it
//! ```
//!
//! A session is one connection to a mail host for one recipient domain. The details of a day are bounded; sessions
//! beyond the bounds are counted without details.

mod received;
mod rua_record;
pub mod write;

use std::net::IpAddr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::DomainName;

pub use received::{ReceivedFailureDetail, ReceivedPolicyCounts, ReceivedTlsReport};
pub use rua_record::{ReportDestination, report_destinations};

/// Policies of a domain's day that are counted separately.
const POLICIES_MAX: usize = 20;
/// Failure kinds of a policy that are counted separately.
const DETAILS_MAX: usize = 30;
/// Maximum length of a stored failure reason, in characters.
const REASON_CHARS_MAX: usize = 160;
/// Retention of daily counts and reports: 90 days.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(90 * 24 * 3600);

/// A day of UTC, the period of a report (RFC 8460 4.1), numbered from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    const SECONDS: i64 = 24 * 3600;

    pub fn containing(at: Timestamp) -> Self {
        Self(at.as_second().div_euclid(Self::SECONDS))
    }

    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_second(self.0.saturating_mul(Self::SECONDS)).unwrap_or(Timestamp::MAX)
    }

    /// Start of the next day.
    pub fn ends_at(self) -> Timestamp {
        self.begins_at().checked_add(SignedDuration::from_secs(Self::SECONDS)).unwrap_or(Timestamp::MAX)
    }

    pub fn days_before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Parses `2026-11-22`.
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

/// Result type of a failure (RFC 8460 4.3). `dane-required` is missing: this server has no option that requires DANE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsResultType {
    /// The host does not offer STARTTLS, or rejects it.
    StarttlsNotSupported,
    /// The certificate is for other names.
    CertificateHostMismatch,
    /// The certificate has expired, or is not yet valid.
    CertificateExpired,
    /// The certificate is not signed by a trusted authority.
    CertificateNotTrusted,
    /// Any other failure.
    ValidationFailure,
    /// No TLSA record of the host matches its certificate.
    TlsaInvalid,
    /// The host's TLSA records could not be validated with DNSSEC.
    DnssecInvalid,
    /// The announced policy could not be fetched.
    StsPolicyFetchError,
    /// The fetched policy is invalid.
    StsPolicyInvalid,
    /// The certificate of the policy's web server is not trusted.
    StsWebpkiInvalid,
}

/// A TLS failure with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    pub result: TlsResultType,
    /// Human-readable description.
    pub reason: String,
}

impl TlsFault {
    pub fn new(result: TlsResultType, reason: impl Into<String>) -> Self {
        Self { result, reason: reason.into() }
    }
}

impl std::fmt::Display for TlsFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Kind of the policy of a session (RFC 8460 4.2, `policy-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsPolicyType {
    /// The domain's MTA-STS policy.
    Sts,
    /// The host's TLSA records.
    Tlsa,
    /// No policy.
    NoPolicyFound,
}

/// The policy that applied to a session.
#[crate::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AppliedTlsPolicy {
    pub kind: TlsPolicyType,
    /// Lines of the policy, or the TLSA records; empty if unavailable.
    pub lines: Vec<String>,
    /// Hosts that the policy names, or the host of the TLSA records.
    pub mx: Vec<String>,
}

impl AppliedTlsPolicy {
    /// No policy.
    pub fn no_policy() -> Self {
        Self { kind: TlsPolicyType::NoPolicyFound, lines: Vec::new(), mx: Vec::new() }
    }

    /// TLSA records that cannot be looked up, because DNSSEC validation fails on the way to the hosts.
    pub fn unverifiable_tlsa() -> Self {
        Self { kind: TlsPolicyType::Tlsa, ..Self::no_policy() }
    }

    /// An MTA-STS policy that could not be fetched.
    pub fn missing_sts_policy() -> Self {
        Self { kind: TlsPolicyType::Sts, ..Self::no_policy() }
    }
}

/// Details of a failed session.
#[crate::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsFailure {
    pub result: TlsResultType,
    /// The local address.
    pub sending_ip: Option<IpAddr>,
    /// The mail host; `None` if no host could be tried.
    pub mx_host: Option<DomainName>,
    /// The host's address.
    pub receiving_ip: Option<IpAddr>,
    /// Human-readable description.
    pub reason: String,
}

impl TlsFailure {
    /// Creates a failure at a host, or without a host.
    pub fn new(fault: &TlsFault, sending_ip: Option<IpAddr>, host: Option<(DomainName, IpAddr)>) -> Self {
        let reason = fault.reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect();
        let (mx_host, receiving_ip) = host.unzip();
        Self { result: fault.result, sending_ip, mx_host, receiving_ip, reason }
    }
}

/// Count of equal failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFailureDetail {
    pub failure: TlsFailure,
    pub sessions: u64,
}

/// Session counts of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPolicyCounts {
    pub applied: AppliedTlsPolicy,
    /// Sessions that met the policy.
    pub succeeded: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Failures by kind, up to `DETAILS_MAX` kinds.
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

/// Session counts of a domain's day.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DomainTlsCounts {
    /// Counts per policy, in order of first use.
    pub policies: Vec<TlsPolicyCounts>,
    /// Sessions under policies beyond `POLICIES_MAX`.
    #[serde(default, skip_serializing_if = "crate::row::is_default")]
    pub dropped: u64,
}

impl DomainTlsCounts {
    /// Counts a session; without a failure it was successful.
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

    /// Adds the counts of another part of the day.
    pub fn add(&mut self, other: &Self) {
        self.dropped += other.dropped;
        for count in &other.policies {
            let Some(policy) = self.policy(&count.applied) else {
                self.dropped += count.succeeded + count.failed;
                continue;
            };
            policy.succeeded += count.succeeded;
            let detailed: u64 = count.details.iter().map(|detail| detail.sessions).sum();
            policy.failed += count.failed.saturating_sub(detailed);
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

#[cfg(test)]
mod tests;
