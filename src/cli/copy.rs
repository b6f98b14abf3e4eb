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
    let place = |written: &str| parse_location(written, cluster, config);
    let (from, to) = (place(from)?, place(to)?);
    let runtime = super::run::build_runtime().map_err(|error| error.to_string())?;
    let mut line = ProgressLine::default();
    let copied = runtime.block_on(copy(&from, &to, move |step| print_progress(&mut line, step)));
    let (done, sum) = copied.map_err(|error| error.to_string())?;
    Ok(json!({"rows": done.rows, "bodies": done.bodies, "bytes": done.bytes, "sha256": sum}))
}

fn parse_location(
    written: &str,
    cluster: Option<&str>,
    config: &dyn Fn() -> Result<Config, String>,
) -> Result<StoreLocation, String> {
    if written == "config" {
        let config = config()?;
        return Ok(match database(&config) {
            Some(database) => StoreLocation::Database(database),
            None => StoreLocation::Directory(store_options(&config)),
        });
    }
    if written.starts_with("postgres://") || written.starts_with("postgresql://") {
        return Ok(StoreLocation::Database(PostgresOptions::new(written, cluster.unwrap_or("postrider"))));
    }
    Ok(StoreLocation::Directory(RedbOptions::new(Path::new(written).join(STORE_DIRECTORY))))
}

fn print_progress(line: &mut ProgressLine, step: CopyProgress) {
    let (what, done) = match step {
        CopyProgress::Copied(done) => ("copied", done),
        CopyProgress::Compared(done) => ("compared", done),
    };
    line.tell(&format!("{what}: {} rows, {} messages, {} MiB", done.rows, done.bodies, done.bytes >> 20));
}
