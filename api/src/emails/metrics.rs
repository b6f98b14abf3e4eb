//! `GET /emails/metrics`: what happened, over time (completions-email.md 2.7).
//!
//! Hours are what is stored (`store/src/metric.rs`); days are sums of them, of UTC. Without dimensions each
//! period of the range has a row, also when nothing happened in it, so that a chart can be drawn from the
//! rows as they are; with dimensions those have one in which something did.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use mail::metric::{Counter, Dimension, Hour, MetricCounts, ratio};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::access::Tenant;

use super::view::JsonTimestamp;
use crate::call::{FromRequest, Request, RequestSpec};
use crate::page;
use crate::period::TimeRange;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// Rows of an answer.
const ROWS_MAX: usize = 10_000;
/// Stored rows that are read for an answer.
const READ_MAX: usize = 30_000;
/// How long is waited for what was just done to be counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_millis(50);

const DIMENSIONS: &[&str] = &["domain", "tag", "template", "provider"];
const COUNTERS: &[&str] = &[
    "sent",
    "delivered",
    "bounced",
    "failed",
    "delayed",
    "complained",
    "opened",
    "clicked",
    "suppressed",
    "unsubscribed",
];
/// Shares that people look for: of what, and of how many.
const RATES: &[(&str, Counter, Counter)] = &[
    ("delivery_rate", Counter::Delivered, Counter::Sent),
    ("bounce_rate", Counter::Bounced, Counter::Sent),
    ("complaint_rate", Counter::Complained, Counter::Delivered),
    ("open_rate", Counter::Opened, Counter::Delivered),
    ("click_rate", Counter::Clicked, Counter::Delivered),
    ("unsubscribe_rate", Counter::Unsubscribed, Counter::Delivered),
];

fn parse_counter(word: &str) -> Option<Counter> {
    Counter::ALL.into_iter().find(|counter| counter.word() == word)
}

fn parse_dimension(word: &str) -> Option<Dimension> {
    Dimension::ALL.into_iter().find(|dimension| dimension.word() == word)
}

/// What `GET /emails/metrics` takes.
#[derive(Debug)]
pub struct MetricsQuery {
    period: TimeRange,
    dimensions: Vec<Dimension>,
    counters: Vec<Counter>,
}

impl FromRequest for MetricsQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let several = |name: &str, words: &[&str], description: &str| {
            let items = json!({"type": "array", "items": {"type": "string", "enum": words}});
            let mut parameter = schema::query_parameter(name, description, items);
            (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
            parameter
        };
        let mut parameters = TimeRange::parameters();
        parameters.extend([
            several(
                "dimensions",
                DIMENSIONS,
                "Rows by the sending domain, by each tag (`name:value`), by the template's alias, by who runs the \
                 recipient's mail host (known from the first attempt on: nothing is `sent` by provider); of \
                 several, the rows of each. Of an hour 100 values are counted apart, the others as `(other)`",
            ),
            several("metrics", COUNTERS, "What is counted; left out: everything"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut dimensions = page::parse_words(&call.query, "dimensions", DIMENSIONS, parse_dimension)?;
        dimensions.sort_unstable();
        dimensions.dedup();
        let mut counters = page::parse_words(&call.query, "metrics", COUNTERS, parse_counter)?;
        if counters.is_empty() {
            counters.extend(Counter::ALL);
        }
        Ok(Self { period: TimeRange::from_query(&call.query)?, dimensions, counters })
    }
}

impl MetricsQuery {
    fn shown_counters(&self, counts: &MetricCounts) -> Map<String, Value> {
        self.counters.iter().map(|c| (c.word().to_owned(), counts.get(*c).into())).collect()
    }

    fn totals_with_rates(&self, counts: &MetricCounts) -> Map<String, Value> {
        let mut totals = self.shown_counters(counts);
        for (name, part, whole) in RATES.iter().filter(|(_, part, _)| self.counters.contains(part)) {
            totals.insert((*name).to_owned(), ratio(counts.get(*part), counts.get(*whole)).into());
        }
        totals
    }
}

/// A row.
#[derive(Debug, Serialize)]
pub struct MetricRow {
    period_start: JsonTimestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimension: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(flatten)]
    counts: Map<String, Value>,
}

/// The totals, and the rows.
#[derive(Debug, Serialize)]
pub struct MetricsView {
    totals: Map<String, Value>,
    rows: Vec<MetricRow>,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct MetricsResponse {
    metrics: MetricsView,
}

impl ToSchema for MetricsResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let metrics = schemas.component("EmailMetrics", |_| {
            let counts = || {
                Counter::ALL
                    .into_iter()
                    .map(|counter| (counter.word().to_owned(), schema::count(counter_description(counter))))
            };
            let rates = RATES.iter().map(|(name, part, whole)| {
                let text = format!("`{}` of `{}`, from 0, with four digits", part.word(), whole.word());
                ((*name).to_owned(), json!({"type": "number", "minimum": 0, "description": text}))
            });
            let totals: Map<String, Value> = counts().chain(rates).collect();
            let mut row: Map<String, Value> = counts().collect();
            row.insert("period_start".to_owned(), schema::time("When the hour or the day begins"));
            row.insert(
                "dimension".to_owned(),
                schema::string_enum(DIMENSIONS, "What the row is about, when it was asked"),
            );
            row.insert("value".to_owned(), schema::string("Which of them"));
            schema::object(
                "What happened, counted by recipients; of the counters those that were asked for",
                [
                    ("totals", json!({"type": "object", "description": "All of the range", "properties": totals})),
                    (
                        "rows",
                        schema::list(
                            json!({"type": "object", "properties": row, "required": ["period_start"]}),
                            "The periods, oldest first; without dimensions all of them, with dimensions those of \
                             each value in which something happened",
                        ),
                    ),
                ],
            )
        });
        schema::object("Metrics", [("metrics", metrics)])
    }
}

fn counter_description(counter: Counter) -> &'static str {
    match counter {
        Counter::Sent => "Recipients that mail was accepted for; of scheduled mail, when it was due",
        Counter::Delivered => "Recipients whose server took it",
        Counter::Bounced => "Recipients whose server refused it",
        Counter::Failed => "Recipients given up for another reason",
        Counter::Delayed => "Recipients put off at the first attempt",
        Counter::Complained => "Recipients who complained",
        Counter::Opened => "Recipients who opened it, each once; machines do not count",
        Counter::Clicked => "Recipients who followed a link, each once; machines do not count",
        Counter::Suppressed => "Recipients not sent to: suppressed, or opted out",
        Counter::Unsubscribed => "Unsubscribes by the link of the email",
    }
}

fn too_many_rows(name: &str) -> Problem {
    Problem::field(
        name,
        format!("asks for more than {ROWS_MAX} rows; ask for a shorter range, days or fewer dimensions"),
    )
}

/// `GET /emails/metrics`.
///
/// # Errors
/// The range is too long, or there is more in it than an answer holds; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, asked: MetricsQuery) -> Result<MetricsResponse, Problem> {
    let hours = asked.period.hour_range(room.intake.clock().now())?;
    room.intake.dispatch_outbox_within(OUTBOX_WAIT_MAX).await;
    let by_period = sum_by_period(&room, &tenant, &asked, None, hours.clone()).await?;
    let mut all = MetricCounts::default();
    by_period.values().for_each(|counts| all.add_all(counts));
    let mut rows = Vec::new();
    if asked.dimensions.is_empty() {
        let mut period = hours.start;
        while period < hours.end {
            let counts = by_period.get(&(period, String::new())).cloned().unwrap_or_default();
            let period_start = JsonTimestamp(period.begins_at());
            rows.push(MetricRow { period_start, dimension: None, value: None, counts: asked.shown_counters(&counts) });
            period = Hour(period.0 + asked.period.granularity.hours());
        }
    }
    for dimension in &asked.dimensions {
        for ((period, value), counts) in sum_by_period(&room, &tenant, &asked, Some(*dimension), hours.clone()).await? {
            if rows.len() == ROWS_MAX {
                return Err(too_many_rows("dimensions"));
            }
            let (period_start, counts) = (JsonTimestamp(period.begins_at()), asked.shown_counters(&counts));
            rows.push(MetricRow { period_start, dimension: Some(dimension.word()), value: Some(value), counts });
        }
    }
    Ok(MetricsResponse { metrics: MetricsView { totals: asked.totals_with_rates(&all), rows } })
}

/// The counts of each period and value.
async fn sum_by_period(
    room: &AppState,
    tenant: &Tenant,
    asked: &MetricsQuery,
    dimension: Option<Dimension>,
    hours: Range<Hour>,
) -> Result<BTreeMap<(Hour, String), MetricCounts>, Problem> {
    let (store, account) = (room.intake.store(), tenant.account().id);
    let rows = store::metric::read(store, account, dimension, hours, READ_MAX).await?;
    let mut sums: BTreeMap<(Hour, String), MetricCounts> = BTreeMap::new();
    for (hour, value, counts) in rows.ok_or_else(|| too_many_rows("from"))? {
        sums.entry((asked.period.granularity.period_start(hour), value)).or_default().add_all(&counts);
    }
    Ok(sums)
}
