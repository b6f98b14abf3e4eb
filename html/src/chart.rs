//! Charts as SVG, with the figures in a table below. All coordinates are shares of the plot, so a chart fits every
//! width while its texts keep their size. Colours come from the style sheet; series differ by dashes and labels too.

mod coordinate;
mod figures;
mod funnel;
mod heat_map;
mod plot;
mod scale;
pub mod svg;
mod tile;
mod unit;

use hypertext::{Buffer, prelude::*};

pub use self::coordinate::as_f64;
pub use self::figures::Figures;
pub use self::funnel::{FunnelChart, FunnelStep};
pub use self::heat_map::HeatMap;
pub use self::tile::{Change, Tile, metric_tiles};
pub use self::unit::{Unit, percent};

use self::plot::Plot;

/// Series have this many colours; more series than that are hard to tell apart.
pub const SERIES_MAX: usize = 6;

/// The marks of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// Bars of each series, one upon the other.
    Bars,
    Lines,
}

/// The values of one kind over the periods of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub label: String,
    /// One for each period; `None` is a gap.
    pub values: Vec<Option<f64>>,
    /// A value of all periods, for the legend.
    pub total: Option<String>,
}

impl Series {
    pub fn new(label: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { label: label.into(), values, total: None }
    }

    /// A series of counts; the legend shows their sum.
    pub fn counts(label: impl Into<String>, values: &[u64]) -> Self {
        let sum = values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
        let values = values.iter().map(|value| Some(as_f64(*value))).collect();
        Self { label: label.into(), values, total: Some(crate::text::grouped(sum)) }
    }

    #[must_use]
    pub fn total(mut self, total: impl Into<String>) -> Self {
        self.total = Some(total.into());
        self
    }

    /// The value of a period, unless it is a gap.
    fn value(&self, period: usize) -> Option<f64> {
        self.values.get(period).copied().flatten().filter(|value| value.is_finite() && *value >= 0.0)
    }
}

/// A line across the chart that values should not pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    pub value: f64,
    pub label: String,
}

/// A chart of values over time.
#[must_use]
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    pub kind: ChartKind,
    pub unit: Unit,
    /// The name of the periods, for the table: "Day".
    pub period: &'static str,
    /// The labels of the periods, oldest first.
    pub labels: Vec<String>,
    pub series: Vec<Series>,
    pub threshold: Option<Threshold>,
    /// A sentence below the title.
    pub note: Option<String>,
}

impl Chart {
    pub fn new(
        kind: ChartKind,
        title: impl Into<String>,
        unit: Unit,
        period: &'static str,
        labels: Vec<String>,
    ) -> Self {
        Self { title: title.into(), kind, unit, period, labels, series: Vec::new(), threshold: None, note: None }
    }

    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    pub fn threshold(mut self, value: f64, label: impl Into<String>) -> Self {
        self.threshold = Some(Threshold { value, label: label.into() });
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn is_empty(&self) -> bool {
        let has_value = |series: &Series| (0..self.labels.len()).any(|period| series.value(period).is_some());
        !self.series.iter().any(has_value)
    }

    /// The figures as a table; gaps are dashes.
    fn figures(&self) -> Figures {
        let columns = std::iter::once(self.period.to_owned()).chain(self.series.iter().map(|one| one.label.clone()));
        let mut figures = Figures::new(format!("Figures: {}", self.title), columns.collect());
        for (period, label) in self.labels.iter().enumerate() {
            let values = self.series.iter().map(|series| series.value(period));
            let cells = values.map(|value| value.map_or_else(|| "–".to_owned(), |value| self.unit.exact(value)));
            figures.push(std::iter::once(label.clone()).chain(cells).collect());
        }
        figures
    }
}

impl Renderable for Chart {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            figure.card.chart {
                figcaption {
                    h2 { (self.title) }
                    @if let Some(note) = &self.note { p.soft.small { (note) } }
                }
                @if self.is_empty() {
                    p.chart-empty { "No data in this range." }
                } @else {
                    (Plot(self))
                    @if self.series.len() > 1 || self.series.iter().any(|one| one.total.is_some()) {
                        (chart_legend(&self.series))
                    }
                    (self.figures())
                }
            }
        }
        .render_to(buffer);
    }
}

/// The labels of the series with their colours.
fn chart_legend(all: &[Series]) -> impl Renderable {
    maud! {
        ul.legend.plain {
            @for (n, series) in all.iter().enumerate() {
                li {
                    span class={ "key s" (n % SERIES_MAX) } aria-hidden="true" {}
                    (series.label)
                    @if let Some(total) = &series.total { " " strong { (total) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::render;

    fn chart(kind: ChartKind, values: Vec<Option<f64>>) -> String {
        let labels = (0..values.len()).map(|n| format!("Day {n}")).collect();
        let chart = Chart::new(kind, "Bounces", Unit::Percent, "Day", labels).threshold(2.0, "2 %");
        render(chart.series(Series::new("Bounced", values.clone())).series(Series::new("<b>", values)))
    }

    #[test]
    fn charts_draw_every_kind_of_values() {
        let many = (0..90).map(|n| Some(f64::from(n))).collect();
        for values in [
            vec![Some(0.0)],
            vec![Some(5.0)],
            vec![Some(0.0); 30],
            vec![Some(u64::MAX as f64), Some(1.0), None],
            vec![Some(1.0), None, Some(2.0), Some(3.0), None],
            vec![Some(f64::NAN), Some(f64::INFINITY), Some(-4.0), Some(1.0)],
            many,
        ] {
            for kind in [ChartKind::Bars, ChartKind::Lines] {
                let html = chart(kind, values.clone());
                assert!(html.contains("<svg") && html.contains("<title>"), "{values:?}");
                assert!(html.contains("<text class=\"threshold\" x=\"100%\" y=\"0\""), "above the plot: {html}");
                assert!(html.contains("role=\"img\"") && html.contains("aria-label=\"Bounces"), "{values:?}");
                for wrong in ["NaN", "inf", "style=", "<b>", " y=\"-", " x=\"-", "width=\"-", "height=\"-"] {
                    assert!(!html.contains(wrong), "{wrong}: {html}");
                }
            }
        }
    }

    #[test]
    fn charts_without_values_say_so() {
        for values in [vec![], vec![None, None], vec![Some(f64::NAN)]] {
            let html = chart(ChartKind::Lines, values);
            assert!(html.contains("No data in this range.") && !html.contains("<svg"));
        }
    }

    #[test]
    fn figures_are_in_a_table() {
        let html = chart(ChartKind::Lines, vec![Some(1.5), None]);
        assert!(html.contains("<details") && html.contains("1.50\u{202f}%") && html.contains("–"));
    }
}
