//! `profiles`: lists the stored servers and chooses the one that is used if none is named.

use clap::{Arg, Command};
use serde_json::{Value, json};

use super::workflow::WorkflowRun;
use crate::api_key::ApiKey;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output::{self, Format};
use crate::profile::ProfileFile;

pub(super) fn command() -> Command {
    super::described("profiles", &["postrider profiles", "postrider profiles use production"])
        .arg(
            Arg::new("action")
                .value_name("ACTION")
                .value_parser(["list", "use"])
                .default_value("list")
                .help("`use` chooses the default profile"),
        )
        .arg(Arg::new("name").value_name("NAME").required_if_eq("action", "use").help("Profile name"))
}

pub(super) fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let path = ProfileFile::path()?;
    let mut file = ProfileFile::read(&path)?;
    if run.text("action") == Some("use") {
        let name = run.text("name").unwrap_or_default().to_owned();
        // Fails if there is no such profile.
        file.profile(Some(&name))?;
        file.default = Some(name.clone());
        file.write(&path)?;
        return run.print(&json!({"default": name}));
    }
    let rows: Vec<Value> = file
        .profiles
        .iter()
        .map(|(name, profile)| {
            let hint = match (&profile.api_key, &profile.sign_in) {
                (Some(key), _) => ApiKey::parse(key).map_or_else(|_| "not valid".to_owned(), |key| key.hint()),
                (None, Some(tokens)) => format!("signed in ({})", tokens.scope),
                (None, None) => "none".to_owned(),
            };
            let is_default = file.default.as_deref() == Some(name.as_str());
            json!({"name": name, "default": is_default, "base_url": profile.base_url, "api_key": hint})
        })
        .collect();
    match run.format() {
        Format::Text if rows.is_empty() => output::print("no profile is stored; `postrider login` stores one"),
        Format::Text => {
            let columns = ["name", "default", "base_url", "api_key"].map(str::to_owned);
            output::print(&output::table(&rows, Some(&columns)))
        }
        _ => output::print_json(&json!({"profiles": rows})),
    }
}
