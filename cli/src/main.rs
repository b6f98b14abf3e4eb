//! The command line alone, for people who only call a server.

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::arguments() {
        Ok(arguments) => cli::run(&arguments),
        Err(status) => status,
    }
}
