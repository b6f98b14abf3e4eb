//! What becomes of a payout: the owner says that it was paid, or that it failed.

use mail::affiliate::payout::{PayoutState, PayoutStatus};
use mail::id::{AccountId, PartnerId, PayoutId};
use store::affiliate::payout_work::{self, Work};
use store::affiliate::{commission, partner_link, payout};
use store::engine::Batch;

use super::{ShownPayout, Step};
use crate::ledger::{Book, Fault, LINES_AT_ONCE, Ledger, Outlay};
use crate::office::{Beside, Seen};
use crate::partners::rest;
use crate::refusal::{Ban, Noun, Obstacle, Refusal};
use mail::affiliate::commission::{Reason, Status};
use mail::event::EventKind;
use store::affiliate::listing::Wanted;

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 100;

impl Ledger {
    /// A payout was paid by hand, and this proves it. Said again, it changes nothing.
    ///
    /// # Errors
    /// Its run is not approved; it was paid with another reference, or failed; the processor pays it; [`Refusal`].
    pub async fn mark_paid(
        &self,
        (account, id): (AccountId, PayoutId),
        (reference, seen): (&str, Option<&Seen>),
        beside: Beside<'_, ShownPayout>,
    ) -> Result<ShownPayout, Refusal> {
        for _ in 0..TRIES_MAX {
            let shown = self.payout(account, id).await?;
            Seen::check(seen, shown.rev(), shown.payout.updated_at)?;
            if !shown.payout.method.is_manual() {
                return Err(Ban::ProcessorPays.into());
            }
            match shown.status {
                PayoutStatus::Draft => return Err(Obstacle::RunNotApproved.into()),
                PayoutStatus::Failed => return Err(Obstacle::PayoutSettled.into()),
                PayoutStatus::Paid if shown.payout.reference.as_deref() == Some(reference) => {
                    let mut batch = Batch::progress();
                    payout::expect(&mut batch, &shown.payout);
                    beside(&mut batch, &shown);
                    if batch.is_empty() || self.commit(batch).await? {
                        return Ok(shown);
                    }
                    continue;
                }
                PayoutStatus::Paid => return Err(Obstacle::PaidOtherwise.into()),
                PayoutStatus::Processing => {}
            }
            let outlay = Outlay::Paid { reference: Some(reference.to_owned()), transfer: None };
            if let Some(shown) = self.settle(&shown, outlay, beside).await? {
                return Ok(shown);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// A payout did not reach its partner: its lines return to the next run.
    ///
    /// # Errors
    /// It is not under way; the processor may be transferring it; [`Refusal`].
    pub async fn fail_payout(
        &self,
        (account, id): (AccountId, PayoutId),
        (reason, seen): (&str, Option<&Seen>),
        beside: Beside<'_, ShownPayout>,
    ) -> Result<ShownPayout, Refusal> {
        for _ in 0..TRIES_MAX {
            let shown = self.payout(account, id).await?;
            Seen::check(seen, shown.rev(), shown.payout.updated_at)?;
            if shown.status != PayoutStatus::Processing {
                return Err(Obstacle::PayoutSettled.into());
            }
            if shown.payout.asking.since.is_some() {
                return Err(Obstacle::TransferUnderWay.into());
            }
            let outlay = Outlay::Failed { reason: reason.to_owned(), transfer: None };
            if let Some(shown) = self.settle(&shown, outlay, beside).await? {
                return Ok(shown);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// Settles a payout that was seen under way; nothing when somebody was quicker. All of its lines have followed when
    /// this returns, or they are gone on with later.
    pub(super) async fn settle(
        &self,
        seen: &ShownPayout,
        outlay: Outlay,
        beside: Beside<'_, ShownPayout>,
    ) -> Result<Option<ShownPayout>, Refusal> {
        let (account, id) = (seen.payout.account, seen.payout.id);
        let mut book = Book::open(self, account).await?;
        let now = book.payout(id).await?.map(|payout| payout.clone());
        if now.as_ref() != Some(&seen.payout) {
            return Ok(None);
        }
        let is_failed = matches!(outlay, Outlay::Failed { .. });
        book.settle_payout(id, outlay).await?;
        Box::pin(book.settle()).await?;
        let Some(payout) = book.payout(id).await?.map(|payout| payout.clone()) else { return Ok(None) };
        let is_trailing = payout.trail.is_some();
        let status = if is_failed { PayoutStatus::Failed } else { PayoutStatus::Paid };
        let shown = ShownPayout { payout, status, approved_at: seen.approved_at };
        let mut batch = book.close(Batch::progress()).await?;
        beside(&mut batch, &shown);
        if !self.commit(batch).await? {
            return Ok(None);
        }
        if is_trailing {
            // It was settled; that its lines follow is nobody's to wait for in vain.
            loop {
                match self.follow_payout(account, id).await {
                    Ok(Step::More) => {}
                    Ok(Step::Done) => break,
                    Err(fault) => {
                        store::warn_unless_away!(self.store(), payout = %id, %fault, "the lines of a payout follow later");
                        break;
                    }
                }
            }
        }
        Ok(Some(shown))
    }

    /// Some more lines of a payout follow it.
    pub(super) async fn follow_payout(&self, account: AccountId, id: PayoutId) -> Result<Step, Fault> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let found = book.payout(id).await?.map(|payout| payout.clone());
            if found.is_none_or(|payout| payout.trail.is_none() || payout.state == PayoutState::Open) {
                let mut batch = Batch::progress();
                payout_work::delete(&mut batch, account, Work::Payout(id));
                self.commit(batch).await?;
                return Ok(Step::Done);
            }
            book.follow(id).await?;
            Box::pin(book.settle()).await?;
            let is_done = book.payout(id).await?.is_none_or(|payout| payout.trail.is_none());
            book.note_work(Work::Payout(id), (!is_done).then(|| self.now()));
            if self.commit(book.close(Batch::progress()).await?).await? {
                return Ok(if is_done { Step::Done } else { Step::More });
            }
        }
        Err(Fault::Contended)
    }

    /// Takes back lines of a partner who is deleted, in a book that is open: at most so many as one commit holds; whether
    /// these were all.
    ///
    /// # Errors
    /// One is in a payout that is under way.
    pub(crate) async fn take_back(book: &mut Book<'_>, partner: PartnerId) -> Result<bool, Refusal> {
        let filter = commission::Filter {
            partner: Some(partner),
            statuses: vec![commission::CommissionStatus::Pending, commission::CommissionStatus::Earned],
            ..commission::Filter::default()
        };
        let mut wanted = Wanted { before: None, limit: LINES_AT_ONCE, from: None };
        let mut taken = 0;
        loop {
            let store = book.ledger.store().clone();
            let page = commission::list(&store, book.account(), &filter, wanted).await?;
            for found in page.rows {
                if taken == LINES_AT_ONCE {
                    return Ok(false);
                }
                let Some(mut line) = book.line(found.id).await? else { continue };
                if matches!(line.status, Status::InPayout { .. }) {
                    return Err(Obstacle::InPayout.into());
                }
                let now = book.now;
                if line.reverse(Reason::PartnerDeleted, now)? {
                    book.write_line(line, [EventKind::CommissionReversed]);
                }
                taken += 1;
            }
            match page.next {
                Some(next) => wanted.before = Some(next),
                None => return Ok(true),
            }
        }
    }

    /// Takes away what there is yet of a partner who was deleted. Who writes a line or a link of a partner's looks at the
    /// partner, and who deletes it not at them: those that were written in the moment before are found only now. If this
    /// does not come to its end, it is gone on with.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn clear_after(&self, account: AccountId, id: PartnerId) -> Result<(), Fault> {
        while self.take_back_more(account, id).await? == Step::More {}
        Ok(())
    }

    async fn take_back_more(&self, account: AccountId, id: PartnerId) -> Result<Step, Fault> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let is_whole = match Self::take_back(&mut book, id).await {
                Ok(is_whole) => is_whole,
                Err(Refusal::Read(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::warn!(partner = %id, %refusal, "a deleted partner's lines cannot be taken back");
                    return Ok(Step::Done);
                }
            };
            book.note_work(Work::Partner(id), (!is_whole).then(|| self.now()));
            let mut batch = book.close(Batch::progress()).await?;
            rest(&mut batch, &partner_link::all(self.store(), account, id).await?, self.now());
            if self.commit(batch).await? {
                return Ok(if is_whole { Step::Done } else { Step::More });
            }
        }
        Err(Fault::Contended)
    }

    /// A payout that is there for everybody.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn payout(&self, account: AccountId, id: PayoutId) -> Result<ShownPayout, Refusal> {
        let unknown = || Refusal::Unknown(Noun::Payout);
        let payout = payout::get(self.store(), account, id).await?.ok_or_else(unknown)?;
        let run = store::affiliate::payout_run::get(self.store(), account, payout.run).await?;
        run.and_then(|run| ShownPayout::of(payout, &run)).ok_or_else(unknown)
    }
}
