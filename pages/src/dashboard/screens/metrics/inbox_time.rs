//! How long emails take from the queue to the recipient's mail host: the median and the slowest hundredth, measured on
//! the latest delivered emails.

use hypertext::{Buffer, prelude::*};
use jiff::Timestamp;
use serde::Deserialize;

use super::selection::{CountedEmails, Dimension, domain_id};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::kit::chart::{Chart, ChartKind, Series, Unit};
use crate::dashboard::kit::date_range::{DateRange, PeriodLength};

/// Emails that are measured: one page of the list.
const MEASURED: &str = "100";
/// A longer span of measured emails has a period for each day.
const HOURS_MAX: i64 = 48;

#[derive(Debug, Default, Deserialize)]
struct DeliveredList {
    #[serde(default)]
    emails: Vec<DeliveredItem>,
}

#[derive(Debug, Deserialize)]
struct DeliveredItem {
    sent_at: Option<String>,
    delivered_at: Option<String>,
}

/// The delivery times of emails.
pub(super) struct InboxTime {
    /// The time of delivery, and the seconds that it took.
    measured: Vec<(Timestamp, f64)>,
    /// Emails of a provider cannot be listed.
    is_listed: bool,
}

/// Measures the latest delivered emails of a range.
pub(super) async fn read(
    context: &Context<'_>,
    range: DateRange,
    emails: &CountedEmails,
) -> Result<InboxTime, Failure> {
    let mut call = Call::new("list_emails")
        .query("status", "delivered")
        .query("created_after", range.from.to_string())
        .query("created_before", range.to.to_string())
        .query("category", emails.category.unwrap_or_default())
        .query("limit", MEASURED);
    let mut is_listed = context.allows("list_emails");
    if let Some(only) = &emails.only {
        match only.dimension {
            Dimension::Domain => match domain_id(context, &only.value).await {
                Some(id) => call = call.query("domain_id", id),
                None => is_listed = false,
            },
            Dimension::Tag => call = call.query("tag", &only.value),
            Dimension::Template => call = call.query("template", &only.value),
            Dimension::Category => call = call.query("category", &only.value),
            Dimension::Provider => is_listed = false,
        }
    }
    if !is_listed {
        return Ok(InboxTime { measured: Vec::new(), is_listed });
    }
    let list = match context.read::<DeliveredList>(&call).await {
        Ok(list) => list,
        // `(other)` is no tag that can be searched.
        Err(failure) if failure.status == 400 => DeliveredList::default(),
        Err(failure) => return Err(failure),
    };
    let measured = list.emails.iter().filter_map(|email| {
        let time = |text: &Option<String>| text.as_deref()?.parse::<Timestamp>().ok();
        let (sent, delivered) = (time(&email.sent_at)?, time(&email.delivered_at)?);
        Some((delivered, delivered.duration_since(sent).as_secs_f64().max(0.0)))
    });
    Ok(InboxTime { measured: measured.collect(), is_listed })
}

/// The value below which a share of the values lies (nearest rank). `values` is sorted.
fn percentile(values: &[f64], share: usize) -> Option<f64> {
    let rank = (values.len() * share).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

impl InboxTime {
    fn chart(&self) -> Option<Chart> {
        let first = self.measured.iter().map(|(time, _)| *time).min()?;
        let last = self.measured.iter().map(|(time, _)| *time).max()?;
        let is_short = last.duration_since(first).as_hours() < HOURS_MAX;
        let seconds = if is_short { 3_600 } else { 86_400 };
        let floor = |time: Timestamp| time.as_second().div_euclid(seconds);
        let at = |period: i64| Timestamp::from_second(period * seconds).unwrap_or(last);
        let (from, to) = (at(floor(first)), at(floor(last) + 1));
        let range = DateRange { from, to, step: if is_short { PeriodLength::Hour } else { PeriodLength::Day } };
        let mut periods = vec![Vec::new(); range.len()];
        for (time, seconds) in &self.measured {
            if let Some(values) = range.period_of(&time.to_string()).and_then(|period| periods.get_mut(period)) {
                values.push(*seconds);
            }
        }
        let periods: Vec<_> = periods.into_iter().map(sorted).collect();
        let all = sorted(self.measured.iter().map(|(_, seconds)| *seconds).collect());
        let series = |label: &str, share: usize| {
            let total = percentile(&all, share).map(|value| Unit::Seconds.exact(value)).unwrap_or_default();
            Series::new(label, periods.iter().map(|values| percentile(values, share)).collect()).total(total)
        };
        let note = format!(
            "From the queue to the recipient's mail host, measured on the latest {} delivered emails of the range.",
            all.len()
        );
        let chart = Chart::new(ChartKind::Lines, "Time to inbox", Unit::Seconds, range.step.title(), range.labels());
        Some(
            chart
                .note(note)
                .series(series("Half of the emails within (p50)", 50))
                .series(series("99 of 100 within (p99)", 99)),
        )
    }
}

impl Renderable for InboxTime {
    fn render_to(&self, buffer: &mut Buffer) {
        let chart = self.chart();
        maud! {
            @if let Some(chart) = &chart {
                (chart)
            } @else if self.is_listed {
                figure.card.chart {
                    figcaption { h2 { "Time to inbox" } }
                    p.chart-empty { "No email was delivered in this range." }
                }
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 99)), (Some(50.0), Some(99.0)));
        assert_eq!((percentile(&[7.0], 50), percentile(&[7.0], 99), percentile(&[], 50)), (Some(7.0), Some(7.0), None));
    }

    #[test]
    fn periods_follow_the_measured_emails() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let time = |measured| InboxTime { measured, is_listed: true };
        assert!(time(Vec::new()).chart().is_none());
        let short = time(vec![(at("2026-11-01T10:10:00Z"), 1.0), (at("2026-11-01T12:00:00Z"), 3.0)]).chart().unwrap();
        assert_eq!(short.labels, ["Sun 10:00", "Sun 11:00", "Sun 12:00"]);
        assert_eq!(short.series[0].values, [Some(1.0), None, Some(3.0)]);
        let long = time(vec![(at("2026-11-01T10:10:00Z"), 1.0), (at("2026-11-04T12:00:00Z"), 3.0)]).chart().unwrap();
        assert_eq!(long.labels.len(), 4);
    }
}
