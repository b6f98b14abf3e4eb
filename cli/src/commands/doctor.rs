//! `doctor`: checks the server, the key, the clock and the domains that a client needs.

use clap::Command;
use explain::domain::{DomainExplanation, DomainStanding, explain_domain};
use jiff::SignedDuration;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::account::read_account;
use crate::client::Call;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};

/// A clock that differs by more makes signatures of webhooks fail.
const CLOCK_DIFFERENCE_MAX_S: i64 = 60;

/// The server's program has a `doctor` of its own.
const NAME: &str = "postrider client doctor";

pub(super) fn command() -> Command {
    super::described("doctor", &[NAME])
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command().bin_name(NAME), arguments, table)?;
    let client = run.client()?;
    let mut checks = Vec::new();
    let started = tokio::time::Instant::now();
    let account = read_account(&client).await?;
    let took = started.elapsed().as_millis();
    checks.push(check("server", true, &format!("{} answers in {took} ms", client.base_url())));
    let key = match &account {
        Some(account) => format!("{} of {}", client.credential().hint(), account["email"].as_str().unwrap_or("?")),
        None => format!("{} is valid, for sending only", client.credential().hint()),
    };
    checks.push(check("key", true, &key));
    checks.extend(client.clock_difference().map(clock_check));
    match client.call(&Call::get("/domains?limit=100")).await {
        Ok(answer) => checks.extend(domain_checks(&answer.json()?)),
        Err(CliError::Api(error)) if error.status == 403 => {
            checks.push(check("domains", true, "not checked: the key is for sending only"));
        }
        Err(error) => return Err(error),
    }
    let failed = checks.iter().any(|check| check["ok"] == false);
    match run.format() {
        Format::Text => {
            output::print(&output::table(&checks, Some(&["check".to_owned(), "ok".to_owned(), "detail".to_owned()])))?
        }
        Format::Json | Format::JsonLines => output::print_json(&json!({"checks": checks}))?,
    }
    if failed { Err(CliError::Failed("a check failed".to_owned())) } else { Ok(()) }
}

fn check(name: &str, ok: bool, detail: &str) -> Value {
    json!({"check": name, "ok": ok, "detail": detail})
}

fn clock_check(ahead: SignedDuration) -> Value {
    let difference = ahead.as_secs().abs();
    let ok = difference <= CLOCK_DIFFERENCE_MAX_S;
    check("clock", ok, &format!("differs from the server's by {difference} s"))
}

fn domain_checks(page: &Value) -> Vec<Value> {
    let domains = page["domains"].as_array().cloned().unwrap_or_default();
    if domains.is_empty() {
        return vec![check("domains", false, "there is none: `postrider domains create --name example.com`")];
    }
    let one = |domain: &Value| {
        let standing = DomainStanding::deserialize(domain).unwrap_or_default();
        let DomainExplanation { can_send, findings, .. } = explain_domain(&standing, None);
        let name = &standing.name;
        let advice = if can_send {
            String::new()
        } else {
            format!(": `postrider domains get {name}` shows the records to publish")
        };
        let first =
            findings.first().filter(|_| !can_send).map(|finding| format!(" ({})", finding.what.trim_end_matches('.')));
        let detail = format!("{name} is {}{advice}{}", standing.status, first.unwrap_or_default());
        check("domain", can_send, &detail)
    };
    domains.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_that_cannot_send_says_why() {
        let record = json!({"purpose": "dkim", "type": "TXT", "name": "a._domainkey.example.com", "value": "v=DKIM1",
            "required": true, "status": "missing"});
        let domain = json!({"name": "example.com", "status": "unverified", "dkim_ready": true, "records": [record]});
        let checks = domain_checks(&json!({"domains": [domain]}));
        let expected = "example.com is unverified: `postrider domains get example.com` shows the records to publish \
                        (The record for signatures (DKIM) is missing)";
        assert_eq!((&checks[0]["ok"], &checks[0]["detail"]), (&json!(false), &json!(expected)));
        let verified = json!({"domains": [{"name": "example.com", "status": "verified", "dkim_ready": true}]});
        assert_eq!(domain_checks(&verified)[0]["detail"], "example.com is verified");
    }
}
