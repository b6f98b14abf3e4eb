//! Counts of product events and visits: rows that are updated when pending analytics are counted.
//!
//! ```text
//! EventCount · account · 1 · name · hour   ─►  counts by hour (by day under 2)
//! EventCount · account · 3 · name          ─►  total counts of a name; lists the names
//! EventCount · account · 4 · day · source  ─►  visits, and the conversions attributed to them
//! ```
//!
//! Names and sources are chosen by outsiders. Only [`NAMES_MAX`] names per account and [`SOURCES_MAX`] sources per day
//! are counted separately; the rest are counted as [`OTHER`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::id::AccountId;
use model::metric::Hour;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows;

/// Maximum number of names of an account that are counted separately.
pub const NAMES_MAX: usize = 1_000;
/// Maximum number of sources of a day that are counted separately.
pub const SOURCES_MAX: usize = 200;
/// The name or source under which all others are counted.
pub const OTHER: &str = "(other)";

const BY_HOUR: u8 = 1;
const BY_DAY: u8 = 2;
const BY_NAME: u8 = 3;
const BY_SOURCE: u8 = 4;

/// Counts of a name or a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProductEventCounts {
    /// Counted events or visits.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub count: u64,
    /// Teammates who joined.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub seats: u64,
    /// Events of internal users.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub excluded: u64,
    /// Recorded sign-ups.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub sign_ups: u64,
    /// Recorded subscriptions.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub subscriptions: u64,
    /// People whose first visit it was.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub visitors: u64,
}

stored!(ProductEventCounts);

impl ProductEventCounts {
    pub fn add(&mut self, other: Self) {
        for (count, other) in [
            (&mut self.count, other.count),
            (&mut self.seats, other.seats),
            (&mut self.excluded, other.excluded),
            (&mut self.sign_ups, other.sign_ups),
            (&mut self.subscriptions, other.subscriptions),
            (&mut self.visitors, other.visitors),
        ] {
            *count = count.saturating_add(other);
        }
    }
}

/// Counts to add in one commit.
#[derive(Debug, Default)]
pub struct ProductEventIncrements {
    pub names: BTreeMap<(AccountId, String), BTreeMap<Hour, ProductEventCounts>>,
    pub sources: BTreeMap<(AccountId, Hour), BTreeMap<String, ProductEventCounts>>,
}

impl ProductEventIncrements {
    pub fn add_name(&mut self, account: AccountId, name: &str, hour: Hour, counts: ProductEventCounts) {
        self.names.entry((account, name.to_owned())).or_default().entry(hour).or_default().add(counts);
    }

    /// Adds counts to a source on the day of `hour`.
    pub fn add_source(&mut self, account: AccountId, source: &str, hour: Hour, counts: ProductEventCounts) {
        let day = self.sources.entry((account, hour.day())).or_default();
        day.entry(source.to_owned()).or_default().add(counts);
    }
}

fn row_prefix(account: AccountId, kind: u8) -> KeyBuilder {
    key(Space::EventCount).account(account).u8(kind)
}

fn name_key(account: AccountId, name: &str) -> Key {
    row_prefix(account, BY_NAME).text(name).build()
}

fn source_key(account: AccountId, day: Hour, source: &str) -> Key {
    row_prefix(account, BY_SOURCE).i64(day.0).text(source).build()
}

/// Adds counts. The commit conflicts if a row has changed since it was read.
pub async fn add(store: &Store, batch: &mut Batch, additions: &ProductEventIncrements) -> Result<()> {
    let mut sums: BTreeMap<Key, ProductEventCounts> = BTreeMap::new();
    let mut sum = |row_key: Key, counts: ProductEventCounts| sums.entry(row_key).or_default().add(counts);
    let others = names_over_limit(store, additions).await?;
    for ((account, name), hours) in &additions.names {
        let name = if others.contains(&(*account, name.as_str())) { OTHER } else { name };
        for (hour, counts) in hours {
            sum(row_prefix(*account, BY_HOUR).text(name).i64(hour.0).build(), *counts);
            sum(row_prefix(*account, BY_DAY).text(name).i64(hour.day().0).build(), *counts);
            sum(name_key(*account, name), *counts);
        }
    }
    for ((account, day), sources) in &additions.sources {
        let others = sources_over_limit(store, *account, *day, sources).await?;
        for (source, counts) in sources {
            let source = if others.contains(source.as_str()) { OTHER } else { source };
            sum(source_key(*account, *day, source), *counts);
        }
    }
    let keys: Vec<Key> = sums.keys().cloned().collect();
    for ((row_key, mut sum), row) in sums.into_iter().zip(store.get_many(&keys).await?) {
        if let Some(row) = &row {
            sum.add(codec::decode(row)?);
        }
        batch.replace(row_key, row, codec::encode(&sum));
    }
    Ok(())
}

/// Returns the new names that are beyond [`NAMES_MAX`].
async fn names_over_limit<'a>(
    store: &Store,
    additions: &'a ProductEventIncrements,
) -> Result<BTreeSet<(AccountId, &'a str)>> {
    let keys: Vec<Key> = additions.names.keys().map(|(account, name)| name_key(*account, name)).collect();
    let rows = store.get_many(&keys).await?;
    let mut new: BTreeMap<AccountId, Vec<&str>> = BTreeMap::new();
    for ((account, name), _) in additions.names.keys().zip(rows).filter(|(_, row)| row.is_none()) {
        new.entry(*account).or_default().push(name);
    }
    let mut over_limit = BTreeSet::new();
    for (account, names) in new {
        let existing = store.scan(row_prefix(account, BY_NAME).range(), ScanOrder::Ascending, NAMES_MAX).await?.len();
        over_limit.extend(names.into_iter().skip(NAMES_MAX - existing).map(|name| (account, name)));
    }
    Ok(over_limit)
}

async fn sources_over_limit<'a>(
    store: &Store,
    account: AccountId,
    day: Hour,
    sources: &'a BTreeMap<String, ProductEventCounts>,
) -> Result<BTreeSet<&'a str>> {
    let keys: Vec<Key> = sources.keys().map(|source| source_key(account, day, source)).collect();
    let rows = store.get_many(&keys).await?;
    let new: Vec<&str> =
        sources.keys().zip(rows).filter(|(_, row)| row.is_none()).map(|(source, _)| source.as_str()).collect();
    if new.is_empty() {
        return Ok(BTreeSet::new());
    }
    let range = row_prefix(account, BY_SOURCE).i64(day.0).range();
    let existing = store.scan(range, ScanOrder::Ascending, SOURCES_MAX).await?.len();
    Ok(new.into_iter().skip(SOURCES_MAX - existing).collect())
}

/// Lists an account's names in order, with the total counts of each.
pub async fn list_names(store: &Store, account: AccountId) -> Result<Vec<(String, ProductEventCounts)>> {
    // One more for `OTHER`.
    let rows = store.scan(row_prefix(account, BY_NAME).range(), ScanOrder::Ascending, NAMES_MAX + 1).await?;
    let read = |(row_key, row): &(Key, Value)| {
        let mut reader = KeyReader::new(Space::EventCount, row_key)?;
        reader.account().and_then(|_| reader.u8())?;
        Ok((reader.text()?, codec::decode(row)?))
    };
    rows.iter().map(read).collect()
}

/// Reads a name's counts of a range of hours, by hour or by day, at most `limit` rows.
pub async fn name_counts(
    store: &Store,
    account: AccountId,
    name: &str,
    hours: Range<Hour>,
    by_day: bool,
    limit: usize,
) -> Result<Vec<(Hour, ProductEventCounts)>> {
    let rows = || row_prefix(account, if by_day { BY_DAY } else { BY_HOUR }).text(name);
    let range = rows().i64(hours.start.0).build()..rows().i64(hours.end.0).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(row_key, row): &(Key, Value)| {
        let mut reader = KeyReader::new(Space::EventCount, row_key)?;
        reader.account().and_then(|_| reader.u8()).and_then(|_| reader.text())?;
        Ok((Hour(reader.i64()?), codec::decode(row)?))
    };
    rows.iter().map(read).collect()
}

/// Reads the counts of all sources of a range of days, at most `limit` rows.
pub async fn source_counts(
    store: &Store,
    account: AccountId,
    days: Range<Hour>,
    limit: usize,
) -> Result<Vec<(Hour, String, ProductEventCounts)>> {
    let rows = || row_prefix(account, BY_SOURCE);
    let range = rows().i64(days.start.0).build()..rows().i64(days.end.0).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(row_key, row): &(Key, Value)| {
        let mut reader = KeyReader::new(Space::EventCount, row_key)?;
        reader.account().and_then(|_| reader.u8())?;
        let day = Hour(reader.i64()?);
        Ok((day, reader.text()?, codec::decode(row)?))
    };
    rows.iter().map(read).collect()
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
    for (name, _) in list_names(store, account).await? {
        for kind in [BY_HOUR, BY_DAY] {
            let rows = || row_prefix(account, kind).text(&name);
            let range = rows().build()..rows().i64(before.0).build();
            count += rows::delete_range(store, batch, range, limit - count).await?;
        }
    }
    let range = row_prefix(account, BY_SOURCE).build()..row_prefix(account, BY_SOURCE).i64(before.0).build();
    Ok(count + rows::delete_range(store, batch, range, limit - count).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn names_and_sources_are_bounded() {
        let (store, account) = (Store::memory(), AccountId::new(Timestamp::UNIX_EPOCH, 1));
        let counts = ProductEventCounts { count: 1, ..ProductEventCounts::default() };
        for round in 1..=2u64 {
            let mut additions = ProductEventIncrements::default();
            for n in 0..NAMES_MAX + 7 {
                additions.add_name(account, &format!("n{n:05}"), Hour(25), counts);
                additions.add_source(account, &format!("s{n:05}"), Hour(25), counts);
            }
            additions.add_name(account, "n00000", Hour(26), counts);
            let mut batch = Batch::progress();
            add(&store, &mut batch, &additions).await.unwrap();
            store.commit(batch).await.unwrap();
            let names = list_names(&store, account).await.unwrap();
            assert_eq!(names.len(), NAMES_MAX + 1);
            assert_eq!((names[0].0.as_str(), names[0].1.count), (OTHER, 7 * round));
            let hours = name_counts(&store, account, "n00000", Hour(0)..Hour(48), false, 99).await.unwrap();
            assert_eq!(hours.iter().map(|(h, c)| (h.0, c.count)).collect::<Vec<_>>(), [(25, round), (26, round)]);
            let days = name_counts(&store, account, "n00000", Hour(0)..Hour(48), true, 99).await.unwrap();
            assert_eq!(days.iter().map(|(h, c)| (h.0, c.count)).collect::<Vec<_>>(), [(24, 2 * round)]);
            let sources = source_counts(&store, account, Hour(0)..Hour(48), 9_999).await.unwrap();
            assert_eq!(sources.len(), SOURCES_MAX + 1);
        }
        let mut batch = Batch::progress();
        let forgotten = purge_before(&store, &mut batch, account, Hour(48), 9_999).await.unwrap();
        assert_eq!(forgotten, 2 * (NAMES_MAX + 1) + 1 + SOURCES_MAX + 1);
    }
}
