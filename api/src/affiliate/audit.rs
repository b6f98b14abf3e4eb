//! `/dashboard/api/affiliate-program/audit`: checks the invariants of the affiliate ledger.

use std::sync::Arc;

use ::affiliate::audit::{AuditReport, Invariant, audit};
use serde_json::{Value, json};

use super::refusal::refusal_problem;
use super::request::ReadRequest;
use crate::handler::Owner;
use crate::problem::Problem;
use crate::request::NoInput;
use crate::schema::{self, Schemas, ToSchema};
use crate::state::AppState;

impl ToSchema for AuditReport {
    fn schema(schemas: &mut Schemas) -> Value {
        let names: Vec<&str> = Invariant::ALL.iter().map(|invariant| invariant.as_str()).collect();
        let violation_schema = schema::object(
            "A violated invariant",
            [
                ("invariant", schema::string_enum(&names, "The invariant")),
                ("subject", schema::string("The id of the object that violates it")),
                ("message", schema::string("A description")),
            ],
        );
        let checked = schema::object(
            "Number of objects checked",
            [
                ("partners", schema::count("Partners")),
                ("referrals", schema::count("Referrals")),
                ("commissions", schema::count("Commissions")),
                ("payouts", schema::count("Payouts")),
            ],
        );
        let fields = [
            ("ok", json!({"type": "boolean", "description": "Whether all invariants hold"})),
            ("checked", checked),
            ("broken", schema::list(violation_schema, "Violated invariants, at most 1,000")),
        ];
        schemas.component("AffiliateAudit", |_| schema::object("An audit of the ledger", fields))
    }
}

/// `GET …/audit`.
///
/// # Errors
/// There is no program; the store cannot be read.
pub async fn get(state: Arc<AppState>, owner: Owner, request: ReadRequest<NoInput>) -> Result<AuditReport, Problem> {
    let account = request.require_program(&state, owner.tenant()).await?.program.account;
    audit(&state.affiliate.ledger(), account).await.map_err(|fault| refusal_problem(&state, fault.into()))
}
