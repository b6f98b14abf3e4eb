//! Checking the store while the server runs.
//!
//! ```text
//! one at a time ─► read snapshot, on a thread of its own ─► progress once a second ─► report
//!                  the asker hangs up ─► the next progress finds no reader ─► the thread ends
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::engine::{BackupProgress, Report, Store};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::AdminError;

/// How often is told how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// How far a check is, in words.
#[must_use]
pub fn progress(done: BackupProgress) -> String {
    format!("{} rows, {} messages, {} MiB read", done.rows, done.bodies, done.bytes >> 20)
}

/// What a check found. `problems` are sentences, `faults` the same in parts.
#[must_use]
pub fn shown(report: &Report) -> Value {
    json!({
        "sound": report.is_sound(),
        "rows": report.rows,
        "bodies": report.bodies,
        "body_bytes": report.body_bytes,
        "problems": report.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "faults": report.problems,
    })
}

/// Reads everything in the store. Refused while another check runs. It ends when nobody listens any more.
pub(super) async fn check(
    store: &Store,
    checking: &Arc<Semaphore>,
    steps: mpsc::Sender<String>,
) -> Result<Value, AdminError> {
    let Ok(only) = Arc::clone(checking).try_acquire_owned() else {
        return Err(AdminError::with_code("busy", "a check of the store is under way: wait until it is done"));
    };
    let (sender, receiver) = watch::channel(BackupProgress::default());
    let watched = move |done| {
        // The next one may begin when this one has ended, not when its asker is gone.
        let _held = &only;
        match sender.send(done) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    let mut checked = std::pin::pin!(store.verify_watched(watched));
    let mut tick = tokio::time::interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
    let report = loop {
        tokio::select! {
            report = &mut checked => break report.map_err(|error| error.to_string())?,
            _ = tick.tick() => {
                // Whoever reads too slowly misses a step.
                let _ = steps.try_send(progress(*receiver.borrow()));
            }
        }
    };
    tracing::info!(
        rows = report.rows,
        bodies = report.bodies,
        problems = report.problems.len(),
        "the store was checked"
    );
    Ok(shown(&report))
}

#[cfg(test)]
mod tests {
    use store::engine::{Batch, RedbOptions};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn one_at_a_time_and_none_for_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&RedbOptions::new(directory.path())).unwrap();
        for n in 0..20_u8 {
            let mut batch = Batch::intake();
            batch.put(vec![1, n].into(), vec![n]).put_body(vec![1, n].into(), vec![n; 2_000]);
            store.commit(batch).await.unwrap();
        }
        let checking = Arc::new(Semaphore::new(1));
        let steps = || mpsc::channel(16).0;
        let held = checking.acquire().await.unwrap();
        let refused = check(&store, &checking, steps()).await.unwrap_err();
        assert_eq!(refused.code, "busy");
        drop(held);
        let begun = tokio::time::timeout(Duration::ZERO, check(&store, &checking, steps())).await;
        drop(begun);
        // It ends, though nobody waits for it; then the next may begin.
        drop(checking.acquire().await.unwrap());
        let shown = check(&store, &checking, steps()).await.unwrap();
        assert_eq!((&shown["sound"], &shown["rows"], &shown["bodies"]), (&json!(true), &json!(20), &json!(20)));
        store.close().await;
    }
}
