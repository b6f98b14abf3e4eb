//! Counts of product events over time, by name.

use std::collections::BTreeMap;

use crate::dashboard::kit::chart::{Chart, ChartKind, SERIES_MAX, Series, Unit};
use crate::dashboard::prelude::*;

/// Names in the table beside the chart.
const NAMES_MAX: usize = 12;

#[answer]
pub(in crate::dashboard::screens) struct EventCounts {
    pub(in crate::dashboard::screens) totals: Vec<NameTotal>,
    counts: Vec<NameCount>,
}

#[answer]
pub(in crate::dashboard::screens) struct NameTotal {
    pub(in crate::dashboard::screens) name: String,
    pub(in crate::dashboard::screens) count: u64,
    seats: u64,
    excluded: u64,
}

#[answer]
struct NameCount {
    name: String,
    period_start: String,
    count: u64,
}

/// The names with the most events come first.
pub(in crate::dashboard::screens) fn top_names(counts: &EventCounts) -> Vec<&NameTotal> {
    let mut totals: Vec<_> = counts.totals.iter().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.count));
    totals
}

impl EventCounts {
    pub(in crate::dashboard::screens) fn call(range: DateRange, name: &str) -> Call {
        range.within(Call::new("count_events")).query("name", name)
    }

    /// The largest names as bars; further names are summed.
    pub(super) fn chart(&self, range: DateRange) -> Chart {
        let names: Vec<_> = top_names(self).into_iter().map(|total| total.name.as_str()).collect();
        let shown = if names.len() > SERIES_MAX { SERIES_MAX - 1 } else { names.len() };
        let places: BTreeMap<_, _> = names.iter().enumerate().map(|(n, name)| (*name, n.min(shown))).collect();
        let lines = names.len().min(shown + 1);
        let mut values = vec![vec![0_u64; range.len()]; lines];
        for count in &self.counts {
            let value = places.get(count.name.as_str()).and_then(|place| values.get_mut(*place));
            let period = range.period_of(&count.period_start);
            if let Some(sum) = value.zip(period).and_then(|(value, period)| value.get_mut(period)) {
                *sum = sum.saturating_add(count.count);
            }
        }
        let chart = Chart::new(ChartKind::Bars, "Events", Unit::Count, range.step.title(), range.labels());
        values.iter().enumerate().fold(chart, |chart, (n, values)| {
            let name = if n < shown { names.get(n).copied().unwrap_or_default() } else { "Other" };
            chart.series(Series::counts(name, values))
        })
    }

    /// The names with their counts; `link` is the path of a name's events.
    pub(super) fn names(&self, link: impl Fn(&str) -> String) -> impl Renderable {
        let mut table = Table::new("Events by name", &["Name", "Events"]).numbers(&["Events"]);
        let top = top_names(self);
        for total in top.iter().take(NAMES_MAX) {
            let note = match (total.seats, total.excluded) {
                (0, 0) => String::new(),
                (seats, 0) => format!("and {} of invited teammates", grouped(seats)),
                (0, excluded) => format!("and {} of your team", grouped(excluded)),
                (seats, excluded) => {
                    format!("and {} of invited teammates, {} of your team", grouped(seats), grouped(excluded))
                }
            };
            table.push(Row::new().link(link(&total.name), &total.name).cell(maud! {
                (grouped(total.count))
                @if !note.is_empty() { br; span.soft.small { (note) } }
            }));
        }
        let more = top.len().saturating_sub(NAMES_MAX);
        maud! {
            div {
                (table)
                @if more > 0 { p.soft.small { "and " (more) " further names" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::request::Fields;

    #[test]
    fn further_names_are_summed() {
        let (range, _) =
            DateRange::read(&Fields::parse(b"from=2026-11-01&to=2026-11-02"), "2026-11-26T00:00:00Z".parse().unwrap());
        let name = |n: usize| format!("n{n}");
        let totals = (0..8).map(|n| serde_json::json!({"name": name(n), "count": 100 - n})).collect::<Vec<_>>();
        let counts = (0..8)
            .map(|n| serde_json::json!({"name": name(n), "period_start": "2026-11-02T00:00:00Z", "count": 100 - n}))
            .collect::<Vec<_>>();
        let counts: EventCounts =
            serde_json::from_value(serde_json::json!({"totals": totals, "counts": counts})).unwrap();
        let chart = counts.chart(range);
        assert_eq!(chart.series.len(), 6);
        assert_eq!((chart.series[0].label.as_str(), &chart.series[0].values), ("n0", &vec![Some(0.0), Some(100.0)]));
        assert_eq!((chart.series[5].label.as_str(), &chart.series[5].values), ("Other", &vec![Some(0.0), Some(282.0)]));
        assert!(EventCounts::default().chart(range).series.is_empty());
    }
}
