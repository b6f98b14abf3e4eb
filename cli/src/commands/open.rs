//! `open`: the server's pages in the browser.

use clap::{Arg, Command};
use serde_json::json;

use super::workflow::WorkflowRun;
use crate::browser;
use crate::error::CliError;
use crate::operation::OperationTable;

pub(super) fn command() -> Command {
    super::described("open", &["postrider open", "postrider open docs"]).arg(
        Arg::new("page")
            .value_name("PAGE")
            .value_parser(["dashboard", "docs"])
            .default_value("dashboard")
            .help("The page"),
    )
}

pub(super) fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let path = match run.text("page") {
        Some("docs") => "/docs",
        _ => "/dashboard",
    };
    let url = format!("{}{path}", run.client()?.base_url());
    let opened = browser::open(&url);
    run.print(&json!({"url": url, "opened": opened}))
}
