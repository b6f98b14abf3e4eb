//! Charge: refunds and disputes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::affiliate::money::Currency;
use model::affiliate::sale::{DisputeState, Sale};
use serde::{Deserialize, Serialize};

use super::bounded::{TooManyEntries, bounded_entry, bounded_insert};
use super::lww_register::LwwRegister;
use super::money_moment::{MoneyMoment, SecondPart};
use crate::processor::{self, Charge, ChargeDispute, ChargeFigure, ObjectStage, Refund, RefundFigure, StateVersion};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChargeState {
    /// Charged amount; never changes.
    amount: Option<(i64, Currency)>,
    /// The newest refunded total that the charge itself reports.
    newest: Option<ChargeFigure>,
    /// The newest such total below the full amount.
    in_part: Option<ChargeFigure>,
    /// Refunds by id.
    refunds: BTreeMap<String, Option<RefundFigure>>,
    /// Disputes by id.
    disputes: BTreeMap<String, Option<LwwRegister<DisputeState>>>,
    /// Payment intents of the charge.
    pub(crate) payments: BTreeSet<String>,
    /// Invoices that the charge paid.
    pub(crate) invoices: BTreeSet<String>,
    /// True if the charge ever carried the exclusion flag.
    pub(crate) is_excluded: bool,
}

impl ChargeState {
    /// Merges the charge's own fields. Refunds and a dispute embedded in it are applied separately.
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

    pub(crate) fn apply_refund(&mut self, refund: &Refund) -> Result<(), TooManyEntries> {
        let figure = bounded_entry(&mut self.refunds, &refund.id, "refunds of a charge")?;
        let new_figure = refund.figure();
        *figure = Some(figure.map_or(new_figure, |current| current.newer(new_figure)));
        self.add_payment(refund.payment_intent.as_deref())
    }

    pub(crate) fn apply_dispute(&mut self, dispute: &ChargeDispute) -> Result<(), TooManyEntries> {
        let dispute_state = bounded_entry(&mut self.disputes, &dispute.id, "disputes of a charge")?;
        LwwRegister::merge(dispute_state, dispute.as_of, dispute.status);
        self.add_payment(dispute.payment_intent.as_deref())
    }

    /// Records that the charge paid an invoice.
    pub(crate) fn add_invoice(&mut self, invoice: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.invoices, invoice, "invoices of a charge")
    }

    /// Records that the charge belongs to a payment intent.
    pub(crate) fn add_payment(&mut self, payment: Option<&str>) -> Result<(), TooManyEntries> {
        payment.map_or(Ok(()), |payment| bounded_insert(&mut self.payments, payment, "payments of a charge"))
    }

    /// Disputes by id, with their newest state.
    pub(super) fn disputes(&self) -> impl Iterator<Item = (String, DisputeState)> {
        let disputes = self.disputes.iter();
        disputes.filter_map(|(id, state)| Some((id.clone(), state.as_ref()?.value)))
    }

    /// Returns the refunded amount in the invoice's currency; with `until`, the amount at that moment as far as known.
    pub(super) fn refunded_by(&self, sale: &Sale, until: Option<MoneyMoment<'_>>) -> i128 {
        let refunds = self.refunds();
        let Some(until) = until else {
            let refunds: Vec<_> = refunds.map(|(_, refund)| refund).collect();
            return self.to_invoice_currency(sale, processor::refunded(self.newest, &refunds));
        };
        let figures = [self.newest, self.in_part].into_iter().flatten();
        // A partial total that the charge reported in this second includes all refunds made by then.
        let partial = self.in_part.filter(|part| part.as_of.at == until.second && until.within != SecondPart::End);
        let charge = partial.or(figures.filter(|figure| until.is_after(figure.as_of.at)).max());
        let is_counted = |refund: &RefundFigure| partial.is_none() || refund.made_at() < until.second;
        let refunds = refunds.filter(|(id, refund)| is_counted(refund) && until.includes(refund.made_at(), id));
        let refunds: Vec<_> = refunds.map(|(_, refund)| refund_at(refund, until)).collect();
        self.to_invoice_currency(sale, processor::refunded(charge, &refunds))
    }

    fn refunds(&self) -> impl Iterator<Item = (&str, RefundFigure)> {
        self.refunds.iter().filter_map(|(id, refund)| Some((id.as_str(), (*refund)?)))
    }

    /// Converts a refund in proportion if the charge has another currency than the invoice; no exchange rate is used.
    fn to_invoice_currency(&self, sale: &Sale, refunded: i64) -> i128 {
        let refunded = i128::from(refunded);
        match self.amount {
            Some((amount, currency)) if currency != sale.currency && amount > 0 => {
                let (amount, paid) = (i128::from(amount), i128::from(sale.amount_paid.max(0)));
                // Both factors fit into 64 bits, so the product fits.
                (refunded * paid * 2 + amount).div_euclid(amount * 2)
            }
            _ => refunded,
        }
    }

    /// Returns the times at which the refunded amount changed, each with the id of the refund created then.
    pub(super) fn change_times(&self) -> impl Iterator<Item = (Timestamp, Option<&str>)> {
        let figures = [self.newest, self.in_part].into_iter().flatten();
        let figures = figures.map(|figure| (figure.as_of.at, None));
        let moments_of = |(id, refund): (_, RefundFigure)| [(refund.made_at(), Some(id)), (refund.as_of.at, None)];
        figures.chain(self.refunds().flat_map(moments_of))
    }

    /// Returns the moments of a partial total, and those at which refunds failed.
    pub(super) fn decrease_moments(&self) -> impl Iterator<Item = MoneyMoment<'_>> {
        let part = self.in_part.map(|part| MoneyMoment { second: part.as_of.at, within: SecondPart::Told });
        let failed = self.refunds().filter(|(_, refund)| !refund.is_live);
        let failed = failed.map(|(_, refund)| MoneyMoment { second: refund.as_of.at, within: SecondPart::End });
        part.into_iter().chain(failed)
    }
}

/// Returns a refund's state at a moment after its creation.
fn refund_at(refund: RefundFigure, until: MoneyMoment<'_>) -> RefundFigure {
    if until.is_after(refund.as_of.at) {
        return refund;
    }
    let as_of = StateVersion { at: refund.made_at(), step: ObjectStage::Begun };
    RefundFigure { as_of, is_live: true, ..refund }
}
