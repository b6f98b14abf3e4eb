//! `…/payout-runs/{id}/results`: imports the results of a run's payouts from the payment provider's CSV file.

use ::affiliate::payouts::results::{PayoutResults, apply_result_file};
use model::affiliate::payout::results::{self, PayoutResultRow};

use super::path::PayoutRunPath;
use super::request::{ReadRequest, ResolvedRequest};
use crate::prelude::*;

/// Enough for 20,000 rows of 400 bytes.
const FILE_BYTES_MAX: usize = 8 << 20;

/// Body of `POST …/payout-runs/{id}/results`.
#[derive(Debug)]
pub struct PayoutResultsFile(Vec<PayoutResultRow>);

impl FromRequest for PayoutResultsFile {
    const BODY_BYTES_MAX: Option<usize> = Some(FILE_BYTES_MAX);
    const MEDIA: Media = Media::Csv;
    const BODY: Option<BodySchema> = Some(|schemas| {
        schemas.component("AffiliatePayoutResults", |_| {
            json!({
                "type": "string",
                "description": "CSV in UTF-8, as exported by PayPal and Wise. The first line names the columns: \
                    `status` (or PayPal's `Transaction Status`), `reference` (`Transaction ID`, Wise's `ID`) and \
                    `reason`. The cell with a payout's id assigns the row to that payout. At most 20,000 rows",
                "examples": ["id,status,reference,reason\npay_01K9ZQ4Y8M3T5V7W2X6B0C1D9E,paid,PP-1,\n"],
            })
        })
    });

    fn read(call: &Request) -> Result<Self> {
        let text = std::str::from_utf8(&call.body).map_err(|_| Problem::field("body", "is not UTF-8"))?;
        results::parse(text).map(Self).map_err(|error| Problem::field("body", error.to_string()))
    }
}

/// `POST …/payout-runs/{id}/results`. Valid rows are applied, invalid ones are listed. Sending a file again changes
/// nothing.
///
/// # Errors
/// The body is not a valid results file or too long; the run or the program does not exist.
pub async fn mark_payouts(
    state: State,
    owner: Owner,
    request: ReadRequest<(PayoutRunPath, PayoutResultsFile)>,
) -> Result<PayoutResults> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let (run, PayoutResultsFile(rows)) = input;
    let id = run.id()?;
    apply_result_file(&state.affiliate.ledger, program.account, id, rows).await.or_problem(&state)
}
