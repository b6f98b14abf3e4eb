//! Commands written by hand: signing in, and workflows of several calls.

mod approvals_wait;
mod completion;
mod doctor;
mod emails_watch;
mod explain;
mod import;
mod listen;
mod login;
mod logs_tail;
mod man;
mod mcp;
mod open;
mod plan;
mod profiles;
mod skill;
mod templates;
mod trigger;
mod wait;
mod whoami;
mod workflow;

use clap::Command;

use crate::arguments::with_shared_flags;
use crate::error::CliError;
use crate::operation::OperationTable;

/// A command written by hand.
#[derive(Debug)]
pub struct Workflow {
    /// Its words, for example `templates push`.
    pub command: &'static str,
    pub about: &'static str,
    /// True if the list of commands does not show it.
    pub is_hidden: bool,
    build: fn() -> Command,
}

impl Workflow {
    const fn new(command: &'static str, about: &'static str, build: fn() -> Command) -> Self {
        Self { command, about, is_hidden: false, build }
    }

    /// Its parser, with all flags.
    pub fn parser(&self) -> Command {
        with_shared_flags((self.build)())
    }
}

/// All commands written by hand.
pub const WORKFLOWS: &[Workflow] = &[
    Workflow::new("login", "Sign in to a server, or store an API key", login::login_command),
    Workflow::new("logout", "Remove a stored server and its key or sign-in", login::logout_command),
    Workflow::new("profiles", "List the stored servers, or choose the default one", profiles::command),
    Workflow::new("whoami", "Show the account of the key", whoami::command),
    Workflow::new("doctor", "Check the server, the key, the clock and the domains", || doctor::command("doctor")),
    Workflow::new("open", "Open the server's pages in the browser", open::command),
    Workflow::new("listen", "Show events as they happen, and post them to a local URL", listen::command),
    Workflow::new("trigger", "Send a test event to webhooks", trigger::command),
    Workflow::new("wait", "Wait for an email and show its links and one-time codes", wait::command),
    Workflow::new("explain", "Explain what happened to an email, recipient by recipient", explain::command),
    Workflow::new("plan", "Show what `apply` would change", plan::plan_command),
    Workflow::new("apply", "Make the account as a file declares it", plan::apply_command),
    Workflow::new("import", "Take over suppressions and templates from another service", import::command),
    Workflow::new(
        "approvals wait",
        "Wait until a request was approved and carried out, and print its response",
        approvals_wait::command,
    ),
    Workflow::new("emails watch", "Show what happens to emails as it happens", emails_watch::command),
    Workflow::new("logs tail", "Show API requests as they are logged", logs_tail::command),
    Workflow::new("templates push", "Create or update drafts from a directory", templates::push_command),
    Workflow::new("templates pull", "Write the drafts to a directory", templates::pull_command),
    Workflow::new("templates diff", "Show how a directory differs from the drafts", templates::diff_command),
    Workflow::new("templates watch", "Push each change of a directory to the drafts", templates::watch_command),
    Workflow::new("completion", "Print the completion script of a shell", completion::command),
    Workflow::new(
        "mcp",
        "Serve the account's tools to an assistant (MCP over standard input and output)",
        mcp::command,
    ),
    Workflow::new("skill", "Print instructions for coding assistants (SKILL.md)", skill::command),
    Workflow {
        is_hidden: true,
        ..Workflow::new("man", "Write the manual pages of all commands to a directory", man::command)
    },
];

/// Returns whether a word is a command of one word.
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
        "logout" => login::logout(arguments).await,
        "profiles" => profiles::run(arguments, table),
        "whoami" => whoami::run(arguments, table).await,
        "doctor" => doctor::run("doctor", arguments, table).await,
        "open" => open::run(arguments, table),
        "listen" => until_interrupted(listen::run(arguments, table)).await,
        "trigger" => trigger::run(arguments, table).await,
        "wait" => wait::run(arguments, table).await,
        "explain" => explain::run(arguments, table).await,
        "plan" => plan::plan(arguments, table).await,
        "apply" => plan::apply(arguments, table).await,
        "import" => import::run(arguments, table).await,
        "approvals wait" => approvals_wait::run(arguments, table).await,
        "emails watch" => until_interrupted(emails_watch::run(arguments, table)).await,
        "logs tail" => until_interrupted(logs_tail::run(arguments, table)).await,
        "templates push" => templates::run("push", arguments, table).await,
        "templates pull" => templates::run("pull", arguments, table).await,
        "templates diff" => templates::run("diff", arguments, table).await,
        "templates watch" => until_interrupted(templates::run("watch", arguments, table)).await,
        "completion" => completion::run(arguments, table),
        "mcp" => mcp::run(arguments, table).await,
        "skill" => skill::run(arguments, table),
        "man" => man::run(arguments, table),
        other => Err(CliError::usage(format!("`{other}` is not a command"))),
    }
}

/// Runs a command that has no end of its own. Ctrl-C ends it without an error, also while it waits for an answer.
async fn until_interrupted(work: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_valid_parser_and_an_example() {
        for workflow in WORKFLOWS {
            let mut parser = workflow.parser();
            assert_eq!(parser.get_name(), workflow.command);
            let help = parser.render_help().to_string();
            assert!(
                ["", "client "].iter().any(|client| help.contains(&format!("postrider {client}{}", workflow.command))),
                "{} has no example",
                workflow.command
            );
            parser.debug_assert();
        }
    }
}
