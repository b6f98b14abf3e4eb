//! `skill`: instructions for coding assistants.

use crate::error::CliError;
use crate::output;

const SKILL: &str = include_str!("../../SKILL.md");

pub(super) fn run() -> Result<(), CliError> {
    output::print(SKILL.trim_end())
}
