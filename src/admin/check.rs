//! Checks the store while the server runs.
//!
//! ```text
//! one check at a time ─► read snapshot, on its own thread ─► progress once a second ─► report
//!                        client disconnects ─► sending the next progress fails ─► the thread ends
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::engine::{BackupProgress, Report, Store};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::error::AdminError;

/// Interval of progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Formats the progress of a check.
pub fn progress(done: BackupProgress) -> String {
    format!("{}, {}, {} MiB read", counted(done.rows, "row"), counted(done.bodies, "message"), done.bytes >> 20)
}

/// A number with its noun, which gets an `s` in the plural.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// JSON of a check's report. `faults` contains the parts of the sentences in `problems`.
pub fn report_view(report: &Report) -> Value {
    json!({
        "sound": report.is_sound(),
        "rows": report.rows,
        "bodies": report.bodies,
        "body_bytes": report.body_bytes,
        "problems": report.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "faults": report.problems,
    })
}

/// Reads everything in the store. Returns `busy` while another check runs. Dropping the future stops the check.
pub(super) async fn check(
    store: &Store,
    check_permit: &Arc<Semaphore>,
    steps: mpsc::Sender<String>,
) -> Result<Value, AdminError> {
    let Ok(permit) = Arc::clone(check_permit).try_acquire_owned() else {
        return Err(AdminError::with_code("busy", "another check of the store is running: try again when it is done"));
    };
    let (sender, receiver) = watch::channel(BackupProgress::default());
    let on_progress = move |done| {
        // The permit is released when this check's thread ends, not when its client disconnects.
        let _held = &permit;
        match sender.send(done) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    let mut check = std::pin::pin!(store.verify_watched(on_progress));
    let mut tick = tokio::time::interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    let mut has_reported = false;
    let report = loop {
        tokio::select! {
            report = &mut check => break report.map_err(|error| error.to_string())?,
            _ = tick.tick() => {
                // A client that reads slowly misses progress lines.
                let _ = steps.try_send(progress(*receiver.borrow()));
                has_reported = true;
            }
        }
    };
    if has_reported {
        let _ = steps.try_send(progress(*receiver.borrow()));
    }
    tracing::info!(rows = report.rows, bodies = report.bodies, problems = report.problems.len(), "store checked");
    Ok(report_view(&report))
}

#[cfg(test)]
mod tests {
    use store::engine::{Batch, RedbOptions};

    use super::*;

    #[test]
    fn numbers_have_their_nouns() {
        let done = BackupProgress { rows: 162, bodies: 1, bytes: 3 << 20 };
        assert_eq!(progress(done), "162 rows, 1 message, 3 MiB read");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_check_at_a_time_and_a_dropped_check_ends() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&RedbOptions::new(directory.path())).unwrap();
        for n in 0..20_u8 {
            let mut batch = Batch::intake();
            batch.put(vec![1, n].into(), vec![n]).put_body(vec![1, n].into(), vec![n; 2_000]);
            store.commit(batch).await.unwrap();
        }
        let check_permit = Arc::new(Semaphore::new(1));
        let steps = || mpsc::channel(16).0;
        let permit = check_permit.acquire().await.unwrap();
        let error = check(&store, &check_permit, steps()).await.unwrap_err();
        assert_eq!(error.code, "busy");
        drop(permit);
        let timed_out = tokio::time::timeout(Duration::ZERO, check(&store, &check_permit, steps())).await;
        drop(timed_out);
        // The dropped check ends by itself and releases the permit.
        drop(check_permit.acquire().await.unwrap());
        let view = check(&store, &check_permit, steps()).await.unwrap();
        assert_eq!((&view["sound"], &view["rows"], &view["bodies"]), (&json!(true), &json!(20), &json!(20)));
        store.close().await;
    }
}
