//! First write of an invoice's lines: whether the invoice earns a commission, for which partners, and how much.

use serde::{Deserialize, Serialize};

use super::super::arithmetic::amount::{self, Payable};
use super::super::arithmetic::rate::{self, RateGroup, RateShare, RateSource};
use super::super::arithmetic::{ArithmeticError, base};
use super::super::campaign::CommissionDuration;
use super::super::commission::{
    CapEffect, Commission, CommissionCalculation, CommissionCap, CommissionLevel, CommissionOrigin, CommissionState,
    FreezeReasons, ReconciliationState, RefundSplit, SoldInvoice, TermsSnapshot,
};
use super::super::money::Currency;
use super::super::periods;
use super::update_lines::update_line;
use super::{
    AccrualStatus, LedgerLine, LineChange, LineUpdate, RecomputeFacts, RecruiterInput, ReferralBar, SaleWorth,
};
use crate::id::{CommissionId, PartnerId};

/// The reason why an invoice has no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoCommission {
    /// Nothing was paid, or it was paid before the referral counts.
    NoSale,
    /// The exclusion flag applies to the sale.
    Excluded,
    Barred(ReferralBar),
    /// The partner's status does not allow commissions.
    Partner(AccrualStatus),
    /// The duration is `once`, and another invoice was the first.
    OnlyOnce,
    /// The sale is outside the campaign's duration.
    TooLate,
    /// The items earn nothing, or less than one payout step.
    ComesToNothing,
}

impl NoCommission {
    /// True if the reason stays valid: it follows from the owner's terms and the partner's status at that time. Later
    /// data of the payment processor does not change it.
    pub fn is_permanent(self) -> bool {
        match self {
            Self::Partner(_) | Self::OnlyOnce | Self::TooLate | Self::ComesToNothing => true,
            // The caller stores an exclusion flag that it has seen.
            Self::NoSale | Self::Excluded | Self::Barred(_) => false,
        }
    }
}

/// The initial lines of an invoice, before refunds and disputes; or the reason why it has none.
pub(super) fn initial_lines(
    known: &RecomputeFacts<'_>,
    worth: Option<SaleWorth>,
) -> Result<Result<Vec<Commission>, NoCommission>, ArithmeticError> {
    let Some(worth) = worth else { return Ok(Err(NoCommission::NoSale)) };
    if let Some(nothing) = reason_for_none(known) {
        return Ok(Err(nothing));
    }
    let groups = rate::rate_groups(known.invoice.sale, worth.base, &known.seller.offer)?;
    let recruiters = recruiters_groups(known, &groups);
    let (first, fixed) = split_by_currency(known, groups)?;
    let partner = known.seller.partner;
    let [id, recruiters_id, fixed_id] = known.ids;
    let sellers_line = |CurrencyGroups { currency, groups }| {
        initial_line(known, LineOwner { id, partner, level: CommissionLevel::One, currency }, groups)
    };
    let (sellers, fixed) = match (sellers_line(first)?, fixed) {
        // The shares are less than a payout step: the flat amounts are the only line.
        (None, Some(fixed)) => (sellers_line(fixed)?, None),
        lines => lines,
    };
    let Some(sellers) = sellers else { return Ok(Err(NoCommission::ComesToNothing)) };
    let recruiters = match recruiters {
        Some((partner, groups)) => {
            let currency = known.invoice.sale.currency;
            initial_line(
                known,
                LineOwner { id: recruiters_id, partner, level: CommissionLevel::Two, currency },
                groups,
            )?
        }
        None => None,
    };
    let fixed = match fixed {
        Some(CurrencyGroups { currency, groups }) => initial_line(
            known,
            LineOwner { id: fixed_id, partner, level: CommissionLevel::OneFixed, currency },
            groups,
        )?,
        None => None,
    };
    Ok(Ok([Some(sellers), recruiters, fixed].into_iter().flatten().collect()))
}

/// A new line to write: current refunds and disputes are applied, and it is earned at once if no hold remains.
pub(super) fn write_line(
    known: &RecomputeFacts<'_>,
    lines: &[LedgerLine<'_>],
    ledger_line: &LedgerLine<'_>,
) -> Result<LineUpdate, ArithmeticError> {
    let settled = update_line(known, lines, ledger_line)?.written;
    let mut written = settled.unwrap_or_else(|| LineUpdate { line: ledger_line.line.clone(), changes: Vec::new() });
    written.changes.insert(0, LineChange::Created);
    if written.line.earn(known.now).is_ok() {
        written.changes.push(LineChange::Earned);
    }
    Ok(written)
}

/// A reason for no commission that does not depend on the amount.
fn reason_for_none(known: &RecomputeFacts<'_>) -> Option<NoCommission> {
    let (sale, customer, seller) = (known.invoice.sale, &known.customer, &known.seller);
    if let Some(bar) = customer.bar {
        return Some(NoCommission::Barred(bar));
    }
    if known.invoice.is_excluded {
        return Some(NoCommission::Excluded);
    }
    let accrues = match seller.accrual {
        AccrualStatus::Active => true,
        AccrualStatus::Suspended => known.rules.suspended_accrue,
        AccrualStatus::Outside => false,
    };
    if !accrues {
        return Some(NoCommission::Partner(seller.accrual));
    }
    let duration = seller.offer.terms.duration;
    let is_first = customer.first_earning.is_none_or(|first| first == sale.invoice);
    if duration == CommissionDuration::Once && !is_first {
        return Some(NoCommission::OnlyOnce);
    }
    let converted_at = customer.converted_at.unwrap_or(sale.paid_at);
    (!periods::is_within_duration(duration, converted_at, sale.paid_at)).then_some(NoCommission::TooLate)
}

/// Rate groups of one line.
struct CurrencyGroups {
    currency: Currency,
    groups: Vec<RateGroup>,
}

/// Splits the rate groups into the seller's line and a second line for flat amounts in another currency.
///
/// Percent shares have the invoice's currency, flat amounts have the program's, and amounts are not converted. If the
/// shares earn anything, the first line has the invoice's currency and the flat amounts become another line.
fn split_by_currency(
    known: &RecomputeFacts<'_>,
    groups: Vec<RateGroup>,
) -> Result<(CurrencyGroups, Option<CurrencyGroups>), ArithmeticError> {
    let (sold_in, fixed_in) = (known.invoice.sale.currency, known.rules.currency);
    let is_fixed = |group: &RateGroup| matches!(group.share, RateShare::Flat(amount) if amount > 0);
    if sold_in == fixed_in || !groups.iter().any(is_fixed) {
        return Ok((CurrencyGroups { currency: sold_in, groups }, None));
    }
    let shares = groups.iter().filter_map(|group| match group.share {
        RateShare::Percent(points) => Some((group.base, points)),
        _ => None,
    });
    if amount::percent_of_parts(shares)? <= 0 {
        return Ok((CurrencyGroups { currency: fixed_in, groups }, None));
    }
    let (fixed, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_fixed);
    Ok((CurrencyGroups { currency: sold_in, groups }, Some(CurrencyGroups { currency: fixed_in, groups: fixed })))
}

/// Id, recipient and currency of a line.
struct LineOwner {
    id: CommissionId,
    partner: PartnerId,
    level: CommissionLevel,
    currency: Currency,
}

/// The recruiter, and its percent share of all groups that are not excluded. The share does not depend on the seller's
/// rates.
fn recruiters_groups(known: &RecomputeFacts<'_>, groups: &[RateGroup]) -> Option<(PartnerId, Vec<RateGroup>)> {
    let points = known.seller.offer.terms.second_tier;
    let RecruiterInput { partner, is_active, is_customer } = known.recruiter?;
    if !is_active || is_customer || partner == known.seller.partner || points.get() == 0 {
        return None;
    }
    let groups = groups.iter().map(|group| match group.share {
        RateShare::Excluded => group.clone(),
        _ => RateGroup { rule: RateSource::SecondTier, share: RateShare::Percent(points), base: group.base },
    });
    Some((partner, groups.fold(Vec::new(), join_group)))
}

/// Merges the groups with the recruiter's rate into one.
fn join_group(mut groups: Vec<RateGroup>, next: RateGroup) -> Vec<RateGroup> {
    match groups.iter_mut().find(|group| group.rule == next.rule && next.rule == RateSource::SecondTier) {
        // Cannot overflow: the parts add up to at most the base.
        Some(group) => group.base = group.base.saturating_add(next.base),
        None => groups.push(next),
    }
    groups
}

/// A line before refunds; `None` if its amount is zero.
fn initial_line(
    known: &RecomputeFacts<'_>,
    share: LineOwner,
    groups: Vec<RateGroup>,
) -> Result<Option<Commission>, ArithmeticError> {
    let (sale, terms) = (known.invoice.sale, known.seller.offer.terms);
    // Cannot overflow: the groups' bases add up to at most the sale's base.
    let base = groups.iter().fold(0_i64, |sum, group| sum.saturating_add(group.base));
    let effect = if known.rules.currency == share.currency { CapEffect::Unreached } else { CapEffect::OtherCurrency };
    let cap = terms.max_commission.map(|max| CommissionCap { most: max, currency: known.rules.currency, effect });
    let mut calculation = CommissionCalculation {
        currency: sale.currency,
        base,
        paid: sale.amount_paid,
        tax: base::tax_of_sale(sale)?,
        paying_customers: known.seller.offer.paying_customers,
        groups,
        cap,
    };
    let Payable { amount, is_capped } = calculation.payable(base, share.currency)?;
    if amount <= 0 {
        return Ok(None);
    }
    if let Some(cap) = calculation.cap.as_mut().filter(|_| is_capped) {
        cap.effect = CapEffect::Hit;
    }
    let charge = known.invoice.charge.map(str::to_owned);
    let sold = SoldInvoice {
        level: share.level,
        invoice: sale.invoice.clone(),
        charge,
        amount: base,
        calculation,
        refund_split: RefundSplit::default(),
    };
    Ok(Some(Commission {
        id: share.id,
        account: known.rules.account,
        partner: share.partner,
        referral: known.customer.referral,
        origin: CommissionOrigin::Sale(Box::new(sold)),
        amount,
        currency: share.currency,
        status: CommissionState::Pending { frozen: FreezeReasons::default() },
        earns_at: periods::earns_at(sale.paid_at, terms.hold_days)?,
        comparison: ReconciliationState::Needless,
        snapshot: TermsSnapshot {
            campaign: known.seller.campaign,
            campaign_rev: known.seller.campaign_rev,
            hold_days: terms.hold_days,
        },
        waived: Vec::new(),
        note: None,
        created_at: known.now,
        updated_at: known.now,
        rev: 1,
    }))
}
