//! Commands written by hand: signing in, and workflows of several calls.

mod login;
mod whoami;

use crate::error::CliError;
use crate::operation::OperationTable;

/// A command written by hand.
#[derive(Debug)]
pub struct Workflow {
    /// Its words, for example `templates push`.
    pub command: &'static str,
    pub about: &'static str,
}

/// All commands written by hand.
pub const WORKFLOWS: &[Workflow] = &[
    Workflow { command: "login", about: "Store the server and an API key" },
    Workflow { command: "logout", about: "Remove a stored server and key" },
    Workflow { command: "whoami", about: "Show the account of the key" },
];

/// Those of one word, which belong to no noun.
pub const NAMES: &[&str] = &["login", "logout", "whoami"];

/// Runs the command of these words.
///
/// # Errors
/// Whatever made it fail.
pub async fn run(command: &str, arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    match command {
        "login" => login::login(arguments, table).await,
        "logout" => login::logout(arguments),
        "whoami" => whoami::run(arguments, table).await,
        other => Err(CliError::usage(format!("`{other}` is not a command"))),
    }
}
