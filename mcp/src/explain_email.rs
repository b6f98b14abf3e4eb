//! `explain_email`: what happened to an email and why, what the far end said, and what to do.

use explain::explanation::{NextStep, RecipientDelivery, explain};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::arguments::encode;
use crate::foreign_text::Fence;
use crate::tool::{ToolError, ToolResult};
use crate::tool_session::{ReadResult, ToolSession, argument_refusal, result};

/// Recipients that are explained.
const RECIPIENTS_MAX: usize = 50;
/// The latest attempts that are shown.
const ATTEMPTS_MAX: usize = 10;
/// Longest text of another host.
const REPLY_CHARS_MAX: usize = 500;

pub(crate) async fn call(session: &ToolSession<'_>, arguments: &Map<String, Value>) -> Result<ToolResult, ToolError> {
    let Some(id) = arguments.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        return Ok(argument_refusal("`id` is missing"));
    };
    let answer = match session.read("get_email", format!("/emails/{}", encode(id))).await? {
        ReadResult::Value(answer) => answer,
        ReadResult::Failed(result) => return Ok(result),
    };
    let target = format!("/emails/{}/attempts?limit={ATTEMPTS_MAX}", encode(id));
    // The attempts add details; without them the explanation stands.
    let attempts = match session.read("list_email_attempts", target).await? {
        ReadResult::Value(page) => page["attempts"].as_array().cloned().unwrap_or_default(),
        ReadResult::Failed(_) => Vec::new(),
    };
    let mut fence = Fence::default();
    let email = &answer["email"];
    let all = email["recipients"].as_array().map_or(&[][..], Vec::as_slice);
    let (shown, now) = (all.iter().take(RECIPIENTS_MAX), session.now());
    let recipients: Vec<Value> = shown.map(|recipient| explained(recipient, email, now, &mut fence)).collect();
    let note = (all.len() > RECIPIENTS_MAX).then(|| {
        format!("Only {RECIPIENTS_MAX} of {} recipients are explained; the others may have problems too.", all.len())
    });
    let attempts: Vec<Value> = attempts.iter().map(|attempt| summarized(attempt, &mut fence)).collect();
    let value = json!({
        "id": email["id"], "status": email["status"], "created_at": email["created_at"],
        "from": mark(&email["from"], &mut fence), "subject": mark(&email["subject"], &mut fence),
        "recipients": recipients, "attempts": attempts,
    });
    Ok(result(note, &fence, value))
}

/// Explains a recipient in the words of the command line and the dashboard.
fn explained(recipient: &Value, email: &Value, now: Timestamp, fence: &mut Fence) -> Value {
    let standing = RecipientDelivery::deserialize(recipient).unwrap_or_default();
    let explanation = explain(&standing, email["last_event"].as_str().unwrap_or_default(), now);
    let said =
        explanation.last_words.as_ref().map(|words| format!("{}: {}", words.lead(), fence.enclose(&cut(words.text()))));
    let next = explanation.next_step.map(|step| next_tools(step, &standing, email)).unwrap_or_else(|| json!([]));
    json!({
        "email": fence.mark(&standing.email), "status": standing.status, "standing": explanation.standing,
        "what_happened": explanation.place, "why": explanation.reason, "far_end_said": said,
        "next_try_at": explanation.next_try_at, "what_to_do": explanation.advice, "next_tools": next,
    })
}

/// Tools that carry the advice out.
fn next_tools(step: NextStep, standing: &RecipientDelivery, email: &Value) -> Value {
    let id = email["id"].as_str().unwrap_or_default();
    match step {
        // The API refuses to resend what only the recipient may read.
        NextStep::Resend if email["confidential"] == true => json!([]),
        NextStep::Resend => json!([format!("resend_email id={id} (by call_operation)")]),
        NextStep::ShowSuppression if is_plain(&standing.email) => {
            json!([format!("get_suppression id_or_email={} (by call_operation)", standing.email)])
        }
        NextStep::ShowSuppression => json!(["check_suppressions"]),
        NextStep::Reschedule => {
            json!([format!("update_email id={id} (by call_operation)"), format!("cancel_email id={id}")])
        }
        NextStep::CheckDomain => match sender_domain(email) {
            Some(domain) => json!([format!("diagnose_domain id_or_name={domain}")]),
            None => json!(["diagnose_domain"]),
        },
    }
}

fn is_plain(word: &str) -> bool {
    word.len() <= 100 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@._-+".contains(&byte))
}

fn sender_domain(email: &Value) -> Option<&str> {
    let address = email["from"].as_str()?;
    let domain = address.rsplit_once('@')?.1.trim_end_matches('>');
    is_plain(domain).then_some(domain)
}

fn summarized(attempt: &Value, fence: &mut Fence) -> Value {
    let reply = attempt["smtp_code"].as_u64().map(|code| {
        let enhanced = attempt["enhanced_code"].as_str().map(|code| format!("{} ", cut(code))).unwrap_or_default();
        format!("{code} {enhanced}{}", attempt["response"].as_str().unwrap_or_default())
    });
    let tls = match attempt["tls"].as_object() {
        Some(tls) => json!({"version": tls.get("version"), "verified": tls.get("verified")}),
        None => Value::Null,
    };
    json!({
        "n": attempt["n"], "at": attempt["created_at"], "recipient": mark(&attempt["recipient"], fence),
        "host": mark(&attempt["mx_host"], fence), "reply": reply.map(|reply| fence.enclose(&cut(&reply))),
        "error": attempt["error"].as_str().map(|error| fence.mark(&cut(error))), "phase": attempt["phase"],
        "tls": tls, "next_attempt_at": attempt["next_attempt_at"],
    })
}

fn mark(value: &Value, fence: &mut Fence) -> Value {
    value.as_str().map(|text| fence.mark(&cut(text)).into()).unwrap_or_default()
}

fn cut(text: &str) -> String {
    text.chars().take(REPLY_CHARS_MAX).collect()
}
