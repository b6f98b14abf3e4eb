//! `GET /emails/metrics`: email counters over time.
//!
//! Counters are stored per hour (`store/src/metric.rs`); days are sums of hours, in UTC. Without dimensions every
//! period of the range has a row, even if all counts are zero, so that charts can use the rows directly. With
//! dimensions only periods and values with a count have a row. A filter by domain, category or both reads counts of
//! their own, so that it reads one row per hour. Percentiles of delivery times are computed from the sums of their
//! buckets (`model/src/delivery_time.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use message::address::DomainName;
use model::delivery_time::percentile;
use model::email::Category;
use model::metric::{Counter, Dimension, Hour, MetricCounts, category_and_domain, ratio};
use store::engine::{ReadError, Store};
use store::metric::{MetricPoint, OTHER};

use crate::prelude::*;
use crate::time_range::TimeRange;

/// Maximum number of rows in a response.
const ROWS_MAX: usize = 10_000;
/// Maximum number of stored rows read for a response.
const READ_MAX: usize = 30_000;
/// Maximum wait for recent events to be counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_millis(50);

const DIMENSIONS: &[&str] = &["domain", "tag", "template", "provider", "category"];
/// The dimensions that can be combined with a filter.
const FILTERED_DIMENSIONS: [Dimension; 2] = [Dimension::Domain, Dimension::Category];
/// The category of emails that were counted before counts had categories.
const UNKNOWN: &str = "(unknown)";
/// The metrics that a response can have: the counters, and the delivery times.
const METRICS: &[&str] = &[
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
    DELIVERY_TIME,
];
const DELIVERY_TIME: &str = "delivery_time";

/// A requested metric: a counter, or `None` for the delivery times.
fn parse_metric(word: &str) -> Option<Option<Counter>> {
    let counter = Counter::ALL.into_iter().find(|counter| counter.word() == word);
    if word == DELIVERY_TIME { Some(None) } else { counter.map(Some) }
}

fn parse_dimension(word: &str) -> Option<Dimension> {
    Dimension::ALL.into_iter().find(|dimension| dimension.word() == word && DIMENSIONS.contains(&word))
}

/// The emails that are counted: those of a domain, of a category, or of both.
#[derive(Debug, Default)]
struct MetricsFilter {
    domain: Option<String>,
    category: Option<Category>,
}

impl MetricsFilter {
    fn from_query(query: &mut Query) -> Result<Self> {
        let domain: Option<DomainName> = query.value(
            "domain",
            "Count the email of this sending domain only. With a filter, `dimensions` can be `domain` and `category`",
            "a domain, like `example.com`",
        )?;
        let category = "Count the email of this category only, alone or together with `domain`";
        let category = query.word("category", category)?;
        Ok(Self { domain: domain.map(|name| name.to_string()), category })
    }

    /// Reads the counts of these emails in total or by dimension; the value is empty in total. `None` if there are too
    /// many rows.
    async fn read(
        &self,
        store: &Store,
        account: AccountId,
        dimension: Option<Dimension>,
        hours: Range<Hour>,
    ) -> Result<Option<Vec<MetricPoint>>, ReadError> {
        let category = self.category.map(Category::word);
        let (source, values): (Dimension, Vec<String>) = match (&self.domain, category, dimension) {
            (None, None, dimension) => return store::metric::read(store, account, dimension, hours, READ_MAX).await,
            (None, Some(category), Some(Dimension::Domain)) => {
                let all =
                    store::metric::read(store, account, Some(Dimension::CategoryAndDomain), hours, READ_MAX).await?;
                let of_category = |(hour, value, counts): MetricPoint| {
                    let domain = value.strip_prefix(category)?.strip_prefix(' ')?.to_owned();
                    Some((hour, domain, counts))
                };
                return Ok(all.map(|all| all.into_iter().filter_map(of_category).collect()));
            }
            (Some(domain), None, Some(Dimension::Category)) => (Dimension::CategoryAndDomain, pairs_with(domain)),
            (Some(domain), None, _) => (Dimension::Domain, vec![domain.clone()]),
            (None, Some(category), _) => (Dimension::Category, vec![category.to_owned()]),
            (Some(domain), Some(category), _) => {
                (Dimension::CategoryAndDomain, vec![category_and_domain(category, domain)])
            }
        };
        let mut found = store::metric::read_values(store, account, source, hours, &values).await?;
        for (_, value, _) in &mut found {
            *value = match dimension {
                None => String::new(),
                Some(Dimension::Category) => value.split(' ').next().unwrap_or_default().to_owned(),
                Some(_) => self.domain.clone().unwrap_or_default(),
            };
        }
        Ok(Some(found))
    }
}

/// Query of `GET /emails/metrics`.
#[derive(Debug)]
pub struct MetricsQuery {
    period: TimeRange,
    filter: MetricsFilter,
    dimensions: Vec<Dimension>,
    counters: Vec<Counter>,
    has_delivery_times: bool,
}

impl RequestQuery for MetricsQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let period = TimeRange::from_query(query)?;
        let mut dimensions = query.words_of(
            "dimensions",
            "Group by sending domain, by tag (`name:value`), by template alias, by the provider of the recipient's \
             mail host (known from the first attempt on, so `sent` is not counted by provider), or by category. With \
             several dimensions, each has its own rows. At most 100 values per hour are counted apart, the others \
             together as `(other)`: other domains, other tags and so on. With a filter, pairs of category and domain \
             are the values, so that `category` can be `(other)` too: email of the domain whose category was not \
             counted apart. The category of email that was counted before counts had categories is `(unknown)`",
            DIMENSIONS,
            parse_dimension,
        )?;
        dimensions.sort_unstable();
        dimensions.dedup();
        let filter = MetricsFilter::from_query(query)?;
        let about = "Counters to return, and `delivery_time`: how long deliveries took; all if omitted";
        let mut metrics = query.words_of("metrics", about, METRICS, parse_metric)?;
        if metrics.is_empty() {
            metrics = Counter::ALL.into_iter().map(Some).chain([None]).collect();
        }
        let has_delivery_times = metrics.contains(&None);
        let counters = metrics.into_iter().flatten().collect();
        let is_filtered = filter.domain.is_some() || filter.category.is_some();
        let other = dimensions.iter().find(|dimension| !FILTERED_DIMENSIONS.contains(dimension));
        if let Some(other) = other.filter(|_| is_filtered) {
            let text = format!("`{}` cannot be combined with `domain` or `category`", other.word());
            return Err(Problem::field("dimensions", text));
        }
        Ok(Self { period, filter, dimensions, counters, has_delivery_times })
    }
}

impl MetricsQuery {
    fn shown_counts(&self, counts: &MetricCounts) -> ShownCounts {
        let count = |counter| self.counters.contains(&counter).then(|| counts.get(counter));
        ShownCounts {
            sent: count(Counter::Sent),
            delivered: count(Counter::Delivered),
            bounced: count(Counter::Bounced),
            failed: count(Counter::Failed),
            delayed: count(Counter::Delayed),
            complained: count(Counter::Complained),
            opened: count(Counter::Opened),
            clicked: count(Counter::Clicked),
            suppressed: count(Counter::Suppressed),
            unsubscribed: count(Counter::Unsubscribed),
            delivery_time: self.has_delivery_times.then(|| DeliveryTimeView::of(counts)),
        }
    }

    fn totals_with_rates(&self, counts: &MetricCounts) -> MetricTotals {
        let rate =
            |counter, base| self.counters.contains(&counter).then(|| ratio(counts.get(counter), counts.get(base)));
        MetricTotals {
            counts: self.shown_counts(counts),
            delivery_rate: rate(Counter::Delivered, Counter::Sent),
            bounce_rate: rate(Counter::Bounced, Counter::Sent),
            complaint_rate: rate(Counter::Complained, Counter::Delivered),
            open_rate: rate(Counter::Opened, Counter::Delivered),
            click_rate: rate(Counter::Clicked, Counter::Delivered),
            unsubscribe_rate: rate(Counter::Unsubscribed, Counter::Delivered),
        }
    }
}

/// The requested counters
#[message::row::omit_none]
#[derive(Debug, Serialize, ToSchema)]
struct ShownCounts {
    /// Recipients of accepted email; scheduled email counts when it is sent
    sent: Option<u64>,
    /// Recipients whose server accepted the email
    delivered: Option<u64>,
    /// Recipients whose server rejected the email
    bounced: Option<u64>,
    /// Recipients that failed for another reason
    failed: Option<u64>,
    /// Recipients deferred at the first attempt
    delayed: Option<u64>,
    /// Recipients who reported spam
    complained: Option<u64>,
    /// Recipients who opened the email, each counted once, without machines
    opened: Option<u64>,
    /// Recipients who clicked a link, each counted once, without machines
    clicked: Option<u64>,
    /// Recipients that were suppressed or had opted out
    suppressed: Option<u64>,
    /// Unsubscribes through the email's link
    unsubscribed: Option<u64>,
    /// How long deliveries took
    delivery_time: Option<DeliveryTimeView>,
}

object_view! {
    /// How long deliveries took, from the queue to the recipient's mail host. Times are exact to about 20 %, and those below 0.1 seconds count as 0.05
    #[schema(name = "DeliveryTime")]
    struct DeliveryTimeView, fn of(counts: &MetricCounts; let times = counts.delivery_times()) {
        /// Measured deliveries: all since the release that introduced the measurement
        measured: u64 = times.iter().map(|(_, count)| count).sum(),
        /// Half of the measured deliveries took at most about this many seconds; null without any
        #[schema(minimum = 0)]
        p50_seconds: Option<f64> = percentile(&times, 50),
        /// 99 of 100 measured deliveries took at most about this many seconds; null without any
        #[schema(minimum = 0)]
        p99_seconds: Option<f64> = percentile(&times, 99),
    }
}

/// Totals of the range
#[message::row::omit_none]
#[derive(Debug, Serialize, ToSchema)]
struct MetricTotals {
    #[serde(flatten)]
    counts: ShownCounts,
    /// `delivered` divided by `sent`, rounded to four digits
    #[schema(minimum = 0)]
    delivery_rate: Option<f64>,
    /// `bounced` divided by `sent`, rounded to four digits
    #[schema(minimum = 0)]
    bounce_rate: Option<f64>,
    /// `complained` divided by `delivered`, rounded to four digits
    #[schema(minimum = 0)]
    complaint_rate: Option<f64>,
    /// `opened` divided by `delivered`, rounded to four digits
    #[schema(minimum = 0)]
    open_rate: Option<f64>,
    /// `clicked` divided by `delivered`, rounded to four digits
    #[schema(minimum = 0)]
    click_rate: Option<f64>,
    /// `unsubscribed` divided by `delivered`, rounded to four digits
    #[schema(minimum = 0)]
    unsubscribe_rate: Option<f64>,
}

/// One period, or one value of a dimension in a period
#[message::row::omit_none]
#[derive(Debug, Serialize, ToSchema)]
struct MetricRow {
    /// Start of the hour or day
    period_start: JsonTimestamp,
    /// The dimension of the row, if dimensions were requested
    #[schema(enum = DIMENSIONS)]
    dimension: Option<&'static str>,
    /// The value of the dimension
    value: Option<String>,
    #[serde(flatten)]
    counts: ShownCounts,
}

/// Email metrics, counted per recipient; contains the requested counters
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "EmailMetrics")]
pub struct MetricsView {
    totals: MetricTotals,
    /// The periods, oldest first: without dimensions all periods, with dimensions those in which a value was counted
    rows: Vec<MetricRow>,
}

object_response! { "Metrics", pub MetricsResponse { metrics: MetricsView } }

fn too_many_rows(name: &str) -> Problem {
    Problem::field(name, format!("yields more than {ROWS_MAX} rows; use a shorter range, days or fewer dimensions"))
}

/// `GET /emails/metrics`.
///
/// # Errors
/// The range is too long or yields too many rows; the store cannot be read.
pub async fn get(state: State, tenant: Tenant, request: MetricsQuery) -> Result<MetricsResponse> {
    let hours = request.period.hour_range(state.services.clock.now())?;
    state.queue.events.outbox.dispatch_within(OUTBOX_WAIT_MAX).await;
    let by_period = sum_by_period(&state, &tenant, &request, None, hours.clone()).await?;
    let mut all = MetricCounts::default();
    by_period.values().for_each(|counts| all.add_all(counts));
    let mut rows = Vec::new();
    if request.dimensions.is_empty() {
        let mut period = hours.start;
        while period < hours.end {
            let counts = by_period.get(&(period, String::new())).cloned().unwrap_or_default();
            let period_start = JsonTimestamp(period.begins_at());
            rows.push(MetricRow { period_start, dimension: None, value: None, counts: request.shown_counts(&counts) });
            period = Hour(period.0 + request.period.granularity.hours());
        }
    }
    for dimension in &request.dimensions {
        let mut sums = sum_by_period(&state, &tenant, &request, Some(*dimension), hours.clone()).await?;
        if *dimension == Dimension::Category && request.filter.category.is_none() {
            let overflowed = periods_with_overflow(&state, &tenant, &request, hours.clone()).await?;
            add_rest(&mut sums, &by_period, &overflowed);
        }
        for ((period, value), counts) in sums {
            if rows.len() == ROWS_MAX {
                return Err(too_many_rows("dimensions"));
            }
            let (period_start, counts) = (JsonTimestamp(period.begins_at()), request.shown_counts(&counts));
            rows.push(MetricRow { period_start, dimension: Some(dimension.word()), value: Some(value), counts });
        }
    }
    Ok(MetricsResponse { metrics: MetricsView { totals: request.totals_with_rates(&all), rows } })
}

/// The pairs of each category with a domain.
fn pairs_with(domain: &str) -> Vec<String> {
    Category::WORDS.iter().map(|category| category_and_domain(category, domain)).collect()
}

/// The periods in which a domain's categories may be counted together with those of other domains.
async fn periods_with_overflow(
    state: &AppState,
    tenant: &Tenant,
    request: &MetricsQuery,
    hours: Range<Hour>,
) -> Result<BTreeSet<Hour>> {
    if request.filter.domain.is_none() {
        return Ok(BTreeSet::new());
    }
    let (store, account) = (&state.services.store, tenant.account().id);
    let values = pairs_with(OTHER);
    let found = store::metric::read_values(store, account, Dimension::CategoryAndDomain, hours, &values).await?;
    Ok(found.into_iter().map(|(hour, ..)| request.period.granularity.period_start(hour)).collect())
}

/// Adds what the totals have and no category has: as other categories if the period has too many pairs of category and
/// domain, else as unknown.
fn add_rest(
    by_category: &mut BTreeMap<(Hour, String), MetricCounts>,
    totals: &BTreeMap<(Hour, String), MetricCounts>,
    overflowed: &BTreeSet<Hour>,
) {
    let mut rest: BTreeMap<Hour, MetricCounts> =
        totals.iter().map(|((period, _), counts)| (*period, counts.clone())).collect();
    for ((period, _), counts) in &*by_category {
        if let Some(left) = rest.get_mut(period) {
            left.subtract_all(counts);
        }
    }
    let rest = rest.into_iter().filter(|(_, counts)| !counts.is_empty());
    by_category.extend(rest.map(|(period, counts)| {
        let value = if overflowed.contains(&period) { OTHER } else { UNKNOWN };
        ((period, value.to_owned()), counts)
    }));
}

/// The counts per period and value; the value is empty without a dimension.
async fn sum_by_period(
    state: &AppState,
    tenant: &Tenant,
    request: &MetricsQuery,
    dimension: Option<Dimension>,
    hours: Range<Hour>,
) -> Result<BTreeMap<(Hour, String), MetricCounts>> {
    let (store, account) = (&state.services.store, tenant.account().id);
    let rows = request.filter.read(store, account, dimension, hours).await?;
    let mut sums: BTreeMap<(Hour, String), MetricCounts> = BTreeMap::new();
    for (hour, value, counts) in rows.ok_or_else(|| too_many_rows("from"))? {
        sums.entry((request.period.granularity.period_start(hour), value)).or_default().add_all(&counts);
    }
    Ok(sums)
}
