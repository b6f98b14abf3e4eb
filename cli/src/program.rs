//! Runs a command line: finds its command, and reports how it ended.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use crate::arguments::usage_error;
use crate::error::CliError;
use crate::operation::OperationTable;
use crate::tree::Selection;
use crate::{commands, operation_command, output, tree};

/// Returns whether the first word of a command line is a command of this crate.
pub fn has_command(word: &str) -> bool {
    commands::is_single_word(word) || tree::is_noun(&OperationTable::load(), word)
}

/// The arguments of this process, without the program's name.
///
/// # Errors
/// One is not UTF-8. The error is printed; the process ends with this status.
pub fn arguments() -> Result<Vec<String>, ExitCode> {
    let arguments = std::env::args_os().skip(1).map(std::ffi::OsString::into_string);
    arguments.collect::<Result<_, _>>().map_err(|argument| {
        report(&CliError::usage(format!("the argument `{}` is not UTF-8 text", argument.to_string_lossy())))
    })
}

/// Runs a command line without the program's name. Errors are printed to standard error: as JSON, or as text on a
/// terminal.
pub fn run(arguments: &[String]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&CliError::Io(format!("cannot start: {error}"))),
    };
    match runtime.block_on(dispatch(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Differences(status)) => ExitCode::from(status),
        Err(error) => report(&error),
    }
}

/// Reports a command line that the parser of another crate refused, or prints the help or version that it asks for.
pub fn refuse(error: &clap::Error) -> ExitCode {
    report(&usage_error(error))
}

async fn dispatch(arguments: &[String]) -> Result<(), CliError> {
    // In the server's program, `client` goes before commands that it has itself, for example `doctor`.
    let arguments = match arguments {
        [first, rest @ ..] if first == "client" => rest,
        all => all,
    };
    if matches!(arguments, [flag] if flag == "--version" || flag == "-V") {
        return output::print(concat!("postrider ", env!("CARGO_PKG_VERSION")));
    }
    let table = OperationTable::load();
    if let Some(name) = arguments.first().filter(|name| commands::is_single_word(name)) {
        return commands::run(name, arguments.get(1..).unwrap_or_default(), &table).await;
    }
    match tree::select(&table, arguments) {
        Selection::Operation(operation, rest) => operation_command::run(&operation, rest, &table).await,
        Selection::Workflow(name, rest) => commands::run(&name, rest, &table).await,
        Selection::Help(mut command) => {
            command.print_help().map_err(|error| CliError::Io(error.to_string()))?;
            // A group without a verb is no command.
            if arguments.iter().any(|one| matches!(one.as_str(), "-h" | "--help" | "help")) {
                return Ok(());
            }
            Err(CliError::usage("a command is missing"))
        }
        Selection::Unknown(message) => Err(CliError::usage(message)),
    }
}

fn report(error: &CliError) -> ExitCode {
    if std::io::stderr().is_terminal() {
        eprintln!("{}", output_lines(&error.to_text()));
    } else {
        eprintln!("{}", error.to_json());
    }
    ExitCode::from(error.status())
}

/// Replaces control characters of each line.
fn output_lines(text: &str) -> String {
    text.lines().map(output::safe_text).collect::<Vec<_>>().join("\n")
}
