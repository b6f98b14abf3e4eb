//! `GET /events/counts`: product event counts over time. Counts are aggregated when events arrive; this operation reads
//! only the aggregates.

use std::collections::BTreeMap;

use model::metric::Hour;
use model::product_event::NAME_BYTES_MAX;
use store::product_event_count::{self, ProductEventCounts};

use crate::prelude::*;
use crate::time_range::{Granularity, TimeRange};

/// Maximum number of rows in a response.
const ROWS_MAX: usize = 10_000;
/// Maximum number of names in a request.
const NAMES_MAX: usize = 20;

/// Query of `GET /events/counts`.
#[derive(Debug)]
pub struct EventCountsQuery {
    period: TimeRange,
    names: Vec<String>,
}

impl RequestQuery for EventCountsQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let names = event_names(
            query,
            "name",
            "Filter by event names, separated by commas; all if omitted. `visit` counts visits. At most \
             1,000 names per account are counted separately, the others as `(other)`",
            || json!({"type": "array", "items": {"type": "string"}, "maxItems": NAMES_MAX}),
            NAMES_MAX,
        )?;
        Ok(Self { period: TimeRange::from_query(query)?, names })
    }
}

/// Parses event names separated by commas.
///
/// # Errors
/// There are too many names, or one is too long.
pub(super) fn event_names(
    query: &mut Query,
    parameter: &str,
    description: &str,
    schema: impl FnOnce() -> Value,
    names_max: usize,
) -> Result<Vec<String>> {
    query.describe_list(parameter, description, schema);
    let text = paging::single_value(query.given(), parameter)?.unwrap_or_default();
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

#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct EventCountsView {
    /// Counted events (or visits)
    count: u64,
    /// `user.created` events of invited teammates, which are seats and not sign-ups
    seats: u64,
    /// Events of your own team, which are excluded
    excluded: u64,
    /// Sign-ups, each user counted once
    sign_ups: u64,
    /// Subscriptions, each counted once
    subscriptions: u64,
    /// First-time visitors
    visitors: u64,
}

impl EventCountsView {
    pub fn from_counts(counts: ProductEventCounts) -> Self {
        let ProductEventCounts { count, seats, excluded, sign_ups, subscriptions, visitors } = counts;
        Self { count, seats, excluded, sign_ups, subscriptions, visitors }
    }
}

/// The counts of one period
#[derive(Debug, Serialize, ToSchema)]
pub struct EventCountRow {
    /// The event name
    name: String,
    /// Start of the hour or day
    period_start: JsonTimestamp,
    #[serde(flatten)]
    counts: EventCountsView,
}

/// The totals of one event name
#[derive(Debug, Serialize, ToSchema)]
pub struct EventCountTotal {
    /// The event name
    name: String,
    #[serde(flatten)]
    counts: EventCountsView,
}

/// Counts
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "EventCounts")]
pub struct EventCountsResponse {
    /// Totals of the range by name
    totals: Vec<EventCountTotal>,
    /// Counts by name, for periods with events, oldest first
    counts: Vec<EventCountRow>,
}

/// `GET /events/counts`.
///
/// # Errors
/// The range is too long or yields too many rows; the store cannot be read.
pub async fn get(state: State, tenant: Tenant, request: EventCountsQuery) -> Result<EventCountsResponse> {
    let hours = request.period.hour_range(state.services.clock.now())?;
    let (store, account) = (&state.services.store, tenant.account().id);
    super::aggregation::wait_until_counted(&state).await;
    let names = match request.names.is_empty() {
        true => product_event_count::list_names(store, account).await?.into_iter().map(|(name, _)| name).collect(),
        false => request.names,
    };
    let by_day = request.period.granularity == Granularity::Day;
    let mut response = EventCountsResponse { totals: Vec::new(), counts: Vec::new() };
    for name in names {
        let rows_left = ROWS_MAX - response.counts.len();
        let rows =
            product_event_count::name_counts(store, account, name.as_str(), hours.clone(), by_day, rows_left + 1)
                .await?;
        if rows.len() > rows_left {
            let text = format!("yields more than {ROWS_MAX} rows; use a shorter range, days or fewer names");
            return Err(Problem::field("from", text));
        }
        let mut total = ProductEventCounts::default();
        for (hour, counts) in rows {
            total.add(counts);
            let (name, period_start) = (name.clone(), JsonTimestamp(hour.begins_at()));
            response.counts.push(EventCountRow { name, period_start, counts: EventCountsView::from_counts(counts) });
        }
        response.totals.push(EventCountTotal { name, counts: EventCountsView::from_counts(total) });
    }
    Ok(response)
}

/// Sums up rows with the same key.
pub(crate) fn sum_by_key<K: Ord>(
    rows: impl IntoIterator<Item = (K, ProductEventCounts)>,
) -> BTreeMap<K, ProductEventCounts> {
    let mut sums: BTreeMap<K, ProductEventCounts> = BTreeMap::new();
    for (key, counts) in rows {
        sums.entry(key).or_default().add(counts);
    }
    sums
}

pub(crate) fn day_start(day: Hour) -> JsonTimestamp {
    JsonTimestamp(day.begins_at())
}
