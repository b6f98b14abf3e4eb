//! A charge: what was given back of it, and how it is disputed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mail::affiliate::money::Currency;
use mail::affiliate::sale::{DisputeState, Sale};
use serde::{Deserialize, Serialize};

use super::moment::{MoneyMoment, SecondPart};
use super::{LwwRegister, TooManyEntries, bounded_entry, bounded_insert};
use crate::processor::{self, Charge, ChargeDispute, ChargeFigure, ObjectStage, Refund, RefundFigure, StateVersion};

/// What is known of a charge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChargeState {
    /// What was charged, in this currency: it never changes.
    amount: Option<(i64, Currency)>,
    /// The newest that the charge says of its refunds.
    newest: Option<ChargeFigure>,
    /// The newest of those by which not all of it was refunded.
    in_part: Option<ChargeFigure>,
    /// Its refunds, by their ids.
    refunds: BTreeMap<String, Option<RefundFigure>>,
    /// Its disputes, by their ids.
    disputes: BTreeMap<String, Option<LwwRegister<DisputeState>>>,
    /// The payments that it is of.
    payments: BTreeSet<String>,
    /// The invoices that it paid.
    invoices: BTreeSet<String>,
    /// Whether it ever carried the flag that excludes it.
    is_excluded: bool,
}

impl ChargeState {
    /// Hears of the charge itself. Its refunds and its dispute, where they stand in it, are heard by themselves.
    pub(crate) fn apply(&mut self, charge: &Charge) -> Result<(), TooManyEntries> {
        self.amount = self.amount.max(Some((charge.amount, charge.currency)));
        let figure = charge.figure();
        self.newest = self.newest.max(Some(figure));
        if figure.refunded < charge.amount {
            self.in_part = self.in_part.max(Some(figure));
        }
        self.is_excluded |= charge.marks.excluded;
        self.add_payment(charge.payment_intent.as_deref())?;
        charge.invoice.as_deref().map_or(Ok(()), |invoice| self.add_invoice(invoice))
    }

    /// Hears of one refund.
    pub(crate) fn apply_refund(&mut self, refund: &Refund) -> Result<(), TooManyEntries> {
        let figure = bounded_entry(&mut self.refunds, &refund.id, "refunds of a charge")?;
        let told = refund.figure();
        *figure = Some(figure.map_or(told, |known| known.newer(told)));
        self.add_payment(refund.payment_intent.as_deref())
    }

    /// Hears of a dispute.
    pub(crate) fn apply_dispute(&mut self, dispute: &ChargeDispute) -> Result<(), TooManyEntries> {
        let known = bounded_entry(&mut self.disputes, &dispute.id, "disputes of a charge")?;
        LwwRegister::merge(known, dispute.as_of, dispute.status);
        self.add_payment(dispute.payment_intent.as_deref())
    }

    /// It paid an invoice.
    pub(crate) fn add_invoice(&mut self, invoice: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.invoices, invoice, "invoices of a charge")
    }

    /// It is of a payment.
    pub(crate) fn add_payment(&mut self, payment: Option<&str>) -> Result<(), TooManyEntries> {
        payment.map_or(Ok(()), |payment| bounded_insert(&mut self.payments, payment, "payments of a charge"))
    }

    /// The payments that it is of.
    pub(crate) fn payments(&self) -> &BTreeSet<String> {
        &self.payments
    }

    /// The invoices that it paid.
    pub(crate) fn invoices(&self) -> &BTreeSet<String> {
        &self.invoices
    }

    /// Whether it ever carried the flag that excludes it.
    pub(crate) fn is_excluded(&self) -> bool {
        self.is_excluded
    }

    /// Its disputes, by their ids.
    pub(super) fn disputes(&self) -> impl Iterator<Item = (String, DisputeState)> {
        let disputes = self.disputes.iter();
        disputes.filter_map(|(id, known)| Some((id.clone(), *known.as_ref()?.value())))
    }

    /// What was given back of it; by a moment, as far as that is known now.
    pub(super) fn refunded_by(&self, sale: &Sale, by: Option<MoneyMoment<'_>>) -> i128 {
        let refunds = self.refunds();
        let Some(by) = by else {
            let refunds: Vec<_> = refunds.map(|(_, refund)| refund).collect();
            return self.to_invoice_currency(sale, processor::refunded(self.newest, &refunds));
        };
        let figures = [self.newest, self.in_part].into_iter().flatten();
        // What it said of a part in this very second knows what was refunded by then.
        let told = self.in_part.filter(|part| part.as_of.at == by.second && by.within != SecondPart::End);
        let charge = told.or(figures.filter(|figure| by.is_after(figure.as_of.at)).max());
        let counts = |refund: &RefundFigure| told.is_none() || refund.made_at() < by.second;
        let refunds = refunds.filter(|(id, refund)| counts(refund) && by.includes(refund.made_at(), id));
        let refunds: Vec<_> = refunds.map(|(_, refund)| refund_at(refund, by)).collect();
        self.to_invoice_currency(sale, processor::refunded(charge, &refunds))
    }

    fn refunds(&self) -> impl Iterator<Item = (&str, RefundFigure)> {
        self.refunds.iter().filter_map(|(id, refund)| Some((id.as_str(), (*refund)?)))
    }

    /// What of it may be in another currency than the invoice goes back in proportion: nothing is exchanged.
    fn to_invoice_currency(&self, sale: &Sale, refunded: i64) -> i128 {
        let refunded = i128::from(refunded);
        match self.amount {
            Some((amount, currency)) if currency != sale.currency && amount > 0 => {
                let (amount, paid) = (i128::from(amount), i128::from(sale.amount_paid.max(0)));
                // Two figures of 64 bits: the product fits.
                (refunded * paid * 2 + amount).div_euclid(amount * 2)
            }
            _ => refunded,
        }
    }

    /// When something about what was given back changed, as far as that is known; with the refund that was made then.
    pub(super) fn change_times(&self) -> impl Iterator<Item = (Timestamp, Option<&str>)> {
        let figures = [self.newest, self.in_part].into_iter().flatten();
        let figures = figures.map(|figure| (figure.as_of.at, None));
        let turns = |(id, refund): (_, RefundFigure)| [(refund.made_at(), Some(id)), (refund.as_of.at, None)];
        figures.chain(self.refunds().flat_map(turns))
    }

    /// When it told of a part, and when refunds of it failed.
    pub(super) fn decrease_moments(&self) -> impl Iterator<Item = MoneyMoment<'_>> {
        let part = self.in_part.map(|part| MoneyMoment { second: part.as_of.at, within: SecondPart::Told });
        let failed = self.refunds().filter(|(_, refund)| !refund.is_live);
        let failed = failed.map(|(_, refund)| MoneyMoment { second: refund.as_of.at, within: SecondPart::End });
        part.into_iter().chain(failed)
    }
}

/// How a refund stood at a moment after it was made.
fn refund_at(refund: RefundFigure, by: MoneyMoment<'_>) -> RefundFigure {
    if by.is_after(refund.as_of.at) {
        return refund;
    }
    let as_of = StateVersion { at: refund.made_at(), step: ObjectStage::Begun };
    RefundFigure { as_of, is_live: true, ..refund }
}
