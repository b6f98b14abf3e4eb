//! The command line alone, for people who only call a server.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    cli::run(&arguments)
}
