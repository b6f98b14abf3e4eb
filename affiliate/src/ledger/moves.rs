//! What the owner and the API do to commissions and referrals by hand.

use mail::affiliate::commission::{Commission, Reason, Status};
use mail::affiliate::recompute::Barred;
use mail::affiliate::referral::{Referral, ReferralStatus, RejectReason, Rejection, Review, ReviewStatus};
use mail::affiliate::sale::Returned;
use mail::event::EventKind;
use mail::id::{AccountId, CommissionId, ReferralId};
use store::engine::Batch;

use super::{Book, Fault, Ledger, TRIES_MAX};
use crate::office::{Beside, Seen};
use crate::refusal::{Noun, Obstacle, Refusal};

/// What the owner says of a referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is fine: what waits for it goes on; a rejected one is back where it stood, and its reversed lines stay so.
    Allow,
    /// It is not: its open lines are taken back, and nothing of it earns any more.
    Reject,
}

/// How a commission is taken back by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reversal {
    /// Why.
    pub reason: Reason,
    /// What is said of it: kept with the line, and told with its event.
    pub note: Option<String>,
    /// Which version of the line was seen.
    pub seen: Option<Seen>,
}

impl From<Reason> for Reversal {
    fn from(reason: Reason) -> Self {
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
        reversal: &Reversal,
        beside: Beside<'_, Commission>,
    ) -> Result<Commission, Refusal> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let mut line = book.line(id).await?.ok_or(Refusal::Unknown(Noun::Commission))?;
            Seen::check(reversal.seen.as_ref(), line.rev, line.updated_at)?;
            if line.reverse(reversal.reason, book.now)? {
                line.note.clone_from(&reversal.note);
                book.write_line(line.clone(), [EventKind::CommissionReversed]);
                book.resettle(&line).await?;
            }
            let line = book.line(id).await?.unwrap_or(line);
            if self.commit_beside(book, beside, &line).await? {
                return Ok(line);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// Brings back a commission that was taken back: it waits again, and what it was taken back for is waived, as it is
    /// known now: another dispute, or another refund, takes it back again.
    ///
    /// # Errors
    /// It was not taken back, or its referral earns nothing; [`Refusal`].
    pub async fn reinstate(
        &self,
        (account, id): (AccountId, CommissionId),
        seen: Option<&Seen>,
        beside: Beside<'_, Commission>,
    ) -> Result<Commission, Refusal> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let mut line = book.line(id).await?.ok_or(Refusal::Unknown(Noun::Commission))?;
            Seen::check(seen, line.rev, line.updated_at)?;
            let referral = book.referral(line.referral).await?.ok_or(Refusal::Unknown(Noun::Referral))?;
            if Barred::of(referral).is_some() {
                return Err(Obstacle::ReferralBarred.into());
            }
            let returned = match line.sold() {
                Some(sold) => book.returned(&sold.invoice).await?,
                None => Returned::default(),
            };
            line.reinstate(&returned, book.now).map_err(|_| Obstacle::NotReversed)?;
            book.write_line(line.clone(), []);
            // Frozen, if its referral is.
            book.resettle(&line).await?;
            let line = book.line(id).await?.unwrap_or(line);
            if matches!(line.status, Status::Reversed { .. }) {
                return Err(Obstacle::PartnerGone.into());
            }
            if self.commit_beside(book, beside, &line).await? {
                return Ok(line);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// Says what is to become of a referral, flagged or not. Saying it again changes nothing.
    ///
    /// # Errors
    /// The referral lapsed and another has its place; [`Refusal`].
    pub async fn decide(
        &self,
        (account, id): (AccountId, ReferralId),
        verdict: Verdict,
        seen: Option<&Seen>,
        beside: Beside<'_, Referral>,
    ) -> Result<Referral, Refusal> {
        // With the first commit of several it is another one.
        let (mut tries, mut seen) = (0, seen);
        while tries < TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let now = book.now;
            let referral = book.referral(id).await?.ok_or(Refusal::Unknown(Noun::Referral))?;
            Seen::check(seen, referral.rev, referral.updated_at)?;
            if referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
                return Err(Obstacle::ReferralLapsed.into());
            }
            decided(referral, verdict, now);
            // Where an earlier try was cut off, it goes on with the customers'.
            let customers: Vec<String> = referral.customers().cloned().collect();
            book.touched.customers.extend(customers);
            book.touched.referrals.insert(id);
            let is_whole = Box::pin(book.settle()).await?;
            let referral = book.referral(id).await?.ok_or(Refusal::Unknown(Noun::Referral))?.clone();
            let is_done = if is_whole {
                self.commit_beside(book, beside, &referral).await?
            } else {
                self.commit(book.close(Batch::progress()).await?).await?
            };
            match is_done {
                true if is_whole => return Ok(self.as_written(account, referral).await?),
                true => (tries, seen) = (0, None),
                false => tries += 1,
            }
        }
        Err(Obstacle::Changed.into())
    }

    async fn as_written(&self, account: AccountId, referral: Referral) -> Result<Referral, Fault> {
        let found = store::affiliate::referral::get(&self.store, account, referral.id).await?;
        Ok(found.unwrap_or(referral))
    }

    async fn commit_beside<T>(
        &self,
        book: Book<'_>,
        beside: Beside<'_, T>,
        done: &T,
    ) -> Result<bool, Refusal> {
        let mut batch = book.close(Batch::progress()).await?;
        beside(&mut batch, done);
        Ok(self.commit(batch).await?)
    }
}

impl Book<'_> {
    /// A line was moved by hand: what hangs on it follows.
    async fn resettle(&mut self, line: &Commission) -> Result<(), Fault> {
        match line.sold() {
            Some(sold) => self.settle_invoice(&sold.invoice).await,
            None => self.settle_bounty(line.referral).await,
        }
    }
}

fn decided(referral: &mut Referral, verdict: Verdict, now: jiff::Timestamp) {
    let status = match verdict {
        Verdict::Allow => ReviewStatus::Allowed,
        Verdict::Reject => ReviewStatus::Rejected,
    };
    match verdict {
        Verdict::Allow => {
            if let Some(rejection) = referral.rejection.take() {
                referral.status = rejection.was;
            }
        }
        Verdict::Reject => {
            let was = referral.status;
            referral.rejection.get_or_insert(Rejection { reason: RejectReason::Owner, was });
            referral.status = ReferralStatus::Rejected;
        }
    }
    let review = referral.review.get_or_insert_with(|| Review {
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
