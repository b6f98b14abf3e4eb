//! TLS reports received from others about our domains (RFC 8460): one row for each report and domain.
//!
//! ```text
//! TlsReportReceived · day · domain · reporter · report id  ─►  the report
//! ```

use std::ops::Range;

use jiff::Timestamp;
use message::address::DomainName;
use message::tls_report::{Day, ReceivedTlsReport};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows;

/// Maximum number of reports stored for a domain and day.
const REPORTS_MAX: usize = 100;

stored!(ReceivedTlsReport);

fn day_prefix(day: Day, domain: &DomainName) -> KeyBuilder {
    key(Space::TlsReportReceived).i64(day.0).text(domain.as_str())
}

/// Stores a report. Returns false if it is stored already or if the day has reached its maximum. The commit conflicts
/// if the same report is stored concurrently.
pub async fn save(store: &Store, batch: &mut Batch, domain: &DomainName, report: &ReceivedTlsReport) -> Result<bool> {
    let rows = day_prefix(report.day(), domain);
    let at = rows.clone().text(report.reporter.as_str()).text(&report.report_id).build();
    let existing = store.scan(rows.range(), ScanOrder::Ascending, REPORTS_MAX).await?;
    if existing.len() >= REPORTS_MAX || existing.iter().any(|(known, _)| *known == at) {
        return Ok(false);
    }
    batch.replace(at, None, codec::encode(report));
    Ok(true)
}

/// Lists the reports of a range of days, inclusive, of one domain or of all, at most `limit`.
pub async fn list(
    store: &Store,
    first: Day,
    last: Day,
    domain: Option<&DomainName>,
    limit: usize,
) -> Result<Vec<(DomainName, ReceivedTlsReport)>> {
    let mut found = Vec::new();
    let Some(domain) = domain else {
        let start = key(Space::TlsReportReceived).i64(first.0).build();
        let end = key(Space::TlsReportReceived).i64(last.0.saturating_add(1)).build();
        scan_reports(store, start..end, limit, &mut found).await?;
        return Ok(found);
    };
    for day in first.0..=last.0 {
        let remaining = limit.saturating_sub(found.len());
        scan_reports(store, day_prefix(Day(day), domain).range(), remaining, &mut found).await?;
    }
    Ok(found)
}

async fn scan_reports(
    store: &Store,
    range: Range<Key>,
    limit: usize,
    found: &mut Vec<(DomainName, ReceivedTlsReport)>,
) -> Result<()> {
    for (at, row) in store.scan(range, ScanOrder::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::TlsReportReceived, &at)?;
        let domain = reader.i64().and_then(|_| reader.text())?;
        found.push((domain.parse().map_err(codec::damaged)?, codec::decode(&row)?));
    }
    Ok(())
}

/// Deletes days before a time, at most `limit` rows. Returns their number.
pub async fn purge_before(store: &Store, batch: &mut Batch, before: Timestamp, limit: usize) -> Result<usize> {
    let all = key(Space::TlsReportReceived).range();
    let old = all.start..key(Space::TlsReportReceived).i64(Day::containing(before).0).build();
    rows::delete_range(store, batch, old, limit).await
}
