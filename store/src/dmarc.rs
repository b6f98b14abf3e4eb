//! DMARC aggregate reports (RFC 7489 7.2): one row for each counted report, and one row of sums for each day and source
//! address.
//!
//! ```text
//! DmarcReport · account · domain · day · reporter · report id  ─►  the report's metadata
//! DmarcSource · account · domain · day · address               ─►  sums
//! ```
//!
//! A report's row is written in the commit that updates the sums, and must not exist before, so each report counts
//! once. [`message::dmarc`] limits the number of reports and addresses per day.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

use message::dmarc::{DmarcMessageCounts, DmarcReport, DmarcSource, REPORTS_MAX, SOURCES_MAX};
use model::id::{AccountId, DomainId};
use model::metric::Hour;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyBuilder, KeyReader, Space, key, prefix_end};
use crate::rows::{self, RowPages};

/// Rows per read.
const PAGE_ROWS: usize = 1_000;

stored!(DmarcReport);

stored!(DmarcSource);

pub type DmarcDomainKey = (AccountId, DomainId);

fn domain_prefix(space: Space, (account, domain): DmarcDomainKey) -> KeyBuilder {
    key(space).account(account).id(domain.to_bytes())
}

/// The day that a report is counted on: the day of the start of its range.
fn report_day(report: &DmarcReport) -> Hour {
    Hour::containing(report.begins_at).day()
}

fn report_key(domain_key: DmarcDomainKey, report: &DmarcReport) -> Key {
    let day = domain_prefix(Space::DmarcReport, domain_key).i64(report_day(report).0);
    day.text(report.reporter.as_str()).text(&report.report_id).build()
}

/// IPv4 addresses are stored IPv4-mapped (RFC 4291 2.5.5.2). The unspecified address represents addresses over the
/// limit.
fn source_key(domain_key: DmarcDomainKey, day: Hour, ip: Option<IpAddr>) -> Key {
    let ip = match ip {
        None => Ipv6Addr::UNSPECIFIED,
        Some(IpAddr::V4(ip)) => ip.to_ipv6_mapped(),
        Some(IpAddr::V6(ip)) => ip,
    };
    domain_prefix(Space::DmarcSource, domain_key).i64(day.0).fixed(ip.octets()).build()
}

/// Returns whether a report was counted before.
pub async fn is_counted(store: &Store, domain_key: DmarcDomainKey, report: &DmarcReport) -> Result<bool> {
    Ok(store.get(&report_key(domain_key, report)).await?.is_some())
}

/// Adds a report to the sums. Returns false if it was counted before or if the day has reached its maximum of reports.
/// The commit conflicts if another report of the same day is counted concurrently.
pub async fn record_report(
    store: &Store,
    batch: &mut Batch,
    domain_key: DmarcDomainKey,
    report: &DmarcReport,
    sources: &[DmarcSource],
) -> Result<bool> {
    let (day, report_key) = (report_day(report), report_key(domain_key, report));
    let reports = domain_prefix(Space::DmarcReport, domain_key).i64(day.0).range();
    let existing = store.scan(reports, ScanOrder::Ascending, REPORTS_MAX).await?;
    if existing.len() >= REPORTS_MAX || existing.iter().any(|(known, _)| *known == report_key) {
        return Ok(false);
    }
    batch.replace(report_key, None, codec::encode(report));
    let known = domain_prefix(Space::DmarcSource, domain_key).i64(day.0).range();
    let known: BTreeMap<Key, _> = store.scan(known, ScanOrder::Ascending, SOURCES_MAX + 1).await?.into_iter().collect();
    let mut free_sources = SOURCES_MAX.saturating_sub(known.len());
    let mut sums: BTreeMap<Key, DmarcSource> = BTreeMap::new();
    for source in sources {
        let mut row_key = source_key(domain_key, day, source.ip);
        let mut source = *source;
        if !known.contains_key(&row_key) && !sums.contains_key(&row_key) {
            if free_sources == 0 {
                row_key = source_key(domain_key, day, None);
                source = DmarcSource { ip: None, ours: false, ..source };
            }
            free_sources = free_sources.saturating_sub(1);
        }
        let start = DmarcSource { tally: DmarcMessageCounts::default(), ..source };
        sums.entry(row_key).or_insert(start).tally.add(&source.tally);
    }
    for (row_key, mut sum) in sums {
        let row = known.get(&row_key).cloned();
        if let Some(row) = &row {
            let before: DmarcSource = codec::decode(row)?;
            sum.ours |= before.ours;
            sum.tally.add(&before.tally);
        }
        batch.replace(row_key, row, codec::encode(&sum));
    }
    Ok(true)
}

/// Returns whether the conflicting key is a DMARC row.
pub fn caused_conflict(conflict: &Key) -> bool {
    let spaces = [Space::DmarcReport as u8, Space::DmarcSource as u8];
    conflict.first().is_some_and(|first| spaces.contains(first))
}

/// Lists the reports of a domain whose period begins within these hours, oldest first.
pub async fn list_reports(store: &Store, domain_key: DmarcDomainKey, hours: Range<Hour>) -> Result<Vec<DmarcReport>> {
    let mut reports = Vec::new();
    for_each_row(store, Space::DmarcReport, domain_key, hours, &mut |_, row| {
        reports.push(codec::decode(row)?);
        Ok(())
    })
    .await?;
    Ok(reports)
}

/// Sums the sources of these hours by address and by day.
pub async fn source_totals(
    store: &Store,
    domain_key: DmarcDomainKey,
    hours: Range<Hour>,
) -> Result<(Vec<DmarcSource>, BTreeMap<Hour, DmarcMessageCounts>)> {
    let mut by_ip: BTreeMap<Option<IpAddr>, DmarcSource> = BTreeMap::new();
    let mut by_day: BTreeMap<Hour, DmarcMessageCounts> = BTreeMap::new();
    for_each_row(store, Space::DmarcSource, domain_key, hours, &mut |day, row| {
        let source: DmarcSource = codec::decode(row)?;
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

/// Callback for each row, with its day.
type RowVisitor<'a> = dyn FnMut(Hour, &[u8]) -> Result<()> + Send + 'a;

async fn for_each_row(
    store: &Store,
    space: Space,
    domain_key: DmarcDomainKey,
    hours: Range<Hour>,
    take: &mut RowVisitor<'_>,
) -> Result<()> {
    let at = |hour: Hour| domain_prefix(space, domain_key).i64(hour.0).build();
    let mut pages = RowPages::new(store, at(hours.start)..at(hours.end), PAGE_ROWS);
    while let Some(page) = pages.next_page().await? {
        for (row_key, row) in &page {
            let mut reader = KeyReader::new(space, row_key)?;
            let hour = reader.account().and_then(|_| reader.id()).and_then(|_| reader.i64())?;
            take(Hour(hour), row)?;
        }
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Deletes an account's days before `before`, including those of deleted domains, at most `limit` rows. Returns their
/// number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: Hour,
    limit: usize,
) -> Result<usize> {
    let mut count = 0;
    for space in [Space::DmarcReport, Space::DmarcSource] {
        let all = key(space).account(account).range();
        let mut start = all.start;
        while count < limit {
            let first = store.scan(start..all.end.clone(), ScanOrder::Ascending, 1).await?;
            let Some((first, _)) = first.first() else { break };
            let mut reader = KeyReader::new(space, first)?;
            let domain = reader.account().and_then(|_| reader.id())?;
            let prefix = domain_prefix(space, (account, DomainId::from_bytes(domain)));
            let (from, to) = (prefix.clone().build(), prefix.clone().i64(before.0).build());
            count += rows::delete_range(store, batch, from..to, limit - count).await?;
            start = prefix_end(&prefix.build());
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use message::dmarc::DmarcPolicyPublished;

    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
    }

    fn report(id: &str, day: i64) -> DmarcReport {
        let wanted = message::dmarc::DmarcPolicy::None;
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
    async fn each_report_counts_once_and_days_are_bounded_and_purged() {
        let store = Store::memory();
        let account_domain = (AccountId::new(at(0), 1), DomainId::new(at(0), 1));
        let counts = async |report: &DmarcReport, sources: &[DmarcSource]| {
            let mut batch = Batch::progress();
            let counted = record_report(&store, &mut batch, account_domain, report, sources).await.unwrap();
            if counted {
                store.commit(batch).await.unwrap();
            }
            counted
        };
        assert!(counts(&report("a", 0), &[source(1), source(2)]).await);
        assert!(!counts(&report("a", 0), &[source(1), source(2)]).await, "a repeated report");
        assert!(counts(&report("b", 0), &[source(1)]).await);
        assert!(counts(&report("c", 5), &[source(3)]).await);
        let hours = |from, to| Hour::containing(at(from)).day()..Hour::containing(at(to)).day();
        let (sources, days) = source_totals(&store, account_domain, hours(0, 9)).await.unwrap();
        let by_source: Vec<_> = sources.iter().map(|source| (source.ours, source.tally.messages)).collect();
        assert_eq!((by_source, days.len()), (vec![(true, 4), (false, 2), (false, 2)], 2));
        assert_eq!(list_reports(&store, account_domain, hours(0, 9)).await.unwrap().len(), 3);
        let many: Vec<DmarcSource> = (10..10 + 600).map(source).collect();
        assert!(counts(&report("d", 7), &many[..400]).await);
        assert!(counts(&report("e", 7), &many[200..]).await);
        let (sources, days) = source_totals(&store, account_domain, hours(7, 8)).await.unwrap();
        assert_eq!(sources.len(), SOURCES_MAX + 1, "and one row for addresses over the limit");
        assert_eq!(days.values().next().unwrap().messages, 2 * 800);
        let mut batch = Batch::progress();
        let before = Hour::containing(at(6)).day();
        assert_eq!(purge_before(&store, &mut batch, account_domain.0, before, 1_000).await.unwrap(), 6);
        store.commit(batch).await.unwrap();
        assert_eq!(list_reports(&store, account_domain, hours(0, 9)).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn concurrent_counts_of_one_report_conflict() {
        let store = Store::memory();
        let account_domain = (AccountId::new(at(0), 1), DomainId::new(at(0), 1));
        let mut batches = Vec::new();
        for _ in 0..2 {
            let mut batch = Batch::progress();
            assert!(record_report(&store, &mut batch, account_domain, &report("a", 0), &[source(1)]).await.unwrap());
            batches.push(batch);
        }
        store.commit(batches.remove(0)).await.unwrap();
        match store.commit(batches.remove(0)).await {
            Err(crate::engine::CommitError::Conflict { key }) => assert!(caused_conflict(&key)),
            other => panic!("{other:?}"),
        }
    }
}
