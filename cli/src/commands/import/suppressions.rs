//! Sends suppressions as CSV lists, one batch after the other, and waits until each is read.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::SuppressedAddress;
use super::csv::write_row;
use crate::client::{ApiClient, Call};
use crate::error::CliError;
use crate::progress::ProgressBar;
use mcp::arguments::encode;

/// Addresses of a batch; the API takes lists up to 16 MiB.
const BATCH_MAX: usize = 20_000;
/// Pauses between two looks at an import.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Longest time without progress.
const STALL_MAX: Duration = Duration::from_secs(120);
const ERRORS_MAX: usize = 20;

/// Sends all addresses. Returns counts and the rows that the server refused.
pub(super) async fn send(client: &ApiClient, addresses: &[SuppressedAddress]) -> Result<Value, CliError> {
    let progress = ProgressBar::new(addresses.len() as u64);
    let (mut created, mut exists, mut invalid, mut refused, mut errors) = (0, 0, 0, 0, Vec::new());
    let mut sent = 0;
    for batch in addresses.chunks(BATCH_MAX) {
        let mut list = String::new();
        write_row(&mut list, &["email", "reason"]);
        for one in batch {
            write_row(&mut list, &[&one.email, one.reason.name()]);
        }
        let mut call = Call::with_json(Method::POST, "/suppressions/import", &json!({"csv": list}));
        // Suppressed twice is suppressed once.
        call.retry = true;
        let answer = client.call(&call).await?.json()?;
        let import = wait(client, &answer["import"], |done| progress.show(sent + done)).await?;
        let count = |name: &str| import["counts"][name].as_u64().unwrap_or(0);
        created += count("created");
        exists += count("exists");
        invalid += count("invalid");
        refused += count("refused");
        let lines = import["errors"].as_array().cloned().unwrap_or_default();
        errors.extend(lines.iter().map(|error| source_error(batch, error)));
        errors.truncate(ERRORS_MAX);
        if import["status"] == "failed" {
            return Err(CliError::Failed(format!(
                "the server stopped the import after {created} new suppressions; run the command again"
            )));
        }
        sent += batch.len() as u64;
    }
    progress.show(sent);
    Ok(json!({"created": created, "exists": exists, "invalid": invalid, "refused": refused, "errors": errors}))
}

/// Waits for the end of an import.
async fn wait(client: &ApiClient, import: &Value, show: impl Fn(u64)) -> Result<Value, CliError> {
    let mut import = import.clone();
    let id = import["id"].as_str().unwrap_or_default().to_owned();
    let (mut pause, mut processed, mut moved_at) = (PAUSE_FIRST, 0, tokio::time::Instant::now());
    while matches!(import["status"].as_str(), Some("queued" | "running")) {
        tokio::time::sleep(pause).await;
        pause = PAUSE_MAX.min(pause * 2);
        let answer = client.call(&Call::get(format!("/suppressions/import/{}", encode(&id)))).await?.json()?;
        import = answer["import"].clone();
        let done = import["counts"]["processed"].as_u64().unwrap_or(0);
        show(done);
        if done != processed {
            (processed, moved_at) = (done, tokio::time::Instant::now());
        }
        if moved_at.elapsed() > STALL_MAX {
            let message = format!(
                "the import {id} is not making progress; `postrider suppressions get-import {id}` shows its status"
            );
            return Err(CliError::Timeout(message));
        }
    }
    Ok(import)
}

/// The error of a line of a batch, with the file and line that it came from.
fn source_error(batch: &[SuppressedAddress], error: &Value) -> Value {
    // The first line has the names of the columns.
    let index = error["line"].as_u64().and_then(|line| usize::try_from(line).ok()?.checked_sub(2));
    match index.and_then(|index| batch.get(index)) {
        Some(one) => json!({"file": one.file, "line": one.line, "message": error["message"]}),
        None => error.clone(),
    }
}
