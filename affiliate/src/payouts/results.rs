//! What who pays says became of a run's payouts: each row is one of them paid, or failed, as if the owner said so.
//!
//! The same file twice changes nothing the second time; what does not fit is told by row, and the rest is done.

use mail::affiliate::payout::PayoutStatus;
use mail::affiliate::payout::results::{PayoutResult, PayoutResultRow};
use mail::id::{AccountId, PayoutId, PayoutRunId};
use serde::Serialize;

use crate::ledger::Ledger;
use crate::office::no_extension;
use crate::payouts::PayoutView;
use crate::refusal::AffiliateError;

/// What a file came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PayoutResults {
    /// Payouts that are paid now.
    pub paid: usize,
    /// Payouts that failed now.
    pub failed: usize,
    /// Payouts of which it says what is known, or nothing yet.
    pub unchanged: usize,
    /// Rows that do not fit.
    pub skipped: Vec<SkippedResultRow>,
}

/// A row that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedResultRow {
    /// The row, from 1.
    pub row: usize,
    /// The payout, where it names one.
    pub id: Option<PayoutId>,
    /// Why: `invalid_id`, `invalid_status`, `invalid_reference`, `not_in_run`, or a sentence.
    pub reason: String,
}

impl Ledger {
    /// Marks a run's payouts as a file says.
    ///
    /// # Errors
    /// There is no such run; the store cannot be read or written.
    pub async fn apply_result_file(
        &self,
        (account, run): (AccountId, PayoutRunId),
        rows: Vec<PayoutResultRow>,
    ) -> Result<PayoutResults, AffiliateError> {
        self.get_run(account, run).await?;
        let mut results = PayoutResults::default();
        for PayoutResultRow { number, payout: id, result: became } in rows {
            let mut skip = |reason: String| results.skipped.push(SkippedResultRow { row: number, id, reason });
            let (id, became) = match (id, became) {
                (Some(id), Ok(became)) => (id, became),
                (_, Err(column)) => {
                    skip(format!("invalid_{column}"));
                    continue;
                }
                (None, Ok(_)) => {
                    skip("invalid_id".to_owned());
                    continue;
                }
            };
            let shown = match self.get_payout(account, id).await {
                Ok(shown) if shown.payout.run == run => shown,
                Ok(_) | Err(AffiliateError::NotFound(_)) => {
                    skip("not_in_run".to_owned());
                    continue;
                }
                Err(refusal) => return Err(refusal),
            };
            match self.apply_result_row(&shown, &became).await {
                Ok(true) if shown.status == PayoutStatus::Processing => match became {
                    PayoutResult::Paid(_) => results.paid += 1,
                    PayoutResult::Failed(_) | PayoutResult::UnderWay => results.failed += 1,
                },
                Ok(_) => results.unchanged += 1,
                Err(AffiliateError::Read(error)) => return Err(error.into()),
                Err(AffiliateError::Commit(error)) => return Err(error.into()),
                Err(refusal) => skip(refusal.to_string()),
            }
        }
        Ok(results)
    }

    /// Whether it was said of the payout, now or before.
    async fn apply_result_row(&self, shown: &PayoutView, became: &PayoutResult) -> Result<bool, AffiliateError> {
        let of = (shown.payout.account, shown.payout.id);
        match became {
            PayoutResult::Paid(reference) => {
                self.mark_paid(of, (reference, None), &no_extension::<PayoutView>).await?;
            }
            PayoutResult::Failed(_) if shown.status == PayoutStatus::Failed => {}
            PayoutResult::Failed(reason) => {
                self.fail_payout(of, (reason, None), &no_extension).await?;
            }
            PayoutResult::UnderWay => return Ok(false),
        }
        Ok(true)
    }
}
