//! TLS reports received about verified domains (TLS-RPT, RFC 8460): opened, parsed and stored.
//!
//! ```text
//! message ─► author authenticated? ─► gzip or JSON, bounded ─► the stored fields ─► verified domains? ─►[ report ]
//! ```
//!
//! They are authenticated and bounded like DMARC reports ([`super::dmarc_reports`]); anything else is dropped. Only the
//! stored fields are parsed, since reporters differ in the others: the example of RFC 8460 B has `mx-host` as a string.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use mail_auth::report::tlsrpt as wire;
use message::address::DomainName;
use message::bounce::report_parts;
use message::inbound_message::InboundMessage;
use message::reply::truncate_diagnostic;
use message::tls_report::{ReceivedFailureDetail, ReceivedPolicyCounts, ReceivedTlsReport};
use serde::Deserialize;
use store::engine::{Batch, CommitError};

use super::dmarc_reports::authenticated_author;
use super::report_file::ReportFormat;
use super::{BounceError, BounceProcessor};

/// Longer messages are no reports.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Format of the files. A value of a genuine report takes some 30 bytes.
const FORMAT: ReportFormat = ReportFormat { prefixes: &[b"{"], bytes_max: 4 << 20, marks: &[(b",", 150_000)] };
/// Domains stored per report.
const DOMAINS_MAX: usize = 20;
/// Policies stored per domain, and failure details per policy.
const POLICIES_MAX: usize = 20;
const DETAILS_MAX: usize = 30;

/// The stored fields of a report (RFC 8460 4.4). A missing or null list is empty, and such a count is zero.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportFile {
    organization_name: Option<String>,
    date_range: wire::DateRange,
    report_id: Option<String>,
    policies: Option<Vec<TlsReportPolicy>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportPolicy {
    policy: TlsReportPolicyName,
    summary: TlsReportSummary,
    failure_details: Option<Vec<TlsReportFailure>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportPolicyName {
    policy_type: wire::PolicyType,
    policy_domain: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportSummary {
    total_successful_session_count: Option<u64>,
    total_failure_session_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportFailure {
    result_type: wire::ResultType,
    receiving_mx_hostname: Option<String>,
    failed_session_count: Option<u64>,
    failure_reason_code: Option<String>,
}

impl BounceProcessor {
    /// Stores a received report and returns the result for metrics.
    pub(super) async fn store_tls_report(&self, arrival: &InboundMessage) -> Result<&'static str, BounceError> {
        let Some(reporter) = authenticated_author(arrival) else { return Ok("untrusted") };
        let (message, received_at) = (arrival.message.clone(), arrival.received_at);
        let opened = {
            // The semaphore is never closed.
            let _permit = self.report_permits.acquire().await;
            tokio::task::spawn_blocking(move || open_report(&message)).await.ok().flatten()
        };
        let Some(report) = opened else { return Ok(super::UNRECOGNIZED) };
        let Some((empty, domains)) = group_by_domain(&report, reporter, received_at) else {
            return Ok(super::UNRECOGNIZED);
        };
        let mut result = "unknown";
        for (name, policies) in domains {
            if self.verified_domain(&name).await?.is_none() {
                continue;
            }
            let mut batch = Batch::intake();
            let received = ReceivedTlsReport { policies, ..empty.clone() };
            result = "changed_nothing";
            if store::tls_report_received::save(&self.services.store, &mut batch, &name, &received).await? {
                match self.services.store.commit(batch).await {
                    Ok(()) => result = "kept",
                    // The same report was stored concurrently.
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(result)
    }
}

/// Opens and parses the first report in a message.
fn open_report(message: &Bytes) -> Option<TlsReportFile> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    FORMAT.find(&report_parts::parse_parts(message), |json| serde_json::from_slice(json).ok())
}

/// Returns the report without policies, and its policies by domain. `None` if the id is empty or the period is not
/// plausible.
fn group_by_domain(
    report: &TlsReportFile,
    reporter: DomainName,
    received_at: Timestamp,
) -> Option<(ReceivedTlsReport, BTreeMap<DomainName, Vec<ReceivedPolicyCounts>>)> {
    let time = |seconds: i64| Timestamp::from_second(seconds).ok();
    let report_id = truncate_diagnostic(report.report_id.as_deref().unwrap_or_default().trim());
    let empty = ReceivedTlsReport {
        reporter,
        organization: truncate_diagnostic(report.organization_name.as_deref().unwrap_or_default().trim()),
        report_id,
        begins_at: time(report.date_range.start_datetime.to_timestamp())?,
        ends_at: time(report.date_range.end_datetime.to_timestamp())?,
        policies: Vec::new(),
        received_at,
    };
    if empty.report_id.is_empty() || !empty.has_plausible_range() {
        return None;
    }
    let mut domains: BTreeMap<DomainName, Vec<ReceivedPolicyCounts>> = BTreeMap::new();
    for policy in report.policies.iter().flatten() {
        let name = policy.policy.policy_domain.as_deref().unwrap_or_default();
        let Ok(name) = name.trim().trim_end_matches('.').parse::<DomainName>() else { continue };
        if domains.len() >= DOMAINS_MAX && !domains.contains_key(&name) {
            continue;
        }
        let policies = domains.entry(name).or_default();
        if policies.len() < POLICIES_MAX {
            policies.push(received_policy(policy));
        }
    }
    Some((empty, domains))
}

fn received_policy(policy: &TlsReportPolicy) -> ReceivedPolicyCounts {
    ReceivedPolicyCounts {
        kind: serialized_word(&policy.policy.policy_type),
        succeeded: policy.summary.total_successful_session_count.unwrap_or_default(),
        failed: policy.summary.total_failure_session_count.unwrap_or_default(),
        details: policy.failure_details.iter().flatten().take(DETAILS_MAX).map(received_failure).collect(),
    }
}

fn received_failure(failure: &TlsReportFailure) -> ReceivedFailureDetail {
    ReceivedFailureDetail {
        result: serialized_word(&failure.result_type),
        mx_host: failure.receiving_mx_hostname.as_deref().map(truncate_diagnostic),
        sessions: failure.failed_session_count.unwrap_or_default(),
        reason: failure.failure_reason_code.as_deref().map(truncate_diagnostic),
    }
}

/// Returns the serialized name of an enum value.
fn serialized_word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.to_lowercase(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
