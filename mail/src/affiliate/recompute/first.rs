//! The first write of an invoice's lines: whether it earns, for whom, and how much.

use serde::{Deserialize, Serialize};

use super::super::arithmetic::amount::{self, Payable};
use super::super::arithmetic::rate::{self, Group, Rule, Share};
use super::super::arithmetic::{ArithmeticError, base};
use super::super::campaign::Duration;
use super::super::commission::{
    Calculation, Cap, CapEffect, Commission, Comparison, Frozen, Level, Origin, Snapshot, Sold, Status,
};
use super::super::money::Currency;
use super::super::window;
use super::settle::settle;
use super::{Barred, Booked, Known, Recruiter, Standing, Step, Worth, Written};
use crate::id::{CommissionId, PartnerId};

/// Why an invoice has no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nothing {
    /// Nothing was paid, or it was paid before the customer was the partner's.
    NoSale,
    /// It carries the flag that excludes it, or its customer or subscription does.
    Excluded,
    /// Its referral earns nothing.
    Barred(Barred),
    /// Its partner earns nothing.
    Partner(Standing),
    /// With `once`, another invoice was first.
    OnlyOnce,
    /// The customer's months are over.
    TooLate,
    /// What was sold earns nothing, or less than can be paid.
    ComesToNothing,
}

impl Nothing {
    /// Whether it stays so: it was the owner's terms and the partner's standing, as they were, and nothing that the
    /// processor may tell of later.
    #[must_use]
    pub fn is_for_good(self) -> bool {
        match self {
            Self::Partner(_) | Self::OnlyOnce | Self::TooLate | Self::ComesToNothing => true,
            // A flag that was met is kept by whoever met it.
            Self::NoSale | Self::Excluded | Self::Barred(_) => false,
        }
    }
}

/// The lines that an invoice is to have, as they are before anything came back; or why it has none.
pub(super) fn lines(
    known: &Known<'_>,
    worth: Option<Worth>,
) -> Result<Result<Vec<Commission>, Nothing>, ArithmeticError> {
    let Some(worth) = worth else { return Ok(Err(Nothing::NoSale)) };
    if let Some(nothing) = hindrance(known) {
        return Ok(Err(nothing));
    }
    let groups = rate::groups(known.invoice.sale, worth.base, &known.seller.offer)?;
    let recruiters = recruiters_groups(known, &groups);
    let (first, fixed) = by_currency(known, groups)?;
    let partner = known.seller.partner;
    let [id, recruiters_id, fixed_id] = known.ids;
    let sellers =
        line(known, Shared { id, partner, level: Level::One, currency: first.currency }, first.groups)?;
    let Some(sellers) = sellers else { return Ok(Err(Nothing::ComesToNothing)) };
    let recruiters = match recruiters {
        Some((partner, groups)) => {
            let currency = known.invoice.sale.currency;
            line(known, Shared { id: recruiters_id, partner, level: Level::Two, currency }, groups)?
        }
        None => None,
    };
    let fixed = match fixed {
        Some(InCurrency { currency, groups }) => {
            line(known, Shared { id: fixed_id, partner, level: Level::OneFixed, currency }, groups)?
        }
        None => None,
    };
    Ok(Ok([Some(sellers), recruiters, fixed].into_iter().flatten().collect()))
}

/// A new line as it is written: brought to where the facts are by now, and earned at once where no hold is left.
pub(super) fn write(
    known: &Known<'_>,
    lines: &[Booked<'_>],
    booked: &Booked<'_>,
) -> Result<Written, ArithmeticError> {
    let settled = settle(known, lines, booked)?.written;
    let mut written = settled.unwrap_or_else(|| Written { line: booked.line.clone(), steps: Vec::new() });
    written.steps.insert(0, Step::Created);
    if written.line.earn(known.now).is_ok() {
        written.steps.push(Step::Earned);
    }
    Ok(written)
}

/// What stands in the way of a commission, whatever it would come to.
fn hindrance(known: &Known<'_>) -> Option<Nothing> {
    let (sale, customer, seller) = (known.invoice.sale, &known.customer, &known.seller);
    if let Some(barred) = customer.barred {
        return Some(Nothing::Barred(barred));
    }
    if known.invoice.is_excluded {
        return Some(Nothing::Excluded);
    }
    let accrues = match seller.standing {
        Standing::Active => true,
        Standing::Suspended => known.rules.suspended_accrue,
        Standing::Outside => false,
    };
    if !accrues {
        return Some(Nothing::Partner(seller.standing));
    }
    let duration = seller.offer.terms.duration;
    let is_first = customer.first_earning.is_none_or(|first| first == sale.invoice);
    if duration == Duration::Once && !is_first {
        return Some(Nothing::OnlyOnce);
    }
    let converted_at = customer.converted_at.unwrap_or(sale.paid_at);
    (!window::covers(duration, converted_at, sale.paid_at)).then_some(Nothing::TooLate)
}

/// Groups that one line is of.
struct InCurrency {
    currency: Currency,
    groups: Vec<Group>,
}

/// The groups of the seller's line, and those that have a line of their own.
///
/// Shares are in the invoice's currency, fixed amounts in the program's, and nothing is exchanged. A line has one
/// currency: where shares come to anything it is theirs, and the fixed amounts are another line.
fn by_currency(
    known: &Known<'_>,
    groups: Vec<Group>,
) -> Result<(InCurrency, Option<InCurrency>), ArithmeticError> {
    let (sold_in, fixed_in) = (known.invoice.sale.currency, known.rules.currency);
    let is_fixed = |group: &Group| matches!(group.share, Share::Flat(amount) if amount > 0);
    if sold_in == fixed_in || !groups.iter().any(is_fixed) {
        return Ok((InCurrency { currency: sold_in, groups }, None));
    }
    let shares = groups.iter().filter_map(|group| match group.share {
        Share::Percent(points) => Some((group.base, points)),
        _ => None,
    });
    if amount::percent(shares)? <= 0 {
        return Ok((InCurrency { currency: fixed_in, groups }, None));
    }
    let (fixed, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_fixed);
    Ok((InCurrency { currency: sold_in, groups }, Some(InCurrency { currency: fixed_in, groups: fixed })))
}

/// Whose line it is.
struct Shared {
    id: CommissionId,
    partner: PartnerId,
    level: Level,
    currency: Currency,
}

/// The recruiter, and its share of what is commissionable of the same sale, whatever the seller earns by it.
fn recruiters_groups(known: &Known<'_>, groups: &[Group]) -> Option<(PartnerId, Vec<Group>)> {
    let points = known.seller.offer.terms.second_tier;
    let Recruiter { partner, is_active, is_customer } = known.recruiter?;
    if !is_active || is_customer || partner == known.seller.partner || points.get() == 0 {
        return None;
    }
    let groups = groups.iter().map(|group| match group.share {
        Share::Excluded => group.clone(),
        _ => Group { rule: Rule::SecondTier, share: Share::Percent(points), base: group.base },
    });
    Some((partner, groups.fold(Vec::new(), joined)))
}

/// Groups that have the recruiter's rate are one.
fn joined(mut groups: Vec<Group>, next: Group) -> Vec<Group> {
    match groups.iter_mut().find(|group| group.rule == next.rule && next.rule == Rule::SecondTier) {
        // Parts of a base come to no more than the base.
        Some(group) => group.base = group.base.saturating_add(next.base),
        None => groups.push(next),
    }
    groups
}

/// A line before anything came back; `None` when it comes to nothing.
fn line(known: &Known<'_>, share: Shared, groups: Vec<Group>) -> Result<Option<Commission>, ArithmeticError> {
    let (sale, terms) = (known.invoice.sale, known.seller.offer.terms);
    // Of all groups it is the sale's, which a part of them comes to no more than.
    let base = groups.iter().fold(0_i64, |sum, group| sum.saturating_add(group.base));
    let effect =
        if known.rules.currency == share.currency { CapEffect::Unreached } else { CapEffect::OtherCurrency };
    let cap = terms.max_commission.map(|most| Cap { most, currency: known.rules.currency, effect });
    let mut calculation = Calculation {
        currency: sale.currency,
        base,
        paid: sale.amount_paid,
        tax: base::tax(sale)?,
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
    let sold = Sold { level: share.level, invoice: sale.invoice.clone(), charge, amount: base, calculation };
    Ok(Some(Commission {
        id: share.id,
        account: known.rules.account,
        partner: share.partner,
        referral: known.customer.referral,
        origin: Origin::Sale(Box::new(sold)),
        amount,
        currency: share.currency,
        status: Status::Pending { frozen: Frozen::default() },
        earns_at: window::earns_at(sale.paid_at, terms.hold_days)?,
        comparison: Comparison::Needless,
        snapshot: Snapshot {
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
