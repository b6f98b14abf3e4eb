//! Import of a result file: each row marks a payout of the run as paid or failed, as the owner could by hand.
//!
//! Importing the same file again changes nothing. Rows that do not fit are reported, and the rest is applied.

use model::affiliate::payout::PayoutStatus;
use model::affiliate::payout::results::{PayoutResult, PayoutResultRow};
use model::id::{AccountId, PayoutId, PayoutRunId};
use schema::ToSchema;
use serde::Serialize;

use super::view::PayoutView;
use crate::context::{Context, no_extension};
use crate::error::{AffiliateError, Result};

/// The result of importing a results file
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(name = "AffiliatePayoutsMarked")]
pub struct PayoutResults {
    /// Number of payouts marked as paid
    pub paid: usize,
    /// Number of payouts marked as failed
    pub failed: usize,
    /// Number of payouts that already had this result
    pub unchanged: usize,
    /// Number of payouts without a final result yet, for example pending or unclaimed ones
    pub in_progress: usize,
    /// Skipped rows
    pub skipped: Vec<SkippedResultRow>,
}

/// A skipped row
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkippedResultRow {
    /// The row number, from 1; the header line is not counted
    pub row: usize,
    /// The payout (`pay_…`)
    pub id: Option<PayoutId>,
    /// `invalid_id`, `invalid_status`, `invalid_reference`, `not_in_run`, or a description of the conflict
    pub reason: String,
}

/// Applies the rows of a result file to a run's payouts.
pub async fn apply_result_file(
    context: &Context,
    account: AccountId,
    run: PayoutRunId,
    rows: Vec<PayoutResultRow>,
) -> Result<PayoutResults> {
    context.get_run(account, run).await?;
    let mut results = PayoutResults::default();
    for PayoutResultRow { number, payout: id, result: outcome } in rows {
        let mut skip = |reason: String| results.skipped.push(SkippedResultRow { row: number, id, reason });
        let (id, outcome) = match (id, outcome) {
            (Some(id), Ok(outcome)) => (id, outcome),
            (_, Err(column)) => {
                skip(format!("invalid_{column}"));
                continue;
            }
            (None, Ok(_)) => {
                skip("invalid_id".to_owned());
                continue;
            }
        };
        let view = match context.get_payout(account, id).await {
            Ok(view) if view.payout.run == run => view,
            Ok(_) | Err(AffiliateError::NotFound(_)) => {
                skip("not_in_run".to_owned());
                continue;
            }
            Err(refusal) => return Err(refusal),
        };
        match apply_result_row(context, &view, &outcome).await {
            Ok(()) => match outcome {
                PayoutResult::UnderWay => results.in_progress += 1,
                _ if view.status != PayoutStatus::Processing => results.unchanged += 1,
                PayoutResult::Paid(_) => results.paid += 1,
                PayoutResult::Failed(_) => results.failed += 1,
            },
            Err(AffiliateError::Read(error)) => return Err(error.into()),
            Err(AffiliateError::Commit(error)) => return Err(error.into()),
            Err(refusal) => skip(refusal.to_string()),
        }
    }
    Ok(results)
}

/// Applies a row. One that reports no final result yet changes nothing.
async fn apply_result_row(context: &Context, view: &PayoutView, outcome: &PayoutResult) -> Result<()> {
    let (account, id) = (view.payout.account, view.payout.id);
    match outcome {
        PayoutResult::Paid(reference) => {
            context.mark_payout_paid(account, id, reference, None, &no_extension::<PayoutView>).await?;
        }
        PayoutResult::Failed(_) if view.status == PayoutStatus::Failed => {}
        PayoutResult::Failed(reason) => {
            context.fail_payout(account, id, reason, None, &no_extension).await?;
        }
        PayoutResult::UnderWay => {}
    }
    Ok(())
}
