//! Visits of the customer's site, by source.

use std::collections::BTreeMap;

use crate::dashboard::csv::CsvText;
use crate::dashboard::kit::chart::{
    Change, Chart, ChartKind, SERIES_MAX, Series, Tile, Unit, as_f64, metric_tiles, percent,
};
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/visits";
/// Sources in the table.
const SOURCES_MAX: usize = 50;

pub const PAGES: &[PageRow] = page_rows! {
    "/visits" => show, reads ["count_visits"];
    "/visits/export.csv" => export, reads ["count_visits"];
};

#[answer]
struct VisitCounts {
    totals: Vec<SourceCounts>,
    visits: Vec<SourceCounts>,
}

/// The counts of a source, in a range or on a day.
#[answer]
struct SourceCounts {
    period_start: String,
    source: String,
    visits: u64,
    visitors: u64,
    sign_ups: u64,
    subscriptions: u64,
}

impl VisitCounts {
    fn sum(&self) -> SourceCounts {
        let mut sum = SourceCounts::default();
        for source in &self.totals {
            sum.visits = sum.visits.saturating_add(source.visits);
            sum.visitors = sum.visitors.saturating_add(source.visitors);
            sum.sign_ups = sum.sign_ups.saturating_add(source.sign_ups);
            sum.subscriptions = sum.subscriptions.saturating_add(source.subscriptions);
        }
        sum
    }

    /// The source with the most visits comes first.
    fn sources(&self) -> Vec<&SourceCounts> {
        let mut sources: Vec<_> = self.totals.iter().collect();
        sources.sort_by_key(|source| std::cmp::Reverse((source.visits, source.sign_ups)));
        sources
    }

    fn chart(&self, range: DateRange) -> Chart {
        let sources = self.sources();
        let shown = if sources.len() > SERIES_MAX { SERIES_MAX - 1 } else { sources.len() };
        let places: BTreeMap<_, _> =
            sources.iter().enumerate().map(|(n, source)| (source.source.as_str(), n.min(shown))).collect();
        let mut values = vec![vec![0_u64; range.len()]; sources.len().min(shown + 1)];
        for day in &self.visits {
            let value = places.get(day.source.as_str()).and_then(|place| values.get_mut(*place));
            let period = range.period_of(&day.period_start);
            if let Some(sum) = value.zip(period).and_then(|(value, period)| value.get_mut(period)) {
                *sum = sum.saturating_add(day.visits);
            }
        }
        let chart = Chart::new(ChartKind::Bars, "Visits by source", Unit::Count, range.step.title(), range.labels());
        values.iter().enumerate().fold(chart, |chart, (n, values)| {
            let label = sources.get(n).filter(|_| n < shown).map_or("Other", |source| source.source.as_str());
            chart.series(Series::counts(label, values))
        })
    }

    fn table(&self) -> Table {
        let numbers = ["Visits", "New visitors", "Sign-ups", "Subscriptions", "Visitors who signed up"];
        let columns = ["Source"].into_iter().chain(numbers);
        Table::with_columns("Visits by source", columns).numbers(&numbers).rows(
            self.sources().into_iter().take(SOURCES_MAX),
            |source| {
                let rate = percent(source.sign_ups, source.visitors);
                Row::new()
                    .cell(&source.source)
                    .cell(grouped(source.visits))
                    .cell(grouped(source.visitors))
                    .cell(grouped(source.sign_ups))
                    .cell(grouped(source.subscriptions))
                    .cell(rate.map_or_else(|| "–".to_owned(), |rate| Unit::Percent.exact(rate)))
            },
        )
    }
}

fn call(range: DateRange) -> Call {
    range.between_times(Call::new("count_visits"))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (range, wrong) = DateRange::read(context.query(), context.now());
    let range = range.by_day();
    let counts: VisitCounts = context.read(&call(range)).await?;
    let previous: VisitCounts = context.read(&call(range.previous())).await?;
    let (now, before) = (counts.sum(), previous.sum());
    let tile = |label, now: u64, before: u64| {
        let (now, before) = (as_f64(now), as_f64(before));
        let change = Some(Change { now, before, up_is_good: Some(true) });
        Tile { label, unit: Unit::Count, value: Some(now), change }
    };
    let tiles = [
        tile("Visits", now.visits, before.visits),
        tile("New visitors", now.visitors, before.visitors),
        tile("Sign-ups", now.sign_ups, before.sign_ups),
        tile("Subscriptions", now.subscriptions, before.subscriptions),
    ];
    let filters = DateRange::filters();
    let bar = FilterBar { context, filters: &filters };
    let (is_empty, before_words) = (counts.totals.is_empty(), range.before_words());
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(wrong) = wrong { (Notice { tone: Tone::Bad, text: wrong }) }
            @if is_empty {
                (empty(&bar))
            } @else {
                (metric_tiles(&tiles, &before_words))
                (counts.chart(range))
                (counts.table())
                p.soft.small { "Sign-ups and subscriptions are attributed to the source of the person's first visit. \
                    The second line of each figure compares with " (before_words) "." }
            }
        }
        (script(context, is_empty))
    };
    let query = context.query().with("done", "").to_query();
    let actions = maud! { @if !is_empty { a.button href={ (PATH) "/export.csv?" (query) } { "Export as CSV" } } };
    let page =
        Page::new("Visits", body).lead("Where your site's visitors come from, and which sources bring sign-ups.");
    Ok(page.actions(actions).same_as(call(range)).into())
}

fn empty<'a>(bar: &FilterBar<'_>) -> EmptyState<'a> {
    if bar.is_active() {
        return EmptyState {
            title: "No visits in this range",
            text: "Choose a longer range.",
            action: Some((PATH, "Show the last 30 days")),
        };
    }
    EmptyState {
        title: "No visits yet",
        text: "Put the line below into the head of your site's pages. It counts visits by source, without names, \
            addresses or third-party cookies, and links them to later sign-ups.",
        action: None,
    }
}

/// The line that counts visits.
fn script(context: &Context<'_>, is_open: bool) -> impl Renderable {
    let account = context.viewer.map_or("acct_…", |viewer| &viewer.account_id);
    let line = format!("<script async src=\"{}/visits.js?site={account}\"></script>", context.backend.base_url());
    maud! {
        details.card open[is_open] {
            summary { "Count your site's visits" }
            (Code::new("Script for your site", &line).wrapped())
            p.soft.small {
                "It sets the cookie stx_vid. Send its value as data.visitor_id with user.created, so that the sign-up \
                 is linked to the visit. Bots are not counted, nor are people whose browser asks not to be tracked."
            }
        }
    }
}

async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let (range, _) = DateRange::read(context.query(), context.now());
    let counts: VisitCounts = context.read(&call(range.by_day())).await?;
    let mut csv = CsvText::new(&["period_start", "source", "visits", "visitors", "sign_ups", "subscriptions"]);
    for day in counts.visits {
        let numbers = [day.visits, day.visitors, day.sign_ups, day.subscriptions].map(|number| number.to_string());
        csv.push(&[day.period_start, day.source].into_iter().chain(numbers).collect::<Vec<_>>());
    }
    Ok(csv.into_file(context, "visits", ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::dashboard::answer::PageContent;
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};

    fn backend() -> FakeBackend {
        let counts = json!({"source": HOSTILE, "visits": 9, "visitors": 4, "sign_ups": 1, "subscriptions": 0,
                            "period_start": "2026-11-20T00:00:00.000Z"});
        FakeBackend::new().answer("count_visits", json!({"totals": [counts], "visits": [counts]}))
    }

    #[test]
    fn visits_are_shown_by_source() {
        let backend = backend();
        let page = html(backend.get("/visits?range=1"));
        assert_harmless(&page);
        assert!(page.contains("25.0\u{202f}%") && page.contains("/visits.js?site=acct_1"));
        let calls = backend.calls("count_visits");
        assert!(calls[0].query.contains(&("from".to_owned(), "2026-11-25T00:00:00Z".to_owned())), "whole days");
        let PageContent::File { content, .. } = backend.get("/visits/export.csv").content else { panic!("no file") };
        assert!(content.contains(",9,4,1,0"));
    }

    #[test]
    fn a_site_without_visits_gets_the_script() {
        let none = || FakeBackend::new().answer("count_visits", json!({"totals": [], "visits": []}));
        assert!(html(none().get("/visits")).contains("No visits yet"));
        assert!(html(none().get("/visits?range=7")).contains("No visits in this range"));
    }
}
