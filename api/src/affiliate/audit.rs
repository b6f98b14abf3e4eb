//! `/dashboard/api/affiliate-program/audit`: checks the invariants of the affiliate ledger.

use ::affiliate::audit::report::AuditReport;
use ::affiliate::audit::runner::AuditWait;

use super::request::ReadRequest;
use crate::prelude::*;

/// Query of `GET …/audit`.
#[derive(Debug)]
pub struct AuditQuery {
    wait: AuditWait,
}

impl RequestQuery for AuditQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let wait = query.parameter(
            "wait",
            "`false`: answer at once, with the last result of the last 10 minutes, or without one with `status` \
             `running`. Another audit begins if there is no result, or if the newest rows of the ledger have changed \
             since. By default the response waits for an audit that begins after the request, or at most 2 seconds \
             before it",
            || json!({"type": "boolean", "default": true}),
        )?;
        let wait = match wait {
            None | Some("true") => AuditWait::ForResult,
            Some("false") => AuditWait::No,
            Some(_) => return Err(Problem::field("wait", "must be true or false")),
        };
        Ok(Self { wait })
    }
}

/// `GET …/audit`.
pub async fn get(state: State, owner: Owner, request: ReadRequest<AuditQuery>) -> Result<AuditReport> {
    let request = request.require_program(&state, owner.tenant()).await?;
    let report =
        state.affiliate.audits.audit(state.affiliate.ledger.clone(), request.program.account, request.input.wait).await;
    report.or_problem(&state)
}
