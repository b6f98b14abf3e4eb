//! A heat map: a count for each hour of each weekday.

use hypertext::{Buffer, prelude::*};

use super::coordinate::{as_f64, size_f64};
use super::figures::Figures;
use super::svg::{hypertext_elements, share};
use crate::text::grouped;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;
/// Hours that have a label.
const LABELLED: [usize; 4] = [0, 6, 12, 18];

/// Counts by weekday, from Monday, and hour.
#[derive(Debug, Clone)]
pub struct HeatMap {
    pub title: String,
    /// The things that are counted: "opens".
    pub noun: &'static str,
    counts: [[u64; HOURS]; 7],
}

impl HeatMap {
    pub fn new(title: impl Into<String>, noun: &'static str) -> Self {
        Self { title: title.into(), noun, counts: [[0; HOURS]; 7] }
    }

    /// Adds a count. Weekdays are numbered from Monday, which is 0; other numbers are left out.
    pub fn add(&mut self, weekday: usize, hour: usize, count: u64) {
        if let Some(cell) = self.counts.get_mut(weekday).and_then(|hours| hours.get_mut(hour)) {
            *cell = cell.saturating_add(count);
        }
    }

    /// The weekday and the hour with the largest count.
    fn peak(&self) -> Option<(usize, usize, u64)> {
        self.cells().filter(|(_, _, count)| *count > 0).max_by_key(|(day, hour, count)| {
            // The first of equal ones.
            (*count, std::cmp::Reverse((*day, *hour)))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.peak().is_none()
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let hours = |(day, hours): (usize, &[u64; HOURS])| {
            hours.iter().enumerate().map(move |(hour, count)| (day, hour, *count)).collect::<Vec<_>>()
        };
        self.counts.iter().enumerate().flat_map(hours)
    }

    fn figures(&self) -> Figures {
        let columns = std::iter::once("Hour (UTC)".to_owned()).chain(DAYS.map(|day| short_day(day).to_owned()));
        let mut figures = Figures::new(format!("Figures: {}", self.title), columns.collect());
        for hour in 0..HOURS {
            let counts = self.counts.iter().map(|hours| hours.get(hour).copied().unwrap_or_default());
            figures.push(std::iter::once(format!("{hour:02}:00")).chain(counts.map(grouped)).collect());
        }
        figures
    }
}

fn short_day(day: &str) -> &str {
    day.get(..3).unwrap_or(day)
}

/// The strength of a colour, from 0 to 5: 0 is none, and every other count has at least 1.
fn level(count: u64, most: u64) -> u8 {
    if count == 0 || most == 0 {
        return 0;
    }
    let part = as_f64(count) / as_f64(most);
    [0.2, 0.4, 0.6, 0.8].into_iter().fold(1, |level, bound| level + u8::from(part > bound))
}

impl Renderable for HeatMap {
    fn render_to(&self, buffer: &mut Buffer) {
        let peak = self.peak();
        let most = peak.map_or(0, |(_, _, count)| count);
        let (width, height) = (100.0 / size_f64(HOURS), 100.0 / size_f64(DAYS.len()));
        let place = |n: usize, size: f64| share(size_f64(n) * size);
        let name = |day: usize| DAYS.get(day).copied().unwrap_or_default();
        maud! {
            figure.card.chart {
                figcaption {
                    h2 { (self.title) }
                    @if let Some((day, hour, count)) = peak {
                        p.soft.small {
                            "Most " (self.noun) ": " (name(day)) ", " (format!("{hour:02}:00 to {:02}:00", (hour + 1) % HOURS))
                            " UTC (" (grouped(count)) ")"
                        }
                    }
                }
                @if peak.is_none() {
                    p.chart-empty { "No " (self.noun) " in this range." }
                } @else {
                    svg.plot.heat role="img" aria-label={ (self.title) ": " (self.noun) " by hour and weekday. The figures are in the table below." } {
                        @for (n, day) in DAYS.iter().enumerate() {
                            text.axis x="0" y=(share((size_f64(n) + 0.5) * height)) dx="-8" dy="4" text-anchor="end" { (short_day(day)) }
                        }
                        @for (day, hour, count) in self.cells() {
                            rect class={ "cell l" (level(count, most)) } x=(place(hour, width)) y=(place(day, height))
                                width=(share(width * 0.9)) height=(share(height * 0.88)) rx="2" {
                                title { (name(day)) " " (format!("{hour:02}:00")) " UTC: " (grouped(count)) " " (self.noun) }
                            }
                        }
                        @for hour in LABELLED {
                            text.axis x=(place(hour, width)) y="100%" dy="18" { (format!("{hour:02}:00")) }
                        }
                    }
                    p.heat-key.soft.small aria-hidden="true" {
                        "Fewer"
                        @for n in 0..=5 { span class={ "cell l" (n) } {} }
                        "More"
                    }
                    (self.figures())
                }
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::render;

    #[test]
    fn the_peak_is_named() {
        let mut map = HeatMap::new("Opens", "opens");
        assert!(map.is_empty() && render(&map).contains("No opens in this range."));
        map.add(1, 9, 40);
        map.add(1, 9, 2);
        map.add(6, 23, 3);
        map.add(7, 0, u64::MAX);
        map.add(0, 24, u64::MAX);
        let html = render(&map);
        assert!(html.contains("Tuesday, 09:00 to 10:00 UTC (42)") && html.contains("Sunday 23:00 UTC: 3 opens"));
        assert!(!html.contains("style="));
        map.add(6, 23, u64::MAX);
        assert!(render(&map).contains("Sunday, 23:00 to 00:00 UTC"));
    }

    #[test]
    fn every_count_is_visible() {
        assert_eq!([0, 1, 50, 100].map(|count| level(count, 100)), [0, 1, 3, 5]);
        assert_eq!((level(5, 0), level(u64::MAX, u64::MAX)), (0, 5));
    }
}
