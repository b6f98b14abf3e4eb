//! The totals of a range against the range before, and the charts of its rates.

use super::advice::{BOUNCES_MAX, COMPLAINTS_MAX};
use super::counts::{Counts, Rate};
use crate::dashboard::kit::chart::{Change, Chart, ChartKind, Series, Tile, Unit, as_f64, metric_tiles};
use crate::dashboard::prelude::*;

pub(super) struct MetricsOverview<'a> {
    pub(super) range: DateRange,
    pub(super) counts: &'a [Counts],
    /// The sum of the range before.
    pub(super) previous: Counts,
    pub(super) is_provider: bool,
}

impl MetricsOverview<'_> {
    fn rate_tile(&self, total: &Counts, rate: Rate, up_is_good: bool) -> Tile {
        let value = total.rate(rate, self.is_provider);
        let before = self.previous.rate(rate, self.is_provider);
        let change = value.zip(before).map(|(now, before)| Change { now, before, up_is_good: Some(up_is_good) });
        Tile { label: rate.title(), unit: Unit::Percent, value, change }
    }

    pub(super) fn tiles(&self) -> impl Renderable + use<'_> {
        let total = Counts::sum(self.counts);
        let volume = |counts: &Counts| as_f64(if self.is_provider { counts.settled() } else { counts.sent });
        let (now, before) = (volume(&total), volume(&self.previous));
        let sent = Tile {
            label: if self.is_provider { "Recipients" } else { "Sent to" },
            unit: Unit::Count,
            value: Some(now),
            change: Some(Change { now, before, up_is_good: None }),
        };
        let tiles = [
            sent,
            self.rate_tile(&total, Rate::Delivery, true),
            self.rate_tile(&total, Rate::Bounce, false),
            self.rate_tile(&total, Rate::Complaint, false),
            self.rate_tile(&total, Rate::Open, true),
            self.rate_tile(&total, Rate::Click, true),
        ];
        let before = self.range.before_words();
        maud! {
            (metric_tiles(&tiles, &before))
            p.soft.small { "Counted per recipient. The second line compares with " (before) "; opens and clicks by machines are left out." }
        }
    }

    fn rates(&self, rate: Rate) -> Vec<Option<f64>> {
        self.counts.iter().map(|counts| counts.rate(rate, self.is_provider)).collect()
    }

    fn chart(&self, kind: ChartKind, title: &str, unit: Unit) -> Chart {
        Chart::new(kind, title, unit, self.range.step.title(), self.range.labels())
    }

    pub(super) fn charts(&self) -> impl Renderable + use<> {
        let column = |count: fn(&Counts) -> u64| self.counts.iter().map(count).collect::<Vec<_>>();
        let results = self
            .chart(ChartKind::Bars, "Results", Unit::Count)
            .note("By the time when the result became known.")
            .series(Series::counts("Delivered", &column(|counts| counts.delivered)))
            .series(Series::counts("Bounced", &column(|counts| counts.bounced)))
            .series(Series::counts("Failed", &column(|counts| counts.failed)));
        let bounces = self
            .chart(ChartKind::Lines, Rate::Bounce.title(), Unit::Percent)
            .note("Recipients whose server permanently refused the email.")
            .series(Series::new("Bounced", self.rates(Rate::Bounce)))
            .threshold(BOUNCES_MAX, "Stay below 2 %");
        let complaints = self
            .chart(ChartKind::Lines, Rate::Complaint.title(), Unit::Percent)
            .note("Recipients who reported the email as spam.")
            .series(Series::new("Complained", self.rates(Rate::Complaint)))
            .threshold(COMPLAINTS_MAX, "Stay below 0.1 %");
        let total = Counts::sum(self.counts);
        let engaged = |label: &str, rate: Rate, values: &[u64]| {
            let rate =
                total.rate(rate, self.is_provider).map_or_else(|| "–".to_owned(), |rate| Unit::Percent.exact(rate));
            Series::counts(label, values).total(rate)
        };
        let engagement = self
            .chart(ChartKind::Lines, "Delivered, opened, clicked", Unit::Count)
            .note("Recipients by day of the delivery, open or click; percentages for the whole range below.")
            .series(engaged("Delivered", Rate::Delivery, &column(|counts| counts.delivered)))
            .series(engaged("Opened", Rate::Open, &column(|counts| counts.opened)))
            .series(engaged("Clicked", Rate::Click, &column(|counts| counts.clicked)));
        maud! {
            (results)
            div.columns { (bounces) (complaints) }
            (engagement)
        }
    }
}
