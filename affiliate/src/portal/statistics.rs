//! Sums that the portal's pages show: balances by currency, earnings by day, and results by the partner's own tags.
//!
//! Balances and referral counts by link are stored ([`store::affiliate::balance`], [`store::affiliate::referral_counts`]). The
//! rest is summed per request over the partner's rows, newest first, up to [`ROWS_MAX`]; if there are more, the page
//! states that older ones are left out.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::balance::{Balance, BalancePart};
use model::affiliate::commission::Commission;
use model::affiliate::money::Currency;
use model::affiliate::partner::{Partner, PartnerLink};
use model::affiliate::payout::{Payout, PayoutState};
use model::affiliate::referral::{Referral, ReferralCounts};
use model::id::PartnerLinkId;
use model::metric::Hour;
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::{commission, payout, referral};
use store::engine::ReadError;

use crate::context::Context;
use crate::error::Result;

/// Maximum rows that are summed.
pub const ROWS_MAX: usize = 20_000;
/// Page size.
const SLICE: usize = 1_000;
/// Days of the chart.
pub const DAYS: usize = 90;
/// Maximum tags of the report.
pub const TAGS_MAX: usize = 200;

/// A partner's balances and daily earnings.
#[derive(Debug, Clone, Default)]
pub struct PartnerBalances {
    /// Amounts in approved payouts include their adjustments. Commissions in a draft count as earned.
    pub balances: BTreeMap<Currency, Balance>,
    /// Earnings of each of the last [`DAYS`] days, oldest first, without reversed commissions.
    pub days: BTreeMap<Currency, Vec<i64>>,
    /// True if the rows of the oldest days were left out.
    pub is_cut: bool,
}

/// Results of a partner's referrals.
#[derive(Debug, Clone, Default)]
pub struct ReferralStatistics {
    /// By the partner's own tag; the empty text for referrals without one.
    pub by_tag: BTreeMap<String, ReferralCounts>,
    /// True if older referrals or further tags were left out.
    pub is_cut: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ClickStatistics {
    pub all: u64,
    pub by_link: BTreeMap<PartnerLinkId, u64>,
    /// By the partner's own tag, over the last [`DAYS`] days.
    pub by_tag: BTreeMap<String, u64>,
    /// Clicks of each of the last [`DAYS`] days, oldest first.
    pub days: Vec<u64>,
}

/// Returns the index of a time's day (UTC) among the last [`DAYS`] days; `None` if it is older or in the future.
pub fn day_of(at: Timestamp, now: Timestamp) -> Option<usize> {
    let date = |at: Timestamp| TimeZone::UTC.to_datetime(at).date();
    let days_ago = date(now).duration_since(date(at)).as_hours() / 24;
    let days_ago = usize::try_from(days_ago).ok()?;
    (DAYS - 1).checked_sub(days_ago)
}

impl Context {
    /// Returns a partner's balances and daily earnings.
    pub async fn partner_balances(&self, partner: &Partner) -> Result<PartnerBalances> {
        let now = self.now();
        // Before the balances: lines that a new draft takes in between are not moved.
        let drafts = self.draft_payouts(partner).await?;
        let mut balances = self.balances((partner.account, partner.id)).await?;
        for payout in &drafts {
            let balance = balances.entry(payout.currency).or_default();
            // Lines may have left the draft in between.
            let lines = payout.amount.saturating_sub(payout.adjusted).min(balance.in_payout.max(0));
            balance.in_payout = balance.in_payout.saturating_sub(lines);
            balance.earned = balance.earned.saturating_add(lines);
        }
        self.add_adjustments(partner, &drafts, &mut balances).await?;
        let mut sums = PartnerBalances { balances, ..PartnerBalances::default() };
        let since =
            i64::try_from(DAYS).ok().and_then(|days| now.checked_sub(SignedDuration::from_hours(24 * days)).ok());
        let filter = commission::CommissionFilter {
            partner: Some(partner.id),
            created_after: since,
            ..commission::CommissionFilter::default()
        };
        let list = |wanted| commission::list(&self.store, partner.account, &filter, wanted);
        let has_more = each_row(list, |line| sums.count(line, now)).await?;
        sums.is_cut = has_more;
        Ok(sums)
    }

    /// Adds what the partner's payouts except `drafts` net to the amounts that are paid or being paid. The balances sum
    /// up the commissions only.
    async fn add_adjustments(
        &self,
        partner: &Partner,
        drafts: &[Payout],
        balances: &mut BTreeMap<Currency, Balance>,
    ) -> Result<()> {
        let states = vec![PayoutState::Open, PayoutState::Paid];
        let filter = payout::PayoutFilter { partner: Some(partner.id), states, ..payout::PayoutFilter::default() };
        let is_adjusted = |payout: &Payout| payout.adjusted != 0 && !drafts.iter().any(|draft| draft.id == payout.id);
        let mut before = None;
        loop {
            let wanted = ListPageRequest { before, limit: SLICE, from: None };
            let page = payout::list(&self.store, partner.account, &filter, wanted, &is_adjusted).await?;
            for payout in page.rows {
                let balance = balances.entry(payout.currency).or_default();
                let part = if payout.state == PayoutState::Paid { &mut balance.paid } else { &mut balance.in_payout };
                *part = part.saturating_add(payout.adjusted);
            }
            before = page.next;
            if before.is_none() {
                return Ok(());
            }
        }
    }

    /// Sums a partner's referrals by tag.
    pub async fn referral_statistics(&self, partner: &Partner) -> Result<ReferralStatistics> {
        let mut statistics = ReferralStatistics::default();
        let filter = referral::ReferralFilter { partner: Some(partner.id), ..referral::ReferralFilter::default() };
        let list = |wanted| referral::list(&self.store, partner.account, &filter, wanted);
        let has_more = each_row(list, |referral| statistics.count(referral)).await?;
        statistics.is_cut |= has_more;
        Ok(statistics)
    }

    /// Counts the clicks on a partner's links up to now.
    pub async fn click_statistics(&self, partner: &Partner, links: &[PartnerLink]) -> Result<ClickStatistics> {
        let counts = self.count_clicks_of_links(partner.id, links).await?;
        let by_link: BTreeMap<_, _> = links.iter().map(|link| link.id).zip(counts).collect();
        let all = by_link.values().sum();
        let mut clicks = ClickStatistics { all, by_link, by_tag: BTreeMap::new(), days: vec![0; DAYS] };
        let now = self.now();
        let today = Hour::containing(now).day();
        let days = i64::try_from(DAYS).unwrap_or(0);
        let range = Hour(today.0 - 24 * (days - 1))..Hour(today.0 + 24);
        for row in self.list_clicks_by_day(partner.account, partner.id, range).await? {
            *clicks.by_tag.entry(row.sub_id).or_default() += row.clicks;
            let day = day_of(row.day.begins_at(), now);
            if let Some(sum) = day.and_then(|day| clicks.days.get_mut(day)) {
                *sum += row.clicks;
            }
        }
        Ok(clicks)
    }
}

/// Passes rows to `count`, page by page, up to [`ROWS_MAX`]. Returns true if there are more.
async fn each_row<T, F: Future<Output = Result<ListPage<T>, ReadError>>>(
    list: impl Fn(ListPageRequest) -> F,
    mut count: impl FnMut(&T),
) -> Result<bool, ReadError> {
    let mut before = None;
    for _ in 0..ROWS_MAX / SLICE {
        let page = list(ListPageRequest { before, limit: SLICE, from: None }).await?;
        page.rows.iter().for_each(&mut count);
        before = page.next;
        if before.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

impl PartnerBalances {
    fn count(&mut self, line: &Commission, now: Timestamp) {
        if BalancePart::of_commission(line).is_none() {
            return;
        }
        if let Some(day) = day_of(line.created_at, now) {
            let days = self.days.entry(line.currency).or_insert_with(|| vec![0; DAYS]);
            if let Some(sum) = days.get_mut(day) {
                *sum = sum.saturating_add(line.amount);
            }
        }
    }
}

impl ReferralStatistics {
    fn count(&mut self, referral: &Referral) {
        let tag = referral.sub_id.clone().unwrap_or_default();
        if self.by_tag.len() < TAGS_MAX || self.by_tag.contains_key(&tag) {
            self.by_tag.entry(tag).or_default().add(&ReferralCounts::for_referral(referral));
        } else {
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earnings_are_grouped_by_calendar_day() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-22T00:10:00Z");
        for (time, day) in [
            ("2026-11-22T00:00:00Z", Some(89)),
            ("2026-11-21T23:59:59Z", Some(88)),
            ("2026-08-25T00:00:00Z", Some(0)),
            ("2026-08-24T23:59:59Z", None),
            ("2026-11-23T00:00:00Z", None),
        ] {
            assert_eq!(day_of(at(time), now), day, "{time}");
        }
    }
}
