//! What the owner and the API do to commissions and referrals by hand.

use mail::affiliate::commission::{Commission, CommissionState, ReversalReason};
use mail::affiliate::recompute::ReferralBar;
use mail::affiliate::referral::{
    Referral, ReferralRejection, ReferralReview, ReferralStatus, RejectReason, ReviewStatus,
};
use mail::affiliate::sale::SaleReturns;
use mail::event::EventKind;
use mail::id::{AccountId, CommissionId, ReferralId};
use store::engine::Batch;

use super::{Ledger, LedgerError, TRIES_MAX, UnitOfWork};
use crate::office::{ExtendCommit, IfMatch};
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason};

/// What the owner says of a referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferralDecision {
    /// It is fine: what waits for it goes on; a rejected one is back where it stood, and its reversed lines stay so.
    Allow,
    /// It is not: its open lines are taken back, and nothing of it earns any more.
    Reject,
}

/// How a commission is taken back by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommissionReversal {
    /// Why.
    pub reason: ReversalReason,
    /// What is said of it: kept with the line, and told with its event.
    pub note: Option<String>,
    /// Which version of the line was seen.
    pub seen: Option<IfMatch>,
}

impl From<ReversalReason> for CommissionReversal {
    fn from(reason: ReversalReason) -> Self {
        Self { reason, note: None, seen: None }
    }
}

impl Ledger {
    /// Takes a commission back. One that is taken back already stays as it is. With [`Reason::Fraud`] the recruiter's
    /// share follows.
    ///
    /// # Errors
    /// It is paid, or in a payout; it is not as it was seen; [`Refusal`].
    pub async fn reverse(
        &self,
        (account, id): (AccountId, CommissionId),
        reversal: &CommissionReversal,
        beside: ExtendCommit<'_, Commission>,
    ) -> Result<Commission, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let mut book = UnitOfWork::open(self, account).await?;
            let mut line = book.line(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Commission))?;
            IfMatch::check(reversal.seen.as_ref(), line.rev, line.updated_at)?;
            if line.reverse(reversal.reason, book.now)? {
                line.note.clone_from(&reversal.note);
                book.put_line(line.clone(), [EventKind::CommissionReversed]);
                book.recompute_after_change(&line).await?;
            }
            let line = book.line(id).await?.unwrap_or(line);
            if self.commit_extended(book, beside, &line).await? {
                return Ok(line);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Brings back a commission that was taken back: it waits again, and what it was taken back for is waived, as it is
    /// known now: another dispute, or another refund, takes it back again.
    ///
    /// # Errors
    /// It was not taken back, or its referral earns nothing; [`Refusal`].
    pub async fn reinstate(
        &self,
        (account, id): (AccountId, CommissionId),
        seen: Option<&IfMatch>,
        beside: ExtendCommit<'_, Commission>,
    ) -> Result<Commission, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let mut book = UnitOfWork::open(self, account).await?;
            let mut line = book.line(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Commission))?;
            IfMatch::check(seen, line.rev, line.updated_at)?;
            let referral =
                book.referral(line.referral).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?;
            if ReferralBar::of(referral).is_some() {
                return Err(ConflictReason::ReferralBarred.into());
            }
            let returned = match line.sold_invoice() {
                Some(sold) => book.money_returned(&sold.invoice).await?,
                None => SaleReturns::default(),
            };
            line.reinstate(&returned, book.now).map_err(|_| ConflictReason::NotReversed)?;
            book.put_line(line.clone(), []);
            // Frozen, if its referral is.
            book.recompute_after_change(&line).await?;
            let line = book.line(id).await?.unwrap_or(line);
            if matches!(line.status, CommissionState::Reversed { .. }) {
                return Err(ConflictReason::PartnerGone.into());
            }
            if self.commit_extended(book, beside, &line).await? {
                return Ok(line);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Says what is to become of a referral, flagged or not. Saying it again changes nothing.
    ///
    /// # Errors
    /// The referral lapsed and another has its place; [`Refusal`].
    pub async fn decide_referral(
        &self,
        (account, id): (AccountId, ReferralId),
        verdict: ReferralDecision,
        seen: Option<&IfMatch>,
        beside: ExtendCommit<'_, Referral>,
    ) -> Result<Referral, AffiliateError> {
        // With the first commit of several it is another one.
        let (mut tries, mut seen) = (0, seen);
        while tries < TRIES_MAX {
            let mut book = UnitOfWork::open(self, account).await?;
            let now = book.now;
            let referral = book.referral(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?;
            IfMatch::check(seen, referral.rev, referral.updated_at)?;
            if referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
                return Err(ConflictReason::ReferralLapsed.into());
            }
            apply_decision(referral, verdict, now);
            // Where an earlier try was cut off, it goes on with the customers'.
            let customers: Vec<String> = referral.customers().cloned().collect();
            book.touched.customers.extend(customers);
            book.touched.referrals.insert(id);
            let is_whole = Box::pin(book.recompute_all()).await?;
            let referral = book.referral(id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Referral))?.clone();
            let is_done = if is_whole {
                self.commit_extended(book, beside, &referral).await?
            } else {
                self.commit(book.build_batch(Batch::progress()).await?).await?
            };
            match is_done {
                true if is_whole => return Ok(self.as_written(account, referral).await?),
                true => (tries, seen) = (0, None),
                false => tries += 1,
            }
        }
        Err(ConflictReason::Changed.into())
    }

    async fn as_written(&self, account: AccountId, referral: Referral) -> Result<Referral, LedgerError> {
        let found = store::affiliate::referral::get(&self.store, account, referral.id).await?;
        Ok(found.unwrap_or(referral))
    }

    async fn commit_extended<T>(
        &self,
        book: UnitOfWork<'_>,
        beside: ExtendCommit<'_, T>,
        done: &T,
    ) -> Result<bool, AffiliateError> {
        let mut batch = book.build_batch(Batch::progress()).await?;
        beside(&mut batch, done);
        Ok(self.commit(batch).await?)
    }
}

impl UnitOfWork<'_> {
    /// A line was moved by hand: what hangs on it follows.
    async fn recompute_after_change(&mut self, line: &Commission) -> Result<(), LedgerError> {
        match line.sold_invoice() {
            Some(sold) => self.recompute_invoice(&sold.invoice).await,
            None => self.recompute_bounty(line.referral).await,
        }
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
            let was = referral.status;
            referral.rejection.get_or_insert(ReferralRejection { reason: RejectReason::Owner, was });
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
