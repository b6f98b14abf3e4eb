//! What others report of how TLS went with domains of ours (RFC 8460): a row for each report and domain.
//!
//! ```text
//! TlsHeard · day · domain · reporter · report id  ─►  what it says
//! ```

use std::ops::Range;

use jiff::Timestamp;
use mail::address::DomainName;
use mail::tls_report::{Day, ReceivedPolicyCounts, ReceivedTlsReport};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::row::{self, stored};

/// Reports about a domain that are kept of a day.
const REPORTS_MAX: usize = 100;

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReceivedTlsReport")]
struct TlsReportRow {
    reporter: DomainName,
    organization: String,
    report_id: String,
    begins_at: Timestamp,
    ends_at: Timestamp,
    policies: Vec<ReceivedPolicyCounts>,
    received_at: Timestamp,
}
stored!(ReceivedTlsReport as TlsReportRow);

fn day_prefix(day: Day, domain: &DomainName) -> KeyBuilder {
    key(Space::TlsReportReceived).i64(day.0).text(domain.as_str())
}

/// Keeps a report; says whether it is to be kept: not when it is there, and not when the day has had too many. The commit
/// conflicts when somebody keeps the same one.
///
/// # Errors
/// The store cannot be read.
pub async fn save(
    store: &Store,
    batch: &mut Batch,
    domain: &DomainName,
    heard: &ReceivedTlsReport,
) -> Result<bool, ReadError> {
    let rows = day_prefix(heard.day(), domain);
    let at = rows.clone().text(heard.reporter.as_str()).text(&heard.report_id).build();
    let there = store.scan(rows.range(), ScanOrder::Ascending, REPORTS_MAX).await?;
    if there.len() >= REPORTS_MAX || there.iter().any(|(known, _)| *known == at) {
        return Ok(false);
    }
    batch.check(at.clone(), None).put(at, row::encode(heard));
    Ok(true)
}

/// What is reported of the days from one to another, that one included: of one domain, or of all; at most so many.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    (first, last): (Day, Day),
    domain: Option<&DomainName>,
    limit: usize,
) -> Result<Vec<(DomainName, ReceivedTlsReport)>, ReadError> {
    let mut found = Vec::new();
    let Some(domain) = domain else {
        let start = key(Space::TlsReportReceived).i64(first.0).build();
        let end = key(Space::TlsReportReceived).i64(last.0.saturating_add(1)).build();
        scan_reports(store, start..end, limit, &mut found).await?;
        return Ok(found);
    };
    for day in first.0..=last.0 {
        let room = limit.saturating_sub(found.len());
        scan_reports(store, day_prefix(Day(day), domain).range(), room, &mut found).await?;
    }
    Ok(found)
}

async fn scan_reports(
    store: &Store,
    range: Range<Key>,
    limit: usize,
    found: &mut Vec<(DomainName, ReceivedTlsReport)>,
) -> Result<(), ReadError> {
    for (at, row) in store.scan(range, ScanOrder::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::TlsReportReceived, &at).map_err(row::damaged)?;
        let domain = reader.i64().and_then(|_| reader.text()).map_err(row::damaged)?;
        found.push((domain.parse().map_err(row::damaged)?, row::decode(&row)?));
    }
    Ok(())
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
    let all = key(Space::TlsReportReceived).range();
    let old = all.start..key(Space::TlsReportReceived).i64(Day::containing(before).0).build();
    let rows = store.scan(old, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    rows.into_iter().for_each(|(at, _)| {
        batch.delete(at);
    });
    Ok(count)
}
