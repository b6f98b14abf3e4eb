//! The operator's clock: what it says, and moving it forward (affiliate-admin.md 5).
//!
//! ```text
//! advance ─► the shift is on disk ─► the clock is moved ─► what is due by then is tried, once ─► answered
//! ```

use std::time::Duration;

use mail::task::QueueName;
use serde_json::{Value, json};

use super::{AdminError, Permissions};
use crate::clock_shift;
use crate::world::Services;

/// The clock is not sent to where times end.
const ADVANCE_SECONDS_MAX: u64 = 10 * 366 * 24 * 3600;
/// How long is waited for what is due.
const DUE_WAIT_MAX: Duration = Duration::from_secs(30);
/// How often is looked whether it was tried.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// So much that is due is counted.
const COUNTED_MAX: usize = 100_000;

/// What the clock says, and how far it is ahead of the machine's.
pub(super) fn clock_view(world: &Services) -> Value {
    json!({"now": world.clock.now(), "offset_s": world.clock.offset().as_secs()})
}

/// Moves the clock forward, and answers when all that is due by then was tried once, or after half a minute. Mail for a
/// destination to which nothing goes now is not waited for.
pub(super) async fn advance_clock(world: &Services, rights: &Permissions, seconds: u64) -> Result<Value, AdminError> {
    if !rights.may_advance_clock {
        let why = "the clock moves only where the configuration has `clock_offset` in [testing]";
        return Err(AdminError::with_code("forbidden", why));
    }
    if seconds > ADVANCE_SECONDS_MAX {
        return Err(format!("at most {ADVANCE_SECONDS_MAX} seconds (ten years) at once").into());
    }
    let by = Duration::from_secs(seconds);
    let then = world.clock.now().checked_add(by).map_err(|error| error.to_string())?;
    let is_put_off = |queue: &QueueName| world.worker.is_deferred(queue);
    let due = async || store::due::count_due(&world.store, then, COUNTED_MAX, &is_put_off).await;
    let waiting = due().await.map_err(|error| error.to_string())?;
    let shift = clock_shift::read(&rights.data_dir).map_err(|error| error.to_string())?.saturating_add(by);
    clock_shift::write(&rights.data_dir, shift).map_err(|error| error.to_string())?;
    world.clock.advance(by);
    let until = tokio::time::Instant::now() + DUE_WAIT_MAX;
    let left = loop {
        let left = due().await.map_err(|error| error.to_string())?;
        if (left == 0 && world.worker.active_tasks() == 0) || tokio::time::Instant::now() >= until {
            break left;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    let mut shown = clock_view(world);
    shown["tasks_run"] = json!(waiting.saturating_sub(left));
    Ok(shown)
}
