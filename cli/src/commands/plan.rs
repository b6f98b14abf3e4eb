//! `plan FILE.toml` and `apply FILE.toml`: the account as a file declares it.
//!
//! ```text
//! FILE.toml ─► Declaration ─┐
//! server ───► objects ──────┴► Plan ─► print ─► ask ─► for each change: read again, compare, write
//! ```
//!
//! Sections that the file does not have are not read. Fields that an object of the file does not name are left as they
//! are. docs/CLI.md describes the format.

mod application;
mod change;
mod declaration;
mod object_kind;
mod render;
mod value_match;

use clap::{Arg, Command};
use serde_json::json;

use self::application::Application;
use self::change::Plan;
use self::declaration::Declaration;
use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::error::{CliError, exit_status};
use crate::operation::OperationTable;
use crate::operation_command::confirm;
use crate::output::{self, Format};

fn file_command(name: &'static str, examples: &[&'static str]) -> Command {
    super::described(name, examples)
        .arg(Arg::new("file").value_name("FILE").required(true).help("The declaration in TOML"))
        .arg(switch("delete", "Delete objects that are missing from the file's sections"))
}

pub(super) fn plan_command() -> Command {
    file_command("plan", &["postrider plan mail.toml", "postrider plan mail.toml --json"])
        .about("Show what `apply` would change (exit status 5 if anything)")
}

pub(super) fn apply_command() -> Command {
    file_command("apply", &["postrider apply mail.toml", "postrider apply mail.toml --yes --save-secrets secrets"])
        .arg(switch("yes", "Do not ask for confirmation").short('y'))
        .arg(option(
            "save-secrets",
            "DIR",
            "Write the secrets of new webhooks to new files (mode 0600) instead of printing them",
        ))
}

pub(super) async fn plan(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(plan_command(), arguments, table)?;
    let declaration = Declaration::read(run.text("file").unwrap_or_default(), table)?;
    let plan = Plan::make(&run.client()?, &declaration, run.flag("delete")).await?;
    print_plan(&plan, run.format())?;
    if plan.changes.is_empty() { Ok(()) } else { Err(CliError::Differences(exit_status::CHANGES)) }
}

pub(super) async fn apply(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(apply_command(), arguments, table)?;
    let declaration = Declaration::read(run.text("file").unwrap_or_default(), table)?;
    let client = run.client()?;
    let plan = Plan::make(&client, &declaration, run.flag("delete")).await?;
    // Standard output has one JSON value: the results.
    match run.format() {
        Format::Text => output::print(&render::plan_text(&plan))?,
        _ => eprintln!("{}", render::plan_text(&plan)),
    }
    if !plan.changes.is_empty() && !run.flag("yes") {
        let count = plan.changes.len();
        confirm(&format!(
            "Make {}?",
            if count == 1 { "this change".to_owned() } else { format!("these {count} changes") }
        ))?;
    }
    let mut application = Application::new(&client, run.text("save-secrets"));
    let outcome = application.run(&plan).await;
    let results = application.into_results();
    match run.format() {
        Format::Text => results.iter().try_for_each(|result| output::print(&render::result_text(result)))?,
        _ => output::print_json(&json!({"results": results}))?,
    }
    outcome
}

fn print_plan(plan: &Plan, format: Format) -> Result<(), CliError> {
    match format {
        Format::Text => output::print(&render::plan_text(plan)),
        _ => output::print_json(&plan.to_json()),
    }
}
