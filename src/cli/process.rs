//! Set-up of the process that several commands share.

use super::ConfigArguments;
use crate::config::{self, Config, ConfigProblem};

/// Message about a data directory or a database in which no server has run.
pub(super) const NO_STORE_YET: &str = "there is no store yet; the first start creates it";

/// Makes new files private to the process's user whatever the umask: they contain mail and secrets.
pub(super) fn set_private_umask() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

pub(super) fn build_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

pub(super) fn load_config(arguments: &ConfigArguments) -> Result<Config, Vec<ConfigProblem>> {
    let config = config::from_file(&arguments.config)?;
    for variable in &config.ignored_variables {
        eprintln!("postrider: warning: the environment variable {variable} is not a setting and is ignored");
    }
    Ok(config)
}
