//! A partner's numbers: referrals by status, and commissions by status and currency.
//!
//! They are summed over the newest rows, up to [`ROWS_MAX`] of each kind; the page says so if there are more.

use std::collections::BTreeMap;

use crate::dashboard::context::PAGE_ENTRIES;
use crate::dashboard::prelude::*;

const PAGES_MAX: usize = 5;
/// The largest number of rows of one kind that is summed.
const ROWS_MAX: usize = PAGES_MAX * PAGE_ENTRIES;

/// The numbers of a partner.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PartnerTotals {
    referrals: u64,
    customers: u64,
    money: BTreeMap<String, CommissionSums>,
    is_cut: bool,
}

/// Sums of one currency, in minor units.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct CommissionSums {
    pending: i64,
    earned: i64,
    in_payout: i64,
    paid: i64,
    reversed: i64,
}

#[derive(Debug, Deserialize)]
struct SummedCommission {
    status: String,
    amount_cents: i64,
    currency: String,
    payout_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CountedReferral {
    status: String,
    blocked_reason: Option<String>,
    converted_at: Option<String>,
}

impl CountedReferral {
    /// True if the referral converted and was neither blocked, rejected nor refunded.
    fn is_paying(&self) -> bool {
        let is_lost = matches!(self.status.as_str(), "refunded" | "rejected");
        self.converted_at.is_some() && self.blocked_reason.is_none() && !is_lost
    }
}

impl PartnerTotals {
    /// Reads a partner's rows and sums them.
    pub async fn load(context: &Context<'_>, partner: &str) -> Result<Self, Failure> {
        let mut totals = Self::default();
        let call = Call::new("list_affiliate_commissions").query("affiliate_id", partner);
        let (lines, is_cut) = context.read_pages::<SummedCommission>("data", &call, PAGES_MAX).await?;
        lines.iter().for_each(|line| totals.count(line));
        let call = Call::new("list_affiliate_referrals").query("affiliate_id", partner);
        let (referrals, others_cut) = context.read_pages::<CountedReferral>("data", &call, PAGES_MAX).await?;
        totals.referrals = referrals.len() as u64;
        totals.customers = referrals.iter().filter(|referral| referral.is_paying()).count() as u64;
        totals.is_cut = is_cut || others_cut;
        Ok(totals)
    }

    fn count(&mut self, line: &SummedCommission) {
        let sums = self.money.entry(line.currency.clone()).or_default();
        let sum = match (line.status.as_str(), &line.payout_id) {
            ("pending", _) => &mut sums.pending,
            ("earned", Some(_)) => &mut sums.in_payout,
            ("earned", None) => &mut sums.earned,
            ("paid", _) => &mut sums.paid,
            _ => &mut sums.reversed,
        };
        *sum = sum.saturating_add(line.amount_cents);
    }

    pub fn view(&self) -> impl Renderable {
        let table = Table::of("Commissions by currency", &self.money)
            .column("Currency", |(currency, _)| currency.to_uppercase())
            .number("On hold", |(currency, sums)| Money { amount: sums.pending, currency })
            .number("Earned", |(currency, sums)| Money { amount: sums.earned, currency })
            .number("In a payout", |(currency, sums)| Money { amount: sums.in_payout, currency })
            .number("Paid", |(currency, sums)| Money { amount: sums.paid, currency })
            .number("Reversed", |(currency, sums)| Money { amount: sums.reversed, currency });
        maud! {
            p {
                strong { (grouped(self.referrals)) } @if self.referrals == 1 { " referral, " } @else { " referrals, " }
                strong { (grouped(self.customers)) } " of them paying"
            }
            @if !table.is_empty() { (table) }
            @if self.is_cut { p.small.soft { "Of the newest " (ROWS_MAX) " referrals and commissions." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_referral_is_no_paying_customer() {
        let is_paying = |status: &str, blocked_reason: Option<&str>, converted_at: Option<&str>| {
            let [blocked_reason, converted_at] = [blocked_reason, converted_at].map(|text| text.map(str::to_owned));
            CountedReferral { status: status.into(), blocked_reason, converted_at }.is_paying()
        };
        let time = Some("2026-03-01T00:00:00.000Z");
        assert!(is_paying("active", None, time) && is_paying("cancelled", None, time));
        assert!(!is_paying("lead", None, None) && !is_paying("active", Some("existing_customer"), time));
        assert!(!is_paying("refunded", None, time) && !is_paying("rejected", None, time));
    }

    #[test]
    fn commissions_are_summed_by_state() {
        let mut totals = PartnerTotals::default();
        let line = |status: &str, amount_cents, payout: Option<&str>| SummedCommission {
            status: status.into(),
            amount_cents,
            currency: "usd".into(),
            payout_id: payout.map(str::to_owned),
        };
        for line in [
            line("pending", 1, None),
            line("earned", 2, None),
            line("earned", 4, Some("pay_1")),
            line("paid", 8, Some("pay_1")),
            line("reversed", i64::MAX, None),
            line("reversed", 1, None),
        ] {
            totals.count(&line);
        }
        let expected = CommissionSums { pending: 1, earned: 2, in_payout: 4, paid: 8, reversed: i64::MAX };
        assert_eq!(totals.money["usd"], expected);
    }
}
