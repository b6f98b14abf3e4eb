//! The start while the database is unavailable: the server waits, with a log line after the first try and one a minute,
//! and asks systemd for more time. Wrong configuration ends the start at once.

use std::fmt::Display;

use model::outage::Outage;
use store::engine::start_wait::retry_while_away;
use store::engine::{OpenError, PostgresOptions, Store};
use tokio::time::Instant;

/// Time that a step of the start may take from each failure on: longer than its pause and its next try together.
const START_TIMEOUT_US: u32 = 60_000_000;

/// Connects to the database as soon as it is available.
///
/// # Errors
/// The database is available but cannot be used; see [`Store::connect`].
pub(crate) async fn connect(database: &PostgresOptions) -> Result<Store, OpenError> {
    let (began, mut outage) = (Instant::now(), Outage::after(1));
    let store = retry_while_away(
        || Store::connect(database),
        OpenError::is_away,
        |why| {
            extend_start_timeout();
            if let Some(notice) = outage.failed(began.elapsed()) {
                let since_s = notice.lasts.as_secs();
                tracing::warn!(%why, since_s, "the database does not answer: the server starts when it does");
            }
        },
    )
    .await?;
    if let Some(ended) = outage.answered(began.elapsed()) {
        tracing::info!(lasted_s = ended.lasts.as_secs(), "the database is responding again");
    }
    Ok(store)
}

/// Repeats a step of the start that uses the open store while the database is unavailable. The store logs the outage.
///
/// # Errors
/// The first other error of the step.
pub(crate) async fn retry_step<T, E: Display, F: Future<Output = Result<T, E>>>(
    step: impl FnMut() -> F,
    is_away: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let waiting = |error: &E| {
        extend_start_timeout();
        tracing::debug!(%error, "a step of the start is repeated");
    };
    retry_while_away(step, is_away, waiting).await
}

/// Asks systemd to wait longer for the end of the start. Fails without systemd, which is no error.
fn extend_start_timeout() {
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::ExtendTimeoutUsec(START_TIMEOUT_US)]);
}
