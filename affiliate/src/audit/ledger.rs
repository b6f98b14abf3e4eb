//! Referrals and commissions: I1, I4 to I7, and whether all that was heard is worked in (I9).

use std::collections::BTreeSet;

use mail::affiliate::arithmetic::rate::Share;
use mail::affiliate::commission::{Commission, Level, Status};
use mail::affiliate::recompute::Barred;
use mail::affiliate::referral::{Referral, RejectReason};
use store::affiliate::heard::{self, Kind};
use store::affiliate::referral::Claim;
use store::affiliate::{commission, referral};

use super::{Auditor, Invariant, PAGE_ROWS, wanted};
use crate::ledger::heard::{HeardCustomer, HeardInvoice};
use crate::ledger::{Book, Fault};

impl Auditor<'_> {
    pub(super) async fn referrals(&mut self) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let mut page = None;
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = referral::list(store, account, &referral::Filter::default(), wanted).await?;
            self.checked.referrals += next.rows.len();
            for one in &next.rows {
                self.claims(one).await?;
                self.is_gone_through(one).await?;
                self.sums(one).await?;
                self.told_of_referral(one).await?;
            }
            page = Some(next);
        }
        Ok(())
    }

    /// What a referral claims is its own, unless another has its place.
    async fn claims(&mut self, one: &Referral) -> Result<(), Fault> {
        if one.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
            return Ok(());
        }
        let email = one.email.clone().map(Claim::Email);
        for claim in email.into_iter().chain(one.customers().cloned().map(Claim::Customer)) {
            let holder = referral::holder(self.ledger.store(), self.account(), &claim).await?;
            let is_its = holder.is_some_and(|holder| holder.id == one.id);
            self.expect(is_its, Invariant::I7, one.id, || format!("does not hold its own claim, {claim:?}"));
        }
        Ok(())
    }

    /// All that its customers, or a guest, bought was looked at.
    async fn is_gone_through(&mut self, one: &Referral) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let mut is_under_way = one.dealings.going_through.is_some();
        for customer in one.customers() {
            let read: heard::Read<HeardCustomer> =
                heard::get(store, account, Kind::Customer, customer).await?;
            is_under_way |= read.value.is_some_and(|row| row.going_through.is_some());
        }
        self.expect(!is_under_way, Invariant::I9, one.id, || {
            "has invoices that are to be looked at anew".to_owned()
        });
        Ok(())
    }

    /// A referral's revenue and its invoices are those of its customers, and none of those was passed over. (Guests'
    /// invoices have no list.)
    async fn sums(&mut self, one: &Referral) -> Result<(), Fault> {
        let (mut revenue, mut count) = (0_i128, 0_u32);
        for customer in one.customers() {
            let (its_revenue, its_count) = self.sum_of(one, customer).await?;
            revenue += its_revenue;
            count = count.saturating_add(its_count);
        }
        let holds = count <= one.dealings.invoices && revenue <= i128::from(one.revenue_cents);
        self.expect(holds, Invariant::I4, one.id, || {
            format!("has {count} invoices that come to {revenue}, and less by its own sums")
        });
        Ok(())
    }

    /// The revenue and the number of a customer's invoices that count for its referral.
    async fn sum_of(&mut self, one: &Referral, customer: &str) -> Result<(i128, u32), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let (mut revenue, mut count, mut after) = (0_i128, 0_u32, None::<String>);
        loop {
            let ids = heard::invoices_of(store, account, (customer, after.as_deref()), PAGE_ROWS).await?;
            for id in &ids {
                let read: heard::Read<HeardInvoice> = heard::get(store, account, Kind::Invoice, id).await?;
                let Some(row) = read.value.filter(|row| row.referral == Some(one.id)) else {
                    self.is_settled(id).await?;
                    continue;
                };
                let Some(counted) = row.counted else { continue };
                revenue += i128::from(counted.revenue);
                count = count.saturating_add(1);
            }
            after = ids.last().cloned();
            if ids.len() < PAGE_ROWS {
                return Ok((revenue, count));
            }
        }
    }

    pub(super) async fn commissions(&mut self) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let mut page = None;
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = commission::list(store, account, &commission::Filter::default(), wanted).await?;
            self.checked.commissions += next.rows.len();
            for line in &next.rows {
                self.name(line).await?;
                self.amounts(line);
                self.referral_of(line).await?;
                self.payout_of(line).await?;
                self.told_of_line(line).await?;
            }
            let sold = next.rows.iter().filter_map(Commission::sold).map(|sold| sold.invoice.clone());
            for invoice in sold.collect::<BTreeSet<_>>() {
                self.is_settled(&invoice).await?;
            }
            page = Some(next);
        }
        Ok(())
    }

    /// The line is the one that stands under its name.
    async fn name(&mut self, line: &Commission) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let named = match line.sold() {
            Some(sold) => commission::of_invoice(store, account, &sold.invoice).await?,
            None => commission::bounty_of(store, account, line.referral).await?.into_iter().collect(),
        };
        let is_its = named.iter().any(|named| named.id == line.id);
        self.expect(is_its, Invariant::I1, line.id, || "another line stands in its place".to_owned());
        Ok(())
    }

    fn amounts(&mut self, line: &Commission) {
        self.expect(line.amount > 0, Invariant::I6, line.id, || format!("comes to {}", line.amount));
        if let Some(sold) = line.sold().filter(|_| line.level() == Level::One) {
            let calculation = &sold.calculation;
            let is_percent = calculation.groups.iter().all(|group| matches!(group.share, Share::Percent(_)));
            let most = calculation.base.saturating_add(line.currency.step());
            self.expect(!is_percent || line.amount < most, Invariant::I6, line.id, || {
                format!("comes to {} of {}", line.amount, calculation.base)
            });
        }
        if let Status::Paid { earned_at, paid_at, .. } = line.status {
            self.expect(earned_at <= paid_at, Invariant::I6, line.id, || {
                "was paid before it was earned".to_owned()
            });
        }
    }

    async fn referral_of(&mut self, line: &Commission) -> Result<(), Fault> {
        let found = referral::get(self.ledger.store(), self.account(), line.referral).await?;
        // What a payout has is out of reach.
        let is_open = matches!(line.status, Status::Pending { .. } | Status::Earned { .. });
        let is_barred = found.as_ref().is_none_or(|found| Barred::of(found).is_some());
        self.expect(!(is_open && is_barred), Invariant::I5, line.id, || {
            "is open, and its referral may not earn".to_owned()
        });
        Ok(())
    }

    /// Looked at again, the invoice stays as it is.
    async fn is_settled(&mut self, invoice: &str) -> Result<(), Fault> {
        let mut book = Book::of(self.ledger, self.program.clone());
        book.settle_invoice(invoice).await?;
        self.expect(!book.has_changes(), Invariant::I9, invoice, || {
            "would be written otherwise by what is known".to_owned()
        });
        Ok(())
    }
}
