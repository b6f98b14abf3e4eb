//! Shows and advances the server's clock (affiliate-admin.md 5).
//!
//! ```text
//! advance ─► shift written to disk ─► clock advanced ─► all tasks due by then are tried once ─► response
//! ```

use std::time::Duration;

use mail::task::QueueName;
use serde_json::{Value, json};

use super::{AdminError, Permissions};
use crate::clock_shift;
use crate::services::Services;

/// Maximum of one advance, in seconds: ten years. Keeps the clock within the range of timestamps.
const ADVANCE_SECONDS_MAX: u64 = 10 * 366 * 24 * 3600;
/// Maximum wait until due tasks have been tried.
const DUE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Interval at which due tasks are counted again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of due tasks that are counted.
const COUNTED_MAX: usize = 100_000;

/// JSON of the clock's time and its offset from the machine's clock.
pub(super) fn clock_view(world: &Services) -> Value {
    json!({"now": world.clock.now(), "offset_s": world.clock.offset().as_secs()})
}

/// Advances the clock. Responds when all tasks that are due by then were tried once, or after 30 seconds. Tasks of
/// destinations that are deferred as a whole are not waited for.
pub(super) async fn advance_clock(
    world: &Services,
    permissions: &Permissions,
    seconds: u64,
) -> Result<Value, AdminError> {
    if !permissions.may_advance_clock {
        let why = "the clock can be advanced only if `clock_offset` is set in [testing]";
        return Err(AdminError::with_code("forbidden", why));
    }
    if seconds > ADVANCE_SECONDS_MAX {
        return Err(format!("at most {ADVANCE_SECONDS_MAX} seconds (ten years) per call").into());
    }
    let by = Duration::from_secs(seconds);
    let then = world.clock.now().checked_add(by).map_err(|error| error.to_string())?;
    let is_put_off = |queue: &QueueName| world.worker.is_deferred(queue);
    let due = async || store::backlog::count_due(&world.store, then, COUNTED_MAX, &is_put_off).await;
    let due_before = due().await.map_err(|error| error.to_string())?;
    let shift = clock_shift::read(&permissions.data_dir).map_err(|error| error.to_string())?.saturating_add(by);
    clock_shift::write(&permissions.data_dir, shift).map_err(|error| error.to_string())?;
    world.clock.advance(by);
    let until = tokio::time::Instant::now() + DUE_WAIT_MAX;
    let left = loop {
        let left = due().await.map_err(|error| error.to_string())?;
        if (left == 0 && world.worker.active_tasks() == 0) || tokio::time::Instant::now() >= until {
            break left;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    let mut view = clock_view(world);
    view["tasks_run"] = json!(due_before.saturating_sub(left));
    Ok(view)
}
