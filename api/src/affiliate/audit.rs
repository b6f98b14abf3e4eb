//! `/dashboard/api/affiliate-program/audit`: checks the invariants of the affiliate ledger.

use std::sync::Arc;

use ::affiliate::audit::{AuditReport, audit};

use super::refusal::refusal_problem;
use super::request::ReadRequest;
use crate::handler::Owner;
use crate::problem::Problem;
use crate::request::NoInput;
use crate::state::AppState;

/// `GET …/audit`.
///
/// # Errors
/// There is no program; the store cannot be read.
pub async fn get(state: Arc<AppState>, owner: Owner, request: ReadRequest<NoInput>) -> Result<AuditReport, Problem> {
    let account = request.require_program(&state, owner.tenant()).await?.program.account;
    audit(&state.affiliate.ledger(), account).await.map_err(|fault| refusal_problem(&state, fault.into()))
}
