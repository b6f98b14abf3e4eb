//! `GET /events/counts`: how often what happened, over time. Rows are added to as events are counted, so that
//! nothing looks at events here.

use std::collections::BTreeMap;
use std::sync::Arc;

use mail::metric::Hour;
use mail::product_event::NAME_BYTES_MAX;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::product_event_count::{self, ProductEventCounts};

use crate::call::{FromRequest, Request, RequestSpec};
use crate::emails::view::JsonTimestamp;
use crate::page;
use crate::period::{Granularity, TimeRange};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// Rows of an answer.
const ROWS_MAX: usize = 10_000;
/// Names that can be asked for at once.
const NAMES_MAX: usize = 20;

/// What `GET /events/counts` takes.
#[derive(Debug)]
pub struct EventCountsQuery {
    period: TimeRange,
    names: Vec<String>,
}

impl FromRequest for EventCountsQuery {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let items = json!({"type": "array", "items": {"type": "string"}, "maxItems": NAMES_MAX});
        let about = "Only events of these names, separated by commas; left out: all. `visit` counts visits; of an \
                     account 1,000 names are counted apart, the others as `(other)`";
        let mut name = schema::query_parameter("name", about, items);
        (name["style"], name["explode"]) = (json!("form"), json!(false));
        let mut parameters = vec![name];
        parameters.extend(TimeRange::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        Ok(Self { period: TimeRange::from_query(&call.query)?, names: parse_event_names(&given, "name", NAMES_MAX)? })
    }
}

/// Names of events, separated by commas.
///
/// # Errors
/// There are more than so many, or one is none.
pub(super) fn parse_event_names(
    given: &[(String, String)],
    parameter: &str,
    names_max: usize,
) -> Result<Vec<String>, Problem> {
    let text = page::single_value(given, parameter)?.unwrap_or_default();
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.len() > names_max {
        return Err(Problem::field(parameter, format!("has more than {names_max} names")));
    }
    if names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
        return Err(Problem::field(parameter, format!("has a name longer than {NAME_BYTES_MAX} bytes")));
    }
    Ok(names)
}

/// How many of a period.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct EventCountsView {
    count: u64,
    seats: u64,
    excluded: u64,
    sign_ups: u64,
    subscriptions: u64,
    visitors: u64,
}

impl EventCountsView {
    /// What is shown of counts.
    #[must_use]
    pub fn from_counts(counts: ProductEventCounts) -> Self {
        let ProductEventCounts { count, seats, excluded, sign_ups, subscriptions, visitors } = counts;
        Self { count, seats, excluded, sign_ups, subscriptions, visitors }
    }

    /// Its fields, for the document.
    #[must_use]
    pub fn schema_fields() -> Vec<(&'static str, Value)> {
        vec![
            ("count", schema::count("Events (or visits) that count")),
            ("seats", schema::count("`user.created` of invited teammates: seats, not sign-ups")),
            ("excluded", schema::count("Events of your own people, which do not count")),
            ("sign_ups", schema::count("Sign-ups recorded, each user once")),
            ("subscriptions", schema::count("Subscriptions recorded, each once")),
            ("visitors", schema::count("Visitors who came for the first time")),
        ]
    }
}

/// A row.
#[derive(Debug, Serialize)]
pub struct EventCountRow {
    name: String,
    period_start: JsonTimestamp,
    #[serde(flatten)]
    counts: EventCountsView,
}

/// All of a name in the range.
#[derive(Debug, Serialize)]
pub struct EventCountTotal {
    name: String,
    #[serde(flatten)]
    counts: EventCountsView,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct EventCountsResponse {
    totals: Vec<EventCountTotal>,
    counts: Vec<EventCountRow>,
}

impl ToSchema for EventCountsResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("EventCounts", |_| {
            let name = || ("name", schema::string("What happened"));
            let total = schema::object("All of a name", [vec![name()], EventCountsView::schema_fields()].concat());
            let start = ("period_start", schema::time("When the hour or the day begins"));
            let row = schema::object("A period", [vec![name(), start], EventCountsView::schema_fields()].concat());
            schema::object(
                "Counts",
                [
                    ("totals", schema::list(total, "All of the range, by name")),
                    ("counts", schema::list(row, "By name, the periods in which something happened, oldest first")),
                ],
            )
        })
    }
}

/// `GET /events/counts`.
///
/// # Errors
/// The range is too long, or there is more in it than an answer holds; the store cannot be read.
pub async fn get(room: Arc<AppState>, tenant: Tenant, asked: EventCountsQuery) -> Result<EventCountsResponse, Problem> {
    let hours = asked.period.hour_range(room.intake.clock().now())?;
    let (store, account) = (room.intake.store(), tenant.account().id);
    super::wait_until_counted(&room).await;
    let names = match asked.names.is_empty() {
        true => product_event_count::list_names(store, account).await?.into_iter().map(|(name, _)| name).collect(),
        false => asked.names,
    };
    let by_day = asked.period.granularity == Granularity::Day;
    let mut answer = EventCountsResponse { totals: Vec::new(), counts: Vec::new() };
    for name in names {
        let left = ROWS_MAX - answer.counts.len();
        let of = (account, name.as_str());
        let rows = product_event_count::name_counts(store, of, hours.clone(), by_day, left + 1).await?;
        if rows.len() > left {
            let text = format!("asks for more than {ROWS_MAX} rows; ask for a shorter range, days or fewer names");
            return Err(Problem::field("from", text));
        }
        let mut total = ProductEventCounts::default();
        for (hour, counts) in rows {
            total.add(counts);
            let (name, period_start) = (name.clone(), JsonTimestamp(hour.begins_at()));
            answer.counts.push(EventCountRow { name, period_start, counts: EventCountsView::from_counts(counts) });
        }
        answer.totals.push(EventCountTotal { name, counts: EventCountsView::from_counts(total) });
    }
    Ok(answer)
}

/// Adds up by what they are of.
pub(crate) fn sum_by_key<K: Ord>(
    rows: impl IntoIterator<Item = (K, ProductEventCounts)>,
) -> BTreeMap<K, ProductEventCounts> {
    let mut sums: BTreeMap<K, ProductEventCounts> = BTreeMap::new();
    for (of, counts) in rows {
        sums.entry(of).or_default().add(counts);
    }
    sums
}

/// When a day begins.
pub(crate) fn day_start(day: Hour) -> JsonTimestamp {
    JsonTimestamp(day.begins_at())
}
