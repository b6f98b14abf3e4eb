//! Metrics: what became of the emails of a range, over time, by domain, tag, template and provider, and when they are
//! opened.

mod advice;
mod breakdown;
mod counts;
mod export;
mod inbox_time;
mod opens;
mod overview;
mod selection;
#[cfg(test)]
mod tests;

use hypertext::prelude::*;

use self::counts::{Counts, CountsByValue, MetricsAnswer};
use self::selection::{Dimension, Selection};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::{Context, raw};
use crate::dashboard::kit::badge::Tone;
use crate::dashboard::kit::date_range::DateRange;
use crate::dashboard::kit::empty::EmptyState;
use crate::dashboard::kit::filter::FilterBar;
use crate::dashboard::kit::notice::Notice;
use crate::dashboard::page::{Page, render};
use crate::dashboard::table::{PageAccess, PageRow, View};

const PATH: &str = "/dashboard/metrics";

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/metrics",
        access: PageAccess::SignedIn,
        reads: &["get_email_metrics"],
        show: |context| Box::pin(show(context)),
        forms: &[],
    },
    PageRow {
        path: "/metrics/export.csv",
        access: PageAccess::SignedIn,
        reads: &["get_email_metrics"],
        show: |context| Box::pin(export::show(context)),
        forms: &[],
    },
];

/// The call that reads a range: all emails, or those of a dimension's values.
fn call(range: DateRange, dimension: Option<Dimension>) -> Call {
    range.within(Call::new("get_email_metrics")).query("dimensions", dimension.map_or("", Dimension::word))
}

/// The counts of a range for the chosen emails.
async fn read_counts(
    context: &Context<'_>,
    range: DateRange,
    only: Option<&Selection>,
) -> Result<Vec<Counts>, Failure> {
    let answer: MetricsAnswer = context.read(&call(range, only.map(|only| only.dimension))).await?;
    Ok(answer.metrics.by_period(range, only.map(|only| only.value.as_str())))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, wrong) = DateRange::read(query, context.now());
    let only = Selection::parse(query.get("only"));
    let by = Dimension::parse(query.get("by")).unwrap_or(Dimension::Domain);
    let breakdown = breakdown::read(context, range, by).await?;
    let counts = match &only {
        // The breakdown has these counts already.
        Some(only) if only.dimension == by => match &breakdown {
            Some(table) => table.of(&only.value),
            None => read_counts(context, range, Some(only)).await?,
        },
        only => read_counts(context, range, only.as_ref()).await?,
    };
    let previous = Counts::sum(&read_counts(context, range.previous(), only.as_ref()).await?);
    let total = Counts::sum(&counts);
    let filters = filters(context, only.as_ref(), by, breakdown.as_ref()).await;
    let bar = FilterBar { context, filters: &filters };
    let is_provider = only.as_ref().is_some_and(|only| only.dimension == Dimension::Provider);
    let figures = overview::MetricsOverview { range, counts: &counts, previous, is_provider };
    let content = if total.is_empty() && previous.is_empty() {
        render(empty(context, &bar))
    } else {
        let inbox_time = inbox_time::read(context, range, only.as_ref()).await?;
        let opens = opens::read(context, range, only.as_ref()).await?;
        let advice = advice::advice(&total, range);
        render(maud! {
            (figures.tiles())
            (advice)
            (figures.charts())
            (inbox_time)
            (breakdown::Breakdown { context, range, by, table: breakdown.as_ref() })
            (opens)
        })
    };
    let lead = match &only {
        Some(only) => format!("{}, {}.", only.label(), range.words()),
        None => format!("All emails, {}.", range.words()),
    };
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(wrong) = wrong { (Notice { tone: Tone::Bad, text: wrong }) }
            (raw(&content))
        }
    };
    let export = query.with("done", "").to_query();
    let actions = maud! { a.button href={ (PATH) "/export.csv?" (export) } { "Export as CSV" } };
    let same_as = call(range, only.as_ref().map(|only| only.dimension));
    Ok(Page::new("Metrics", body).lead(lead).actions(actions).same_as(same_as).into())
}

/// The filters: the range, and the emails that are counted. Counts are stored for one property at a time.
async fn filters(
    context: &Context<'_>,
    only: Option<&Selection>,
    by: Dimension,
    breakdown: Option<&CountsByValue>,
) -> Vec<crate::dashboard::kit::filter::Filter> {
    let mut choices = selection::domains(context).await;
    choices.extend(breakdown.iter().flat_map(|table| table.values()).map(|value| Selection::new(by, value)));
    choices.extend(only.cloned());
    let mut filters = DateRange::filters().to_vec();
    filters.push(selection::filter(choices));
    filters
}

fn empty<'a>(context: &Context<'_>, bar: &FilterBar<'_>) -> EmptyState<'a> {
    if bar.is_active() {
        return EmptyState {
            title: "Nothing was sent in this range",
            text: "Choose a longer range, or count all emails.",
            action: Some((PATH, "Show the last 30 days")),
        };
    }
    EmptyState {
        title: "No figures yet",
        text: "As soon as you send, this page shows how many emails were delivered, bounced, reported as spam, opened \
               and clicked, and how that changes.",
        action: context.allows("send_email").then_some(("/dashboard/emails/new", "Send the first email")),
    }
}
