//! `postrider admin store check`: reads everything in the store and reports damage. The running server does it from a
//! read snapshot; if no server runs, this process does it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use store::engine::{OpenError, PROBLEMS_MAX, PostgresOptions, RedbOptions, Report, Store};

use super::process::{NO_STORE_YET, build_runtime};
use super::progress::ProgressLine;
use super::table::{Column, list, table};
use crate::admin::check::{counted, progress, report_view};
use crate::admin::{AdminError, AdminRequest, SOCKET};

const COLUMNS: [Column; 3] =
    [Column::new("object", "object", 16), Column::new("id", "id", 80), Column::new("fault", "fault", 160)];

/// Store to check.
pub(super) struct Target<'a> {
    /// Data directory.
    pub(super) directory: &'a Path,
    /// Database, if one is configured.
    pub(super) database: Option<PostgresOptions>,
    /// Embedded store, otherwise.
    pub(super) options: RedbOptions,
}

/// Runs the check and prints its report. Fails if the store is damaged or cannot be checked.
pub(super) fn run(
    target: Target<'_>,
    as_json: bool,
    send_request: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>,
) -> ExitCode {
    let result = check(target, send_request);
    let mut out = std::io::stdout().lock();
    // Stdout may be closed (`… | head`).
    let (_, code) = match result {
        Ok(result) if result["sound"] == true => {
            let text = if as_json { format!("{result}\n") } else { super::readable::render_readable(&result) };
            (out.write_all(text.as_bytes()), ExitCode::SUCCESS)
        }
        // The same report as of a sound store: `sound` and the exit status show the damage.
        Ok(result) if as_json => (writeln!(out, "{result}"), ExitCode::FAILURE),
        Ok(result) => {
            let written = out.write_all(format_damage(&result).as_bytes());
            eprintln!(
                "postrider: the store is damaged: do not change it; restore a backup into an empty data directory"
            );
            (written, ExitCode::FAILURE)
        }
        Err(error) if as_json => (writeln!(out, "{}", json!({"error": error})), ExitCode::FAILURE),
        Err(error) => {
            eprintln!("postrider: {error}");
            (Ok(()), ExitCode::FAILURE)
        }
    };
    code
}

fn check(
    target: Target<'_>,
    send_request: &dyn Fn(&AdminRequest) -> Result<Value, AdminError>,
) -> Result<Value, AdminError> {
    if UnixStream::connect(target.directory.join(SOCKET)).is_ok() {
        return send_request(&AdminRequest::StoreCheck);
    }
    let mut line = ProgressLine::default();
    let report = match target.database {
        None => match Store::check_watched(&target.options, |step| line.print(&progress(step))) {
            // A file too damaged to open is reported like other damage.
            Err(OpenError::Corrupt { file, reason: detail }) => Report::of_damaged_file(&file, &detail),
            report => report.map_err(|error| error.to_string())?,
        },
        Some(database) => {
            let runtime = build_runtime().map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let store = Store::connect_existing(&database).await.map_err(|error| error.to_string())?;
                let store = store.ok_or_else(|| NO_STORE_YET.to_owned())?;
                let on_progress = move |step| {
                    line.print(&progress(step));
                    std::ops::ControlFlow::Continue(())
                };
                store.verify_watched(on_progress).await.map_err(|error| error.to_string())
            })?
        }
    };
    Ok(report_view(&report))
}

/// Formats the damage as a table.
fn format_damage(result: &Value) -> String {
    let faults = list(result, "faults");
    let at_least = if faults.len() < PROBLEMS_MAX { "" } else { "at least " };
    let number = |field: &str, noun| counted(result[field].as_u64().unwrap_or(0), noun);
    format!(
        "{}{at_least}{}; read {} and {}\n",
        table(&COLUMNS, faults),
        counted(faults.len() as u64, "fault"),
        number("rows", "row"),
        number("bodies", "message")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_a_table() {
        let result = json!({"rows": 7, "bodies": 2, "faults": [
            {"object": "email", "id": "msg_1", "fault": "the body fails its checksum"},
            {"object": "index", "id": "index.redb", "fault": "it is damaged"},
        ]});
        assert_eq!(
            format_damage(&result),
            "object  id          fault\n\
             email   msg_1       the body fails its checksum\n\
             index   index.redb  it is damaged\n\
             2 faults; read 7 rows and 2 messages\n"
        );
    }
}
