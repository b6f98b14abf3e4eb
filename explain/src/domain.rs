//! How a sending domain stands: what keeps it from sending, what endangers its mail, and what to change in the DNS.
//!
//! It reads `GET /domains/{id}`, and the DMARC summary of `GET /domains/{id}/dmarc` if there is one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dmarc::{self, DmarcStanding};
use crate::explanation::utc;

/// A domain as the API shows it. Only the fields that the explanation needs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DomainStanding {
    pub name: String,
    pub status: String,
    pub dkim_ready: bool,
    pub records: Vec<RecordStanding>,
    pub degraded_since: Option<Timestamp>,
    pub last_checked_at: Option<Timestamp>,
}

/// A record to publish, with the result of its last check.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RecordStanding {
    pub purpose: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    pub value: String,
    pub priority: Option<u32>,
    pub required: bool,
    pub status: String,
    pub found: Vec<String>,
    /// The problem and how to fix it, in the words of the check.
    pub error: Option<String>,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Nothing can be sent until it is corrected.
    Blocks,
    /// Mail is refused or filed as spam, or soon will be.
    Endangers,
    /// It would be better otherwise.
    Improves,
}

/// Something about a domain that should be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainFinding {
    pub severity: FindingSeverity,
    /// A sentence: what is wrong.
    pub what: String,
    /// A sentence: what it is good for, or what follows from it.
    pub why: String,
    /// Sentences: what to do.
    pub advice: String,
    /// The record to publish.
    pub record: Option<RecordToPublish>,
    /// The values that stand in the DNS instead.
    pub found: Vec<String>,
}

/// A record to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordToPublish {
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// The explanation of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainExplanation {
    pub can_send: bool,
    /// Sentences: how it stands.
    pub statement: String,
    /// The changes to make, the most serious first.
    pub findings: Vec<DomainFinding>,
}

/// Explains how a domain stands.
pub fn explain_domain(domain: &DomainStanding, dmarc: Option<&DmarcStanding>) -> DomainExplanation {
    let can_send = domain.status == "verified";
    let mut findings: Vec<DomainFinding> =
        domain.records.iter().filter_map(|record| explain_record(record, can_send)).collect();
    if !domain.dkim_ready {
        findings.push(DomainFinding {
            severity: if can_send { FindingSeverity::Endangers } else { FindingSeverity::Blocks },
            what: "This service cannot sign mail from this domain at the moment.".into(),
            why: "Most receivers distrust mail without a signature (DKIM).".into(),
            advice: "Publish the DKIM record, then check the domain again.".into(),
            record: None,
            found: Vec::new(),
        });
    }
    findings.extend(dmarc.into_iter().flat_map(dmarc::findings));
    findings.sort_by_key(|finding| finding.severity);
    DomainExplanation { can_send, statement: statement(domain, can_send, &findings), findings }
}

fn statement(domain: &DomainStanding, can_send: bool, findings: &[DomainFinding]) -> String {
    let name = &domain.name;
    // Records that were never checked are no problem yet.
    let is_unchecked = domain.last_checked_at.is_none()
        && findings.iter().all(|finding| finding.severity == FindingSeverity::Improves);
    let mut sentences = vec![match (can_send, findings.is_empty()) {
        (true, _) if is_unchecked => format!("{name} can send."),
        (true, true) => format!("{name} can send, and all its records are correct."),
        (true, false) => format!("{name} can send, but has problems."),
        (false, true) => format!("{name} cannot send yet. Its records were found, so check it again."),
        (false, false) => format!("{name} cannot send yet."),
    }];
    if let Some(since) = domain.degraded_since {
        let since = utc(since);
        sentences.push(format!(
            "A required record has been missing since {since}. 72 hours after that time, the domain can \
                no longer send."
        ));
    }
    sentences.push(match domain.last_checked_at {
        Some(at) => format!("Its records were last checked on {}.", utc(at)),
        None => "Its records have not been checked yet.".into(),
    });
    sentences.join(" ")
}

/// Explains what is wrong with a record of a domain; `None` if it was found.
pub fn explain_record(record: &RecordStanding, can_send: bool) -> Option<DomainFinding> {
    let (title, why) = purpose(&record.purpose);
    let place = format!("{} record at {}", record.kind, record.name);
    let (what, advice) = match record.status.as_str() {
        "verified" => return None,
        "missing" => (
            format!("The record for {title} is missing."),
            format!("Publish the {place} with the value shown, then check the domain again."),
        ),
        "mismatch" => (
            format!("The record for {title} has the wrong value."),
            format!("Change the {place} to the value shown, then check the domain again."),
        ),
        "conflict" => (
            format!("The record for {title} conflicts with another record."),
            format!("Remove or merge the other record at {}, then check the domain again.", record.name),
        ),
        _ => (format!("The record for {title} has not been checked yet."), "Check the domain now.".to_owned()),
    };
    let advice = record.error.as_ref().map_or(advice.clone(), |error| format!("{} {advice}", sentence(error)));
    let is_wrong = matches!(record.status.as_str(), "missing" | "mismatch" | "conflict");
    let severity = match (record.required, can_send) {
        (true, false) => FindingSeverity::Blocks,
        (true, true) if is_wrong => FindingSeverity::Endangers,
        _ => FindingSeverity::Improves,
    };
    Some(DomainFinding {
        severity,
        what,
        why: why.into(),
        advice,
        record: Some(RecordToPublish {
            kind: record.kind.clone(),
            name: record.name.clone(),
            value: record.value.clone(),
            priority: record.priority,
        }),
        found: record.found.clone(),
    })
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// A sentence: what a record of this purpose is good for.
pub fn purpose_sentence(word: &str) -> &'static str {
    purpose(word).1
}

/// The purpose of a record: its name, and a sentence.
fn purpose(word: &str) -> (&'static str, &'static str) {
    match word {
        "ownership" => ("ownership", "It proves that the domain is yours."),
        "dkim" => ("signatures (DKIM)", "Receivers use it to check that the mail is yours and unchanged."),
        "return_path" => (
            "bounces (return path)",
            "Bounces come back through it, and it makes SPF count for the \
         domain.",
        ),
        "spf" => ("senders (SPF)", "It lists the hosts that may send mail for the domain."),
        "dmarc" => ("the policy (DMARC)", "It tells receivers what to do with mail that is not proven to be yours."),
        "inbound" => ("received mail (MX)", "It directs mail for the domain to this service."),
        "tracking" => ("tracking links", "It makes the links in your mail use your own host name."),
        _ => ("the service", "The service needs it."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn explained(domain: Value) -> DomainExplanation {
        explain_domain(&serde_json::from_value(domain).unwrap(), None)
    }

    fn record(purpose: &str, required: bool, status: &str) -> Value {
        json!({
            "purpose": purpose, "type": "TXT", "name": format!("{purpose}.example.com"), "value": "v=right",
            "priority": null, "required": required, "status": status, "found": ["v=wrong"], "error": null,
        })
    }

    #[test]
    fn a_domain_without_faults_has_no_findings() {
        let explanation = explained(json!({
            "name": "example.com", "status": "verified", "dkim_ready": true, "last_checked_at": "2026-01-01T10:00:00Z",
            "records": [record("dkim", true, "verified"), record("spf", true, "verified")],
        }));
        let expected = "example.com can send, and all its records are correct. Its records were last checked on 1 Jan \
                        2026, 10:00 UTC.";
        assert_eq!((explanation.can_send, explanation.statement.as_str()), (true, expected));
        assert_eq!(explanation.findings, []);
    }

    #[test]
    fn a_domain_that_was_never_checked_has_no_problems() {
        let mut domain = json!({
            "name": "example.com", "status": "verified", "dkim_ready": true, "last_checked_at": null,
            "records": [record("dkim", true, "pending"), record("tracking", false, "pending")],
        });
        let expected = "example.com can send. Its records have not been checked yet.";
        assert_eq!(explained(domain.clone()).statement, expected);
        domain["dkim_ready"] = false.into();
        assert!(explained(domain).statement.starts_with("example.com can send, but has problems."));
    }

    #[test]
    fn required_records_come_first() {
        let explanation = explained(json!({
            "name": "example.com", "status": "unverified", "dkim_ready": true,
            "records": [record("tracking", false, "missing"), record("spf", true, "mismatch")],
        }));
        assert!(!explanation.can_send);
        let [spf, tracking] = explanation.findings.as_slice() else { panic!("{explanation:?}") };
        assert_eq!((spf.severity, tracking.severity), (FindingSeverity::Blocks, FindingSeverity::Improves));
        assert_eq!(spf.what, "The record for senders (SPF) has the wrong value.");
        assert!(spf.advice.starts_with("Change the TXT record at spf.example.com to the value shown"));
        assert_eq!(
            (spf.record.as_ref().unwrap().value.as_str(), spf.found.as_slice()),
            ("v=right", &["v=wrong".into()][..])
        );
    }

    #[test]
    fn every_purpose_and_status_is_explained_in_sentences() {
        for purpose in ["ownership", "dkim", "return_path", "spf", "dmarc", "inbound", "tracking", "later"] {
            for status in ["pending", "missing", "mismatch", "conflict", "later"] {
                let mut one = record(purpose, true, status);
                one["error"] = "two records begin with v=spf1".into();
                let explanation = explained(json!({
                    "name": "a.example", "status": "verified", "degraded_since": "2026-01-01T10:00:00Z", "records": [one],
                }));
                assert!(explanation.statement.contains("72 hours"));
                assert_eq!(explanation.findings.len(), 2);
                for finding in explanation.findings {
                    for text in [&finding.what, &finding.why, &finding.advice] {
                        assert!(text.ends_with('.'), "{text}");
                    }
                    let is_known = finding.record.is_none() || matches!(status, "missing" | "mismatch" | "conflict");
                    assert_eq!(finding.severity == FindingSeverity::Endangers, is_known, "{status}");
                }
            }
        }
    }
}
