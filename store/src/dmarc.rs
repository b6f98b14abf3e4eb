//! DMARC aggregate reports: a row for each that was counted, and a row of sums for each day and address.
//!
//! ```text
//! DmarcReport · account · domain · day · reporter · report id  ─►  who reported what
//! DmarcSource · account · domain · day · address               ─►  sums
//! ```
//!
//! The report's row and the sums that it adds to are one commit, and the row must not be there before: so each
//! report counts once. Of a day so many reports and addresses are kept as [`mail::dmarc`] says.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

use jiff::Timestamp;
use mail::address::DomainName;
use mail::dmarc::{DmarcMessageCounts, DmarcPolicyPublished, DmarcReport, DmarcSource, REPORTS_MAX, SOURCES_MAX};
use mail::id::{AccountId, DomainId};
use mail::metric::Hour;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyBuilder, KeyReader, Space, key, prefix_end, successor};
use crate::row::{self, stored};

/// Rows read at once.
const PAGE_ROWS: usize = 1_000;

#[derive(Serialize, Deserialize)]
#[serde(remote = "DmarcReport")]
struct DmarcReportRow {
    reporter: DomainName,
    org_name: String,
    report_id: String,
    begins_at: Timestamp,
    ends_at: Timestamp,
    policy: DmarcPolicyPublished,
    tally: DmarcMessageCounts,
    received_at: Timestamp,
}
stored!(DmarcReport as DmarcReportRow);

#[derive(Serialize, Deserialize)]
#[serde(remote = "DmarcSource")]
struct DmarcSourceRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ours: bool,
    tally: DmarcMessageCounts,
}
stored!(DmarcSource as DmarcSourceRow);

/// Whose.
pub type DmarcDomainKey = (AccountId, DomainId);

fn domain_prefix(space: Space, (account, domain): DmarcDomainKey) -> KeyBuilder {
    key(space).account(account).id(domain.to_bytes())
}

fn report_key(of: DmarcDomainKey, report: &DmarcReport) -> Key {
    let day = domain_prefix(Space::DmarcReport, of).i64(report.day().0);
    day.text(report.reporter.as_str()).text(&report.report_id).build()
}

/// An address of IPv4 stands among those of IPv6 (RFC 4291 2.5.5.2); the unspecified one is all others.
fn source_key(of: DmarcDomainKey, day: Hour, ip: Option<IpAddr>) -> Key {
    let ip = match ip {
        None => Ipv6Addr::UNSPECIFIED,
        Some(IpAddr::V4(ip)) => ip.to_ipv6_mapped(),
        Some(IpAddr::V6(ip)) => ip,
    };
    domain_prefix(Space::DmarcSource, of).i64(day.0).fixed(ip.octets()).build()
}

/// Whether a report was counted before.
///
/// # Errors
/// The store cannot be read.
pub async fn is_counted(store: &Store, of: DmarcDomainKey, report: &DmarcReport) -> Result<bool, ReadError> {
    Ok(store.get(&report_key(of, report)).await?.is_some())
}

/// Counts a report; says whether it is to be counted: not when it was before, and not when the day has had
/// too many. The commit conflicts when somebody counted for the same day meanwhile.
///
/// # Errors
/// The store cannot be read.
pub async fn record_report(
    store: &Store,
    batch: &mut Batch,
    of: DmarcDomainKey,
    (report, sources): (&DmarcReport, &[DmarcSource]),
) -> Result<bool, ReadError> {
    let (day, report_key) = (report.day(), report_key(of, report));
    let reports = domain_prefix(Space::DmarcReport, of).i64(day.0).range();
    let there = store.scan(reports, ScanOrder::Ascending, REPORTS_MAX).await?;
    if there.len() >= REPORTS_MAX || there.iter().any(|(known, _)| *known == report_key) {
        return Ok(false);
    }
    batch.check(report_key.clone(), None).put(report_key, row::encode(report));
    let known = domain_prefix(Space::DmarcSource, of).i64(day.0).range();
    let known: BTreeMap<Key, _> = store.scan(known, ScanOrder::Ascending, SOURCES_MAX + 1).await?.into_iter().collect();
    let mut room = SOURCES_MAX.saturating_sub(known.len());
    let mut sums: BTreeMap<Key, DmarcSource> = BTreeMap::new();
    for source in sources {
        let mut row_key = source_key(of, day, source.ip);
        let mut source = *source;
        if !known.contains_key(&row_key) && !sums.contains_key(&row_key) {
            if room == 0 {
                row_key = source_key(of, day, None);
                source = DmarcSource { ip: None, ours: false, ..source };
            }
            room = room.saturating_sub(1);
        }
        let start = DmarcSource { tally: DmarcMessageCounts::default(), ..source };
        sums.entry(row_key).or_insert(start).tally.add(&source.tally);
    }
    for (row_key, mut sum) in sums {
        let row = known.get(&row_key).cloned();
        if let Some(row) = &row {
            let before: DmarcSource = row::decode(row)?;
            sum.ours |= before.ours;
            sum.tally.add(&before.tally);
        }
        batch.check(row_key.clone(), row);
        batch.put(row_key, row::encode(&sum));
    }
    Ok(true)
}

/// Whether a conflict was about what is counted here.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    let spaces = [Space::DmarcReport as u8, Space::DmarcSource as u8];
    conflict.first().is_some_and(|first| spaces.contains(first))
}

/// The reports about a domain whose time began in these hours, oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list_reports(
    store: &Store,
    of: DmarcDomainKey,
    hours: Range<Hour>,
) -> Result<Vec<DmarcReport>, ReadError> {
    let mut reports = Vec::new();
    for_each_row(store, (Space::DmarcReport, of), hours, &mut |_, row| {
        reports.push(row::decode(row)?);
        Ok(())
    })
    .await?;
    Ok(reports)
}

/// What came from where in these hours: by address, and by day.
///
/// # Errors
/// The store cannot be read.
pub async fn source_totals(
    store: &Store,
    of: DmarcDomainKey,
    hours: Range<Hour>,
) -> Result<(Vec<DmarcSource>, BTreeMap<Hour, DmarcMessageCounts>), ReadError> {
    let mut by_ip: BTreeMap<Option<IpAddr>, DmarcSource> = BTreeMap::new();
    let mut by_day: BTreeMap<Hour, DmarcMessageCounts> = BTreeMap::new();
    for_each_row(store, (Space::DmarcSource, of), hours, &mut |day, row| {
        let source: DmarcSource = row::decode(row)?;
        by_day.entry(day).or_default().add(&source.tally);
        let start = DmarcSource { tally: DmarcMessageCounts::default(), ..source };
        let sum = by_ip.entry(source.ip).or_insert(start);
        sum.ours |= source.ours;
        sum.tally.add(&source.tally);
        Ok(())
    })
    .await?;
    Ok((by_ip.into_values().collect(), by_day))
}

/// What is done with each row of a day.
type RowVisitor<'a> = dyn FnMut(Hour, &[u8]) -> Result<(), ReadError> + Send + 'a;

async fn for_each_row(
    store: &Store,
    (space, of): (Space, DmarcDomainKey),
    hours: Range<Hour>,
    take: &mut RowVisitor<'_>,
) -> Result<(), ReadError> {
    let end = domain_prefix(space, of).i64(hours.end.0).build();
    let mut start = domain_prefix(space, of).i64(hours.start.0).build();
    while start < end {
        let rows = store.scan(start.clone()..end.clone(), ScanOrder::Ascending, PAGE_ROWS).await?;
        for (row_key, row) in &rows {
            let mut reader = KeyReader::new(space, row_key).map_err(row::damaged)?;
            let read = reader.account().and_then(|_| reader.id()).and_then(|_| reader.i64());
            take(Hour(read.map_err(row::damaged)?), row)?;
        }
        // Rows in memory are read without waiting: others have their turn, too.
        tokio::task::yield_now().await;
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => start = successor(last),
            _ => break,
        }
    }
    Ok(())
}

/// Forgets an account's days from before one, of domains that are no more as well, at most `limit` rows. Says
/// how many.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    (account, before): (AccountId, Hour),
    limit: usize,
) -> Result<usize, ReadError> {
    let mut count = 0;
    for space in [Space::DmarcReport, Space::DmarcSource] {
        let all = key(space).account(account).range();
        let mut start = all.start;
        while count < limit {
            let first = store.scan(start..all.end.clone(), ScanOrder::Ascending, 1).await?;
            let Some((first, _)) = first.first() else { break };
            let mut reader = KeyReader::new(space, first).map_err(row::damaged)?;
            let domain = reader.account().and_then(|_| reader.id()).map_err(row::damaged)?;
            let of = domain_prefix(space, (account, DomainId::from_bytes(domain)));
            let (from, to) = (of.clone().build(), of.clone().i64(before.0).build());
            for (row_key, _) in store.scan(from..to, ScanOrder::Ascending, limit - count).await? {
                batch.delete(row_key);
                count += 1;
            }
            start = prefix_end(&of.build());
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
    }

    fn report(id: &str, day: i64) -> DmarcReport {
        let wanted = mail::dmarc::DmarcDisposition::None;
        DmarcReport {
            reporter: "reporter.example".parse().unwrap(),
            org_name: "Reporter".to_owned(),
            report_id: id.to_owned(),
            begins_at: at(day),
            ends_at: at(day + 1),
            policy: DmarcPolicyPublished { p: wanted, sp: None, strict_dkim: false, strict_spf: false },
            tally: DmarcMessageCounts { messages: 2, passed: 1, ..DmarcMessageCounts::default() },
            received_at: at(day + 2),
        }
    }

    fn source(n: u32) -> DmarcSource {
        let tally = DmarcMessageCounts { messages: 2, passed: 1, ..DmarcMessageCounts::default() };
        DmarcSource { ip: Some(IpAddr::from(n.to_be_bytes())), ours: n == 1, tally }
    }

    #[tokio::test]
    async fn each_report_counts_once_and_days_are_bounded_and_forgotten() {
        let store = Store::memory();
        let of = (AccountId::new(at(0), 1), DomainId::new(at(0), 1));
        let counts = async |report: &DmarcReport, sources: &[DmarcSource]| {
            let mut batch = Batch::progress();
            let counted = record_report(&store, &mut batch, of, (report, sources)).await.unwrap();
            if counted {
                store.commit(batch).await.unwrap();
            }
            counted
        };
        assert!(counts(&report("a", 0), &[source(1), source(2)]).await);
        assert!(!counts(&report("a", 0), &[source(1), source(2)]).await, "the same again");
        assert!(counts(&report("b", 0), &[source(1)]).await);
        assert!(counts(&report("c", 5), &[source(3)]).await);
        let hours = |from, to| Hour::containing(at(from)).day()..Hour::containing(at(to)).day();
        let (sources, days) = source_totals(&store, of, hours(0, 9)).await.unwrap();
        let seen: Vec<_> = sources.iter().map(|one| (one.ours, one.tally.messages)).collect();
        assert_eq!((seen, days.len()), (vec![(true, 4), (false, 2), (false, 2)], 2));
        assert_eq!(list_reports(&store, of, hours(0, 9)).await.unwrap().len(), 3);
        let many: Vec<DmarcSource> = (10..10 + 600).map(source).collect();
        assert!(counts(&report("d", 7), &many[..400]).await);
        assert!(counts(&report("e", 7), &many[200..]).await);
        let (sources, days) = source_totals(&store, of, hours(7, 8)).await.unwrap();
        assert_eq!(sources.len(), SOURCES_MAX + 1, "and one for all others");
        assert_eq!(days.values().next().unwrap().messages, 2 * 800);
        let mut batch = Batch::progress();
        let before = (of.0, Hour::containing(at(6)).day());
        assert_eq!(purge_before(&store, &mut batch, before, 1_000).await.unwrap(), 6);
        store.commit(batch).await.unwrap();
        assert_eq!(list_reports(&store, of, hours(0, 9)).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn of_two_who_count_the_same_at_once_one_does() {
        let store = Store::memory();
        let of = (AccountId::new(at(0), 1), DomainId::new(at(0), 1));
        let mut batches = Vec::new();
        for _ in 0..2 {
            let mut batch = Batch::progress();
            assert!(record_report(&store, &mut batch, of, (&report("a", 0), &[source(1)])).await.unwrap());
            batches.push(batch);
        }
        store.commit(batches.remove(0)).await.unwrap();
        match store.commit(batches.remove(0)).await {
            Err(crate::engine::CommitError::Conflict { key }) => assert!(caused_conflict(&key)),
            other => panic!("{other:?}"),
        }
    }
}
