//! `skill`: instructions for coding assistants.

use clap::Command;

use crate::error::CliError;
use crate::output;

const SKILL: &str = include_str!("../../SKILL.md");

pub(super) fn command() -> Command {
    Command::new("skill")
        .about("Print instructions for coding assistants (SKILL.md)")
        .after_help("Example:\n  postrider skill > SKILL.md")
}

pub(super) fn run() -> Result<(), CliError> {
    output::print(SKILL.trim_end())
}
