//! `postrider setup`: runs the setup, returns the exit code.

use std::process::ExitCode;

use super::process::build_runtime;
use crate::setup::{self, Dialog as _, EXIT_AGAIN, SetupError, SetupOptions, StandardDialog};

/// Runs the setup.
pub fn run(options: &SetupOptions) -> ExitCode {
    let (mut dialog, options) = (StandardDialog::default(), options.clone().with_absolute_paths());
    let result = build_runtime().map_err(SetupError::from).and_then(|runtime| {
        let result = runtime.block_on(run_phases(&mut dialog, &options));
        // Does not wait for blocking calls: a hanging disk would delay the exit.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_AGAIN),
        Err(error) => {
            // Removes live lines.
            dialog.print("");
            eprintln!("postrider: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

/// Returns false if the operator interrupted the second part. In the first one, questions are read from the terminal,
/// and Ctrl-C ends the process as usual.
async fn run_phases(dialog: &mut StandardDialog, options: &SetupOptions) -> Result<bool, SetupError> {
    let installation = setup::prepare(dialog, options).await?;
    let is_complete = setup::complete(dialog, options, &installation, tokio::signal::ctrl_c()).await?;
    if !is_complete {
        setup::print_interrupted(dialog, options);
    }
    Ok(is_complete)
}
