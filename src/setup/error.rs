//! Errors that end a setup. Each text says what to do.

use std::path::PathBuf;

use thiserror::Error;

use crate::admin::AdminError;
use crate::config::ConfigProblem;

/// Reasons why a setup ends before its last phase.
#[derive(Debug, Error)]
pub enum SetupError {
    /// Questions cannot be asked.
    #[error(
        "this is not a terminal, so setup cannot ask questions: add {} (--yes accepts defaults, where there are any)",
        flags.join(", ")
    )]
    MissingFlags { flags: Vec<&'static str> },
    /// A flag has an invalid value, or one that contradicts the configuration.
    #[error("{flag}: {reason}")]
    InvalidFlag { flag: &'static str, reason: String },
    /// The operator gave no valid answer.
    #[error("no valid answer; run setup again, or answer with {flag}")]
    NoAnswer { flag: &'static str },
    /// The operator did not confirm.
    #[error("nothing was written")]
    Declined,
    /// Standard input or output failed.
    #[error("the terminal: {0}")]
    Terminal(#[from] std::io::Error),
    /// The machine is not ready for a mail server.
    #[error("setup cannot continue until this is fixed: {}. Then run the same command again", checks.join(", "))]
    MachineNotReady { checks: Vec<&'static str> },
    /// No resolver can be configured.
    #[error("{0}; add a `nameserver` line to /etc/resolv.conf")]
    NoResolver(String),
    /// The configuration cannot be written by this user.
    #[error("{} cannot be written ({reason}): run setup as root, for example with sudo", directory.display())]
    NotPermitted { directory: PathBuf, reason: String },
    /// The existing configuration is invalid.
    #[error("{} has problems; correct it, then run setup again:\n{}", file.display(), join_problems(problems))]
    InvalidConfig { file: PathBuf, problems: Vec<ConfigProblem> },
    /// The server could not use the configuration that setup would write.
    #[error(
        "{} was not written, because the server could not use it. Correct this, then run setup again:\n{}",
        file.display(), join_problems(problems)
    )]
    UnusableConfig { file: PathBuf, problems: Vec<ConfigProblem> },
    /// The configuration could not be written.
    #[error("{}: {source}", file.display())]
    ConfigNotWritten { file: PathBuf, source: std::io::Error },
    /// The server did not start.
    #[error("the server did not start: {reason}. Correct that, then run setup again")]
    NotStarted { reason: String },
    /// The operator has not started the server yet.
    #[error("the server is not running yet. Start it, then run `{again}` to continue")]
    ServerPending { again: String },
    /// The server refused a request.
    #[error("cannot {action}: {source}")]
    Admin { action: &'static str, source: AdminError },
    /// The server answered in another form than this version expects.
    #[error("cannot {action}: the server runs a different version; restart it, then run setup again")]
    UnexpectedResponse { action: &'static str },
    /// The secrets of the account cannot be written to the file.
    #[error("{}: {source}; name another file with --secrets", file.display())]
    SecretsNotWritten { file: PathBuf, source: std::io::Error },
    /// The account exists, but its secrets could not be written.
    #[error(
        "{}: {source}. The account was created, but its secrets are lost. To create new ones:\n{}",
        file.display(), commands.join("\n")
    )]
    SecretsLost { file: PathBuf, source: std::io::Error, commands: Vec<String> },
    /// Records are not published yet.
    #[error("DNS is not complete yet. Publish the records above, then run `{again}` to continue")]
    RecordsPending { again: String },
    /// No certificate was issued in time.
    #[error("no certificate yet: {reason}")]
    NoCertificate { reason: String },
    #[error(
        "the test email has not been delivered yet, and will be retried. Run `{again}` to see whether it has arrived"
    )]
    TestMailDeferred { again: String },
    /// The test mail was refused.
    #[error("the test email was not delivered: {reason}. Correct that, then run `{again}` to send another")]
    TestMailFailed { reason: String, again: String },
}

fn join_problems(problems: &[ConfigProblem]) -> String {
    problems.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n")
}

/// A flag is missing, or its value is refused (`EX_USAGE` of sysexits.h). Invalid usage ends with 2, by clap.
const EXIT_USAGE: u8 = 64;
/// The same command succeeds later (`EX_TEMPFAIL`).
pub const EXIT_AGAIN: u8 = 75;

impl SetupError {
    /// Exit status of the program.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::MissingFlags { .. } | Self::InvalidFlag { .. } => EXIT_USAGE,
            Self::ServerPending { .. } | Self::RecordsPending { .. } | Self::TestMailDeferred { .. } => EXIT_AGAIN,
            _ => 1,
        }
    }

    /// Makes an error of a refused admin request.
    pub(super) fn admin(action: &'static str) -> impl FnOnce(AdminError) -> Self {
        move |source| Self::Admin { action, source }
    }
}
