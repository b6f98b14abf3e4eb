//! How TLS went with the mail hosts of domains: a row for each day and domain (RFC 8460).
//!
//! ```text
//! TlsDay · day · domain  ─►  sessions by policy, and what became of the report
//! ```
//!
//! Nodes add what they have counted: a row is written only as it was read, so that none overwrites another's.

use jiff::Timestamp;
use mail::address::DomainName;
use mail::tls_report::{Day, DomainTlsCounts, DomainTlsDay, ReportDelivery};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, successor};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "DomainTlsDay")]
struct TlsDailyStatsRow {
    counts: DomainTlsCounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    book: Option<ReportDelivery>,
}
stored!(DomainTlsDay as TlsDailyStatsRow);

/// A row as it was read.
#[derive(Debug, Clone)]
pub struct StoredTlsStats {
    /// The day.
    pub day: Day,
    /// The domain.
    pub domain: DomainName,
    /// What stands there.
    pub stands: DomainTlsDay,
    row: Value,
}

impl StoredTlsStats {
    /// Writes what became of the report; the commit conflicts when the row is no more as it was read. Gives back how it
    /// stands then.
    #[must_use]
    pub fn save_report_state(&self, batch: &mut Batch, book: ReportDelivery) -> Self {
        let stands = DomainTlsDay { book: Some(book), ..self.stands.clone() };
        let (at, row) = (key_of(self.day, &self.domain), row::encode(&stands));
        batch.check(at.clone(), Some(self.row.clone()));
        batch.put(at, row.clone());
        Self { stands, row, ..self.clone() }
    }
}

fn key_of(day: Day, domain: &DomainName) -> Key {
    key(Space::TlsDailyStats).i64(day.0).text(domain.as_str()).build()
}

/// Adds to what stands; the commit conflicts when somebody else did so meanwhile.
///
/// # Errors
/// The store cannot be read.
pub async fn add(
    store: &Store,
    batch: &mut Batch,
    more: &[((Day, DomainName), DomainTlsCounts)],
) -> Result<(), ReadError> {
    let keys: Vec<Key> = more.iter().map(|((day, domain), _)| key_of(*day, domain)).collect();
    let rows = store.get_many(&keys).await?;
    for ((at, row), (_, counts)) in keys.into_iter().zip(rows).zip(more) {
        let mut stands: DomainTlsDay = match &row {
            Some(row) => row::decode(row)?,
            None => DomainTlsDay::default(),
        };
        stands.counts.add(counts);
        batch.check(at.clone(), row);
        batch.put(at, row::encode(&stands));
    }
    Ok(())
}

/// What stands for a domain's day.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, day: Day, domain: &DomainName) -> Result<Option<StoredTlsStats>, ReadError> {
    let Some(row) = store.get(&key_of(day, domain)).await? else { return Ok(None) };
    Ok(Some(StoredTlsStats { day, domain: domain.clone(), stands: row::decode(&row)?, row }))
}

/// Some rows, in the order of days and domains.
#[derive(Debug, Default)]
pub struct TlsStatsPage {
    /// They.
    pub found: Vec<StoredTlsStats>,
    /// Rows that cannot be read.
    pub damaged: usize,
    /// From where on the next ones are read; none at the end.
    pub next: Option<Key>,
}

/// The rows of the days from one to another, that one included.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    (first, last): (Day, Day),
    from: Option<Key>,
    limit: usize,
) -> Result<TlsStatsPage, ReadError> {
    let end = key(Space::TlsDailyStats).i64(last.0.saturating_add(1)).build();
    let start = from.unwrap_or_else(|| key(Space::TlsDailyStats).i64(first.0).build());
    let rows = store.scan(start..end, ScanOrder::Ascending, limit).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|(last, _)| successor(last));
    let mut slice = TlsStatsPage { next, ..TlsStatsPage::default() };
    for (at, row) in rows {
        match decode_row(&at, row) {
            Ok(found) => slice.found.push(found),
            Err(_) => slice.damaged += 1,
        }
    }
    Ok(slice)
}

fn decode_row(at: &Key, row: Value) -> Result<StoredTlsStats, ReadError> {
    let mut reader = KeyReader::new(Space::TlsDailyStats, at).map_err(row::damaged)?;
    let day = Day(reader.i64().map_err(row::damaged)?);
    let domain = reader.text().map_err(row::damaged)?.parse().map_err(row::damaged)?;
    Ok(StoredTlsStats { day, domain, stands: row::decode(&row)?, row })
}

/// Forgets days from before a time, at most `limit` rows. Says how many.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    before: Timestamp,
    limit: usize,
) -> Result<usize, ReadError> {
    let all = key(Space::TlsDailyStats).range();
    let old = all.start..key(Space::TlsDailyStats).i64(Day::containing(before).0).build();
    let rows = store.scan(old, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    rows.into_iter().for_each(|(at, _)| {
        batch.delete(at);
    });
    Ok(count)
}

#[cfg(test)]
mod tests {
    use mail::tls_report::AppliedTlsPolicy;

    use super::*;
    use crate::engine::CommitError;

    fn one(day: i64, domain: &str) -> ((Day, DomainName), DomainTlsCounts) {
        let mut counts = DomainTlsCounts::default();
        counts.record_session(&AppliedTlsPolicy::no_policy(), None);
        ((Day(day), domain.parse().unwrap()), counts)
    }

    #[tokio::test]
    async fn nodes_add_and_days_are_forgotten() {
        let store = Store::memory();
        let mut batches = Vec::new();
        for _ in 0..2 {
            let mut batch = Batch::progress();
            add(&store, &mut batch, &[one(20_000, "a.example"), one(20_001, "b.example")]).await.unwrap();
            batches.push(batch);
        }
        store.commit(batches.remove(0)).await.unwrap();
        assert!(matches!(store.commit(batches.remove(0)).await, Err(CommitError::Conflict { .. })));
        let mut batch = Batch::progress();
        add(&store, &mut batch, &[one(20_000, "a.example")]).await.unwrap();
        store.commit(batch).await.unwrap();
        let found = get(&store, Day(20_000), &"a.example".parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(found.stands.counts.policies[0].succeeded, 2);
        let mut batch = Batch::progress();
        let booked = found.save_report_state(&mut batch, ReportDelivery::start(Timestamp::UNIX_EPOCH, Vec::new()));
        store.commit(batch).await.unwrap();
        let first = list(&store, (Day(20_000), Day(20_001)), None, 1).await.unwrap();
        assert_eq!(first.found[0].stands, booked.stands);
        let second = list(&store, (Day(20_000), Day(20_001)), first.next, 2).await.unwrap();
        assert_eq!((second.found[0].domain.as_str(), second.next.is_none()), ("b.example", true));
        let mut batch = Batch::progress();
        let before = Day(20_001).begins_at();
        assert_eq!(purge_before(&store, &mut batch, before, 10).await.unwrap(), 1);
        store.commit(batch).await.unwrap();
        assert!(get(&store, Day(20_000), &"a.example".parse().unwrap()).await.unwrap().is_none());
    }
}
