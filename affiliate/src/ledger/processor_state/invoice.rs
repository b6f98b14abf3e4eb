//! Invoice: its sale, the payments that paid it, and the amounts returned by credit notes.

use std::collections::{BTreeMap, BTreeSet};

use model::affiliate::recompute::NoCommission;
use model::affiliate::sale::{Sale, SaleReturns};
use model::id::ReferralId;
use serde::{Deserialize, Serialize};

use super::bounded::{TooManyEntries, bounded_entry, bounded_insert};
use super::charge::ChargeState;
use super::lww_register::LwwRegister;
use super::money_moment::{MoneyMoment, SecondPart};
use crate::processor::{Checkout, CreditNote, Invoice, Payment, ReferralHint};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PaidInvoice {
    pub(crate) sale: Sale,
    /// The processor's customer id; `None` for a guest checkout.
    pub(crate) customer: Option<String>,
    /// Lowercase.
    pub(crate) email: Option<String>,
    pub(crate) subscription: Option<String>,
    /// Referral hints from the invoice's metadata.
    pub(crate) hints: Vec<ReferralHint>,
}

/// Contribution of an invoice to its referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountedRevenue {
    /// In minor units of the invoice's currency.
    pub(crate) revenue: i64,
    /// True if the whole amount was refunded or disputed.
    pub(crate) is_gone: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InvoiceState {
    paid: Option<LwwRegister<PaidInvoice>>,
    /// Charges that paid the invoice.
    pub(crate) charges: BTreeSet<String>,
    /// Payment intents that paid the invoice.
    pub(crate) payments: BTreeSet<String>,
    /// Amount returned by each credit note, in minor units.
    notes: BTreeMap<String, Option<LwwRegister<i64>>>,
    /// True if the invoice or its checkout session ever carried the exclusion flag.
    pub(crate) is_excluded: bool,

    // Fields computed by the ledger.
    /// The customer whose index lists the invoice.
    listed_with: Option<String>,
    /// True if a flag of the customer or subscription excluded the invoice when it was booked; later changes of that
    /// flag have no effect.
    pub(crate) was_excluded: bool,
    /// Permanent reason for earning nothing, fixed at the first booking: the terms, or the partner's status.
    pub(crate) nothing: Option<NoCommission>,
    pub(crate) referral: Option<ReferralId>,
    /// Contribution to the referral; `None` if the invoice does not count.
    pub(crate) counted: Option<CountedRevenue>,
}

impl InvoiceState {
    /// Merges an invoice. An unpaid one is skipped: a paid invoice never becomes unpaid.
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

    /// Merges a checkout session that is a sale without an invoice.
    pub(crate) fn apply_checkout(&mut self, checkout: &Checkout, sale: Sale) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.payments, &sale.invoice, "payments of an invoice")?;
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

    /// Records a payment that paid the invoice, wholly or in part.
    pub(crate) fn add_payment(&mut self, payment: &Payment) -> Result<(), TooManyEntries> {
        if let Some(charge) = &payment.charge {
            self.add_charge(charge)?;
        }
        if let Some(payment) = &payment.payment_intent {
            bounded_insert(&mut self.payments, payment, "payments of an invoice")?;
        }
        Ok(())
    }

    /// Records a charge that paid the invoice, wholly or in part.
    pub(crate) fn add_charge(&mut self, charge: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.charges, charge, "charges of an invoice")
    }

    pub(crate) fn apply_credit_note(&mut self, note: &CreditNote) -> Result<(), TooManyEntries> {
        let note_state = bounded_entry(&mut self.notes, &note.id, "credit notes of an invoice")?;
        LwwRegister::merge(note_state, note.as_of, note.given_back);
        Ok(())
    }

    /// Sets the customer whose index lists the invoice. Returns true if it changed.
    pub(crate) fn set_index_customer(&mut self, customer: &str) -> bool {
        let is_new = self.listed_with.as_deref() != Some(customer);
        if is_new {
            self.listed_with = Some(customer.to_owned());
        }
        is_new
    }

    /// Returns the sale once it is paid.
    pub(crate) fn paid(&self) -> Option<&PaidInvoice> {
        self.paid.as_ref().map(|paid| &paid.value)
    }

    /// Sums refunds, credit notes and disputes of the invoice.
    pub(crate) fn money_returned(&self, sale: &Sale, charges: &[&ChargeState]) -> SaleReturns {
        let returned_by = |until: Option<MoneyMoment<'_>>| {
            let notes = self.notes().filter(|(id, note)| until.is_none_or(|until| until.includes(note.as_of.at, id)));
            let notes: i128 = notes.map(|(_, note)| i128::from(note.value)).sum();
            let charges: i128 = charges.iter().map(|charge| charge.refunded_by(sale, until)).sum();
            i64::try_from(notes + charges).unwrap_or(i64::MAX)
        };
        let moments = self.moments(charges);
        let mut returned = SaleReturns {
            refunded: returned_by(None),
            told_at: moments.last().map(|moment| moment.second),
            disputes: charges.iter().flat_map(|charge| charge.disputes()).collect(),
            ..SaleReturns::default()
        };
        let is_in_part = |refunded: &i64| *refunded < sale.amount_paid;
        if is_in_part(&returned.refunded) {
            returned.refunded_in_part = returned.refunded;
        } else {
            // Go back through the moments of change to the last one before the full amount was returned.
            let mut earlier = moments.iter().rev().map(|moment| returned_by(Some(*moment)));
            returned.refunded_in_part = earlier.find(is_in_part).unwrap_or(0);
            let less = self.decrease_moments(charges).filter(|moment| is_in_part(&returned_by(Some(*moment))));
            returned.in_part_at = less.map(|moment| moment.second).max();
        }
        returned
    }

    /// Returns the known moments at which the returned amount was below the full amount or decreased. Other such
    /// moments are unknown, because only the newest full total is stored.
    fn decrease_moments<'a>(&'a self, charges: &[&'a ChargeState]) -> impl Iterator<Item = MoneyMoment<'a>> {
        let void = self.notes().filter(|(_, note)| note.value == 0);
        let void = void.map(|(_, note)| MoneyMoment { second: note.as_of.at, within: SecondPart::End });
        charges.iter().flat_map(|charge| charge.decrease_moments()).chain(void)
    }

    fn notes(&self) -> impl Iterator<Item = (&str, &LwwRegister<i64>)> {
        self.notes.iter().filter_map(|(id, note)| Some((id.as_str(), note.as_ref()?)))
    }

    /// Returns all known moments at which the returned amount changed.
    fn moments<'a>(&'a self, charges: &[&'a ChargeState]) -> BTreeSet<MoneyMoment<'a>> {
        let notes = self.notes().map(|(id, note)| (note.as_of.at, Some(id)));
        let times = charges.iter().flat_map(|charge| charge.change_times()).chain(notes);
        times.flat_map(|(second, id)| MoneyMoment::all_of(second, id)).collect()
    }
}
