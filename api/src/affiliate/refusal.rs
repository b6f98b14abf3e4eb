//! Maps errors of the affiliate service to problem responses.

use ::affiliate::error::{AffiliateError, ConflictReason, LedgerError};
use httpd::problem::OUTAGE_RETRY_AFTER_S;
use queue::intake::storage_quota::StorageQuotaError;
use queue::intake::submit_error::SubmitError;

use crate::prelude::*;
use crate::submit_problem;

impl IntoProblem for AffiliateError {
    fn into_problem(self, state: &AppState) -> Problem {
        let text = self.to_string();
        match self {
            Self::NotSetUp => Problem::new(ErrorCode::NOT_FOUND, "The affiliate program is not set up"),
            Self::NotFound(noun) => Problem::not_found(noun.word()),
            Self::Fields(fields) => {
                let mut errors = FieldErrors::default();
                fields.iter().for_each(|(name, reason)| errors.add(name, reason));
                errors.into()
            }
            Self::WrongMove(transition) => Problem::field("status", text)
                .with_detail("status", json!(transition.status))
                .with_detail("action", json!(transition.action)),
            Self::Conflict(ConflictReason::Changed) => {
                Problem::new(ErrorCode::CONFLICT, capitalize(&text)).with_details(json!({"reason": "changed"}))
            }
            Self::Conflict(_) => Problem::new(ErrorCode::CONFLICT, capitalize(&text)),
            Self::MissingSteps(missing) => {
                Problem::new(ErrorCode::CONFLICT, capitalize(&text)).with_details(json!({"missing": missing}))
            }
            Self::Forbidden(_) => Problem::new(ErrorCode::FORBIDDEN, capitalize(&text)),
            Self::Quota(full) => submit_problem::plan_full(full, state.upgrade_url()),
            Self::Counting(noun) => {
                submit_problem::from_quota_error(StorageQuotaError::Counting(noun), state.upgrade_url())
            }
            Self::Upstream(_) => Problem::new(ErrorCode::UPSTREAM_ERROR, capitalize(&text)),
            Self::Commission(refused) => {
                let code = if refused.is_forbidden() { ErrorCode::FORBIDDEN } else { ErrorCode::CONFLICT };
                Problem::new(code, capitalize(&text))
            }
            // An overflow results from the program's own amounts and is no server error.
            Self::Ledger(LedgerError::Arithmetic(_)) => Problem::new(ErrorCode::CONFLICT, capitalize(&text)),
            Self::Ledger(LedgerError::Budget(_)) => Problem::unavailable(capitalize(&text), OUTAGE_RETRY_AFTER_S),
            Self::Seal | Self::Ledger(_) => Problem::internal(text),
            Self::Read(error) => error.into(),
            Self::Commit(error) => SubmitError::from(error).into_problem(state),
        }
    }
}

/// Upper-cases the first character.
fn capitalize(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
