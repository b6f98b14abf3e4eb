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
use mail::recipient::DsnOptions;
use mail::schedule::{Schedule, ScheduleState};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
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
    notify: Vec<DsnOptions>,
}
stored!(Schedule as ScheduleRow);

/// Whose email it is about.
pub type ScheduleKey = (AccountId, EmailId);

fn key_of((account, email): ScheduleKey) -> Key {
    key(Space::Schedule).account(account).id(email.to_bytes()).build()
}

fn by_time((account, email): ScheduleKey, schedule: &Schedule) -> Key {
    key(Space::ScheduledByTime).u16(schedule.partition).time(schedule.due).account(account).id(email.to_bytes()).build()
}

/// A schedule as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchedule {
    /// The schedule.
    pub schedule: Schedule,
    row: Value,
}

/// Writes the schedule of a new email.
pub fn create(batch: &mut Batch, about: ScheduleKey, schedule: &Schedule) {
    batch.put_fresh(key_of(about), row::encode(schedule));
    batch.put(by_time(about, schedule), Value::new());
}

/// Changes a schedule; the commit conflicts when it is no more as it was read.
pub fn update(batch: &mut Batch, about: ScheduleKey, before: &StoredSchedule, after: &Schedule) {
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
pub fn delete(batch: &mut Batch, about: ScheduleKey) {
    batch.delete(key_of(about));
}

/// Whether a conflict was about a schedule.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::Schedule as u8))
}

/// The schedule of an email, if it was scheduled.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, about: ScheduleKey) -> Result<Option<StoredSchedule>, ReadError> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(StoredSchedule { schedule: row::decode(&row)?, row })).transpose()
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

/// What of a partition is due first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueSchedules {
    /// The emails that are due, in the order of time.
    pub due: Vec<ScheduleKey>,
    /// There may be more that are due.
    pub more: bool,
    /// When the next one is due, of those that are not yet.
    pub later: Option<Timestamp>,
}

/// Keys read in one look.
const LOOK: usize = 64;
/// Looks for one answer: what is passed over is seen when what is before it is gone.
const LOOKS_MAX: usize = 8;

/// The emails of a partition that are due first. Of what an account has due at one moment only so much is read,
/// as little as that may be of all it has, and then what others have due: who schedules very much for one
/// moment does not hide the others behind it.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(store: &Store, partition: u16, now: Timestamp) -> Result<DueSchedules, ReadError> {
    let range = key(Space::ScheduledByTime).u16(partition).range();
    let (mut from, mut first) = (range.start, DueSchedules::default());
    for _ in 0..LOOKS_MAX {
        let rows = store.scan(from..range.end.clone(), ScanOrder::Ascending, LOOK).await?;
        let mut last = None;
        for (at, _) in &rows {
            let (_, (due, about)) = read_key(at).map_err(row::damaged)?;
            if due > now {
                return Ok(DueSchedules { later: Some(due), ..first });
            }
            first.due.push(about);
            last = Some((due, about.0));
        }
        let Some((due, account)) = last.filter(|_| rows.len() == LOOK) else { return Ok(first) };
        first.more = true;
        // Behind all that this account has at this moment.
        from = key(Space::ScheduledByTime).u16(partition).time(due).account(account).range().end;
    }
    Ok(first)
}

/// Whether nothing is scheduled in these partitions: one look for all of them.
///
/// # Errors
/// The store cannot be read.
pub async fn has_none(store: &Store, partitions: RangeInclusive<u16>) -> Result<bool, ReadError> {
    let start = key(Space::ScheduledByTime).u16(*partitions.start()).build();
    let end = key(Space::ScheduledByTime).u16(*partitions.end()).range().end;
    Ok(store.scan(start..end, ScanOrder::Ascending, 1).await?.is_empty())
}

/// The partition; when an email is due, and which it is.
fn read_key(at: &Key) -> Result<(u16, (Timestamp, ScheduleKey)), KeyDecodeError> {
    let mut reader = KeyReader::new(Space::ScheduledByTime, at)?;
    let (partition, due) = (reader.u16()?, reader.time()?);
    Ok((partition, (due, (reader.account()?, EmailId::from_bytes(reader.id()?)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_much_due_at_one_moment_hides_nobody() {
        let (store, now) = (Store::memory(), Timestamp::from_second(1_800_000_000).unwrap());
        let later = now + std::time::Duration::from_secs(60);
        let account = |number| AccountId::new(Timestamp::UNIX_EPOCH, number);
        let mut batch = Batch::progress();
        let mut add = |number, email, due| {
            let about = (account(number), EmailId::new(Timestamp::UNIX_EPOCH, email));
            let state = ScheduleState::Waiting;
            let (partition, smtputf8, require_tls, notify) = (7, false, false, Vec::new());
            let schedule = Schedule { scheduled_at: due, state, due, partition, smtputf8, require_tls, notify };
            create(&mut batch, about, &schedule);
        };
        (0..1_000).for_each(|email| add(1, email, now));
        add(2, 1_000, now);
        add(3, 1_001, now);
        add(3, 1_002, later);
        store.commit(batch).await.unwrap();
        let first = list_due(&store, 7, now).await.unwrap();
        let of = |number| first.due.iter().filter(|about| about.0 == account(number)).count();
        assert_eq!((of(1), of(2), of(3)), (LOOK, 1, 1));
        assert_eq!((first.more, first.later), (true, Some(later)));
        assert_eq!(list_due(&store, 8, now).await.unwrap(), DueSchedules::default());
        assert_eq!(list_due(&store, 7, later).await.unwrap().due.len(), LOOK + 3);
    }
}
