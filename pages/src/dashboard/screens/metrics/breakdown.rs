//! The rates of a range by domain, category, tag, template or provider: over time for the largest, and as a table.

use super::PATH;
use super::counts::{Counts, CountsByValue, Metrics, Rate};
use super::selection::{CountedEmails, Dimension, OTHER, Selection, UNKNOWN_CATEGORY};
use crate::dashboard::kit::chart::{Chart, ChartKind, Series, Unit};
use crate::dashboard::prelude::*;

/// Values in the chart, and in the table.
const LINES_MAX: usize = 5;
const ROWS_MAX: usize = 50;

/// Reads the counts by value; `None` if there are more than the API gives.
pub(super) async fn read(
    context: &Context<'_>,
    range: DateRange,
    emails: &CountedEmails,
    by: Dimension,
) -> Result<Option<CountsByValue>, Failure> {
    match context.read_field::<Metrics>("metrics", &emails.breakdown_call(range, by)).await {
        Ok(metrics) => {
            let selected = emails.only.as_ref().filter(|only| only.dimension == by);
            let times = selected.map(|only| metrics.delivery_times(range, Some(&only.value)));
            let mut counts = metrics.by_value(range);
            counts.delivery_times = times.unwrap_or_default();
            Ok(Some(counts))
        }
        Err(failure) if failure.fields.contains_key("dimensions") => Ok(None),
        Err(failure) => Err(failure),
    }
}

pub(super) struct Breakdown<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) range: DateRange,
    pub(super) by: Dimension,
    pub(super) table: Option<&'a CountsByValue>,
}

impl Breakdown<'_> {
    /// The page with another value of a query field.
    fn link(&self, name: &str, value: &str) -> String {
        let query = self.context.query().with(name, value).with("done", "").to_query();
        format!("{PATH}?{query}")
    }

    fn is_provider(&self) -> bool {
        self.by == Dimension::Provider
    }

    fn rate(&self) -> Rate {
        let word = self.context.query().get("rate");
        Rate::COMPARED.into_iter().find(|rate| rate.word() == word).unwrap_or(Rate::Delivery)
    }

    fn chart(&self, table: &CountsByValue) -> Chart {
        let rate = self.rate();
        let title = format!("{} by {}", rate.title(), self.by.word());
        let mut chart =
            Chart::new(ChartKind::Lines, title, Unit::Percent, self.range.step.title(), self.range.labels());
        if table.rows.len() > LINES_MAX {
            chart = chart.note(format!("The {LINES_MAX} with the most emails; the table has them all."));
        }
        for (value, periods) in table.rows.iter().take(LINES_MAX) {
            let rates = periods.iter().map(|counts| counts.rate(rate, self.is_provider())).collect();
            let total = self.percent(&Counts::sum(periods), rate);
            let label = if value == OTHER { self.by.others() } else { value };
            chart = chart.series(Series::new(label, rates).total(total));
        }
        chart
    }

    fn percent(&self, counts: &Counts, rate: Rate) -> String {
        counts.rate(rate, self.is_provider()).map_or_else(|| "–".to_owned(), |value| Unit::Percent.exact(value))
    }

    fn rows(&self, table: &CountsByValue) -> Table {
        let volume = if self.is_provider() { "Recipients" } else { "Sent to" };
        let columns = [self.by.title(), volume, "Delivered", "Bounced", "Complained", "Opened", "Clicked"];
        let caption = format!("Rates by {}", self.by.word());
        Table::new(caption, &columns).numbers(&columns[1..]).rows(
            table.rows.iter().take(ROWS_MAX),
            |(value, periods)| {
                let sum = Counts::sum(periods);
                let volume = if self.is_provider() { sum.settled() } else { sum.sent };
                let row = match self.by {
                    Dimension::Category if value == UNKNOWN_CATEGORY => Row::new().cell("Before categories existed"),
                    // An overflow row has no value that can be chosen.
                    _ if value == OTHER => Row::new().cell(self.by.others()),
                    Dimension::Category => Row::new().link(self.link("category", value), value),
                    _ => Row::new().link(self.link("only", &Selection::new(self.by, value).key()), value),
                };
                let mut row = row.cell(grouped(volume));
                for rate in [Rate::Delivery, Rate::Bounce, Rate::Complaint, Rate::Open, Rate::Click] {
                    row = row.cell(self.percent(&sum, rate));
                }
                row
            },
        )
    }

    pub(super) fn view(&self) -> impl Renderable {
        let rate = self.rate();
        maud! {
            section #breakdown {
                h2 { "By domain, category, tag, template and provider" }
                nav.tabs aria-label="Group by" {
                    @for by in Dimension::ALL {
                        a href={ (self.link("by", by.word())) "#breakdown" } aria-current=[(by == self.by).then_some("page")] { (by.title()) }
                    }
                }
                @match self.table {
                    None => { p.soft { "There are too many values; choose a shorter range." } }
                    Some(table) if table.rows.is_empty() => {
                        p.soft { "No email in this range has a " (self.by.word()) "." }
                    }
                    Some(table) => {
                        p.small.rates {
                            span.soft { "Over time: " }
                            @for one in Rate::COMPARED {
                                a href={ (self.link("rate", one.word())) "#breakdown" } aria-current=[(one == rate).then_some("true")] { (one.title()) } " "
                            }
                        }
                        (self.chart(table))
                        (self.rows(table))
                        @if table.values().any(|value| value == OTHER) {
                            p.soft.small { (self.by.others()) ": each hour counts 100 values separately, and the rest \
                                together." }
                        }
                        @if table.rows.len() > ROWS_MAX {
                            p.soft.small { "The table shows the " (ROWS_MAX) " largest of " (table.rows.len()) "; the export has all." }
                        }
                    }
                }
            }
        }
    }
}
