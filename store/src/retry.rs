//! Optimistic concurrency: read, decide, commit; after a conflict read and decide again.

use thiserror::Error;

/// Attempts to commit before [`RetriesExhausted`]. Of concurrent commits to the same rows one always succeeds.
const ATTEMPTS_MAX: usize = 100;

/// Every attempt to commit conflicted with another commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the same rows are being changed concurrently; try again later")]
pub struct RetriesExhausted;

/// Repeats an attempt to read, decide and commit, until it succeeds. An attempt returns `None` after a conflict.
///
/// # Errors
/// The attempt failed for another reason than a conflict, or [`RetriesExhausted`] after 100 conflicts.
pub async fn retry_on_conflict<T, E: From<RetriesExhausted>, F: Future<Output = Result<Option<T>, E>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(done) = attempt().await? {
            return Ok(done);
        }
    }
    Err(RetriesExhausted.into())
}
