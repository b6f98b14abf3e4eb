//! The book is closed: one batch of everything that changed, with checks of everything that was read, and what is told.

use futures_util::future::BoxFuture;
use mail::affiliate::commission::Commission;
use mail::affiliate::partner_letter::PartnerLetter;
use mail::affiliate::payout::Payout;
use mail::affiliate::program::Program;
use mail::affiliate::referral::Referral;
use mail::event::EventKind;
use mail::id::EventId;
use store::affiliate::brought::ByLink;
use store::affiliate::{
    campaign, commission, heard, partner, partner_letter, partner_link, program, referral, sums, tally, visit,
};
use store::engine::Batch;

use super::{Book, Held, News};
use crate::ledger::Fault;
use crate::ledger::balances::{FOLD_AT, FOLD_LOOK};
use crate::object::{CommissionObject, PartnerObject, ReferralObject};
use crate::tell::Telling;

impl<'l> Book<'l> {
    /// Closes the book.
    pub(crate) fn close(mut self, mut batch: Batch) -> BoxFuture<'l, Result<Batch, Fault>> {
        Box::pin(async move {
            let account = self.account();
            self.leave_payouts().await?;
            program::expect(&mut batch, &self.program);
            self.touch_referrals();
            self.write_tallies(&mut batch).await?;
            self.customers.write(&mut batch, account);
            self.invoices.write(&mut batch, account);
            self.charges.write(&mut batch, account);
            self.payments.write(&mut batch, account);
            self.accounts.write(&mut batch, account);
            for (customer, invoice) in &self.listed {
                heard::put_invoice_of(&mut batch, account, customer, invoice);
            }
            // A partner who was deleted stays so.
            self.write_partners(&mut batch);
            self.campaigns.values().for_each(|known| campaign::expect(&mut batch, known));
            self.write_referrals(&mut batch);
            self.fold_brought(&mut batch).await?;
            self.latest.values().for_each(|(before, lead)| before.put_lead(&mut batch, *lead));
            for Held { before, now } in self.visits.values() {
                match before {
                    Some(before) if before != now => visit::update(&mut batch, before, now),
                    _ => visit::expect(&mut batch, now),
                }
            }
            for Held { before, now } in self.lines.values() {
                match before {
                    None => commission::create(&mut batch, now),
                    Some(before) if before == now => commission::expect(&mut batch, now),
                    Some(before) => commission::update(&mut batch, before, now),
                }
            }
            self.write_payouts(&mut batch);
            if !self.ledger.is_quiet() {
                self.write_news(&mut batch).await?;
                self.write_letters(&mut batch);
            }
            Ok(batch)
        })
    }

    fn write_letters(&self, batch: &mut Batch) {
        for (partner, tells) in &self.letters {
            let id = EventId::new(self.now, self.ledger.random());
            let (account, partner, tells) = (self.account(), *partner, tells.clone());
            partner_letter::put(batch, &PartnerLetter { id, account, partner, tells, since: self.now });
        }
    }

    fn write_partners(&mut self, batch: &mut Batch) {
        for held in self.partners.values_mut().flatten() {
            let Some(before) = &held.before else { continue };
            if *before == held.now {
                partner::expect(batch, before);
            } else {
                held.now.rev = before.rev.saturating_add(1);
                held.now.updated_at = self.now;
                partner::update(batch, before, &held.now);
            }
        }
    }

    fn touch_referrals(&mut self) {
        for held in self.referrals.values_mut() {
            let Some(before) = &held.before else { continue };
            if *before != held.now {
                held.now.rev = before.rev.saturating_add(1);
                held.now.updated_at = self.now;
            }
        }
    }

    fn write_referrals(&self, batch: &mut Batch) {
        let fresh = self.referrals.values().filter(|held| held.before.is_none());
        for Held { now, .. } in fresh {
            referral::create(batch, now, self.lapsed.get(&now.id).copied());
        }
        for held in self.referrals.values() {
            let Some(before) = &held.before else { continue };
            if *before == held.now {
                referral::expect(batch, before);
            } else if self.lapsed.values().any(|lapsed| *lapsed == before.id) {
                referral::pass_on(batch, before, &held.now);
            } else {
                referral::update(batch, before, &held.now);
            }
        }
    }

    /// One new referral in so many folds what its partner has brought, if there is much to fold.
    async fn fold_brought(&self, batch: &mut Batch) -> Result<(), Fault> {
        let fresh = self.referrals.values().filter(|held| held.before.is_none());
        for Held { now, .. } in fresh {
            if self.ledger.random().is_multiple_of(FOLD_LOOK) {
                let whose = (now.account, now.partner);
                let kept = sums::read::<ByLink>(self.ledger.store(), whose).await?;
                if kept.changes() >= FOLD_AT {
                    kept.fold(batch, whose);
                    break;
                }
            }
        }
        Ok(())
    }

    async fn write_tallies(&mut self, batch: &mut Batch) -> Result<(), Fault> {
        let account = self.account();
        let mut partners: Vec<_> = self.referrals.values().map(|held| held.now.partner).collect();
        partners.sort_unstable();
        partners.dedup();
        for partner in partners {
            let change = self.tally_change(partner, None);
            if change != 0 {
                self.read_tally(partner).await?;
            }
            let Some(before) = self.tallies.get(&partner) else { continue };
            if change == 0 {
                tally::expect(batch, (account, partner), before);
                continue;
            }
            let paying = u32::try_from(i64::from(before.paying) + change).unwrap_or(0);
            tally::put(batch, (account, partner), before, paying);
        }
        Ok(())
    }

    async fn write_news(&self, batch: &mut Batch) -> Result<(), Fault> {
        let first = self.ledger.random();
        for (number, news) in (0_u128..).zip(&self.news) {
            let id = EventId::new(self.now, first + number);
            match *news {
                News::Referral(kind, referral) => {
                    let Some(Held { now, .. }) = self.referrals.get(&referral) else { continue };
                    self.about(now).with("referral", &ReferralObject::from(now)).record(
                        batch,
                        kind,
                        referral,
                        (id, self.now),
                    );
                }
                News::Line(kind, line) => {
                    let Some(Held { now, .. }) = self.lines.get(&line) else { continue };
                    let mut telling = about_line(&self.program, now);
                    if let (EventKind::CommissionReversed, Some(note)) = (kind, &now.note) {
                        telling = telling.with("note", note);
                    }
                    telling.record(batch, kind, line, (id, self.now));
                }
                News::Payout(kind, payout) => {
                    let Some(now) = self.desk.payout(payout) else { continue };
                    about_payout(&self.program, now).record(batch, kind, payout, (id, self.now));
                }
                News::Partner(partner) => {
                    let Some(Some(Held { now, .. })) = self.partners.get(&partner) else { continue };
                    let links = partner_link::all(&self.ledger.store, self.account(), partner).await?;
                    Telling::of(&self.program, partner)
                        .with("affiliate", &PartnerObject::of(now, &links, &self.program))
                        .record(batch, EventKind::AffiliateUpdated, partner, (id, self.now));
                }
            }
        }
        Ok(())
    }

    fn about(&self, referral: &Referral) -> Telling<'_> {
        Telling::of(&self.program, referral.partner).with("referral_id", &referral.id)
    }
}

/// What is told of a line; of one that a payout has, with the payout.
pub(crate) fn about_line<'a>(program: &'a Program, line: &Commission) -> Telling<'a> {
    let telling = Telling::of(program, line.partner)
        .with("referral_id", &line.referral)
        .with("commission_id", &line.id)
        .with("commission", &CommissionObject::from(line));
    match line.status.payout() {
        Some(payout) => telling.with("payout_id", &payout),
        None => telling,
    }
}

/// What is told of a payout: its id, by which its latest state can be got.
pub(crate) fn about_payout<'a>(program: &'a Program, payout: &Payout) -> Telling<'a> {
    Telling::of(program, payout.partner).with("payout_id", &payout.id)
}
