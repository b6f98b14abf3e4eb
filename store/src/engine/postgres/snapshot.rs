//! Reads the whole database page by page from one snapshot, for backups and copies.
//!
//! Each of the two scans has its own connection and transaction on one exported snapshot, and pages by key, so that all
//! pages cost the same. Pages of bodies are small, because bodies may be large.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio_postgres::Client;

use super::connection::connect;
use super::url::{ConnectionTarget, reason};
use crate::engine::redb::backup::RowIterator;
use crate::engine::{Key, ReadError};
use crate::key::successor;

const ROWS_PAGE: i64 = 5_000;
const BODIES_PAGE: i64 = 32;
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

fn unavailable(error: tokio_postgres::Error) -> ReadError {
    ReadError::Away(reason(&error).into())
}

/// Reads all rows and all bodies. The iterators must be used on a blocking thread.
pub(crate) async fn read_all(target: &ConnectionTarget) -> Result<(RowIterator, RowIterator), ReadError> {
    let rows = connect(target).await.map_err(unavailable)?;
    rows.batch_execute(BEGIN).await.map_err(unavailable)?;
    let snapshot = rows.query_one("SELECT pg_export_snapshot()", &[]).await.map_err(unavailable)?;
    let snapshot: String = snapshot.get(0);
    let bodies = connect(target).await.map_err(unavailable)?;
    bodies.batch_execute(BEGIN).await.map_err(unavailable)?;
    // The server generates the snapshot name from digits, hex digits and dashes.
    bodies.batch_execute(&format!("SET TRANSACTION SNAPSHOT '{snapshot}'")).await.map_err(unavailable)?;
    let walk = |client, table, page| {
        let query = format!("SELECT k, v FROM {table} WHERE k >= $1 ORDER BY k LIMIT $2");
        let walk = SnapshotScan {
            client,
            query,
            page,
            from: Some(Bytes::new()),
            read: VecDeque::new(),
            runtime: Handle::current(),
        };
        Box::new(walk) as RowIterator
    };
    Ok((walk(rows, "postrider_rows", ROWS_PAGE), walk(bodies, "postrider_bodies", BODIES_PAGE)))
}

struct SnapshotScan {
    client: Client,
    query: String,
    page: i64,
    /// Start of the next page; `None` after the last.
    from: Option<Key>,
    read: VecDeque<(Key, Bytes)>,
    runtime: Handle,
}

impl Iterator for SnapshotScan {
    type Item = Result<(Key, Bytes), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() {
            let from = self.from.take()?;
            let page = self.runtime.block_on(self.client.query(&self.query, &[&&from[..], &self.page]));
            match page {
                Ok(rows) => {
                    let copy = |row: &tokio_postgres::Row, n| Bytes::copy_from_slice(row.get::<_, &[u8]>(n));
                    self.read.extend(rows.iter().map(|row| (copy(row, 0), copy(row, 1))));
                    if i64::try_from(rows.len()).is_ok_and(|count| count == self.page) {
                        self.from = self.read.back().map(|(key, _)| successor(key));
                    }
                }
                Err(error) => return Some(Err(unavailable(error))),
            }
        }
        self.read.pop_front().map(Ok)
    }
}
