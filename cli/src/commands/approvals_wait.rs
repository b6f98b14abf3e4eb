//! `approvals wait`: waits until a person decided a request that waits for approval, and it was carried out.

use std::time::Duration;

use clap::{Arg, Command};
use serde_json::Value;

use super::workflow::WorkflowRun;
use crate::arguments::option;
use crate::client::{ApiClient, Call};
use crate::duration;
use crate::error::CliError;
use crate::operation::OperationTable;
use mcp::arguments::encode;

const PAUSE: Duration = Duration::from_secs(2);
/// States that are not the last one.
const OPEN_STATUSES: [&str; 3] = ["pending", "approved", "executing"];

pub(super) fn command() -> Command {
    super::described("approvals wait", &["postrider approvals wait apr_01K9ZQ4Y8M3T5V7W2X6B0C1D9E --for 1h"])
        .arg(Arg::new("id").value_name("ID").required(true).help("The approval (`apr_…`)"))
        .arg(option("for", "TIME", "Maximum time to wait").default_value("24h"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let id = run.text("id").unwrap_or_default();
    let longest = duration::parse(run.text("for").unwrap_or("24h"))?;
    let late = || CliError::Failed(format!("{id} was not decided and carried out within {} s", longest.as_secs()));
    let approval = tokio::time::timeout(longest, wait(&client, id)).await.map_err(|_| late())??;
    let status = approval["status"].as_str().unwrap_or_default();
    match status {
        // A response that was too long, or deleted since, is not there.
        "executed" if approval["response"].is_object() => run.print(&approval["response"]),
        "executed" => run.print(&approval),
        "failed" => {
            let reason = approval["response"]["error"]["message"].as_str().or(approval["error_code"].as_str());
            Err(CliError::Failed(format!("the request was approved, but failed: {}", reason.unwrap_or_default())))
        }
        "interrupted" => {
            let text = "the request was interrupted while it was carried out: check whether it took effect";
            Err(CliError::Failed(text.to_owned()))
        }
        _ => Err(CliError::Failed(format!("the request was not approved: it is {status}"))),
    }
}

async fn wait(client: &ApiClient, id: &str) -> Result<Value, CliError> {
    loop {
        let answer = client.call(&Call::get(format!("/approvals/{}", encode(id)))).await?.json()?;
        let approval = &answer["approval"];
        if !OPEN_STATUSES.contains(&approval["status"].as_str().unwrap_or_default()) {
            return Ok(approval.clone());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
