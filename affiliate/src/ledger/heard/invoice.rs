//! An invoice: its sale, which payments paid it, and what was given back by credit notes.

use std::collections::{BTreeMap, BTreeSet};

use mail::affiliate::recompute::NoCommission;
use mail::affiliate::sale::{Sale, SaleReturns};
use mail::id::ReferralId;
use serde::{Deserialize, Serialize};

use super::moment::{MoneyMoment, SecondPart};
use super::{ChargeState, LwwRegister, TooManyEntries, bounded_entry, bounded_insert};
use crate::processor::{Checkout, CreditNote, Invoice, Payment, ReferralHint};

/// An invoice that is paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PaidInvoice {
    /// What the arithmetic needs of it.
    pub(crate) sale: Sale,
    /// Whose it is.
    pub(crate) customer: Option<String>,
    /// Their address, in lower case.
    pub(crate) email: Option<String>,
    /// The subscription that it is of.
    pub(crate) subscription: Option<String>,
    /// Who may have brought the customer.
    pub(crate) hints: Vec<ReferralHint>,
}

/// What an invoice adds to its referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountedRevenue {
    /// To its revenue.
    pub(crate) revenue: i64,
    /// Whether all of its money is gone.
    pub(crate) is_gone: bool,
}

/// What is known of an invoice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InvoiceState {
    paid: Option<LwwRegister<PaidInvoice>>,
    charges: BTreeSet<String>,
    payments: BTreeSet<String>,
    /// What each credit note gives back.
    notes: BTreeMap<String, Option<LwwRegister<i64>>>,
    /// Whether it, or the session that made it, ever carried the flag that excludes it.
    is_excluded: bool,

    // What the ledger made of it.
    /// The customer in whose list it is.
    listed_with: Option<String>,
    /// Whether something else excluded it when it was looked at: it stays so, whatever becomes of that flag.
    pub(crate) was_excluded: bool,
    /// Why it earns nothing, where that is for good: by the terms, or the partner's standing, when it was looked at first.
    pub(crate) nothing: Option<NoCommission>,
    /// The referral that it is of.
    pub(crate) referral: Option<ReferralId>,
    /// What it adds to that.
    pub(crate) counted: Option<CountedRevenue>,
}

impl InvoiceState {
    /// Hears of the invoice itself. One that is not paid says nothing yet: what is paid never becomes unpaid.
    pub(crate) fn apply(&mut self, invoice: &Invoice) -> Result<(), TooManyEntries> {
        for payment in &invoice.payments {
            self.add_payment(payment)?;
        }
        self.is_excluded |= invoice.marks.excluded;
        if invoice.is_paid {
            let paid = PaidInvoice {
                sale: invoice.sale.clone(),
                customer: invoice.customer.clone(),
                email: invoice.email.clone(),
                subscription: invoice.subscription.clone(),
                hints: invoice.marks.hints.clone(),
            };
            LwwRegister::merge(&mut self.paid, invoice.as_of, paid);
        }
        Ok(())
    }

    /// Hears of a session that is a sale by itself.
    pub(crate) fn apply_checkout(&mut self, checkout: &Checkout, sale: Sale) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.payments, &sale.invoice, "payments of an invoice")?;
        self.is_excluded |= checkout.marks.excluded;
        let paid = PaidInvoice {
            sale,
            customer: checkout.customer.clone(),
            email: checkout.email.clone(),
            subscription: checkout.subscription.clone(),
            hints: checkout.marks.hints.clone(),
        };
        LwwRegister::merge(&mut self.paid, checkout.as_of, paid);
        Ok(())
    }

    /// A payment paid it, or a part of it.
    pub(crate) fn add_payment(&mut self, payment: &Payment) -> Result<(), TooManyEntries> {
        if let Some(charge) = &payment.charge {
            self.add_charge(charge)?;
        }
        if let Some(payment) = &payment.payment_intent {
            bounded_insert(&mut self.payments, payment, "payments of an invoice")?;
        }
        Ok(())
    }

    /// A charge paid it, or a part of it.
    pub(crate) fn add_charge(&mut self, charge: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.charges, charge, "charges of an invoice")
    }

    /// Hears of a credit note.
    pub(crate) fn apply_credit_note(&mut self, note: &CreditNote) -> Result<(), TooManyEntries> {
        let known = bounded_entry(&mut self.notes, &note.id, "credit notes of an invoice")?;
        LwwRegister::merge(known, note.as_of, note.given_back);
        Ok(())
    }

    /// The session that made it carries the flag that excludes it.
    pub(crate) fn apply_exclusion(&mut self) {
        self.is_excluded = true;
    }

    /// It is in a customer's list. Whether that is new.
    pub(crate) fn set_index_customer(&mut self, customer: &str) -> bool {
        let is_new = self.listed_with.as_deref() != Some(customer);
        if is_new {
            self.listed_with = Some(customer.to_owned());
        }
        is_new
    }

    /// The invoice, once it is paid.
    pub(crate) fn paid(&self) -> Option<&PaidInvoice> {
        self.paid.as_ref().map(LwwRegister::value)
    }

    /// Charges that paid it, by its own word.
    pub(crate) fn charges(&self) -> &BTreeSet<String> {
        &self.charges
    }

    /// Payments that paid it.
    pub(crate) fn payments(&self) -> &BTreeSet<String> {
        &self.payments
    }

    /// Whether it, or the session that made it, ever carried the flag that excludes it.
    pub(crate) fn is_excluded(&self) -> bool {
        self.is_excluded
    }

    /// What became of its money, by its charges and its notes.
    pub(crate) fn money_returned(&self, sale: &Sale, charges: &[&ChargeState]) -> SaleReturns {
        let given_back = |by: Option<MoneyMoment<'_>>| {
            let notes = self.notes().filter(|(id, note)| by.is_none_or(|by| by.includes(note.as_of().at, id)));
            let notes: i128 = notes.map(|(_, note)| i128::from(*note.value())).sum();
            let charges: i128 = charges.iter().map(|charge| charge.refunded_by(sale, by)).sum();
            i64::try_from(notes + charges).unwrap_or(i64::MAX)
        };
        let moments = self.moments(charges);
        let mut returned = SaleReturns {
            refunded: given_back(None),
            told_at: moments.last().map(|moment| moment.second),
            disputes: charges.iter().flat_map(|charge| charge.disputes()).collect(),
            ..SaleReturns::default()
        };
        let is_in_part = |refunded: &i64| *refunded < sale.amount_paid;
        if is_in_part(&returned.refunded) {
            returned.refunded_in_part = returned.refunded;
        } else {
            // Back through the moments at which it changed, to the last one when it was not all.
            let mut then = moments.iter().rev().map(|moment| given_back(Some(*moment)));
            returned.refunded_in_part = then.find(is_in_part).unwrap_or(0);
            let less = self.decrease_moments(charges).filter(|moment| is_in_part(&given_back(Some(*moment))));
            returned.in_part_at = less.map(|moment| moment.second).max();
        }
        returned
    }

    /// Moments of which it was told that less was given back than all, or than before: what is not told of them is not
    /// known, since of what all was given back by the newest account alone is kept.
    fn decrease_moments<'a>(&'a self, charges: &[&'a ChargeState]) -> impl Iterator<Item = MoneyMoment<'a>> {
        let void = self.notes().filter(|(_, note)| *note.value() == 0);
        let void = void.map(|(_, note)| MoneyMoment { second: note.as_of().at, within: SecondPart::End });
        charges.iter().flat_map(|charge| charge.decrease_moments()).chain(void)
    }

    fn notes(&self) -> impl Iterator<Item = (&str, &LwwRegister<i64>)> {
        self.notes.iter().filter_map(|(id, note)| Some((id.as_str(), note.as_ref()?)))
    }

    /// All moments at which something about its money changed, as far as that is known.
    fn moments<'a>(&'a self, charges: &[&'a ChargeState]) -> BTreeSet<MoneyMoment<'a>> {
        let notes = self.notes().map(|(id, note)| (note.as_of().at, Some(id)));
        let turns = charges.iter().flat_map(|charge| charge.change_times()).chain(notes);
        turns.flat_map(|(second, id)| MoneyMoment::all_of(second, id)).collect()
    }
}
