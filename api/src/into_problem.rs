//! `IntoProblem`: the problem response to an error of a service.

use httpd::problem::Problem;
use queue::intake::submit_error::SubmitError;

use crate::state::AppState;
use crate::submit_problem;

/// An error of a service that has a problem response.
pub(crate) trait IntoProblem {
    fn into_problem(self, state: &AppState) -> Problem;
}

/// A result of a service.
pub(crate) trait OrProblem<T> {
    /// Converts the error to its problem response.
    fn or_problem(self, state: &AppState) -> Result<T, Problem>;
}

impl<T, E: IntoProblem> OrProblem<T> for Result<T, E> {
    fn or_problem(self, state: &AppState) -> Result<T, Problem> {
        self.map_err(|error| error.into_problem(state))
    }
}

impl IntoProblem for SubmitError {
    fn into_problem(self, state: &AppState) -> Problem {
        submit_problem::from_refusal(self, state.upgrade_url())
    }
}
