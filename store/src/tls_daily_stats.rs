//! TLS daily stats: one row for each day and recipient domain (RFC 8460).
//!
//! ```text
//! TlsDailyStats · day · domain  ─►  session counts by policy, and the state of the report
//! ```
//!
//! Each node adds what it has counted. Every write checks the row as it was read, so that no node overwrites another's
//! counts.

use jiff::Timestamp;
use message::address::DomainName;
use message::tls_report::{Day, DomainTlsCounts};
use model::tls_report_delivery::{DomainTlsDay, ReportDelivery};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::rows;

stored!(DomainTlsDay);

/// Stats with the row they were read from.
#[derive(Debug, Clone)]
pub struct StoredTlsStats {
    pub day: Day,
    pub domain: DomainName,
    pub stats: DomainTlsDay,
    row: Value,
}

impl StoredTlsStats {
    /// Writes the state of the report. The commit conflicts if the row has changed since it was read. Returns the new
    /// stats and row.
    pub fn save_report_state(&self, batch: &mut Batch, delivery: ReportDelivery) -> Self {
        let stats = DomainTlsDay { book: Some(delivery), ..self.stats.clone() };
        let (at, row) = (key_of(self.day, &self.domain), codec::encode(&stats));
        batch.replace(at, Some(self.row.clone()), row.clone());
        Self { stats, row, ..self.clone() }
    }
}

fn key_of(day: Day, domain: &DomainName) -> Key {
    key(Space::TlsDailyStats).i64(day.0).text(domain.as_str()).build()
}

/// Adds counts. The commit conflicts if a row has changed since it was read.
pub async fn add(store: &Store, batch: &mut Batch, counts: &[((Day, DomainName), DomainTlsCounts)]) -> Result<()> {
    let keys: Vec<Key> = counts.iter().map(|((day, domain), _)| key_of(*day, domain)).collect();
    let rows = store.get_many(&keys).await?;
    for ((at, row), (_, counts)) in keys.into_iter().zip(rows).zip(counts) {
        let mut stats: DomainTlsDay = match &row {
            Some(row) => codec::decode(row)?,
            None => DomainTlsDay::default(),
        };
        stats.counts.add(counts);
        batch.replace(at, row, codec::encode(&stats));
    }
    Ok(())
}

pub async fn get(store: &Store, day: Day, domain: &DomainName) -> Result<Option<StoredTlsStats>> {
    let Some(row) = store.get(&key_of(day, domain)).await? else { return Ok(None) };
    Ok(Some(StoredTlsStats { day, domain: domain.clone(), stats: codec::decode(&row)?, row }))
}

/// A page of stats by day and domain.
#[derive(Debug, Default)]
pub struct TlsStatsPage {
    pub found: Vec<StoredTlsStats>,
    /// Number of rows that cannot be decoded.
    pub damaged: usize,
    /// Start of the next page; `None` at the end.
    pub next: Option<Key>,
}

/// Lists the stats of a range of days, inclusive, at most `limit` rows from a key on.
pub async fn list(store: &Store, first: Day, last: Day, from: Option<Key>, limit: usize) -> Result<TlsStatsPage> {
    let end = key(Space::TlsDailyStats).i64(last.0.saturating_add(1)).build();
    let start = from.unwrap_or_else(|| key(Space::TlsDailyStats).i64(first.0).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let next = rows::next_page(&rows, limit);
    let mut slice = TlsStatsPage { next, ..TlsStatsPage::default() };
    for (at, row) in rows {
        match decode_row(&at, row) {
            Ok(found) => slice.found.push(found),
            Err(_) => slice.damaged += 1,
        }
    }
    Ok(slice)
}

fn decode_row(at: &Key, row: Value) -> Result<StoredTlsStats> {
    let mut reader = KeyReader::new(Space::TlsDailyStats, at)?;
    let day = Day(reader.i64()?);
    let domain = reader.text()?.parse().map_err(codec::damaged)?;
    Ok(StoredTlsStats { day, domain, stats: codec::decode(&row)?, row })
}

/// Deletes days before a time, at most `limit` rows. Returns their number.
pub async fn purge_before(store: &Store, batch: &mut Batch, before: Timestamp, limit: usize) -> Result<usize> {
    let all = key(Space::TlsDailyStats).range();
    let old = all.start..key(Space::TlsDailyStats).i64(Day::containing(before).0).build();
    rows::delete_range(store, batch, old, limit).await
}

#[cfg(test)]
mod tests {
    use message::tls_report::AppliedTlsPolicy;

    use super::*;
    use crate::engine::CommitError;

    fn one_success(day: i64, domain: &str) -> ((Day, DomainName), DomainTlsCounts) {
        let mut counts = DomainTlsCounts::default();
        counts.record_session(&AppliedTlsPolicy::no_policy(), None);
        ((Day(day), domain.parse().unwrap()), counts)
    }

    #[tokio::test]
    async fn nodes_add_counts_and_days_are_purged() {
        let store = Store::memory();
        let mut batches = Vec::new();
        for _ in 0..2 {
            let mut batch = Batch::progress();
            add(&store, &mut batch, &[one_success(20_000, "a.example"), one_success(20_001, "b.example")])
                .await
                .unwrap();
            batches.push(batch);
        }
        store.commit(batches.remove(0)).await.unwrap();
        assert!(matches!(store.commit(batches.remove(0)).await, Err(CommitError::Conflict { .. })));
        let mut batch = Batch::progress();
        add(&store, &mut batch, &[one_success(20_000, "a.example")]).await.unwrap();
        store.commit(batch).await.unwrap();
        let found = get(&store, Day(20_000), &"a.example".parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(found.stats.counts.policies[0].succeeded, 2);
        let mut batch = Batch::progress();
        let saved = found.save_report_state(&mut batch, ReportDelivery::start(Timestamp::UNIX_EPOCH, Vec::new()));
        store.commit(batch).await.unwrap();
        let first = list(&store, Day(20_000), Day(20_001), None, 1).await.unwrap();
        assert_eq!(first.found[0].stats, saved.stats);
        let second = list(&store, Day(20_000), Day(20_001), first.next, 2).await.unwrap();
        assert_eq!((second.found[0].domain.as_str(), second.next.is_none()), ("b.example", true));
        let mut batch = Batch::progress();
        let before = Day(20_001).begins_at();
        assert_eq!(purge_before(&store, &mut batch, before, 10).await.unwrap(), 1);
        store.commit(batch).await.unwrap();
        assert!(get(&store, Day(20_000), &"a.example".parse().unwrap()).await.unwrap().is_none());
    }
}
