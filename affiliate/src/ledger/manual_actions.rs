//! Manual operations of the owner and the API on commissions and referrals.

use model::affiliate::commission::{Commission, CommissionState, ReversalReason};
use model::affiliate::recompute::ReferralBar;
use model::affiliate::referral::{
    Referral, ReferralRejection, ReferralReview, ReferralStatus, RejectReason, ReviewStatus,
};
use model::affiliate::sale::SaleReturns;
use model::event::EventKind;
use model::id::{AccountId, CommissionId, ReferralId};
use store::engine::Batch;
use store::retry_on_conflict;

use super::commit_batch::build_batch;
use super::recompute::{money_returned, recompute_all, recompute_bounty, recompute_invoice};
use super::unit_of_work::UnitOfWork;
use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, LedgerError, Result};
use crate::if_match::IfMatch;

/// The owner's decision on a referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferralDecision {
    /// Unfreezes the referral's lines. A rejected referral gets its former status back; its reversed lines stay
    /// reversed.
    Allow,
    /// Rejects the referral: open lines are reversed, and it earns nothing any more.
    Reject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommissionReversal {
    pub reason: ReversalReason,
    /// Stored with the line and included in its event.
    pub note: Option<String>,
    /// The version of the line that the caller has seen.
    pub seen: Option<IfMatch>,
}

impl From<ReversalReason> for CommissionReversal {
    fn from(reason: ReversalReason) -> Self {
        Self { reason, note: None, seen: None }
    }
}

impl Context {
    /// Reverses a commission; does nothing if it is reversed already. With [`ReversalReason::Fraud`], the recruiter's
    /// share is reversed as well.
    ///
    /// # Errors
    /// The commission is paid or in a payout; `seen` is stale; `NotFound`; the store failed.
    pub async fn reverse_commission(
        &self,
        account: AccountId,
        id: CommissionId,
        reversal: &CommissionReversal,
        extend_commit: ExtendCommit<'_, Commission>,
    ) -> Result<Commission> {
        retry_on_conflict(|| async {
            let mut work = UnitOfWork::open(self, account).await?;
            let mut line = work.line(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Commission))?;
            IfMatch::check(reversal.seen.as_ref(), line.rev, line.updated_at)?;
            if line.reverse(reversal.reason, work.now)? {
                line.note.clone_from(&reversal.note);
                work.put_line(line.clone(), [EventKind::CommissionReversed]);
                recompute_after_change(&mut work, &line).await?;
            }
            let line = work.line(id).await?.unwrap_or(line);
            Ok(self.commit_extended(work, extend_commit, &line).await?.then_some(line))
        })
        .await
    }

    /// Reinstates a reversed commission: its hold starts again, and the refunds and disputes known now are waived. A
    /// further dispute or refund reverses it again.
    ///
    /// # Errors
    /// `NotReversed`; `ReferralBarred` if its referral may not earn; `PartnerGone`; `if_match` is stale; the store
    /// failed.
    pub async fn reinstate_commission(
        &self,
        account: AccountId,
        id: CommissionId,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, Commission>,
    ) -> Result<Commission> {
        retry_on_conflict(|| async {
            let mut work = UnitOfWork::open(self, account).await?;
            let mut line = work.line(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Commission))?;
            IfMatch::check(if_match, line.rev, line.updated_at)?;
            let referral =
                work.referrals.load(line.referral).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?;
            if ReferralBar::from_referral(referral).is_some() {
                return Err(ConflictReason::ReferralBarred.into());
            }
            let returned = match line.sold_invoice() {
                Some(sale) => money_returned(&mut work, &sale.invoice).await?,
                None => SaleReturns::default(),
            };
            line.reinstate(&returned, work.now).map_err(|_| ConflictReason::NotReversed)?;
            work.put_line(line.clone(), []);
            // Freezes the line if its referral is frozen.
            recompute_after_change(&mut work, &line).await?;
            let line = work.line(id).await?.unwrap_or(line);
            if matches!(line.status, CommissionState::Reversed { .. }) {
                return Err(ConflictReason::PartnerGone.into());
            }
            Ok(self.commit_extended(work, extend_commit, &line).await?.then_some(line))
        })
        .await
    }

    /// Allows or rejects a referral, flagged or not. Idempotent.
    ///
    /// # Errors
    /// `ReferralLapsed` if another referral has replaced it; `if_match` is stale; `NotFound`; the store failed.
    pub async fn decide_referral(
        &self,
        account: AccountId,
        id: ReferralId,
        verdict: ReferralDecision,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, Referral>,
    ) -> Result<Referral> {
        // `if_match` applies to the first commit only: that commit changes the version.
        let mut if_match = if_match;
        loop {
            let done = retry_on_conflict::<_, AffiliateError, _>(|| async {
                let mut work = UnitOfWork::open(self, account).await?;
                let now = work.now;
                let referral =
                    work.referrals.load(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?;
                IfMatch::check(if_match, referral.rev, referral.updated_at)?;
                if referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
                    return Err(ConflictReason::ReferralLapsed.into());
                }
                apply_decision(referral, verdict, now);
                // Continues with the customers of an earlier attempt that was interrupted.
                let customers: Vec<String> = referral.customers().cloned().collect();
                work.touched.customers.extend(customers);
                work.touched.referrals.insert(id);
                let is_whole = Box::pin(recompute_all(&mut work)).await?;
                let referral =
                    work.referrals.load(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?.clone();
                let is_done = if is_whole {
                    self.commit_extended(work, extend_commit, &referral).await?
                } else {
                    self.commit(build_batch(work, Batch::progress()).await?).await?
                };
                Ok(is_done.then_some(is_whole.then_some(referral)))
            })
            .await?;
            if let Some(referral) = done {
                return Ok(self.reload_referral(account, referral).await?);
            }
            if_match = None;
        }
    }

    async fn reload_referral(&self, account: AccountId, referral: Referral) -> Result<Referral, LedgerError> {
        let found = store::affiliate::referral::get(&self.store, account, referral.id).await?;
        Ok(found.unwrap_or(referral))
    }

    async fn commit_extended<T>(&self, work: UnitOfWork, extend_commit: ExtendCommit<'_, T>, done: &T) -> Result<bool> {
        let mut batch = build_batch(work, Batch::progress()).await?;
        extend_commit(&mut batch, done);
        Ok(self.commit(batch).await?)
    }
}

fn apply_decision(referral: &mut Referral, verdict: ReferralDecision, now: jiff::Timestamp) {
    let status = match verdict {
        ReferralDecision::Allow => ReviewStatus::Allowed,
        ReferralDecision::Reject => ReviewStatus::Rejected,
    };
    match verdict {
        ReferralDecision::Allow => {
            if let Some(rejection) = referral.rejection.take() {
                referral.status = rejection.was;
            }
        }
        ReferralDecision::Reject => {
            let previous_status = referral.status;
            referral.rejection.get_or_insert(ReferralRejection { reason: RejectReason::Owner, was: previous_status });
            referral.status = ReferralStatus::Rejected;
        }
    }
    let review = referral.review.get_or_insert_with(|| ReferralReview {
        flags: Vec::new(),
        status: ReviewStatus::Open,
        created_at: now,
        decided_at: None,
    });
    if review.status != status {
        review.status = status;
        review.decided_at = Some(now);
    }
}

/// Recomputes what depends on a line that was changed manually.
async fn recompute_after_change(work: &mut UnitOfWork, line: &Commission) -> Result<(), LedgerError> {
    match line.sold_invoice() {
        Some(sale) => recompute_invoice(work, &sale.invoice).await,
        None => recompute_bounty(work, line.referral).await,
    }
}
