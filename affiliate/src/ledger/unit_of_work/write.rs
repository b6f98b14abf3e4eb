//! Ends a unit of work: builds one batch with the changed rows, checks of all rows that were read, and the events.

use futures_util::future::BoxFuture;
use mail::affiliate::commission::Commission;
use mail::affiliate::partner_email::PartnerEmail;
use mail::affiliate::payout::Payout;
use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::referral::Referral;
use mail::event::EventKind;
use mail::id::EventId;
use store::affiliate::referral_counts::ReferralCountsByLink;
use store::affiliate::{
    campaign, commission, customer_counts, partner, partner_email, partner_link, processor_state, program, referral,
    sums, visit,
};
use store::engine::Batch;

use super::{PendingEvent, TrackedRow, UnitOfWork};
use crate::api_objects::{CommissionObject, PartnerObject, ReferralObject};
use crate::events::EventBuilder;
use crate::ledger::LedgerError;
use crate::ledger::balances::{FOLD_AT, FOLD_LOOK};

impl<'l> UnitOfWork<'l> {
    /// Builds the batch.
    pub(crate) fn build_batch(mut self, mut batch: Batch) -> BoxFuture<'l, Result<Batch, LedgerError>> {
        Box::pin(async move {
            let account = self.account();
            self.apply_removed_lines().await?;
            program::check_unchanged(&mut batch, &self.program);
            self.bump_referral_revisions();
            self.write_customer_counts(&mut batch).await?;
            self.customers.write(&mut batch, account);
            self.invoices.write(&mut batch, account);
            self.charges.write(&mut batch, account);
            self.payments.write(&mut batch, account);
            self.accounts.write(&mut batch, account);
            for (customer, invoice) in &self.invoice_index_additions {
                processor_state::link_invoice_to_customer(&mut batch, account, customer, invoice);
            }
            // A deleted partner needs no check: its id is never used again.
            self.write_partners(&mut batch);
            self.campaigns.values().for_each(|campaign| campaign::check_unchanged(&mut batch, campaign));
            self.write_referrals(&mut batch);
            self.fold_referral_counts(&mut batch).await?;
            self.latest_leads.values().for_each(|(before, lead)| before.put_lead(&mut batch, *lead));
            for TrackedRow { before, now } in self.visits.values() {
                match before {
                    Some(before) if before != now => visit::update(&mut batch, before, now),
                    _ => visit::check_unchanged(&mut batch, now),
                }
            }
            for TrackedRow { before, now } in self.lines.values() {
                match before {
                    None => commission::create(&mut batch, now),
                    Some(before) if before == now => commission::check_unchanged(&mut batch, now),
                    Some(before) => commission::update(&mut batch, before, now),
                }
            }
            self.write_payouts(&mut batch);
            if !self.ledger.suppresses_events() {
                self.write_events(&mut batch).await?;
                self.write_partner_emails(&mut batch);
            }
            Ok(batch)
        })
    }

    fn write_partner_emails(&self, batch: &mut Batch) {
        for (partner, kind) in &self.partner_emails {
            let id = EventId::new(self.now, self.ledger.random());
            let (account, partner, kind) = (self.account(), *partner, kind.clone());
            partner_email::enqueue(batch, &PartnerEmail { id, account, partner, tells: kind, since: self.now });
        }
    }

    fn write_partners(&mut self, batch: &mut Batch) {
        for held in self.partners.values_mut().flatten() {
            let Some(before) = &held.before else { continue };
            if *before == held.now {
                partner::check_unchanged(batch, before);
            } else {
                held.now.rev = before.rev.saturating_add(1);
                held.now.updated_at = self.now;
                partner::update(batch, before, &held.now);
            }
        }
    }

    fn bump_referral_revisions(&mut self) {
        for held in self.referrals.values_mut() {
            let Some(before) = &held.before else { continue };
            if *before != held.now {
                held.now.rev = before.rev.saturating_add(1);
                held.now.updated_at = self.now;
            }
        }
    }

    fn write_referrals(&self, batch: &mut Batch) {
        let new = self.referrals.values().filter(|held| held.before.is_none());
        for TrackedRow { now, .. } in new {
            referral::create(batch, now, self.lapsed_referrals.get(&now.id).copied());
        }
        for held in self.referrals.values() {
            let Some(before) = &held.before else { continue };
            if *before == held.now {
                referral::check_unchanged(batch, before);
            } else if self.lapsed_referrals.values().any(|lapsed_id| *lapsed_id == before.id) {
                referral::reject_lapsed(batch, before, &held.now);
            } else {
                referral::update(batch, before, &held.now);
            }
        }
    }

    /// One new referral in [`FOLD_LOOK`] checks whether its partner's count changes should be folded.
    async fn fold_referral_counts(&self, batch: &mut Batch) -> Result<(), LedgerError> {
        let new = self.referrals.values().filter(|held| held.before.is_none());
        for TrackedRow { now, .. } in new {
            if self.ledger.random().is_multiple_of(FOLD_LOOK) {
                let partner = (now.account, now.partner);
                let stored = sums::read::<ReferralCountsByLink>(self.ledger.store(), partner).await?;
                if stored.changes() >= FOLD_AT {
                    stored.fold(batch, partner);
                    break;
                }
            }
        }
        Ok(())
    }

    async fn write_customer_counts(&mut self, batch: &mut Batch) -> Result<(), LedgerError> {
        let account = self.account();
        let mut partners: Vec<_> = self.referrals.values().map(|held| held.now.partner).collect();
        partners.sort_unstable();
        partners.dedup();
        for partner in partners {
            let change = self.customer_count_change(partner, None);
            if change != 0 {
                self.load_customer_count(partner).await?;
            }
            let Some(before) = self.customer_counts.get(&partner) else { continue };
            if change == 0 {
                customer_counts::check_unchanged(batch, account, partner, before);
                continue;
            }
            let paying = u32::try_from(i64::from(before.paying) + change).unwrap_or(0);
            customer_counts::put(batch, account, partner, before, paying);
        }
        Ok(())
    }

    async fn write_events(&self, batch: &mut Batch) -> Result<(), LedgerError> {
        let first = self.ledger.random();
        for (number, event) in (0_u128..).zip(&self.pending_events) {
            let id = EventId::new(self.now, first + number);
            match *event {
                PendingEvent::Referral(kind, referral) => {
                    let Some(TrackedRow { now, .. }) = self.referrals.get(&referral) else { continue };
                    self.referral_event(now)
                        .with("referral", &ReferralObject::from(now))
                        .record(batch, kind, referral, id, self.now);
                }
                PendingEvent::Line(kind, line) => {
                    let Some(TrackedRow { now, .. }) = self.lines.get(&line) else { continue };
                    let mut builder = commission_event(&self.program, now);
                    if let (EventKind::CommissionReversed, Some(note)) = (kind, &now.note) {
                        builder = builder.with("note", note);
                    }
                    builder.record(batch, kind, line, id, self.now);
                }
                PendingEvent::Payout(kind, payout) => {
                    let Some(now) = self.payout_rows.payout(payout) else { continue };
                    payout_event(&self.program, now).record(batch, kind, payout, id, self.now);
                }
                PendingEvent::Partner(partner) => {
                    let Some(Some(TrackedRow { now, .. })) = self.partners.get(&partner) else { continue };
                    let links = partner_link::list(&self.ledger.store, self.account(), partner).await?;
                    EventBuilder::for_partner(&self.program, partner)
                        .with("affiliate", &PartnerObject::of(now, &links, &self.program))
                        .record(batch, EventKind::AffiliateUpdated, partner, id, self.now);
                }
            }
        }
        Ok(())
    }

    fn referral_event(&self, referral: &Referral) -> EventBuilder<'_> {
        EventBuilder::for_partner(&self.program, referral.partner).with("referral_id", &referral.id)
    }
}

/// Builds the event of a line; includes `payout_id` if the line is in a payout.
pub(crate) fn commission_event<'a>(program: &'a AffiliateProgram, line: &Commission) -> EventBuilder<'a> {
    let builder = EventBuilder::for_partner(program, line.partner)
        .with("referral_id", &line.referral)
        .with("commission_id", &line.id)
        .with("commission", &CommissionObject::from(line));
    match line.status.payout() {
        Some(payout) => builder.with("payout_id", &payout),
        None => builder,
    }
}

/// Builds the event of a payout. It has only the id, by which a receiver fetches the current state.
pub(crate) fn payout_event<'a>(program: &'a AffiliateProgram, payout: &Payout) -> EventBuilder<'a> {
    EventBuilder::for_partner(program, payout.partner).with("payout_id", &payout.id)
}
