//! Counts of emails by period, and the rates that follow from them.

use std::collections::BTreeMap;

use schema_derive::answer;
use serde::Deserialize;

use crate::dashboard::kit::chart::percent;
use crate::dashboard::kit::date_range::DateRange;

#[answer]
pub(super) struct Metrics {
    pub(super) totals: MetricTotals,
    pub(super) rows: Vec<MetricRow>,
}

#[answer]
pub(super) struct MetricTotals {
    pub(super) delivery_time: DeliveryTime,
}

/// How long deliveries took, from the queue to the recipient's mail host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct DeliveryTime {
    pub(super) measured: u64,
    pub(super) p50_seconds: Option<f64>,
    pub(super) p99_seconds: Option<f64>,
}

#[answer]
pub(super) struct MetricRow {
    pub(super) period_start: String,
    pub(super) value: String,
    pub(super) delivery_time: DeliveryTime,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// The counts, by their names in the API.
macro_rules! counts {
    ($($name:ident),*) => {
        /// Counts of recipients.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
        #[serde(default)]
        pub(super) struct Counts {
            $(pub(super) $name: u64),*
        }

        impl Counts {
            pub(super) const NAMES: [&str; 10] = [$(stringify!($name)),*];

            /// All counts, in the order of [`Self::NAMES`].
            pub(super) const fn all(&self) -> [u64; 10] {
                [$(self.$name),*]
            }

            fn all_mut(&mut self) -> [&mut u64; 10] {
                [$(&mut self.$name),*]
            }
        }
    };
}

counts!(sent, delivered, bounced, failed, delayed, complained, opened, clicked, suppressed, unsubscribed);

/// A rate of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    Delivery,
    Bounce,
    Complaint,
    Open,
    Click,
}

impl Rate {
    /// The rates that can be compared over time.
    pub(super) const COMPARED: [Self; 3] = [Self::Delivery, Self::Bounce, Self::Complaint];

    /// The name in the page's address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
            Self::Open => "open",
            Self::Click => "click",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Delivery => "Delivery rate",
            Self::Bounce => "Bounce rate",
            Self::Complaint => "Complaint rate",
            Self::Open => "Open rate",
            Self::Click => "Click rate",
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, count) in self.all_mut().into_iter().zip(other.all()) {
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn sum(counts: &[Self]) -> Self {
        let mut sum = Self::default();
        counts.iter().for_each(|counts| sum.add(counts));
        sum
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The recipients whose result is known. By provider, sent emails are not counted.
    pub(super) const fn settled(&self) -> u64 {
        self.delivered.saturating_add(self.bounced).saturating_add(self.failed)
    }

    /// A rate in percent; `None` if there is nothing to divide by. By provider, rates are shares of the known results.
    pub(super) fn rate(&self, rate: Rate, is_provider: bool) -> Option<f64> {
        let sent = if is_provider { self.settled() } else { self.sent };
        match rate {
            Rate::Delivery => percent(self.delivered, sent),
            Rate::Bounce => percent(self.bounced, sent),
            Rate::Complaint => percent(self.complained, self.delivered),
            Rate::Open => percent(self.opened, self.delivered),
            Rate::Click => percent(self.clicked, self.delivered),
        }
    }
}

impl Metrics {
    /// The counts of each period, of all rows or those of one value.
    pub(super) fn by_period(&self, range: DateRange, value: Option<&str>) -> Vec<Counts> {
        let mut periods = vec![Counts::default(); range.len()];
        for row in self.rows.iter().filter(|row| value.is_none_or(|value| value == row.value)) {
            if let Some(counts) = range.period_of(&row.period_start).and_then(|period| periods.get_mut(period)) {
                counts.add(&row.counts);
            }
        }
        periods
    }

    /// The delivery times of each period, of all emails or those of one value: an answer has one row for each.
    pub(super) fn delivery_times(&self, range: DateRange, value: Option<&str>) -> Vec<DeliveryTime> {
        let mut periods = vec![DeliveryTime::default(); range.len()];
        for row in self.rows.iter().filter(|row| value.is_none_or(|value| value == row.value)) {
            if let Some(time) = range.period_of(&row.period_start).and_then(|period| periods.get_mut(period)) {
                *time = row.delivery_time;
            }
        }
        periods
    }

    /// The counts of each period by value.
    pub(super) fn by_value(self, range: DateRange) -> CountsByValue {
        let mut values: BTreeMap<String, Vec<Counts>> = BTreeMap::new();
        for row in self.rows {
            let Some(period) = range.period_of(&row.period_start) else { continue };
            let periods = values.entry(row.value).or_insert_with(|| vec![Counts::default(); range.len()]);
            if let Some(counts) = periods.get_mut(period) {
                counts.add(&row.counts);
            }
        }
        let mut rows: Vec<_> = values.into_iter().collect();
        rows.sort_by_cached_key(|(_, periods)| {
            let sum = Counts::sum(periods);
            std::cmp::Reverse(sum.sent.max(sum.settled()))
        });
        CountsByValue { rows, periods: range.len(), delivery_times: Vec::new() }
    }
}

/// The counts of each period by value; the value with the most emails is the first.
#[derive(Debug)]
pub(super) struct CountsByValue {
    pub(super) rows: Vec<(String, Vec<Counts>)>,
    periods: usize,
    /// The delivery times of the value that the page shows, by period; empty without one.
    pub(super) delivery_times: Vec<DeliveryTime>,
}

impl CountsByValue {
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(value, _)| value.as_str())
    }

    pub(super) fn of(&self, value: &str) -> Vec<Counts> {
        let found = self.rows.iter().find(|(other, _)| other == value).map(|(_, periods)| periods.clone());
        found.unwrap_or_else(|| vec![Counts::default(); self.periods])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::request::Fields;

    #[test]
    fn rows_are_summed_by_period_and_value() {
        let (range, _) =
            DateRange::read(&Fields::parse(b"from=2026-11-01&to=2026-11-02"), "2026-11-26T00:00:00Z".parse().unwrap());
        let text = r#"{"rows": [
            {"period_start": "2026-11-01T00:00:00.000Z", "value": "a", "sent": 10, "delivered": 9, "complained": 1,
             "delivery_time": {"measured": 9, "p50_seconds": 2.5, "p99_seconds": 40.0}},
            {"period_start": "2026-11-02T00:00:00.000Z", "value": "b", "sent": 90, "delivered": 90, "other": 1},
            {"period_start": "2026-10-01T00:00:00.000Z", "value": "b", "sent": 5}]}"#;
        let metrics = || serde_json::from_str::<Metrics>(text).unwrap();
        assert_eq!(metrics().by_period(range, None).iter().map(|counts| counts.sent).collect::<Vec<_>>(), [10, 90]);
        let times = metrics().delivery_times(range, Some("a"));
        assert_eq!((times[0].p50_seconds, times[1].measured), (Some(2.5), 0));
        assert_eq!(metrics().by_period(range, Some("a")).iter().map(|counts| counts.sent).collect::<Vec<_>>(), [10, 0]);
        let table = metrics().by_value(range);
        assert_eq!(table.values().collect::<Vec<_>>(), ["b", "a"]);
        let sum = Counts::sum(&table.of("a"));
        assert_eq!(sum.rate(Rate::Delivery, false), Some(90.0));
        assert!(sum.rate(Rate::Complaint, false).is_some_and(|rate| (rate - 11.111).abs() < 0.01));
        assert_eq!(Counts::default().rate(Rate::Bounce, true), None);
        assert!(Counts::sum(&table.of("c")).is_empty());
    }
}
