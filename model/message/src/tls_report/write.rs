//! An outgoing TLS report: its JSON (RFC 8460 4.4), and the message that carries it (RFC 8460 5.3).

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{Day, DomainTlsCounts, TlsFailureDetail, TlsPolicyCounts, TlsPolicyType, TlsResultType};
use crate::address::{Address, DomainName};
use crate::compose::wrapped_base64;

/// Media type of a compressed report (RFC 8460 6.5).
pub const MEDIA_TYPE: &str = "application/tlsrpt+gzip";

/// Contents of a report, and its author.
#[derive(Debug, Clone)]
pub struct OutgoingTlsReport<'a> {
    pub domain: &'a DomainName,
    pub day: Day,
    pub counts: &'a DomainTlsCounts,
    /// Contact address for questions.
    pub contact: &'a Address,
    /// The submitting domain.
    pub submitter: &'a DomainName,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TlsReportJson<'a> {
    organization_name: &'a str,
    date_range: DateRangeJson,
    contact_info: String,
    report_id: String,
    policies: Vec<PolicyJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct DateRangeJson {
    start_datetime: String,
    end_datetime: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PolicyJson<'a> {
    policy: PolicyDescriptionJson<'a>,
    summary: SummaryJson,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failure_details: Vec<FailureDetailsJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PolicyDescriptionJson<'a> {
    policy_type: TlsPolicyType,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    policy_string: &'a [String],
    policy_domain: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    mx_host: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SummaryJson {
    total_successful_session_count: u64,
    total_failure_session_count: u64,
}

#[crate::row::omit_none]
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FailureDetailsJson<'a> {
    result_type: TlsResultType,
    sending_mta_ip: Option<IpAddr>,
    receiving_mx_hostname: Option<&'a str>,
    receiving_ip: Option<IpAddr>,
    failed_session_count: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    failure_reason_code: &'a str,
}

fn format_second(at: Timestamp) -> String {
    format!("{at:.0}")
}

fn policy<'a>(count: &'a TlsPolicyCounts, domain: &'a DomainName) -> PolicyJson<'a> {
    let failed = |detail: &'a TlsFailureDetail| FailureDetailsJson {
        result_type: detail.failure.result,
        sending_mta_ip: detail.failure.sending_ip,
        receiving_mx_hostname: detail.failure.mx_host.as_ref().map(DomainName::as_str),
        receiving_ip: detail.failure.receiving_ip,
        failed_session_count: detail.sessions,
        failure_reason_code: &detail.failure.reason,
    };
    PolicyJson {
        policy: PolicyDescriptionJson {
            policy_type: count.applied.kind,
            policy_string: &count.applied.lines,
            policy_domain: domain.as_str(),
            mx_host: &count.applied.mx,
        },
        summary: SummaryJson {
            total_successful_session_count: count.succeeded,
            total_failure_session_count: count.failed,
        },
        failure_details: count.details.iter().map(failed).collect(),
    }
}

impl OutgoingTlsReport<'_> {
    /// Report id, unique per domain and day, so that a receiver can detect duplicates.
    pub fn report_id(&self) -> String {
        format!("{}.{}@{}", self.day, self.domain, self.submitter)
    }

    /// Last second of the day.
    fn ends_at(&self) -> Timestamp {
        self.day.ends_at().checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX)
    }

    /// File name (RFC 8460 5.1).
    pub fn file_name(&self) -> String {
        let (begin, end) = (self.day.begins_at().as_second(), self.ends_at().as_second());
        format!("{}!{}!{begin}!{end}.json.gz", self.submitter, self.domain)
    }

    /// The report in JSON. The organization name is the domain of the contact.
    pub fn to_json(&self) -> Vec<u8> {
        let wire = TlsReportJson {
            organization_name: self.contact.domain().as_str(),
            date_range: DateRangeJson {
                start_datetime: format_second(self.day.begins_at()),
                end_datetime: format_second(self.ends_at()),
            },
            contact_info: self.contact.to_string(),
            report_id: self.report_id(),
            policies: self.counts.policies.iter().map(|count| policy(count, self.domain)).collect(),
        };
        // These types serialize without errors.
        serde_json::to_vec(&wire).unwrap_or_default()
    }

    /// Builds the message with the gzip-compressed report. It does not require TLS (RFC 8460 3; RFC 8689 5), because it
    /// may report the very failure that would block it.
    pub fn to_message(&self, from: &Address, to: &Address, packed: &[u8]) -> Vec<u8> {
        let Self { domain, submitter, contact, .. } = self;
        let (id, file) = (self.report_id(), self.file_name());
        // Contains characters outside the Base64 alphabet, so the attachment cannot contain it.
        let boundary = format!("=_tlsrpt_{}_", self.day.begins_at().as_second());
        let lines = wrapped_base64(packed);
        format!(
            "From: <{from}>\r\n\
             To: <{to}>\r\n\
             Subject: Report Domain: {domain} Submitter: {submitter}\r\n Report-ID: <{id}>\r\n\
             TLS-Report-Domain: {domain}\r\n\
             TLS-Report-Submitter: {submitter}\r\n\
             TLS-Required: No\r\n\
             Auto-Submitted: auto-generated\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type=\"tlsrpt\";\r\n boundary=\"{boundary}\"\r\n\
             \r\n\
             --{boundary}\r\n\
             Content-Type: text/plain; charset=us-ascii\r\n\
             \r\n\
             TLS report for the mail hosts of {domain} on {day} (UTC),\r\n\
             sent by {submitter} (RFC 8460).\r\n\
             Questions: {contact}\r\n\
             \r\n\
             --{boundary}\r\n\
             Content-Type: {MEDIA_TYPE}\r\n\
             Content-Transfer-Encoding: base64\r\n\
             Content-Disposition: attachment;\r\n filename=\"{file}\"\r\n\
             \r\n\
             {lines}\
             --{boundary}--\r\n",
            day = self.day,
        )
        .into_bytes()
    }
}
