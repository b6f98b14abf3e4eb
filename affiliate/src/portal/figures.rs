//! What the pages of the portal show summed: what a partner has in each currency, what each day brought, and what came
//! of its own tags.
//!
//! Balances, and whom each link brought, are kept ([`store::affiliate::balance`], [`store::affiliate::brought`]). The rest is summed when it is asked for, over the partner's own rows,
//! newest first, up to [`ROWS_MAX`] of them: beyond that the page says that older ones are left out.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::balance::{Balance, BalancePart};
use mail::affiliate::commission::Commission;
use mail::affiliate::money::Currency;
use mail::affiliate::partner::{Partner, PartnerLink};
use mail::affiliate::referral::{Referral, ReferralCounts};
use mail::id::PartnerLinkId;
use mail::metric::Hour;
use store::affiliate::brought::ReferralCountsByLink;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{commission, referral};

use crate::office::AffiliateService;
use crate::refusal::AffiliateError;

/// Rows that are summed.
pub const ROWS_MAX: usize = 20_000;
/// Rows read at once.
const SLICE: usize = 1_000;
/// Days that the picture shows.
pub const DAYS: usize = 90;
/// Tags that the report shows.
pub const TAGS_MAX: usize = 200;

/// What a partner has.
#[derive(Debug, Clone, Default)]
pub struct PartnerBalances {
    /// By currency.
    pub balances: BTreeMap<Currency, Balance>,
    /// What each of the last days brought, the oldest first, by currency; what was taken back is left out.
    pub days: BTreeMap<Currency, Vec<i64>>,
    /// Whether lines of the first of these days were left out.
    pub is_cut: bool,
}

/// What came of a partner's referrals.
#[derive(Debug, Clone, Default)]
pub struct ReferralStatistics {
    /// By the partner's own tag; without one, by the empty text.
    pub by_tag: BTreeMap<String, ReferralCounts>,
    /// Whether older referrals, or further tags, were left out.
    pub is_cut: bool,
}

/// Clicks on a partner's links.
#[derive(Debug, Clone, Default)]
pub struct ClickStatistics {
    /// All of them.
    pub all: u64,
    /// By link.
    pub by_link: BTreeMap<PartnerLinkId, u64>,
    /// By the partner's own tag, those of the last [`DAYS`] days.
    pub by_tag: BTreeMap<String, u64>,
    /// On each of the last days, the oldest first.
    pub days: Vec<u64>,
}

/// Which of the last days a time is on, by UTC; none when it is longer ago, or to come.
#[must_use]
pub fn day_of(at: Timestamp, now: Timestamp) -> Option<usize> {
    let date = |at: Timestamp| TimeZone::UTC.to_datetime(at).date();
    let ago = date(now).duration_since(date(at)).as_hours() / 24;
    let ago = usize::try_from(ago).ok()?;
    (DAYS - 1).checked_sub(ago)
}

impl AffiliateService {
    /// What a partner has.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn partner_balances(&self, partner: &Partner) -> Result<PartnerBalances, AffiliateError> {
        let now = self.now();
        let balances = self.ledger().balances((partner.account, partner.id)).await?;
        let mut purse = PartnerBalances { balances, ..PartnerBalances::default() };
        let since =
            i64::try_from(DAYS).ok().and_then(|days| now.checked_sub(SignedDuration::from_hours(24 * days)).ok());
        let filter = commission::CommissionFilter {
            partner: Some(partner.id),
            created_after: since,
            ..commission::CommissionFilter::default()
        };
        let mut before = None;
        for _ in 0..ROWS_MAX / SLICE {
            let wanted = ListPageRequest { before, limit: SLICE, from: None };
            let page = commission::list(self.store(), partner.account, &filter, wanted).await?;
            page.rows.iter().for_each(|line| purse.count(line, now));
            before = page.next;
            if before.is_none() {
                return Ok(purse);
            }
        }
        purse.is_cut = true;
        Ok(purse)
    }

    /// Whom a partner has brought, by link.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn referral_counts(&self, partner: &Partner) -> Result<ReferralCountsByLink, AffiliateError> {
        Ok(self.ledger().referral_counts((partner.account, partner.id)).await?)
    }

    /// What came of a partner's referrals.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn referral_statistics(&self, partner: &Partner) -> Result<ReferralStatistics, AffiliateError> {
        let mut following = ReferralStatistics::default();
        let filter = referral::ReferralFilter { partner: Some(partner.id), ..referral::ReferralFilter::default() };
        let mut before = None;
        for _ in 0..ROWS_MAX / SLICE {
            let wanted = ListPageRequest { before, limit: SLICE, from: None };
            let page = referral::list(self.store(), partner.account, &filter, wanted).await?;
            page.rows.iter().for_each(|referral| following.count(referral));
            before = page.next;
            if before.is_none() {
                return Ok(following);
            }
        }
        following.is_cut = true;
        Ok(following)
    }

    /// Clicks on a partner's links, up to this moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn click_statistics(
        &self,
        partner: &Partner,
        links: &[PartnerLink],
    ) -> Result<ClickStatistics, AffiliateError> {
        let counts = self.count_clicks_of_links(partner.id, links).await?;
        let by_link: BTreeMap<_, _> = links.iter().map(|link| link.id).zip(counts).collect();
        let all = by_link.values().sum();
        let mut clicks = ClickStatistics { all, by_link, by_tag: BTreeMap::new(), days: vec![0; DAYS] };
        let now = self.now();
        let today = Hour::containing(now).day();
        let days = i64::try_from(DAYS).unwrap_or(0);
        let range = Hour(today.0 - 24 * (days - 1))..Hour(today.0 + 24);
        for row in self.list_clicks_by_day((partner.account, partner.id), range).await? {
            *clicks.by_tag.entry(row.sub_id).or_default() += row.clicks;
            let day = day_of(row.day.begins_at(), now);
            if let Some(sum) = day.and_then(|day| clicks.days.get_mut(day)) {
                *sum += row.clicks;
            }
        }
        Ok(clicks)
    }
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
    fn days_are_those_of_the_calendar() {
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
