//! Metrics: what became of the emails of a range, over time, by domain, category, tag, template and provider,
//! and when they are opened.

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
mod waiting;

use self::counts::{Counts, CountsByValue, DeliveryTime, Metrics};
use self::inbox_time::InboxTime;
use self::selection::{CountedEmails, Dimension, OTHER, Selection, UNKNOWN_CATEGORY};
use crate::dashboard::context::raw;
use crate::dashboard::page::render;
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/metrics";

pub const PAGES: &[PageRow] = page_rows! {
    "/metrics" => show, reads ["get_email_metrics"];
    "/metrics/export.csv" => export::show, reads ["get_email_metrics"];
};

/// The figures of a range for the chosen emails, by period.
struct PeriodFigures {
    counts: Vec<Counts>,
    delivery_times: Vec<DeliveryTime>,
    /// The time of the whole range; `None` where the API has it by period only.
    delivery_time: Option<DeliveryTime>,
}

async fn read_figures(
    context: &Context<'_>,
    range: DateRange,
    emails: &CountedEmails,
) -> Result<PeriodFigures, Failure> {
    let metrics: Metrics = context.read_field("metrics", &emails.call(range)).await?;
    Ok(PeriodFigures {
        counts: metrics.by_period(range, emails.value()),
        delivery_times: metrics.delivery_times(range, emails.value()),
        delivery_time: emails.has_total_rows().then_some(metrics.totals.delivery_time),
    })
}

/// Recipients whose category was not counted: before counts had categories, and together with other domains.
#[derive(Default)]
struct Uncategorized {
    unknown: u64,
    other: u64,
}

async fn read_uncategorized(
    context: &Context<'_>,
    range: DateRange,
    emails: &CountedEmails,
) -> Result<Uncategorized, Failure> {
    if emails.category.is_none() {
        return Ok(Uncategorized::default());
    }
    let by_category = breakdown::read(context, range, emails, Dimension::Category).await?;
    let sent = |value: &str| by_category.as_ref().map_or(0, |table| Counts::sum(&table.of(value)).sent);
    Ok(Uncategorized { unknown: sent(UNKNOWN_CATEGORY), other: sent(OTHER) })
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, wrong) = DateRange::read(query, context.now());
    let emails = CountedEmails::read(query);
    let by = Dimension::parse(query.get("by")).unwrap_or(Dimension::Domain);
    let breakdown = breakdown::read(context, range, &emails, by).await?;
    let figures = match (&emails.only, &breakdown) {
        // The breakdown has these figures already.
        (Some(only), Some(table)) if only.dimension == by => PeriodFigures {
            counts: table.of(&only.value),
            delivery_times: table.delivery_times.clone(),
            delivery_time: None,
        },
        _ => read_figures(context, range, &emails).await?,
    };
    let PeriodFigures { counts, delivery_times, delivery_time } = figures;
    let previous = Counts::sum(&read_figures(context, range.previous(), &emails).await?.counts);
    let total = Counts::sum(&counts);
    let bar = FilterBar { context, filters: &filters(context, emails.only.as_ref(), by, breakdown.as_ref()).await };
    let figures = overview::MetricsOverview { range, counts: &counts, previous, is_provider: emails.is_provider() };
    let content = if total.is_empty() && previous.is_empty() {
        render(empty(context, &bar))
    } else {
        let inbox_time = InboxTime { range, periods: &delivery_times, total: delivery_time, counts: &counts };
        let opens = opens::read(context, range, &emails).await?;
        let advice = advice::advice(&total, range);
        render(maud! {
            (figures.tiles())
            (advice)
            (figures.charts())
            (inbox_time)
            (breakdown::Breakdown { context, range, by, table: breakdown.as_ref() }.view())
            (opens)
        })
    };
    let uncategorized = read_uncategorized(context, range, &emails).await?;
    let waiting = waiting::read(context).await?;
    let lead = format!("{}, {}.", emails.label(), range.words());
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(wrong) = wrong { (Notice { tone: Tone::Bad, text: wrong }) }
            @if emails.is_category_ignored {
                (Notice { tone: Tone::Warning, text: "The figures cover all categories: a category can be combined \
                    only with a domain." })
            }
            @if uncategorized.other > 0 {
                p.soft {
                    (recipients_were(uncategorized.other, "of this domain")) " counted under other categories: \
                        each hour counts 100 pairs of category and domain separately. Some of them may belong to this \
                        category."
                }
            }
            @if uncategorized.unknown > 0 {
                p.soft {
                    (recipients_were(uncategorized.unknown, "in this range")) " counted before categories \
                        existed. They are not included in these figures."
                }
            }
            (raw(&content))
            (waiting)
        }
    };
    let export = query.with("done", "").to_query();
    let actions = maud! { a.button href={ (PATH) "/export.csv?" (export) } { "Export as CSV" } };
    Ok(Page::new("Metrics", body).lead(lead).actions(actions).same_as(emails.call(range)).into())
}

/// The subject of a sentence, with its verb: `1 recipient of this domain was`.
fn recipients_were(count: u64, which: &str) -> String {
    let (noun, verb) = if count == 1 { ("recipient", "was") } else { ("recipients", "were") };
    format!("{} {noun} {which} {verb}", grouped(count))
}

/// The filters: the range, and the emails that are counted. Counts are stored for one property at a time.
async fn filters(
    context: &Context<'_>,
    only: Option<&Selection>,
    by: Dimension,
    breakdown: Option<&CountsByValue>,
) -> Vec<crate::dashboard::kit::filter::Filter> {
    let mut choices = selection::domains(context).await;
    // Categories have a filter of their own.
    let values = breakdown.iter().filter(|_| by != Dimension::Category).flat_map(|table| table.values());
    let values = values.filter(|value| *value != OTHER);
    choices.extend(values.map(|value| Selection::new(by, value)));
    choices.extend(only.cloned());
    let mut filters = DateRange::filters().to_vec();
    filters.push(selection::filter(choices));
    filters.push(selection::category_filter());
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
        title: "No data yet",
        text: "Once you send email, this page shows how many emails were delivered, bounced, reported as spam, opened \
            and clicked, and how these numbers change.",
        action: context.allows("send_email").then_some(("/dashboard/emails/new", "Send the first email")),
    }
}
