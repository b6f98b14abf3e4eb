//! `postrider serve` and `dev`: configure the process, run the server, return the exit code.

use std::process::ExitCode;

use super::process::{build_runtime, load_config, set_private_umask};
use super::{DevArguments, ServeArguments};
use crate::{dev, log, serve};

/// Raises the limit of open files to the hard limit: a mail server has thousands of connections.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, the current limit applies, and listeners report when they reach it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Runs the server until SIGTERM or SIGINT.
pub fn serve(arguments: &ServeArguments) -> ExitCode {
    raise_file_limit();
    set_private_umask();
    let config = match load_config(&arguments.config) {
        Ok(config) => config,
        Err(problems) => return super::check::refuse(&arguments.config, problems),
    };
    log::begin(&config.log);
    if cfg!(debug_assertions) {
        tracing::warn!(
            "this is a debug build, which is several times slower; for production, build with `cargo build --release`"
        );
    }
    let (file, send) = (arguments.config.config.clone(), arguments.send);
    exit_code(
        build_runtime()
            .map_err(|error| error.to_string())
            .and_then(|runtime| runtime.block_on(serve::serve(config, file, send)).map_err(|error| error.to_string())),
    )
}

/// Runs the development server until SIGTERM or SIGINT.
pub fn dev(arguments: &DevArguments) -> ExitCode {
    log::begin(&dev::log_section());
    raise_file_limit();
    set_private_umask();
    exit_code(
        build_runtime()
            .map_err(|error| error.to_string())
            .and_then(|runtime| runtime.block_on(dev::run(arguments)).map_err(|error| error.to_string())),
    )
}

fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postrider: {error}");
            ExitCode::FAILURE
        }
    }
}
