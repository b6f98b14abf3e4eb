//! How long emails take from the queue to the recipient's mail host: the median and the slowest hundredth of all
//! deliveries of a range.

use super::counts::{Counts, DeliveryTime};
use crate::dashboard::kit::chart::{Chart, ChartKind, Series, Unit};
use crate::dashboard::prelude::*;

/// The delivery times of the chosen emails.
pub(super) struct InboxTime<'a> {
    pub(super) range: DateRange,
    pub(super) periods: &'a [DeliveryTime],
    /// The time of the whole range; `None` where the API has it by period only.
    pub(super) total: Option<DeliveryTime>,
    pub(super) counts: &'a [Counts],
}

impl InboxTime<'_> {
    /// The number of deliveries that are measured.
    fn measured(&self) -> u64 {
        self.periods.iter().fold(0, |sum, time| sum.saturating_add(time.measured))
    }

    fn delivered(&self) -> u64 {
        Counts::sum(self.counts).delivered
    }

    fn note(&self) -> String {
        let (measured, delivered) = (self.measured(), self.delivered());
        let of = match delivered.checked_sub(measured) {
            None | Some(0) => "all deliveries".to_owned(),
            Some(_) => format!(
                "{} of {} deliveries: the others took place before times were measured",
                grouped(measured),
                grouped(delivered)
            ),
        };
        format!("From the queue to the recipient's mail host, measured on {of}.")
    }

    fn chart(&self) -> Chart {
        let series = |label: &str, time: fn(&DeliveryTime) -> Option<f64>| {
            let series = Series::new(label, self.periods.iter().map(time).collect());
            match self.total.as_ref().and_then(time) {
                Some(total) => series.total(Unit::Seconds.exact(total)),
                None => series,
            }
        };
        Chart::new(ChartKind::Lines, "Time to inbox", Unit::Seconds, self.range.step.title(), self.range.labels())
            .note(self.note())
            .series(series("Half of the emails within (p50)", |time| time.p50_seconds))
            .series(series("99 of 100 within (p99)", |time| time.p99_seconds))
    }
}

impl Renderable for InboxTime<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        if self.measured() > 0 {
            self.chart().render_to(buffer);
            return;
        }
        let text = match self.delivered() {
            0 => "No emails were delivered in this range.",
            _ => "The emails in this range were delivered before times were measured.",
        };
        maud! {
            figure.card.chart {
                figcaption { h2 { "Time to inbox" } }
                p.chart-empty { (text) }
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::kit::date_range::PeriodLength;
    use crate::dashboard::page::render;

    fn time(measured: u64, seconds: f64) -> DeliveryTime {
        DeliveryTime { measured, p50_seconds: Some(seconds), p99_seconds: Some(seconds * 10.0) }
    }

    fn delivered(delivered: u64) -> Counts {
        Counts { delivered, ..Counts::default() }
    }

    #[test]
    fn times_are_shown_by_period() {
        let at = |text: &str| text.parse().unwrap();
        let range =
            DateRange { from: at("2026-11-01T00:00:00Z"), to: at("2026-11-04T00:00:00Z"), step: PeriodLength::Day };
        let periods = [time(3, 2.0), DeliveryTime::default(), time(4, 5.0)];
        let counts = [delivered(3), delivered(0), delivered(4)];
        let all = InboxTime { range, periods: &periods, total: Some(time(7, 3.0)), counts: &counts };
        let chart = all.chart();
        assert_eq!(chart.series[0].values, [Some(2.0), None, Some(5.0)]);
        assert_eq!(chart.series[1].total.as_deref(), Some(Unit::Seconds.exact(30.0).as_str()));
        assert!(all.note().contains("all deliveries"));
        let some = InboxTime { counts: &[delivered(1_000)], ..all };
        assert!(some.note().contains("7 of 1\u{202f}000 deliveries"), "{}", some.note());
        let none = InboxTime { range, periods: &[], total: None, counts: &[delivered(2)] };
        assert!(render(none).contains("before times were measured"));
        let none = InboxTime { range, periods: &[], total: None, counts: &[] };
        assert!(render(none).contains("No emails were delivered"));
    }
}
