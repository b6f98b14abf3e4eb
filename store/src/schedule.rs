//! Schedules: a row for each scheduled email, and a key by due time while it waits.
//!
//! ```text
//! Schedule · account · email                              ─►  the schedule
//! ScheduledByTime · partition · due · account · email     ─►  (nothing)
//! ```
//!
//! Every change checks the row as it was read: of release, reschedule and cancellation one wins.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::id::{AccountId, EmailId};
use mail::recipient::Notify;
use mail::schedule::{Schedule, ScheduleState};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyError, KeyReader, Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Schedule")]
struct ScheduleRow {
    scheduled_at: Timestamp,
    state: ScheduleState,
    due: Timestamp,
    partition: u16,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    smtputf8: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    require_tls: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notify: Vec<Notify>,
}
stored!(Schedule as ScheduleRow);

/// Whose email it is about.
pub type About = (AccountId, EmailId);

fn key_of((account, email): About) -> Key {
    key(Space::Schedule).account(account).id(email.to_bytes()).build()
}

fn by_time((account, email): About, schedule: &Schedule) -> Key {
    key(Space::ScheduledByTime)
        .u16(schedule.partition)
        .time(schedule.due)
        .account(account)
        .id(email.to_bytes())
        .build()
}

/// A schedule as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The schedule.
    pub schedule: Schedule,
    row: Value,
}

/// Writes the schedule of a new email.
pub fn create(batch: &mut Batch, about: About, schedule: &Schedule) {
    batch.put_fresh(key_of(about), row::encode(schedule));
    batch.put(by_time(about, schedule), Value::new());
}

/// Changes a schedule; the commit conflicts when it is no more as it was read.
pub fn change(batch: &mut Batch, about: About, before: &Found, after: &Schedule) {
    batch.check(key_of(about), Some(before.row.clone()));
    if before.schedule.is_open() {
        batch.delete(by_time(about, &before.schedule));
    }
    if after.is_open() {
        batch.put(by_time(about, after), Value::new());
    }
    batch.put(key_of(about), row::encode(after));
}

/// Forgets a schedule with its email.
pub fn forget(batch: &mut Batch, about: About) {
    batch.delete(key_of(about));
}

/// Whether a conflict was about a schedule.
#[must_use]
pub fn is_about_one(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::Schedule as u8))
}

/// The schedule of an email, if it was scheduled.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, about: About) -> Result<Option<Found>, ReadError> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(Found { schedule: row::decode(&row)?, row })).transpose()
}

/// The schedules of several emails of an account, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn get_many(
    store: &Store,
    account: AccountId,
    emails: &[EmailId],
) -> Result<Vec<Option<Schedule>>, ReadError> {
    let keys: Vec<Key> = emails.iter().map(|email| key_of((account, *email))).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().map(|row| row.map(|row| row::decode(&row)).transpose()).collect()
}

/// An email that is scheduled: when it is due, and which it is.
pub type Due = (Timestamp, About);

/// The emails of a partition that are due first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn first_due(store: &Store, partition: u16, limit: usize) -> Result<Vec<Due>, ReadError> {
    let range = key(Space::ScheduledByTime).u16(partition).range();
    let rows = store.scan(range, Order::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at).map(|(_, due)| due).map_err(row::damaged)).collect()
}

/// Whether nothing is scheduled in these partitions: one look for all of them.
///
/// # Errors
/// The store cannot be read.
pub async fn none_in(store: &Store, partitions: RangeInclusive<u16>) -> Result<bool, ReadError> {
    let start = key(Space::ScheduledByTime).u16(*partitions.start()).build();
    let end = key(Space::ScheduledByTime).u16(*partitions.end()).range().end;
    Ok(store.scan(start..end, Order::Ascending, 1).await?.is_empty())
}

fn read(at: &Key) -> Result<(u16, Due), KeyError> {
    let mut reader = KeyReader::new(Space::ScheduledByTime, at)?;
    let (partition, due) = (reader.u16()?, reader.time()?);
    Ok((partition, (due, (reader.account()?, EmailId::from_bytes(reader.id()?)))))
}
