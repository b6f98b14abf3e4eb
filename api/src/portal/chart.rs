//! Charts of the last 90 days: earnings by day, and clicks by day.

use html::chart::{Chart, ChartKind, Series, Unit, as_f64};
use hypertext::prelude::*;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use model::affiliate::money::Currency;

use super::texts;

/// Earnings and clicks by day, oldest first; the last day is today.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartnerActivity<'a> {
    pub(super) currency: Currency,
    pub(super) money: &'a [i64],
    pub(super) clicks: &'a [u64],
    pub(super) now: Timestamp,
}

impl PartnerActivity<'_> {
    /// Returns whether nothing happened.
    pub(super) fn is_empty(&self) -> bool {
        self.money.iter().all(|sum| *sum <= 0) && self.clicks.iter().all(|count| *count == 0)
    }

    /// The two charts.
    pub(super) fn charts(&self) -> impl Renderable + use<> {
        let (earnings, clicks) = (self.earnings(), self.clicks());
        maud! { div.columns { (earnings) (clicks) } }
    }

    fn earnings(&self) -> Chart {
        let total = self.money.iter().copied().fold(0, i64::saturating_add);
        let unit = Unit::Amount { decimals: decimals(self.currency) };
        let minor_units = 10_f64.powi(i32::from(decimals(self.currency)));
        let values = self.money.iter().map(|sum| Some(as_f64(u64::try_from(*sum).unwrap_or(0)) / minor_units));
        let title = format!("Earnings by day, {}", self.currency.as_str().to_uppercase());
        Chart::new(ChartKind::Bars, title, unit, "Day", self.labels(self.money.len()))
            .note(format!("{} in commissions in the last 90 days", texts::format_money(total, self.currency)))
            .series(Series::new("Earned", values.collect()))
    }

    fn clicks(&self) -> Chart {
        let total = self.clicks.iter().copied().fold(0, u64::saturating_add);
        let values = self.clicks.iter().map(|count| Some(as_f64(*count)));
        Chart::new(ChartKind::Lines, "Clicks by day", Unit::Count, "Day", self.labels(self.clicks.len()))
            .note(format!("{} in the last 90 days", texts::format_count(total, "click")))
            .series(Series::new("Clicks", values.collect()))
    }

    /// The days up to today: `22 Nov`.
    fn labels(&self, days: usize) -> Vec<String> {
        let today = TimeZone::UTC.to_datetime(self.now).date();
        let day = |ago: usize| i64::try_from(ago).ok().and_then(|ago| today.checked_sub(ago.days()).ok());
        (0..days).rev().map(|ago| day(ago).map_or_else(String::new, |day| day.strftime("%-d %b").to_string())).collect()
    }
}

/// The decimals of a currency's amounts.
fn decimals(currency: Currency) -> u8 {
    let written = currency.format_amount(0);
    written.split_once('.').and_then(|(_, rest)| u8::try_from(rest.len()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use html::fragment::render;

    use super::*;

    #[test]
    fn charts_have_empty_and_extreme_values() {
        let currency = "usd".parse().unwrap();
        let now = "2026-11-22T12:00:00Z".parse().unwrap();
        for (money, clicks) in [
            (vec![], vec![]),
            (vec![0; 90], vec![0; 90]),
            (vec![i64::MAX; 90], vec![u64::MAX / 90; 90]),
            (vec![-5, 0, 5], vec![1]),
        ] {
            let activity = PartnerActivity { currency, money: &money, clicks: &clicks, now };
            let text = render(activity.charts());
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert_eq!(activity.is_empty(), money.iter().all(|sum| *sum <= 0) && clicks.iter().all(|n| *n == 0));
        }
        let activity = PartnerActivity { currency, money: &[0, 1_250], clicks: &[0, 1], now };
        let text = render(activity.charts());
        for expected in ["21 Nov", "22 Nov", "12.50 USD in commissions in the last 90 days", "1 click in", ">12.50<"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
