//! The binary: parse, call, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use postrider::cli::{self, CliCommand};

/// Fewer system calls and less fragmentation than the system's, under many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Every use of TLS in the process goes by this one provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments = cli::CliArguments::parse();
    match arguments.command {
        CliCommand::Serve(serve) => cli::run::serve(&serve),
        CliCommand::Dev(dev) => cli::run::dev(&dev),
        CliCommand::Check(check) => cli::check::check(&check),
        CliCommand::Doctor(doctor) => cli::doctor::run(&doctor),
        CliCommand::Status(status) => cli::admin::run(&status.into()),
        CliCommand::Admin(admin) => cli::admin::run(&admin),
    }
}
