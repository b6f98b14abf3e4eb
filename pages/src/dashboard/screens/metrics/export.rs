//! The figures of the page as CSV: by period, and by the values of the grouping.

use super::call;
use super::counts::{Counts, MetricsAnswer};
use super::selection::{Dimension, Selection};
use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;
use crate::dashboard::csv::CsvText;
use crate::dashboard::kit::date_range::DateRange;
use crate::dashboard::table::View;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, _) = DateRange::read(query, context.now());
    let only = Selection::parse(query.get("only"));
    // With neither a filter nor a grouping, the rows are of all emails.
    let dimension = only.as_ref().map_or_else(|| Dimension::parse(query.get("by")), |only| Some(only.dimension));
    let answer: MetricsAnswer = context.read(&call(range, dimension)).await?;
    let head = dimension.map_or("emails", Dimension::word);
    let columns: Vec<_> = ["period_start", head].into_iter().chain(Counts::NAMES).collect();
    let mut csv = CsvText::new(&columns);
    for row in answer.metrics.rows.iter().filter(|row| only.as_ref().is_none_or(|only| only.value == row.value)) {
        let value = if dimension.is_some() { row.value.clone() } else { "all".to_owned() };
        let counts = row.counts.all().map(|count| count.to_string());
        csv.push(&[row.period_start.clone(), value].into_iter().chain(counts).collect::<Vec<_>>());
    }
    Ok(csv.into_file(context, "email-metrics", ""))
}
