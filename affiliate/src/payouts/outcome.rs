//! Settlement of payouts: marked paid or failed by hand; and the clean-up of a deleted partner.

use mail::affiliate::payout::{PayoutState, PayoutStatus};
use mail::id::{AccountId, PartnerId, PayoutId};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{commission, partner_link, payout};
use store::engine::Batch;

use super::{PayoutView, StepOutcome};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, ForbiddenReason};
use crate::ledger::{LINES_AT_ONCE, Ledger, LedgerError, PayoutOutcome, UnitOfWork};
use crate::partners::retire_links;
use crate::service::{ExtendCommit, IfMatch};
use mail::affiliate::commission::{CommissionState, ReversalReason};
use mail::event::EventKind;
use store::affiliate::listing::ListPageRequest;

/// Attempts to commit after conflicts.
const TRIES_MAX: usize = 100;

impl Ledger {
    /// Marks a payout as paid by hand, with a reference as proof. Idempotent for the same reference.
    ///
    /// # Errors
    /// `RunNotApproved`; `PaidOtherwise` with another reference; `PayoutSettled` if it failed; `ProcessorPays` for a
    /// transfer; `if_match` is stale; `NotFound`; the store failed.
    pub async fn mark_paid(
        &self,
        account: AccountId,
        id: PayoutId,
        reference: &str,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<PayoutView, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let view = self.get_payout(account, id).await?;
            IfMatch::check(if_match, view.rev(), view.payout.updated_at)?;
            if !view.payout.method.is_manual() {
                return Err(ForbiddenReason::ProcessorPays.into());
            }
            match view.status {
                PayoutStatus::Draft => return Err(ConflictReason::RunNotApproved.into()),
                PayoutStatus::Failed => return Err(ConflictReason::PayoutSettled.into()),
                PayoutStatus::Paid if view.payout.reference.as_deref() == Some(reference) => {
                    let mut batch = Batch::progress();
                    payout::check_unchanged(&mut batch, &view.payout);
                    extend_commit(&mut batch, &view);
                    if batch.is_empty() || self.commit(batch).await? {
                        return Ok(view);
                    }
                    continue;
                }
                PayoutStatus::Paid => return Err(ConflictReason::PaidOtherwise.into()),
                PayoutStatus::Processing => {}
            }
            let outcome = PayoutOutcome::Paid { reference: Some(reference.to_owned()), transfer: None };
            if let Some(view) = self.settle_open_payout(&view, outcome, extend_commit).await? {
                return Ok(view);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Marks a payout as failed: its lines return to the next run.
    ///
    /// # Errors
    /// `PayoutSettled` unless it is in progress; `TransferUnderWay` while a transfer has no answer; `if_match` is
    /// stale; `NotFound`; the store failed.
    pub async fn fail_payout(
        &self,
        account: AccountId,
        id: PayoutId,
        reason: &str,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<PayoutView, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let view = self.get_payout(account, id).await?;
            IfMatch::check(if_match, view.rev(), view.payout.updated_at)?;
            if view.status != PayoutStatus::Processing {
                return Err(ConflictReason::PayoutSettled.into());
            }
            if view.payout.asking.since.is_some() {
                return Err(ConflictReason::TransferUnderWay.into());
            }
            let outcome = PayoutOutcome::Failed { reason: reason.to_owned(), transfer: None };
            if let Some(view) = self.settle_open_payout(&view, outcome, extend_commit).await? {
                return Ok(view);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Settles a payout that was seen in progress; `None` after a conflict. Updates all its lines before it returns, or
    /// leaves the rest to a job.
    pub(super) async fn settle_open_payout(
        &self,
        before: &PayoutView,
        outcome: PayoutOutcome,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<Option<PayoutView>, AffiliateError> {
        let (account, id) = (before.payout.account, before.payout.id);
        let mut work = UnitOfWork::open(self, account).await?;
        let now = work.payout(id).await?.map(|payout| payout.clone());
        if now.as_ref() != Some(&before.payout) {
            return Ok(None);
        }
        let is_failed = matches!(outcome, PayoutOutcome::Failed { .. });
        work.settle_payout(id, outcome).await?;
        Box::pin(work.recompute_all()).await?;
        let Some(payout) = work.payout(id).await?.map(|payout| payout.clone()) else { return Ok(None) };
        let is_trailing = payout.trail.is_some();
        let status = if is_failed { PayoutStatus::Failed } else { PayoutStatus::Paid };
        let view = PayoutView { payout, status, approved_at: before.approved_at };
        let mut batch = work.build_batch(Batch::progress()).await?;
        extend_commit(&mut batch, &view);
        if !self.commit(batch).await? {
            return Ok(None);
        }
        if is_trailing {
            // The payout is settled already: an error here must not fail the request, because a job continues.
            loop {
                match self.propagate_payout(account, id).await {
                    Ok(StepOutcome::More) => {}
                    Ok(StepOutcome::Done) => break,
                    Err(fault) => {
                        store::warn_unless_away!(self.store(), payout = %id, %fault, "payout settled, but its lines are updated later");
                        break;
                    }
                }
            }
        }
        Ok(Some(view))
    }

    /// Updates the next lines of a settled payout.
    pub(super) async fn propagate_payout(&self, account: AccountId, id: PayoutId) -> Result<StepOutcome, LedgerError> {
        for _ in 0..TRIES_MAX {
            let mut work = UnitOfWork::open(self, account).await?;
            let found = work.payout(id).await?.map(|payout| payout.clone());
            if found.is_none_or(|payout| payout.trail.is_none() || payout.state == PayoutState::Open) {
                let mut batch = Batch::progress();
                payout_job::delete(&mut batch, account, PayoutJob::Payout(id));
                self.commit(batch).await?;
                return Ok(StepOutcome::Done);
            }
            work.propagate_to_lines(id).await?;
            Box::pin(work.recompute_all()).await?;
            let is_done = work.payout(id).await?.is_none_or(|payout| payout.trail.is_none());
            work.schedule_job(PayoutJob::Payout(id), (!is_done).then(|| self.now()));
            if self.commit(work.build_batch(Batch::progress()).await?).await? {
                return Ok(if is_done { StepOutcome::Done } else { StepOutcome::More });
            }
        }
        Err(LedgerError::Contended)
    }

    /// Reverses lines of a partner that is deleted, as many as one commit holds. Returns true if these were all.
    ///
    /// # Errors
    /// `InPayout` if a line is in a payout.
    pub(crate) async fn reverse_partner_lines(
        work: &mut UnitOfWork<'_>,
        partner: PartnerId,
    ) -> Result<bool, AffiliateError> {
        let filter = commission::CommissionFilter {
            partner: Some(partner),
            statuses: vec![commission::CommissionStatus::Pending, commission::CommissionStatus::Earned],
            ..commission::CommissionFilter::default()
        };
        let mut wanted = ListPageRequest { before: None, limit: LINES_AT_ONCE, from: None };
        let mut reversed = 0;
        loop {
            let store = work.ledger.store().clone();
            let page = commission::list(&store, work.account(), &filter, wanted).await?;
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
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn clean_up_deleted_partner(&self, account: AccountId, id: PartnerId) -> Result<(), LedgerError> {
        while self.reverse_more_lines(account, id).await? == StepOutcome::More {}
        Ok(())
    }

    async fn reverse_more_lines(&self, account: AccountId, id: PartnerId) -> Result<StepOutcome, LedgerError> {
        for _ in 0..TRIES_MAX {
            let mut work = UnitOfWork::open(self, account).await?;
            let is_complete = match Self::reverse_partner_lines(&mut work, id).await {
                Ok(is_complete) => is_complete,
                Err(AffiliateError::Read(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::warn!(partner = %id, %refusal, "cannot reverse the commissions of a deleted partner");
                    return Ok(StepOutcome::Done);
                }
            };
            work.schedule_job(PayoutJob::Partner(id), (!is_complete).then(|| self.now()));
            let mut batch = work.build_batch(Batch::progress()).await?;
            retire_links(&mut batch, &partner_link::list(self.store(), account, id).await?, self.now());
            if self.commit(batch).await? {
                return Ok(if is_complete { StepOutcome::Done } else { StepOutcome::More });
            }
        }
        Err(LedgerError::Contended)
    }

    /// Returns a payout as it is visible to API clients.
    ///
    /// # Errors
    /// `NotFound`; the store cannot be read.
    pub async fn get_payout(&self, account: AccountId, id: PayoutId) -> Result<PayoutView, AffiliateError> {
        let unknown = || AffiliateError::NotFound(AffiliateNoun::Payout);
        let payout = payout::get(self.store(), account, id).await?.ok_or_else(unknown)?;
        let run = store::affiliate::payout_run::get(self.store(), account, payout.run).await?;
        run.and_then(|run| PayoutView::from_payout(payout, &run)).ok_or_else(unknown)
    }
}
