//! `/dashboard/api/affiliate-program/audit`: whether the books are as they must be.

use std::sync::Arc;

use ::affiliate::audit::{Audit, Invariant, audit};
use serde_json::{Value, json};

use super::asked::Read;
use super::refused;
use crate::call::{Nothing, Owner};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

impl Describe for Audit {
    fn schema(schemas: &mut Schemas) -> Value {
        let names: Vec<&str> = Invariant::ALL.iter().map(|invariant| invariant.as_str()).collect();
        let broken = schema::object(
            "Something that is not as it must be",
            [
                ("invariant", schema::words(&names, "What it breaks")),
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
        schemas.named("AffiliateAudit", |_| schema::object("An audit of the books", fields))
    }
}

/// `GET …/audit`.
///
/// # Errors
/// There is no program; the store cannot be read.
pub async fn get(room: Arc<Room>, owner: Owner, asked: Read<Nothing>) -> Result<Audit, Problem> {
    let account = asked.open_any(&room, owner.tenant()).await?.program.account;
    audit(&room.affiliate.ledger(), account).await.map_err(|fault| refused(&room, fault.into()))
}
