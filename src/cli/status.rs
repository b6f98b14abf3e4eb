//! `postrider status`: prints the health on one screen. The exit code is 0, or 1 if there is a problem.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::queue::count_with_noun;
use super::table::list;
use crate::admin::{AdminError, AdminRequest};

/// Requests the status and prints it.
pub(super) fn run(as_json: bool, send_request: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>) -> ExitCode {
    let (text, is_ok) = match send_request(&AdminRequest::Status) {
        Ok(result) => {
            let text = if as_json { format!("{result}\n") } else { format_status(&result) };
            (text, result["ok"] == true)
        }
        Err(error) if as_json => (format!("{}\n", json!({"error": error})), false),
        Err(error) => {
            eprintln!("postrider: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Stdout may be closed (`… | head`).
    let _ = std::io::stdout().write_all(text.as_bytes());
    if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Formats the status. Removes control characters of the server's texts.
fn format_status(result: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let gib = |value: &Value| format!("{:.1} GiB", value.as_f64().unwrap_or(0.0) / f64::from(1 << 30));
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{name:<12} {text}");
    };
    let problems = list(result, "problems");
    let state = match problems.len() {
        0 => "ok".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    line("status", &format!("{state} ({}, postrider {})", text(&result["hostname"]), text(&result["version"])));
    problems.iter().for_each(|problem| line("problem", &text(problem)));
    for listener in list(result, "listeners") {
        let open = if listener["open"] == true { "open" } else { "not open" };
        line("listener", &format!("{} {} {open}", text(&listener["name"]), text(&listener["address"])));
    }
    let queue = &result["queue"];
    if queue.is_object() {
        let more = |field: &str| if queue[field] == true { "at least " } else { "" };
        line(
            "queue",
            &format!(
                "{}{}, {}{} due, {} held, oldest {}",
                more("has_more"),
                count_with_noun(&queue["recipients"], "recipient"),
                more("has_more_due"),
                text(&queue["due"]),
                text(&queue["held"]),
                text(&queue["oldest_age"])
            ),
        );
        if let Some(note) = queue["note"].as_str() {
            line("note", note);
        }
    }
    let dns = &result["dns"];
    let answers = if dns["answers"] == true { "answers in" } else { "no response after" };
    line("dns", &format!("{answers} {} ms", text(&dns["took_ms"])));
    if result["disk"].is_object() {
        line("disk", &format!("{} of {} free", gib(&result["disk"]["free_bytes"]), gib(&result["disk"]["bytes"])));
    }
    match &result["certificate"] {
        Value::Null => line("certificate", "none"),
        certificate => line(
            "certificate",
            &format!("valid until {} ({})", text(&certificate["expires_at"]), text(&certificate["source"])),
        ),
    }
    let hour = &result["last_hour"];
    let counts = ["accepted", "delivered", "deferred", "bounced", "failed", "received"];
    let counts = counts.map(|name| format!("{} {name}", text(&hour[name])));
    line("last hour", &counts.join(", "));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_one_screen() {
        let result = json!({
            "ok": false, "problems": ["DNS is not responding: timeout"], "hostname": "mx1.example.net",
            "version": "0.1.0", "listeners": [{"name": "mx", "address": "[::]:25", "open": true}],
            "queue": {"recipients": 100_000, "has_more": true, "held": 1, "due": 2, "has_more_due": true, "oldest_age": "2h03m"},
            "dns": {"answers": false, "took_ms": 5_000}, "disk": {"free_bytes": 1_u64 << 31, "bytes": 1_u64 << 32},
            "certificate": {"source": "acme", "expires_at": "2027-01-01T00:00:00Z"},
            "last_hour": {"accepted": 7, "delivered": 6, "deferred": 5, "bounced": 4, "failed": 3, "received": 2},
        });
        assert_eq!(
            format_status(&result),
            "status       1 problem (mx1.example.net, postrider 0.1.0)\n\
             problem      DNS is not responding: timeout\n\
             listener     mx [::]:25 open\n\
             queue        at least 100000 recipients, at least 2 due, 1 held, oldest 2h03m\n\
             dns          no response after 5000 ms\n\
             disk         2.0 GiB of 4.0 GiB free\n\
             certificate  valid until 2027-01-01T00:00:00Z (acme)\n\
             last hour    7 accepted, 6 delivered, 5 deferred, 4 bounced, 3 failed, 2 received\n"
        );
    }
}
