//! Steps of the work on a run, each one commit, and the lease that keeps other workers from it meanwhile.

use jiff::{SignedDuration, Timestamp};

/// Maximum lines that one commit drafts or releases.
pub(super) const LINES_AT_ONCE: usize = 400;
/// Time during which no other worker continues a job that a request is running.
const DRIVER_LEASE: SignedDuration = SignedDuration::from_secs(60);

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    More,
    Done,
}

/// Returns the time until which the current worker has the job to itself.
pub(super) fn lease_until(now: Timestamp) -> Timestamp {
    now.checked_add(DRIVER_LEASE).unwrap_or(Timestamp::MAX)
}
