//! The problem response to a failed commit.

use httpd::problem::Problem;
use queue::intake::submit_error::SubmitError;
use store::engine::{CommitError, StoreError};

use crate::submit_problem;

/// The response to a failed commit.
pub(crate) fn commit_error_problem(error: CommitError) -> Problem {
    match error {
        CommitError::Conflict { .. } => Problem::busy(),
        error => submit_problem::from_refusal(SubmitError::from(error), None),
    }
}

/// The response to an error of the suppression service.
pub(crate) fn suppression_problem(error: StoreError) -> Problem {
    match error {
        StoreError::Read(error) => error.into(),
        StoreError::Commit(error) => commit_error_problem(error),
    }
}
