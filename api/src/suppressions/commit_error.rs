//! The problem response to a failed commit.

use queue::submit_error::SubmitError;
use store::engine::CommitError;

use crate::problem::Problem;

/// The response to a failed commit.
pub(crate) fn commit_error_problem(error: CommitError) -> Problem {
    match error {
        CommitError::Conflict { .. } => Problem::busy(),
        error => Problem::from_refusal(SubmitError::from(error), None),
    }
}
