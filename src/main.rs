//! The binary: parses the command line, runs the command, returns its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use postrider::cli::{self, CliCommand};

/// Makes fewer system calls and fragments less than the system's allocator with many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // rustls uses this provider in the whole process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Commands of people who call a server; those of operators go first.
    let words = match ::cli::arguments() {
        Ok(words) => words,
        Err(status) => return status,
    };
    match words.split_first() {
        Some((word, rest)) if word == cli::CLIENT_COMMAND => return ::cli::run(rest),
        Some((word, _)) if !cli::is_operator_command(word) && ::cli::has_command(word) => return ::cli::run(&words),
        _ => {}
    }
    let arguments = match cli::CliArguments::try_parse() {
        Ok(arguments) => arguments,
        // A word that is no command of operators was meant as a client's, whose errors are JSON.
        Err(error)
            if words.iter().any(|word| word == "--json")
                || words.first().is_some_and(|word| !cli::is_operator_command(word)) =>
        {
            return ::cli::refuse(&error);
        }
        Err(error) => error.exit(),
    };
    match arguments.command {
        CliCommand::Serve(serve) => cli::run::serve(&serve),
        CliCommand::Dev(dev) => cli::run::dev(&dev),
        CliCommand::Setup(setup) => cli::setup::run(&setup),
        CliCommand::Check(check) => cli::check::check(&check),
        CliCommand::Doctor(doctor) => cli::doctor::run(&doctor),
        CliCommand::Status(status) => cli::admin::run(&status.into()),
        CliCommand::Admin(admin) => cli::admin::run(&admin),
    }
}
