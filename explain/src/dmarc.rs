//! Findings about a domain from the DMARC reports of receivers (RFC 7489 7.2).

use serde::{Deserialize, Serialize};

use crate::domain::{DomainFinding, FindingSeverity};

/// Fewer messages say nothing.
const MESSAGES_MIN: u64 = 20;
/// Share of our own messages that may fail, for example because they were forwarded.
const FAILED_PERCENT_MAX: u64 = 2;

/// The summary of the reports. Only the fields that the explanation needs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DmarcStanding {
    pub policy: Option<DmarcPolicy>,
    pub totals: DmarcCounts,
    pub sources: Vec<DmarcSource>,
}

/// The published policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DmarcPolicy {
    /// `none`, `quarantine` or `reject`.
    pub p: String,
}

/// Counts of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DmarcCounts {
    pub messages: u64,
    pub passed: u64,
    pub failed: u64,
}

/// Messages from one address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DmarcSource {
    pub ip: Option<String>,
    /// True if this service sends from the address.
    pub ours: bool,
    pub messages: u64,
    pub failed: u64,
}

/// Findings from the reports.
pub(crate) fn findings(dmarc: &DmarcStanding) -> Vec<DomainFinding> {
    let mut findings = Vec::new();
    let sum = |ours: bool, count: fn(&DmarcSource) -> u64| {
        dmarc.sources.iter().filter(|source| source.ours == ours).map(count).fold(0, u64::saturating_add)
    };
    let (sent, failed) = (sum(true, |source| source.messages), sum(true, |source| source.failed));
    if sent >= MESSAGES_MIN && failed.saturating_mul(100) > sent.saturating_mul(FAILED_PERCENT_MAX) {
        findings.push(DomainFinding {
            severity: FindingSeverity::Endangers,
            what: format!("Receivers reported that {failed} of {sent} messages from this service failed DMARC."),
            why: "Mail that fails is filed as spam or refused, depending on the policy.".into(),
            advice: "Check the records for signatures (DKIM) and bounces (return path). A few failures are normal, \
                 because forwarded mail can fail too."
                .into(),
            record: None,
            found: Vec::new(),
        });
    }
    let foreign = sum(false, |source| source.failed);
    if foreign >= MESSAGES_MIN {
        findings.push(DomainFinding {
            severity: FindingSeverity::Improves,
            what: format!("Other hosts sent {foreign} messages in the name of this domain, and they failed DMARC."),
            why: "Either someone is forging the domain, or another service of yours is not set up correctly.".into(),
            advice: "Look at the sources in the DMARC summary. Set up your own services correctly; to stop forgery, \
                tighten the policy step by step to `quarantine` and `reject`."
                .into(),
            record: None,
            found: Vec::new(),
        });
    }
    let is_open = dmarc.policy.as_ref().is_some_and(|policy| policy.p == "none");
    let totals = dmarc.totals;
    if is_open && totals.messages >= MESSAGES_MIN && totals.failed.saturating_mul(100) <= totals.messages {
        findings.push(DomainFinding {
            severity: FindingSeverity::Improves,
            what: "The DMARC policy is `none`: receivers accept mail that forges this domain.".into(),
            why: "At least 99 of 100 messages pass, so a stricter policy would affect almost none of your mail.".into(),
            advice: "Set `p=quarantine` in the DMARC record, and `p=reject` a few weeks later.".into(),
            record: None,
            found: Vec::new(),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(summary: Value) -> Vec<FindingSeverity> {
        findings(&serde_json::from_value(summary).unwrap()).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn failures_of_our_own_mail_and_forgery_are_told_apart() {
        let source =
            |ours: bool, messages: u64, failed: u64| json!({"ours": ours, "messages": messages, "failed": failed});
        assert_eq!(found(json!({})), []);
        assert_eq!(found(json!({"sources": [source(true, 1_000, 20)]})), []);
        assert_eq!(found(json!({"sources": [source(true, 1_000, 21)]})), [FindingSeverity::Endangers]);
        assert_eq!(
            found(json!({"sources": [source(false, 900, 900), source(true, 10, 10)]})),
            [FindingSeverity::Improves]
        );
        let open = json!({"policy": {"p": "none"}, "totals": {"messages": 500, "passed": 499, "failed": 1}});
        assert_eq!(found(open), [FindingSeverity::Improves]);
        assert_eq!(found(json!({"policy": null, "totals": {"messages": 500, "failed": 1}})), []);
    }
}
