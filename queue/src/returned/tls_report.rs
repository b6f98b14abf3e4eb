//! Reports of others about how TLS went with domains of ours (RFC 8460): opened, parsed, kept.
//!
//! ```text
//! message ─► sent by whom it says? ─► gzip or JSON, bounded ─► mail-auth's parser ─► domains of ours? ─►[ report ]
//! ```
//!
//! Believed, and bounded, as reports of DMARC are ([`super::aggregate`]); what is none is dropped.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Name;
use mail::arrival::Arrival;
use mail::returned::parts;
use mail::suppression::shortened;
use mail::tls_report::{Heard, HeardDetail, HeardPolicy};
use mail_auth::report::tlsrpt::{self as wire, TlsReport};
use store::engine::{Batch, CommitError};

use super::aggregate::author_that_stands_behind;
use super::report_file::ReportFormat;
use super::{Returned, ReturnedError};

/// A message that is longer is no report.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// The files. A value of an honest report takes some 30 bytes.
const FORMAT: ReportFormat =
    ReportFormat { beginnings: &[b"{"], bytes_max: 4 << 20, marks: &[(b",", 150_000)] };
/// Domains of one report.
const DOMAINS_MAX: usize = 20;
/// Policies of one domain, and failures under one policy, that are kept.
const POLICIES_MAX: usize = 20;
const DETAILS_MAX: usize = 30;

impl Returned {
    /// Keeps a report that came in, and says what was made of it.
    pub(super) async fn keep_tls_report(&self, arrival: &Arrival) -> Result<&'static str, ReturnedError> {
        let Some(reporter) = author_that_stands_behind(arrival) else { return Ok("untrusted") };
        let (message, received_at) = (arrival.message.clone(), arrival.received_at);
        let opened = {
            // Closed never.
            let _place = self.opening.acquire().await;
            tokio::task::spawn_blocking(move || open(&message)).await.ok().flatten()
        };
        let Some(report) = opened else { return Ok(super::NOTHING) };
        let Some((empty, domains)) = read(&report, reporter, received_at) else { return Ok(super::NOTHING) };
        let mut said = "unknown";
        for (name, policies) in domains {
            if self.domain_of(&name).await?.is_none() {
                continue;
            }
            let mut batch = Batch::intake();
            let heard = Heard { policies, ..empty.clone() };
            said = "changed_nothing";
            if store::tls_heard::keep(&self.worker.store, &mut batch, &name, &heard).await? {
                match self.worker.store.commit(batch).await {
                    Ok(()) => said = "kept",
                    // The same, at the same time.
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(said)
    }
}

/// Opens the first report in a message.
fn open(message: &Bytes) -> Option<TlsReport> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    FORMAT.find(&parts::of(message), |json| TlsReport::parse_json(json).ok())
}

/// What it says, by domain, and all that is the same for each.
fn read(
    report: &TlsReport,
    reporter: Name,
    received_at: Timestamp,
) -> Option<(Heard, BTreeMap<Name, Vec<HeardPolicy>>)> {
    let time = |seconds: i64| Timestamp::from_second(seconds).ok();
    let report_id = shortened(report.report_id.trim());
    let empty = Heard {
        reporter,
        organization: shortened(report.organization_name.as_deref().unwrap_or_default().trim()),
        report_id,
        begins_at: time(report.date_range.start_datetime.to_timestamp())?,
        ends_at: time(report.date_range.end_datetime.to_timestamp())?,
        policies: Vec::new(),
        received_at,
    };
    if empty.report_id.is_empty() || !empty.is_of_a_sane_time() {
        return None;
    }
    let mut domains: BTreeMap<Name, Vec<HeardPolicy>> = BTreeMap::new();
    for one in &report.policies {
        let Ok(name) = one.policy.policy_domain.trim().trim_end_matches('.').parse::<Name>() else {
            continue;
        };
        if domains.len() >= DOMAINS_MAX && !domains.contains_key(&name) {
            continue;
        }
        let policies = domains.entry(name).or_default();
        if policies.len() < POLICIES_MAX {
            policies.push(policy(one));
        }
    }
    Some((empty, domains))
}

fn policy(one: &wire::Policy) -> HeardPolicy {
    HeardPolicy {
        kind: word(&one.policy.policy_type),
        succeeded: one.summary.total_success.into(),
        failed: one.summary.total_failure.into(),
        details: one.failure_details.iter().take(DETAILS_MAX).map(detail).collect(),
    }
}

fn detail(one: &wire::FailureDetails) -> HeardDetail {
    HeardDetail {
        result: word(&one.result_type),
        mx_host: one.receiving_mx_hostname.as_deref().map(shortened),
        sessions: one.failed_session_count.into(),
        reason: one.failure_reason_code.as_deref().map(shortened),
    }
}

/// The word that stands for it in reports.
fn word(of: &impl serde::Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(word)) => word.to_lowercase(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
