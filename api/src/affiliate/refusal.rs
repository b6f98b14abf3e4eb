//! Maps errors of the affiliate service to problem responses.

use ::affiliate::error::LedgerError;
use ::affiliate::error::{AffiliateError, ConflictReason};
use httpd::problem::OUTAGE_RETRY_AFTER_S;
use queue::intake::storage_quota::StorageQuotaError;

use crate::prelude::*;
use crate::submit_problem;

/// Maps an affiliate error to its problem response.
pub(crate) fn refusal_problem(state: &AppState, refusal: AffiliateError) -> Problem {
    let text = refusal.to_string();
    match refusal {
        AffiliateError::NotSetUp => Problem::new(ErrorCode::NOT_FOUND, "The affiliate program is not set up"),
        AffiliateError::NotFound(noun) => Problem::not_found(noun.word()),
        AffiliateError::Fields(fields) => {
            let mut errors = FieldErrors::default();
            fields.iter().for_each(|(name, reason)| errors.add(name, reason));
            errors.into()
        }
        AffiliateError::WrongMove(transition) => Problem::field("status", text)
            .with_detail("status", json!(transition.status))
            .with_detail("action", json!(transition.action)),
        AffiliateError::Conflict(ConflictReason::Changed) => {
            Problem::new(ErrorCode::CONFLICT, capitalize(&text)).with_details(json!({"reason": "changed"}))
        }
        AffiliateError::Conflict(_) => Problem::new(ErrorCode::CONFLICT, capitalize(&text)),
        AffiliateError::MissingSteps(missing) => {
            Problem::new(ErrorCode::CONFLICT, capitalize(&text)).with_details(json!({"missing": missing}))
        }
        AffiliateError::Forbidden(_) => Problem::new(ErrorCode::FORBIDDEN, capitalize(&text)),
        AffiliateError::Quota(full) => submit_problem::plan_full(full, state.upgrade_url()),
        AffiliateError::Counting(noun) => {
            submit_problem::from_quota_error(StorageQuotaError::Counting(noun), state.upgrade_url())
        }
        AffiliateError::Upstream(_) => Problem::new(ErrorCode::UPSTREAM_ERROR, capitalize(&text)),
        AffiliateError::Commission(refused) => {
            let code = if refused.is_forbidden() { ErrorCode::FORBIDDEN } else { ErrorCode::CONFLICT };
            Problem::new(code, capitalize(&text))
        }
        // An overflow results from the program's own amounts and is no server error.
        AffiliateError::Ledger(LedgerError::Arithmetic(_)) => Problem::new(ErrorCode::CONFLICT, capitalize(&text)),
        AffiliateError::Ledger(LedgerError::Budget(_)) => Problem::unavailable(capitalize(&text), OUTAGE_RETRY_AFTER_S),
        AffiliateError::Seal | AffiliateError::Ledger(_) => Problem::internal(text),
        AffiliateError::Read(error) => error.into(),
        AffiliateError::Commit(error) => submit_problem::from_refusal(error.into(), state.upgrade_url()),
    }
}

/// Upper-cases the first character.
fn capitalize(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
