//! `/dashboard/api/affiliate-program/audit`: whether the books are as they must be.

use std::sync::Arc;

use ::affiliate::audit::{AuditReport, Invariant, audit};
use serde_json::{Value, json};

use super::asked::ReadRequest;
use super::refusal_problem;
use crate::call::{NoInput, Owner};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

impl ToSchema for AuditReport {
    fn schema(schemas: &mut Schemas) -> Value {
        let names: Vec<&str> = Invariant::ALL.iter().map(|invariant| invariant.as_str()).collect();
        let broken = schema::object(
            "Something that is not as it must be",
            [
                ("invariant", schema::string_enum(&names, "What it breaks")),
                ("subject", schema::string("The id of what breaks it")),
                ("message", schema::string("In words")),
            ],
        );
        let checked = schema::object(
            "What was looked at",
            [
                ("partners", schema::count("Partners")),
                ("referrals", schema::count("Referrals")),
                ("commissions", schema::count("Commissions")),
                ("payouts", schema::count("Payouts")),
            ],
        );
        let fields = [
            ("ok", json!({"type": "boolean", "description": "Whether nothing is broken"})),
            ("checked", checked),
            ("broken", schema::list(broken, "What is broken; the first thousand")),
        ];
        schemas.component("AffiliateAudit", |_| schema::object("An audit of the books", fields))
    }
}

/// `GET …/audit`.
///
/// # Errors
/// There is no program; the store cannot be read.
pub async fn get(room: Arc<AppState>, owner: Owner, asked: ReadRequest<NoInput>) -> Result<AuditReport, Problem> {
    let account = asked.require_program(&room, owner.tenant()).await?.program.account;
    audit(&room.affiliate.ledger(), account).await.map_err(|fault| refusal_problem(&room, fault.into()))
}
