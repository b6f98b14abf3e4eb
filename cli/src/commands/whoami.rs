//! `whoami`: the server, the key and the account of the next commands.

use clap::Command;
use serde_json::json;

use super::login::KEY_SCOPE_SENDING;
use super::workflow::WorkflowRun;
use crate::account::read_account;
use crate::error::CliError;
use crate::operation::OperationTable;

pub(super) fn command() -> Command {
    super::described("whoami", &["postrider whoami"])
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let client = run.client()?;
    let account = read_account(&client).await?;
    let mut value =
        json!({"base_url": client.base_url().to_string(), "api_key": client.credential().hint(), "account": account});
    if account.is_none() {
        value["scope"] = json!(KEY_SCOPE_SENDING);
    }
    run.print(&value)
}
