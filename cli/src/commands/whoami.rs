//! `whoami`: the server, the key and the account of the next commands.

use clap::Command;
use serde_json::json;

use crate::arguments::with_shared_flags;
use crate::client::Call;
use crate::error::CliError;
use crate::example;
use crate::operation::OperationTable;
use crate::operation_command::client_of;
use crate::output::{self, Format};

pub(super) fn command() -> Command {
    Command::new("whoami")
        .about("Show the account that the key belongs to")
        .after_help(example::section(&["postrider whoami"]))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let command = with_shared_flags(command());
    let command = command.bin_name("postrider whoami").no_binary_name(true);
    let matches = command.try_get_matches_from(arguments).unwrap_or_else(|error| error.exit());
    let client = client_of(&matches, table)?;
    let answer = client.call(&Call::get("/account")).await?.json()?;
    let account = answer.get("account").cloned().unwrap_or(answer);
    let value =
        json!({"base_url": client.base_url().to_string(), "api_key": client.credential().hint(), "account": account});
    match Format::choose(matches.get_flag("json"), false) {
        Format::Text => output::print_object(&value),
        _ => output::print_json(&value),
    }
}
