//! Shows and advances the server's clock.
//!
//! ```text
//! advance ─► shift written to disk ─► clock advanced ─► all tasks due by then are tried once ─► response
//! ```

use std::time::Duration;

use model::task::QueueName;
use serde_json::{Value, json};

use super::error::AdminError;
use super::permissions::Permissions;
use crate::clock_shift;
use crate::services::Server;

/// Maximum of one advance, in seconds: ten years. Keeps the clock within the range of timestamps.
const ADVANCE_SECONDS_MAX: u64 = 10 * 366 * 24 * 3600;
/// Maximum wait until due tasks have been tried.
const DUE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Interval at which due tasks are counted again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of due tasks that are counted.
const COUNTED_MAX: usize = 100_000;

/// JSON of the clock's time and its offset from the machine's clock.
pub(super) fn clock_view(server: &Server) -> Value {
    json!({"now": server.clock.now(), "offset_s": server.clock.offset().as_secs()})
}

/// Advances the clock. Responds when all tasks that are due by then were tried once, or after 30 seconds. Tasks of
/// destinations that are deferred as a whole are not waited for.
pub(super) async fn advance_clock(
    server: &Server,
    permissions: &Permissions,
    seconds: u64,
) -> Result<Value, AdminError> {
    if !permissions.may_advance_clock {
        let message = "the clock can be advanced only if `clock_offset` is set in [testing]";
        return Err(AdminError::with_code("forbidden", message));
    }
    if seconds > ADVANCE_SECONDS_MAX {
        return Err(format!("at most {ADVANCE_SECONDS_MAX} seconds (ten years) per call").into());
    }
    let duration = Duration::from_secs(seconds);
    let new_time = server.clock.now().checked_add(duration).map_err(|error| error.to_string())?;
    let is_deferred = |queue: &QueueName| server.queue.delivery.scheduler.is_deferred(queue);
    let count_due = async || store::backlog::count_due(&server.store, new_time, COUNTED_MAX, &is_deferred).await;
    let count_before = count_due().await.map_err(|error| error.to_string())?;
    let shift = clock_shift::read(&permissions.data_dir).map_err(|error| error.to_string())?.saturating_add(duration);
    clock_shift::write(&permissions.data_dir, shift).map_err(|error| error.to_string())?;
    server.clock.advance(duration);
    let deadline = tokio::time::Instant::now() + DUE_WAIT_MAX;
    let left = loop {
        let left = count_due().await.map_err(|error| error.to_string())?;
        if (left == 0 && server.queue.delivery.queues.active_tasks() == 0) || tokio::time::Instant::now() >= deadline {
            break left;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    let mut view = clock_view(server);
    view["tasks_run"] = json!(count_before.saturating_sub(left));
    Ok(view)
}
