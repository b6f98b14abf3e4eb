//! `skill`: instructions for coding assistants.

use clap::Command;

use super::workflow::WorkflowRun;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output;

const SKILL: &str = include_str!("../../SKILL.md");

pub(super) fn command() -> Command {
    super::described("skill", &["postrider skill > SKILL.md"])
}

pub(super) fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    WorkflowRun::parse(command(), arguments, table)?;
    output::print(SKILL.trim_end())
}
