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

use std::future::{Future, ready};
use std::pin::Pin;

use clap::Command;

use crate::arguments::with_shared_flags;
use crate::error::CliError;
use crate::example;
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
    Workflow::new("whoami", "Show the account that the key belongs to", whoami::command),
    Workflow::new("doctor", "Check the server, the key, the clock and the domains", doctor::command),
    Workflow::new("open", "Open the server's pages in the browser", open::command),
    Workflow::new("listen", "Show events as they happen, and post them to a local URL", listen::command),
    Workflow::new("trigger", "Send a test event to webhooks", trigger::command),
    Workflow::new("wait", "Wait for an email and show its links and one-time codes", wait::command),
    Workflow::new("explain", "Explain what happened to an email, recipient by recipient", explain::command),
    Workflow::new("plan", "Show what `apply` would change", plan::plan_command),
    Workflow::new("apply", "Change the account to match a declaration file", plan::apply_command),
    Workflow::new("import", "Import suppressions and templates from another service", import::command),
    Workflow::new(
        "approvals wait",
        "Wait until a request is approved and carried out, and print its response",
        approvals_wait::command,
    ),
    Workflow::new("emails watch", "Show what happens to emails as it happens", emails_watch::command),
    Workflow::new("logs tail", "Show API requests as they are logged", logs_tail::command),
    Workflow::new("templates push", "Create or update drafts from a directory", templates::push_command),
    Workflow::new("templates pull", "Write the drafts to a directory", templates::pull_command),
    Workflow::new("templates diff", "Show how a directory differs from the drafts", templates::diff_command),
    Workflow::new("templates watch", "Push each change in a directory to the drafts", templates::watch_command),
    Workflow::new("completion", "Print the completion script for a shell", completion::command),
    Workflow::new(
        "mcp",
        "Serve the account's tools to an AI assistant (MCP over standard input and output)",
        mcp::command,
    ),
    Workflow::new("skill", "Print instructions for AI coding assistants (SKILL.md)", skill::command),
    Workflow {
        is_hidden: true,
        ..Workflow::new("man", "Write the manual pages for all commands to a directory", man::command)
    },
];

/// A command with its sentence in [`WORKFLOWS`] and examples; its arguments are still to be added.
fn described(name: &'static str, examples: &[&'static str]) -> Command {
    let about = WORKFLOWS.iter().find(|workflow| workflow.command == name).map_or("", |workflow| workflow.about);
    Command::new(name).about(about).after_help(example::section(examples))
}

/// Returns whether a word is a command of one word.
pub fn is_single_word(word: &str) -> bool {
    WORKFLOWS.iter().any(|workflow| workflow.command == word)
}

/// A running command. It fails if the command line is wrong or if a call failed.
type CommandFuture<'a> = Pin<Box<dyn Future<Output = Result<(), CliError>> + 'a>>;

/// Runs the command of these words.
pub fn run<'a>(command: &str, arguments: &'a [String], table: &'a OperationTable<'_>) -> CommandFuture<'a> {
    match command {
        "login" => Box::pin(login::login(arguments, table)),
        "logout" => Box::pin(login::logout(arguments, table)),
        "profiles" => Box::pin(ready(profiles::run(arguments, table))),
        "whoami" => Box::pin(whoami::run(arguments, table)),
        "doctor" => Box::pin(doctor::run(arguments, table)),
        "open" => Box::pin(ready(open::run(arguments, table))),
        "listen" => Box::pin(until_interrupted(listen::run(arguments, table))),
        "trigger" => Box::pin(trigger::run(arguments, table)),
        "wait" => Box::pin(wait::run(arguments, table)),
        "explain" => Box::pin(explain::run(arguments, table)),
        "plan" => Box::pin(plan::plan(arguments, table)),
        "apply" => Box::pin(plan::apply(arguments, table)),
        "import" => Box::pin(import::run(arguments, table)),
        "approvals wait" => Box::pin(approvals_wait::run(arguments, table)),
        "emails watch" => Box::pin(until_interrupted(emails_watch::run(arguments, table))),
        "logs tail" => Box::pin(until_interrupted(logs_tail::run(arguments, table))),
        "templates push" => Box::pin(templates::run("push", arguments, table)),
        "templates pull" => Box::pin(templates::run("pull", arguments, table)),
        "templates diff" => Box::pin(templates::run("diff", arguments, table)),
        "templates watch" => Box::pin(until_interrupted(templates::run("watch", arguments, table))),
        "completion" => Box::pin(ready(completion::run(arguments, table))),
        "mcp" => Box::pin(mcp::run(arguments, table)),
        "skill" => Box::pin(ready(skill::run(arguments, table))),
        "man" => Box::pin(ready(man::run(arguments, table))),
        other => Box::pin(ready(Err(CliError::usage(format!("`{other}` is not a command"))))),
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
