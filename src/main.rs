//! The binary: parse, call, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use postrider::cli::{self, Command};

/// Fewer system calls and less fragmentation than the system's, under many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Every use of TLS in the process goes by this one provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments = cli::Arguments::parse();
    match arguments.command {
        Command::Serve(serve) => cli::run::serve(&serve),
        Command::Dev(dev) => cli::run::dev(&dev),
        Command::Check(check) => cli::check::check(&check),
        Command::Doctor(doctor) => cli::doctor::run(&doctor),
        Command::Status(status) => cli::admin::run(&status.into()),
        Command::Admin(admin) => cli::admin::run(&admin),
    }
}
