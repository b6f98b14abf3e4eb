//! Metrics: one row of counts for each account, dimension, hour and value, updated when events are dispatched.
//!
//! ```text
//! Metric · account · dimension (0: total) · hour · value  ─►  counts
//! ```
//!
//! A client that uses an order number as a tag creates as many values as orders. Therefore only [`VALUES_MAX`] values
//! are counted separately per hour; the rest are counted as [`OTHER`]. Pairs of category and domain have one such value
//! for each category, so that the counts of a category are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::id::AccountId;
use model::metric::{Dimension, Hour, MetricCounts, category_and_domain};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows::{self, RowPages};

/// Maximum number of values of a dimension that are counted separately in an hour.
pub const VALUES_MAX: usize = 100;
/// The value under which all others are counted.
pub const OTHER: &str = "(other)";
/// Rows per read.
const PAGE_ROWS: usize = 1_000;

stored!(MetricCounts);

/// Account, dimension (`None` for the total) and hour.
pub type MetricBucket = (AccountId, Option<Dimension>, Hour);

/// Counts to add, by value.
pub type MetricIncrements = BTreeMap<MetricBucket, BTreeMap<String, MetricCounts>>;

fn dimension_prefix(account: AccountId, dimension: Option<Dimension>) -> KeyBuilder {
    key(Space::Metric).account(account).u8(dimension.map_or(0, |dimension| dimension as u8))
}

fn key_of((account, dimension, hour): MetricBucket, value: &str) -> Key {
    dimension_prefix(account, dimension).i64(hour.0).text(value).build()
}

/// The value under which a value is counted that has no row of its own.
fn overflow_value(dimension: Option<Dimension>, value: &str) -> String {
    match (dimension, value.split_once(' ')) {
        (Some(Dimension::CategoryAndDomain), Some((category, _))) => category_and_domain(category, OTHER),
        _ => OTHER.to_owned(),
    }
}

/// The values whose rows must be read: those to add to, and those that take the overflow.
fn bucket_values(dimension: Option<Dimension>, values: &BTreeMap<String, MetricCounts>) -> BTreeSet<String> {
    values.keys().flat_map(|value| [value.clone(), overflow_value(dimension, value)]).collect()
}

/// Adds counts. The commit conflicts if a row has changed since it was read.
pub async fn add(store: &Store, batch: &mut Batch, additions: &MetricIncrements) -> Result<()> {
    let keys_of = |(bucket, values): (&MetricBucket, &BTreeMap<String, MetricCounts>)| -> Vec<Key> {
        bucket_values(bucket.1, values).iter().map(|value| key_of(*bucket, value)).collect()
    };
    let keys: Vec<Key> = additions.iter().flat_map(keys_of).collect();
    let mut rows = store.get_many(&keys).await?.into_iter();
    for (bucket, values) in additions {
        let mut rows: BTreeMap<String, Option<Value>> =
            bucket_values(bucket.1, values).into_iter().zip(rows.by_ref()).collect();
        let is_new = |name: &&String| rows.get(*name).is_none_or(Option::is_none);
        let new: Vec<&String> = values.keys().filter(is_new).collect();
        let free = remaining_values(store, *bucket, new.len()).await?;
        let others: BTreeSet<&String> = new.into_iter().skip(free).collect();
        let mut sums: BTreeMap<String, MetricCounts> = BTreeMap::new();
        for (value, counts) in values {
            let name = if others.contains(value) { overflow_value(bucket.1, value) } else { value.clone() };
            sums.entry(name).or_default().add_all(counts);
        }
        for (name, mut sum) in sums {
            let row = rows.remove(&name).flatten();
            if let Some(row) = &row {
                sum.add_all(&codec::decode(row)?);
            }
            let row_key = key_of(*bucket, &name);
            batch.replace(row_key, row, codec::encode(&sum));
        }
    }
    Ok(())
}

/// Number of new values that fit into an hour.
async fn remaining_values(store: &Store, bucket: MetricBucket, new: usize) -> Result<usize> {
    let (account, dimension, hour) = bucket;
    if new == 0 || dimension.is_none() {
        return Ok(new);
    }
    let range = dimension_prefix(account, dimension).i64(hour.0).range();
    let existing = store.scan(range, ScanOrder::Ascending, VALUES_MAX).await?.len();
    Ok(VALUES_MAX - existing)
}

/// Hour, value (empty for the total) and counts.
pub type MetricPoint = (Hour, String, MetricCounts);

/// Reads an account's counts of a range of hours, for one dimension or the total, ordered by hour and value. Returns
/// `None` if there are more than about `limit` rows.
pub async fn read(
    store: &Store,
    account: AccountId,
    dimension: Option<Dimension>,
    hours: Range<Hour>,
    limit: usize,
) -> Result<Option<Vec<MetricPoint>>> {
    let at = |hour: Hour| dimension_prefix(account, dimension).i64(hour.0).build();
    let mut pages = RowPages::new(store, at(hours.start)..at(hours.end), PAGE_ROWS);
    let mut found = Vec::new();
    while let Some(page) = pages.next_page().await? {
        for (row_key, row) in &page {
            let mut reader = KeyReader::new(Space::Metric, row_key)?;
            reader.account().and_then(|_| reader.u8())?;
            let hour = Hour(reader.i64()?);
            found.push((hour, reader.text()?, codec::decode(row)?));
        }
        if found.len() > limit {
            return Ok(None);
        }
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(Some(found))
}

/// Reads an account's counts of some values of a dimension in a range of hours, ordered by hour.
pub async fn read_values(
    store: &Store,
    account: AccountId,
    dimension: Dimension,
    hours: Range<Hour>,
    values: &[String],
) -> Result<Vec<MetricPoint>> {
    let hours_per_page = i64::try_from(PAGE_ROWS / values.len().max(1)).unwrap_or(1).max(1);
    let (mut found, mut start) = (Vec::new(), hours.start.0);
    while start < hours.end.0 {
        let end = hours.end.0.min(start.saturating_add(hours_per_page));
        let points: Vec<(Hour, &str)> =
            (start..end).flat_map(|hour| values.iter().map(move |value| (Hour(hour), value.as_str()))).collect();
        let keys: Vec<Key> =
            points.iter().map(|(hour, value)| key_of((account, Some(dimension), *hour), value)).collect();
        for ((hour, value), row) in points.into_iter().zip(store.get_many(&keys).await?) {
            if let Some(row) = row {
                found.push((hour, value.to_owned(), codec::decode(&row)?));
            }
        }
        start = end;
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(found)
}

/// Deletes an account's counts before an hour, at most `limit` rows. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: Hour,
    limit: usize,
) -> Result<usize> {
    let mut count = 0;
    for dimension in Dimension::ALL.into_iter().map(Some).chain([None]) {
        let range =
            dimension_prefix(account, dimension).build()..dimension_prefix(account, dimension).i64(before.0).build();
        count += rows::delete_range(store, batch, range, limit - count).await?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::metric::Counter;

    #[tokio::test]
    async fn values_over_the_limit_count_as_other() {
        let (store, account) = (Store::memory(), AccountId::new(Timestamp::UNIX_EPOCH, 1));
        let bucket = (account, Some(Dimension::Tag), Hour(5));
        for round in 1..=2 {
            for number in 0..VALUES_MAX + 7 {
                let mut counts = MetricCounts::default();
                counts.add(Counter::Sent, 1);
                let values = BTreeMap::from([(format!("order:{number:03}"), counts)]);
                let mut batch = Batch::progress();
                add(&store, &mut batch, &MetricIncrements::from([(bucket, values)])).await.unwrap();
                store.commit(batch).await.unwrap();
            }
            let hours = Hour(0)..Hour(6);
            let rows = read(&store, account, bucket.1, hours.clone(), 1_000).await.unwrap().unwrap();
            assert_eq!(rows.len(), VALUES_MAX + 1);
            assert_eq!((rows[0].1.as_str(), rows[0].2.get(Counter::Sent)), (OTHER, 7 * round));
            assert_eq!((rows[1].1.as_str(), rows[1].2.get(Counter::Sent)), ("order:000", round));
            assert_eq!(read(&store, account, bucket.1, hours, 50).await.unwrap(), None);
            assert_eq!(read(&store, account, bucket.1, Hour(6)..Hour(9), 50).await.unwrap(), Some(vec![]));
            let values = ["order:001".to_owned(), "order:none".to_owned()];
            let of_values = read_values(&store, account, Dimension::Tag, Hour(0)..Hour(9), &values).await.unwrap();
            assert_eq!(of_values, [rows[2].clone()]);
        }
        let mut batch = Batch::progress();
        assert_eq!(purge_before(&store, &mut batch, account, Hour(5), 1_000).await.unwrap(), 0);
        assert_eq!(purge_before(&store, &mut batch, account, Hour(6), 1_000).await.unwrap(), VALUES_MAX + 1);
    }
    #[tokio::test]
    async fn pairs_over_the_limit_count_under_their_category() {
        let (store, account) = (Store::memory(), AccountId::new(Timestamp::UNIX_EPOCH, 1));
        let bucket = (account, Some(Dimension::CategoryAndDomain), Hour(5));
        let pairs = (0..VALUES_MAX + 7).flat_map(|number| {
            ["newsletter", "product"].map(|category| category_and_domain(category, &format!("{number:03}.example")))
        });
        for pair in pairs {
            let mut counts = MetricCounts::default();
            counts.add(Counter::Sent, 1);
            let mut batch = Batch::progress();
            let additions = MetricIncrements::from([(bucket, BTreeMap::from([(pair, counts)]))]);
            add(&store, &mut batch, &additions).await.unwrap();
            store.commit(batch).await.unwrap();
        }
        let rows = read(&store, account, bucket.1, Hour(0)..Hour(6), 1_000).await.unwrap().unwrap();
        let sent = |category: &str| -> u64 {
            let of_category = rows.iter().filter(|(_, value, _)| value.starts_with(category));
            of_category.map(|(_, _, counts)| counts.get(Counter::Sent)).sum()
        };
        assert_eq!((sent("newsletter "), sent("product ")), (107, 107), "{rows:?}");
        assert!(rows.iter().any(|(_, value, _)| value == "product (other)"), "{rows:?}");
    }
}
