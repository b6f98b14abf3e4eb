//! Clean-up of a deleted partner: its open lines are reversed and its links retired.

use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::{CommissionState, ReversalReason};
use model::affiliate::partner::PartnerLink;
use model::event::EventKind;
use model::id::{AccountId, PartnerId};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::payout_job::PayoutJob;
use store::affiliate::{commission, partner_link};
use store::engine::Batch;
use store::retry_on_conflict;

use super::step::StepOutcome;
use crate::context::Context;
use crate::error::{AffiliateError, ConflictReason, LedgerResult as Result};
use crate::ledger::commit_batch::build_batch;
use crate::ledger::settlement::LINES_AT_ONCE;
use crate::ledger::unit_of_work::UnitOfWork;

/// Days during which a deleted partner's tokens cannot be used again.
pub(crate) const TOKEN_QUARANTINE_DAYS: i64 = 90;

/// Reverses lines of a partner that is deleted, as many as one commit holds. Returns true if these were all.
///
/// # Errors
/// `InPayout` if a line is in a payout.
pub(crate) async fn reverse_partner_lines(work: &mut UnitOfWork, partner: PartnerId) -> Result<bool, AffiliateError> {
    let filter = commission::CommissionFilter {
        partner: Some(partner),
        statuses: vec![commission::CommissionStatus::Pending, commission::CommissionStatus::Earned],
        ..commission::CommissionFilter::default()
    };
    let mut wanted = ListPageRequest { before: None, limit: LINES_AT_ONCE, from: None };
    let mut reversed = 0;
    loop {
        let page = commission::list(&work.context.store, work.account(), &filter, wanted).await?;
        for found in page.rows {
            if reversed == LINES_AT_ONCE {
                return Ok(false);
            }
            let Some(mut line) = work.line(found.id).await? else { continue };
            if matches!(line.status, CommissionState::InPayout { .. }) {
                return Err(ConflictReason::InPayout.into());
            }
            let now = work.now;
            if line.reverse(ReversalReason::PartnerDeleted, now)? {
                work.put_line(line, [EventKind::CommissionReversed]);
            }
            reversed += 1;
        }
        match page.next {
            Some(next) => wanted.before = Some(next),
            None => return Ok(true),
        }
    }
}

/// Removes what is left of a deleted partner. The deletion does not check the partner's lines and links, so some
/// may have been committed just before it and are found only now. If this is interrupted, a job continues.
pub(crate) async fn clean_up_deleted_partner(context: &Context, account: AccountId, id: PartnerId) -> Result<()> {
    while reverse_more_lines(context, account, id).await? == StepOutcome::More {}
    Ok(())
}

async fn reverse_more_lines(context: &Context, account: AccountId, id: PartnerId) -> Result<StepOutcome> {
    retry_on_conflict(|| async {
        let mut work = UnitOfWork::open(context, account).await?;
        let is_complete = match reverse_partner_lines(&mut work, id).await {
            Ok(is_complete) => is_complete,
            Err(AffiliateError::Read(error)) => return Err(error.into()),
            Err(refusal) => {
                tracing::warn!(partner = %id, %refusal, "cannot reverse the commissions of a deleted partner");
                return Ok(Some(StepOutcome::Done));
            }
        };
        work.payouts.schedule_job(PayoutJob::Partner(id), (!is_complete).then(|| context.now()));
        let mut batch = build_batch(work, Batch::progress()).await?;
        retire_links(&mut batch, &partner_link::list(&context.store, account, id).await?, context.now());
        Ok(context.commit(batch).await?.then_some(if is_complete { StepOutcome::Done } else { StepOutcome::More }))
    })
    .await
}

/// Deletes the links of a deleted partner and quarantines their tokens.
pub(crate) fn retire_links(batch: &mut Batch, links: &[PartnerLink], now: Timestamp) {
    let quarantine = SignedDuration::from_hours(24 * TOKEN_QUARANTINE_DAYS);
    let until = now.checked_add(quarantine).unwrap_or(Timestamp::MAX);
    for link in links {
        partner_link::delete(batch, link, Some(until));
    }
}
