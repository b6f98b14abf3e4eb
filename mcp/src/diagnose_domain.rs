//! `diagnose_domain`: whether a domain can send, what is wrong with its records, and what to change.

use explain::dmarc::DmarcStanding;
use explain::domain::{DomainFinding, DomainStanding, explain_domain};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::arguments::encode;
use crate::foreign_text::Fence;
use crate::tool::{ToolError, ToolResult};
use crate::tool_session::{ReadResult, ToolSession, argument_refusal, result};

/// Values of the DNS that are shown of a finding.
const FOUND_MAX: usize = 10;
/// Longest value that is shown: a DKIM key has some 400 characters.
const VALUE_CHARS_MAX: usize = 1_000;

pub(crate) async fn call(session: &ToolSession<'_>, arguments: &Map<String, Value>) -> Result<ToolResult, ToolError> {
    let id = arguments.get("id_or_name").and_then(Value::as_str).filter(|id| !matches!(*id, "" | "." | ".."));
    let Some(id) = id else { return Ok(argument_refusal("`id_or_name` is missing")) };
    let answer = match session.read("get_domain", format!("/domains/{}", encode(id))).await? {
        ReadResult::Value(answer) => answer,
        ReadResult::Failed(result) => return Ok(result),
    };
    let standing = DomainStanding::deserialize(&answer["domain"]).unwrap_or_default();
    // Reports add to the diagnosis; without them it stands.
    let reports = match session.read("get_domain_dmarc", format!("/domains/{}/dmarc", encode(id))).await? {
        ReadResult::Value(answer) => DmarcStanding::deserialize(&answer["dmarc"]).ok(),
        ReadResult::Failed(_) => None,
    };
    let explanation = explain_domain(&standing, reports.as_ref());
    let mut fence = Fence::default();
    let findings: Vec<Value> = explanation.findings.iter().map(|finding| shown(finding, &mut fence)).collect();
    let dmarc = reports.filter(|reports| reports.totals.messages > 0).map(|reports| {
        let policy = reports.policy.as_ref().map(|policy| fence.mark(&policy.p));
        json!({"days": 30, "policy": policy, "totals": reports.totals})
    });
    let value = json!({
        "id": answer["domain"]["id"], "name": standing.name, "status": standing.status,
        "can_send": explanation.can_send, "summary": explanation.statement, "findings": findings, "dmarc": dmarc,
    });
    Ok(result(None, &fence, value))
}

fn shown(finding: &DomainFinding, fence: &mut Fence) -> Value {
    let found: Vec<String> = finding.found.iter().take(FOUND_MAX).map(|value| fence.mark(&cut(value))).collect();
    json!({
        "severity": finding.severity, "what": finding.what, "why": finding.why, "what_to_do": finding.advice,
        "publish": finding.record, "found": found,
    })
}

fn cut(text: &str) -> String {
    text.chars().take(VALUE_CHARS_MAX).collect()
}
