//! The figures of the page as CSV: by period, and by the values of the grouping.

use super::counts::{Counts, Metrics};
use super::selection::{CountedEmails, Dimension};
use crate::dashboard::csv::CsvText;
use crate::dashboard::prelude::*;

/// The columns after those of the counts.
const DELIVERY_TIMES: [&str; 2] = ["delivery_p50_seconds", "delivery_p99_seconds"];

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, _) = DateRange::read(query, context.now());
    let emails = CountedEmails::read(query);
    let by = Dimension::parse(query.get("by"));
    // With neither a filter nor a grouping, the rows are of all emails.
    let (dimension, call) = match (&emails.only, by) {
        (Some(only), _) => (Some(only.dimension), emails.call(range)),
        (None, Some(by)) => (Some(by), emails.breakdown_call(range, by)),
        (None, None) => (None, emails.call(range)),
    };
    let metrics: Metrics = context.read_field("metrics", &call).await?;
    let head = dimension.map_or("emails", Dimension::word);
    let columns: Vec<_> = ["period_start", head].into_iter().chain(Counts::NAMES).chain(DELIVERY_TIMES).collect();
    let mut csv = CsvText::new(&columns);
    for row in metrics.rows.iter().filter(|row| emails.value().is_none_or(|value| value == row.value)) {
        let value = match (emails.domain(), dimension) {
            (Some(domain), _) => domain.to_owned(),
            (None, Some(_)) => row.value.clone(),
            (None, None) => "all".to_owned(),
        };
        let counts = row.counts.all().map(|count| count.to_string());
        let time = row.delivery_time;
        let times =
            [time.p50_seconds, time.p99_seconds].map(|time| time.map_or_else(String::new, |time| time.to_string()));
        csv.push(&[row.period_start.clone(), value].into_iter().chain(counts).chain(times).collect::<Vec<_>>());
    }
    Ok(csv.into_file(context, "email-metrics", ""))
}
