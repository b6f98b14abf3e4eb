//! `postrider admin store copy`: copies a store from a directory into a database, or back, while no server uses
//! either.
//!
//! A location is a data directory, a `postgres://` URL, or `config` for the configured store, which keeps the
//! password off the command line.

use std::path::Path;

use serde_json::{Value, json};
use store::engine::copy::{CopyProgress, StoreLocation, copy};
use store::engine::{PostgresOptions, RedbOptions};

use super::progress::ProgressLine;
use crate::admin::check::counted;
use crate::config::Config;
use crate::services::{STORE_DIRECTORY, database, store_options};

/// Copies the store and prints progress.
///
/// # Errors
/// The text of the failure: invalid location, store in use, or a failed copy.
pub(super) fn run_copy(
    from: &str,
    to: &str,
    cluster: Option<&str>,
    config: &dyn Fn() -> Result<Config, String>,
) -> Result<Value, String> {
    let parse = |location: &str| parse_location(location, cluster, config);
    let (from, to) = (parse(from)?, parse(to)?);
    let runtime = super::process::build_runtime().map_err(|error| error.to_string())?;
    let mut line = ProgressLine::default();
    let copied = runtime.block_on(copy(&from, &to, move |step| print_progress(&mut line, step)));
    let (progress, checksum) = copied.map_err(|error| error.to_string())?;
    Ok(json!({"rows": progress.rows, "bodies": progress.bodies, "bytes": progress.bytes, "sha256": checksum}))
}

fn parse_location(
    location: &str,
    cluster: Option<&str>,
    config: &dyn Fn() -> Result<Config, String>,
) -> Result<StoreLocation, String> {
    if location == "config" {
        let config = config()?;
        return Ok(match database(&config) {
            Some(database) => StoreLocation::Database(database),
            None => StoreLocation::Directory(store_options(&config)),
        });
    }
    if location.starts_with("postgres://") || location.starts_with("postgresql://") {
        return Ok(StoreLocation::Database(PostgresOptions::new(location, cluster.unwrap_or("postrider"))));
    }
    Ok(StoreLocation::Directory(RedbOptions::new(Path::new(location).join(STORE_DIRECTORY))))
}

fn print_progress(line: &mut ProgressLine, step: CopyProgress) {
    let (action, progress) = match step {
        CopyProgress::Copied(progress) => ("copied", progress),
        CopyProgress::Compared(progress) => ("compared", progress),
    };
    line.print(&format!(
        "{action}: {}, {}, {} MiB",
        counted(progress.rows, "row"),
        counted(progress.bodies, "message"),
        progress.bytes >> 20
    ));
}
