//! `completion`: the completion script of a shell.

use clap::{Arg, Command, value_parser};
use clap_complete::Shell;

use super::workflow::WorkflowRun;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::output;
use crate::tree;

pub(super) fn command() -> Command {
    super::described(
        "completion",
        &["postrider completion bash > ~/.local/share/bash-completion/completions/postrider"],
    )
    .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)).help("The shell"))
}

pub(super) fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let Some(shell) = run.matches.get_one::<Shell>("shell").copied() else { return Ok(()) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tree::whole(table), "postrider", &mut script);
    output::write(&script)
}
