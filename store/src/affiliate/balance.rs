//! Partner balances: exact sums by currency ([`super::sums`]). Each commission line updates them in the commit that
//! writes it.

use std::collections::BTreeMap;

use model::affiliate::balance::{Balance, BalancePart};
use model::affiliate::commission::Commission;
use model::affiliate::money::Currency;
use serde::{Deserialize, Serialize};

use super::sums::{self, FoldedSums};
use crate::engine::Batch;
use crate::key::Space;

/// A partner's balance by currency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balances(pub BTreeMap<Currency, Balance>);

/// The amounts that one commission line adds to the balance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BalanceChange(Vec<(Currency, BalancePart, i64)>);

impl FoldedSums for Balances {
    const SPACE: Space = Space::PartnerBalance;
    type Change = BalanceChange;

    fn add(&mut self, BalanceChange(change): BalanceChange) {
        for (currency, part, amount) in change {
            let sum = self.0.entry(currency).or_default().part(part);
            *sum = sum.wrapping_add(amount);
        }
    }
}

/// Records the balance change of a commission line. `before` is `None` for a new line.
pub(super) fn record_change(batch: &mut Batch, before: Option<&Commission>, after: &Commission) {
    let (part_before, part_after) = (before.and_then(BalancePart::of_commission), BalancePart::of_commission(after));
    let before_amount = before.map(|line| line.amount);
    if part_before == part_after && (part_before.is_none() || before_amount == Some(after.amount)) {
        return;
    }
    let mut change = Vec::with_capacity(2);
    if let (Some(part), Some(line)) = (part_before, before) {
        change.push((line.currency, part, line.amount.saturating_neg()));
    }
    if let Some(part) = part_after {
        change.push((after.currency, part, after.amount));
    }
    let partner_key = (after.account, after.partner);
    sums::record_change::<Balances>(batch, partner_key, after.id.to_bytes(), after.rev, BalanceChange(change));
}
