//! `…/payout-runs/{id}/results`: what became of a run's payouts, in the file of who paid them.

use std::sync::Arc;

use ::affiliate::payouts::results::PayoutResults;
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::payout::results::{self, PayoutResultRow};
use serde_json::{Value, json};

use super::asked::{ReadRequest, ResolvedRequest};
use super::{PayoutRunPath, refusal_problem};
use crate::call::{FromRequest, Media, Owner, Request, RequestSpec};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// Twenty thousand rows of four hundred bytes.
const FILE_BYTES_MAX: usize = 8 << 20;

/// What `POST …/payout-runs/{id}/results` takes.
#[derive(Debug)]
pub struct PayoutResultsFile {
    run: PayoutRunPath,
    rows: Vec<PayoutResultRow>,
}

impl FromRequest for PayoutResultsFile {
    const BODY_BYTES_MAX: Option<usize> = Some(FILE_BYTES_MAX);
    const MEDIA: Media = Media::Csv;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("AffiliatePayoutResults", |_| {
            json!({
                "type": "string",
                "description": "CSV in UTF-8, as PayPal and Wise hand it out. The first line names the columns: \
                    `status` (or PayPal's `Transaction Status`), `reference` (`Transaction ID`, Wise's `ID`) and \
                    `reason`; which payout a row is about says the cell that is its id; up to 20,000 rows",
                "examples": ["id,status,reference,reason\npay_01K9ZQ4Y8M3T5V7W2X6B0C1D9E,paid,PP-1,\n"],
            })
        });
        let parameters = vec![PayoutRunPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let text = std::str::from_utf8(&call.body).map_err(|_| Problem::field("body", "is not UTF-8"))?;
        let rows = results::parse(text).map_err(|error| Problem::field("body", error.to_string()))?;
        Ok(Self { run: PayoutRunPath::of(call), rows })
    }
}

impl ToSchema for PayoutResults {
    fn schema(schemas: &mut Schemas) -> Value {
        let reason = "`invalid_id`, `invalid_status`, `invalid_reference`, `not_in_run`, or what is in the way";
        let skipped = schema::object(
            "A row that does not fit",
            [
                ("row", schema::count("Its row, counted from 1 without the line of names")),
                ("id", schema::nullable_string("The payout (`pay_…`)")),
                ("reason", schema::string(reason)),
            ],
        );
        let fields = [
            ("paid", schema::count("Payouts that are paid now")),
            ("failed", schema::count("Payouts that failed now")),
            ("unchanged", schema::count("Payouts of which nothing new is said")),
            ("skipped", schema::list(skipped, "Rows that do not fit")),
        ];
        schemas.component("AffiliatePayoutsMarked", |_| schema::object("What a file of results came to", fields))
    }
}

/// `POST …/payout-runs/{id}/results`. What fits is marked, the rest is told by row; sent again it changes nothing.
///
/// # Errors
/// It tells no results, or is too long; no such run, or no program.
pub async fn mark_payouts(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<PayoutResultsFile>,
) -> Result<PayoutResults, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let of = (program.account, said.run.id(AffiliateNoun::Run)?);
    let marked = room.affiliate.ledger().apply_result_file(of, said.rows).await;
    marked.map_err(|refusal| refusal_problem(&room, refusal))
}
