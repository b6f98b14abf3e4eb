//! The plot of a chart over time: grid, labels, bars or lines, and a column for each period that names its values.

use hypertext::{Buffer, prelude::*};

use super::coordinate::size_f64;
use super::scale::Scale;
use super::svg::{hypertext_elements, share};
use super::{Chart, ChartKind, SERIES_MAX, Series};

/// Most labels of the axis of time.
const LABELS_MAX: usize = 5;
/// With more columns than this, the first and the last label end where the plot ends.
const WIDE_MAX: usize = 10;
/// The part of a column that a bar fills, and the widest bar in percent of the plot.
const BAR_SHARE: f64 = 0.72;
const BAR_MAX: f64 = 7.0;
/// Lines with more periods than this show no dots.
const DOTTED_MAX: usize = 40;

/// The plot of a chart that has values.
pub(super) struct Plot<'a>(pub(super) &'a Chart);

impl Plot<'_> {
    fn scale(&self) -> Scale {
        let chart = self.0;
        let periods = 0..chart.labels.len();
        let of_period = |period: usize| {
            let values = chart.series.iter().filter_map(move |series| series.value(period));
            match chart.kind {
                ChartKind::Bars => values.sum::<f64>(),
                ChartKind::Lines => values.fold(0.0, f64::max),
            }
        };
        let max = periods.map(of_period).fold(0.0, f64::max);
        let threshold = chart.threshold.as_ref().map_or(0.0, |threshold| threshold.value * 1.2);
        Scale::new(max.max(threshold), chart.unit)
    }

    /// The label of the picture: its title, and the last values.
    fn description(&self) -> String {
        let chart = self.0;
        let count = chart.labels.len();
        let range = match (chart.labels.first(), chart.labels.last()) {
            (Some(first), Some(last)) if count > 1 => format!("{first} to {last}"),
            (Some(only), _) => only.clone(),
            _ => String::new(),
        };
        let names: Vec<_> = chart.series.iter().map(|series| series.label.as_str()).collect();
        format!("{}, {range}: {}. The figures are in the table below.", chart.title, names.join(", "))
    }

    /// The tooltip of a period.
    fn period_title(&self, period: usize) -> String {
        let chart = self.0;
        let values = chart.series.iter().map(|series| {
            let value = series.value(period).map_or_else(|| "–".to_owned(), |value| chart.unit.exact(value));
            format!("{}: {value}", series.label)
        });
        let label = chart.labels.get(period).map_or("", String::as_str);
        std::iter::once(label.to_owned()).chain(values).collect::<Vec<_>>().join("\n")
    }

    fn grid(&self, scale: Scale, buffer: &mut Buffer) {
        maud! {
            @for tick in scale.ticks() {
                @let y = share(100.0 - scale.height(tick));
                line.grid.base[tick == 0.0] x1="0" y1=(y) x2="100%" y2=(y) {}
                text.axis x="0" y=(y) dx="-8" dy="4" text-anchor="end" { (self.0.unit.short(tick)) }
            }
        }
        .render_to(buffer);
    }

    fn time_labels(&self, buffer: &mut Buffer) {
        let labels = &self.0.labels;
        let shown = shown_labels(labels.len());
        let last = shown.len().saturating_sub(1);
        // Wide columns have room for their label.
        let is_wide = labels.len() <= WIDE_MAX;
        maud! {
            @for (n, period) in shown.iter().enumerate() {
                @let anchor = if is_wide || (n > 0 && n < last) { "middle" } else if n == 0 { "start" } else { "end" };
                @let x = match anchor {
                    "start" => 0.0,
                    "end" => 100.0,
                    _ => column(*period, labels.len()).middle(),
                };
                // A narrow screen has room for the first and the last.
                text.axis.inner[n > 0 && n < last] x=(share(x)) y="100%" dy="20" text-anchor=(anchor) {
                    (labels.get(*period).map_or("", String::as_str))
                }
            }
        }
        .render_to(buffer);
    }

    fn bars(&self, scale: Scale, period: usize, buffer: &mut Buffer) {
        let column = column(period, self.0.labels.len());
        let width = (column.width * BAR_SHARE).min(BAR_MAX);
        let x = column.middle() - width / 2.0;
        let mut below = 0.0;
        for (n, series) in self.0.series.iter().enumerate() {
            let Some(value) = series.value(period).filter(|value| *value > 0.0) else { continue };
            let top = scale.height(below + value);
            // A small value remains visible.
            let height = (top - scale.height(below)).max(0.6);
            below += value;
            maud! {
                rect class={ "s" (n % SERIES_MAX) } x=(share(x)) y=(share(100.0 - top)) width=(share(width))
                    height=(share(height)) rx="1" {}
            }
            .render_to(buffer);
        }
    }

    fn dots(&self, scale: Scale, period: usize, buffer: &mut Buffer) {
        let count = self.0.labels.len();
        let x = column(period, count).middle();
        for (n, series) in self.0.series.iter().enumerate() {
            let Some(value) = series.value(period) else { continue };
            let before = period.checked_sub(1).and_then(|before| series.value(before));
            let is_alone = before.is_none() && series.value(period + 1).is_none();
            if is_alone || count <= DOTTED_MAX {
                let y = 100.0 - scale.height(value);
                maud! { circle class={ "s" (n % SERIES_MAX) (if is_alone { " alone" } else { "" }) } cx=(share(x)) cy=(share(y)) r="2.5" {} }
                    .render_to(buffer);
            }
        }
    }

    fn lines(&self, scale: Scale, buffer: &mut Buffer) {
        let count = self.0.labels.len();
        // Percents are not allowed in points, so the lines have a view box of 100 by 100 that is stretched.
        maud! {
            svg.lines width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible" {
                @for (n, series) in self.0.series.iter().enumerate() {
                    @for run in runs(series, count) {
                        polyline class={ "s" (n % SERIES_MAX) } points=(points(&run, count, scale)) {}
                    }
                }
            }
        }
        .render_to(buffer);
    }

    fn threshold(&self, scale: Scale, buffer: &mut Buffer) {
        let Some(threshold) = &self.0.threshold else { return };
        let y = share(100.0 - scale.height(threshold.value));
        maud! {
            line.threshold x1="0" y1=(y) x2="100%" y2=(y) {}
            // Above the plot: beside its line it would lie on the values.
            text.threshold x="100%" y="0" dy="-3" text-anchor="end" { (threshold.label) }
        }
        .render_to(buffer);
    }
}

impl Renderable for Plot<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let scale = self.scale();
        let count = self.0.labels.len();
        let part = |draw: &dyn Fn(&mut Buffer)| {
            let mut part = Buffer::new();
            draw(&mut part);
            part.rendered().into_inner()
        };
        let is_lines = self.0.kind == ChartKind::Lines;
        let grid = part(&|buffer| self.grid(scale, buffer));
        let lines = if is_lines { part(&|buffer| self.lines(scale, buffer)) } else { String::new() };
        let threshold = part(&|buffer| self.threshold(scale, buffer));
        let labels = part(&|buffer| self.time_labels(buffer));
        let raw = crate::fragment::raw;
        maud! {
            svg.plot role="img" aria-label=(self.description()) {
                (raw(&grid))
                (raw(&lines))
                @for period in 0..count {
                    @let column = column(period, count);
                    @let marks = part(&|buffer| if is_lines { self.dots(scale, period, buffer) } else { self.bars(scale, period, buffer) });
                    g.period {
                        title { (self.period_title(period)) }
                        rect.hit x=(share(column.left)) y="0" width=(share(column.width)) height="100%" {}
                        (raw(&marks))
                    }
                }
                (raw(&threshold))
                (raw(&labels))
            }
        }
        .render_to(buffer);
    }
}

/// The column of a period, in percent of the width.
#[derive(Debug, Clone, Copy)]
struct PeriodColumn {
    left: f64,
    width: f64,
}

impl PeriodColumn {
    fn middle(self) -> f64 {
        self.left + self.width / 2.0
    }
}

fn column(period: usize, count: usize) -> PeriodColumn {
    let width = 100.0 / size_f64(count.max(1));
    PeriodColumn { left: size_f64(period) * width, width }
}

/// The periods whose label is shown: at the same distance from the first, and the last if it is far enough.
fn shown_labels(count: usize) -> Vec<usize> {
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let distance = last.div_ceil(LABELS_MAX - 1).max(1);
    let mut shown: Vec<_> = (0..count).step_by(distance).collect();
    if shown.last().is_some_and(|shown| (last - shown) * 2 >= distance && *shown < last) {
        shown.push(last);
    }
    shown
}

/// The values between gaps; lines need two of them.
fn runs(series: &Series, count: usize) -> Vec<Vec<(usize, f64)>> {
    let mut runs = vec![Vec::new()];
    for period in 0..count {
        match (series.value(period), runs.last_mut()) {
            (Some(value), Some(run)) => run.push((period, value)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

fn points(run: &[(usize, f64)], count: usize, scale: Scale) -> String {
    let point = |(period, value): &(usize, f64)| {
        format!("{:.2},{:.2}", column(*period, count).middle(), 100.0 - scale.height(*value))
    };
    run.iter().map(point).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_gaps() {
        let series = Series::new("x", vec![None, Some(1.0), Some(2.0), None, Some(3.0), None, Some(4.0), Some(5.0)]);
        assert_eq!(runs(&series, 8), [vec![(1, 1.0), (2, 2.0)], vec![(6, 4.0), (7, 5.0)]]);
        assert_eq!(runs(&Series::new("x", vec![]), 3), Vec::<Vec<(usize, f64)>>::new());
    }

    #[test]
    fn few_labels_are_shown() {
        assert_eq!(shown_labels(3), [0, 1, 2]);
        assert_eq!(shown_labels(7), [0, 2, 4, 6]);
        assert_eq!(shown_labels(1), [0]);
        assert_eq!(shown_labels(25), [0, 6, 12, 18, 24]);
        assert_eq!(shown_labels(30), [0, 8, 16, 24, 29]);
        assert_eq!(shown_labels(0), Vec::<usize>::new());
    }
}
