//! Counts the queued recipients of partitions that were acquired without a count.

use std::time::Duration;

use crate::services::Services;

/// Interval for checking which partitions need a count of their recipients.
const COUNT_AGAIN: Duration = Duration::from_secs(2);

/// Counts the tasks of uncounted partitions, a page at a time, until shutdown.
pub(crate) async fn run_queue_counter(services: Services) {
    loop {
        match services.store.queue_counts().read(&services.store, services.clock.now()).await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => tokio::select! {
                () = services.leases.changed() => {}
                () = tokio::time::sleep(COUNT_AGAIN) => {}
                () = services.stop.cancelled() => return,
            },
            Err(error) => {
                store::warn_unless_away!(services.store, %error, "cannot count queued recipients; retrying");
                tokio::select! {
                    () = tokio::time::sleep(COUNT_AGAIN) => {}
                    () = services.stop.cancelled() => return,
                }
            }
        }
        if services.stop.is_cancelled() {
            return;
        }
    }
}
