//! `WorkflowRun`: parsing, the client and printing of the commands written by hand.

use clap::{ArgMatches, Command};
use serde_json::Value;

use crate::arguments::{parse, with_shared_flags};
use crate::client::ApiClient;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::operation_command::client_of;
use crate::output::{self, Format};

/// The parsed command line of a command written by hand.
pub(super) struct WorkflowRun<'a> {
    pub(super) matches: ArgMatches,
    pub(super) table: &'a OperationTable<'a>,
}

impl<'a> WorkflowRun<'a> {
    /// Parses the arguments, as [`parse`].
    ///
    /// # Errors
    /// The command line is wrong.
    pub(super) fn parse(
        command: Command,
        arguments: &[String],
        table: &'a OperationTable<'a>,
    ) -> Result<Self, CliError> {
        let own_name = command.get_bin_name().map(str::to_owned);
        let name = own_name.unwrap_or_else(|| format!("postrider {}", command.get_name()));
        let matches = parse(with_shared_flags(command).bin_name(name), arguments)?;
        Ok(Self { matches, table })
    }

    pub(super) fn client(&self) -> Result<ApiClient, CliError> {
        client_of(&self.matches, self.table)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.matches.try_get_many::<String>(name).ok().flatten().into_iter().flatten().cloned().collect()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
    }

    pub(super) fn format(&self) -> Format {
        Format::choose(self.flag("json"), false)
    }

    /// Prints a value: as lines on a terminal, as JSON otherwise.
    pub(super) fn print(&self, value: &Value) -> Result<(), CliError> {
        match self.format() {
            Format::Text => output::print_object(value),
            Format::Json | Format::JsonLines => output::print_json(value),
        }
    }
}
