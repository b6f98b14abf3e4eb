//! Commands written by hand: signing in, and workflows of several calls.

mod completion;
mod doctor;
mod emails_watch;
mod explain;
mod listen;
mod login;
mod logs_tail;
mod open;
mod skill;
mod trigger;
mod wait;
mod whoami;
mod workflow;

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
    Workflow { command: "doctor", about: "Check the server, the key, the clock and the domains" },
    Workflow { command: "open", about: "Open the server's pages in the browser" },
    Workflow { command: "listen", about: "Show events as they happen, and post them to a local URL" },
    Workflow { command: "trigger", about: "Send a test event to webhooks" },
    Workflow { command: "wait", about: "Wait for an email and show its links and one-time codes" },
    Workflow { command: "explain", about: "Explain what happened to an email, recipient by recipient" },
    Workflow { command: "emails watch", about: "Show what happens to emails as it happens" },
    Workflow { command: "logs tail", about: "Show API requests as they are logged" },
    Workflow { command: "completion", about: "Print the completion script of a shell" },
    Workflow { command: "skill", about: "Print instructions for coding assistants (SKILL.md)" },
];

/// Returns whether a word is a command of one word.
#[must_use]
pub fn is_single_word(word: &str) -> bool {
    WORKFLOWS.iter().any(|workflow| workflow.command == word)
}

/// Runs the command of these words.
///
/// # Errors
/// The command line is wrong, or a call failed.
pub async fn run(command: &str, arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    match command {
        "login" => login::login(arguments, table).await,
        "logout" => login::logout(arguments),
        "whoami" => whoami::run(arguments, table).await,
        "doctor" => doctor::run("doctor", arguments, table).await,
        "open" => open::run(arguments, table),
        "listen" => listen::run(arguments, table).await,
        "trigger" => trigger::run(arguments, table).await,
        "wait" => wait::run(arguments, table).await,
        "explain" => explain::run(arguments, table).await,
        "emails watch" => emails_watch::run(arguments, table).await,
        "logs tail" => logs_tail::run(arguments, table).await,
        "completion" => completion::run(arguments, table),
        "skill" => skill::run(),
        other => Err(CliError::usage(format!("`{other}` is not a command"))),
    }
}
