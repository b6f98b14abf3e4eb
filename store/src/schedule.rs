//! Schedules: one row for each scheduled email, and a key by due time while it is open.
//!
//! ```text
//! Schedule · account · email                              ─►  the schedule
//! ScheduledByTime · partition · due · account · email     ─►  (empty)
//! ```
//!
//! Every change checks the row as it was read: of a concurrent release, reschedule and cancellation, one succeeds.

use jiff::Timestamp;
use model::id::{AccountId, EmailId};
use model::schedule::Schedule;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::rows;

stored!(Schedule);

pub type ScheduleKey = (AccountId, EmailId);

fn key_of((account, email): ScheduleKey) -> Key {
    key(Space::Schedule).account(account).id(email.to_bytes()).build()
}

fn by_time((account, email): ScheduleKey, schedule: &Schedule) -> Key {
    key(Space::ScheduledByTime).u16(schedule.partition).time(schedule.due).account(account).id(email.to_bytes()).build()
}

/// A schedule with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchedule {
    pub schedule: Schedule,
    row: Value,
}

/// Writes the schedule of a new email.
pub fn create(batch: &mut Batch, about: ScheduleKey, schedule: &Schedule) {
    batch.put_fresh(key_of(about), codec::encode(schedule));
    batch.put(by_time(about, schedule), Value::new());
}

/// Updates a schedule. The commit conflicts if the row has changed since it was read.
pub fn update(batch: &mut Batch, about: ScheduleKey, before: &StoredSchedule, after: &Schedule) {
    batch.check(key_of(about), Some(before.row.clone()));
    if before.schedule.is_open() {
        batch.delete(by_time(about, &before.schedule));
    }
    if after.is_open() {
        batch.put(by_time(about, after), Value::new());
    }
    batch.put(key_of(about), codec::encode(after));
}

/// Deletes the schedule of a deleted email.
pub fn delete(batch: &mut Batch, about: ScheduleKey) {
    batch.delete(key_of(about));
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::Schedule.holds(conflict)
}

/// Reads the schedule of an email, if it was scheduled.
pub async fn get(store: &Store, about: ScheduleKey) -> Result<Option<StoredSchedule>> {
    let row = store.get(&key_of(about)).await?;
    row.map(|row| Ok(StoredSchedule { schedule: codec::decode(&row)?, row })).transpose()
}

/// Reads the schedules of several emails of an account, in the order of `emails`.
pub async fn get_many(store: &Store, account: AccountId, emails: &[EmailId]) -> Result<Vec<Option<Schedule>>> {
    let keys: Vec<Key> = emails.iter().map(|email| key_of((account, *email))).collect();
    rows::get_each(store, &keys).await
}

/// The schedules of a partition that are due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueSchedules {
    /// Due emails, ordered by time.
    pub due: Vec<ScheduleKey>,
    /// True if there may be more due emails.
    pub has_more: bool,
    /// The next due time in the future, if known.
    pub later: Option<Timestamp>,
}

/// Keys per read.
const LOOK: usize = 64;
/// Maximum number of reads per call. Emails that were skipped are found once those before them are released.
const LOOKS_MAX: usize = 8;

/// Lists emails of a partition that are due, at most [`LOOKS_MAX`] reads. After each full read it skips the rest of
/// what the last account has due at that time. An account that schedules very many emails for one moment therefore
/// cannot starve others.
pub async fn list_due(store: &Store, partition: u16, now: Timestamp) -> Result<DueSchedules> {
    let range = key(Space::ScheduledByTime).u16(partition).range();
    let (mut from, mut first) = (range.start, DueSchedules::default());
    for _ in 0..LOOKS_MAX {
        let rows = store.scan(from..range.end.clone(), ScanOrder::Ascending, LOOK).await?;
        let mut last = None;
        for (at, _) in &rows {
            let (due, about) = read_key(at)?;
            if due > now {
                return Ok(DueSchedules { later: Some(due), ..first });
            }
            first.due.push(about);
            last = Some((due, about.0));
        }
        let Some((due, account)) = last.filter(|_| rows.len() == LOOK) else { return Ok(first) };
        first.has_more = true;
        // Skip everything that this account has due at this time.
        from = key(Space::ScheduledByTime).u16(partition).time(due).account(account).range().end;
    }
    Ok(first)
}

/// Due time, account and email of a key.
fn read_key(at: &Key) -> Result<(Timestamp, ScheduleKey), KeyDecodeError> {
    let mut reader = KeyReader::new(Space::ScheduledByTime, at)?;
    reader.u16()?;
    Ok((reader.time()?, (reader.account()?, EmailId::from_bytes(reader.id()?))))
}

#[cfg(test)]
mod tests {
    use model::schedule::ScheduleState;

    use super::*;

    #[tokio::test]
    async fn an_account_with_many_due_emails_does_not_starve_others() {
        let (store, now) = (Store::memory(), Timestamp::from_second(1_800_000_000).unwrap());
        let later = now + std::time::Duration::from_secs(60);
        let account = |number| AccountId::new(Timestamp::UNIX_EPOCH, number);
        let mut batch = Batch::progress();
        let mut add = |number, email, due| {
            let about = (account(number), EmailId::new(Timestamp::UNIX_EPOCH, email));
            let state = ScheduleState::Waiting;
            let (partition, smtputf8, require_tls, notify) = (7, false, false, Vec::new());
            let fails_suppressed = false;
            let schedule =
                Schedule { scheduled_at: due, state, due, partition, smtputf8, require_tls, fails_suppressed, notify };
            create(&mut batch, about, &schedule);
        };
        (0..1_000).for_each(|email| add(1, email, now));
        add(2, 1_000, now);
        add(3, 1_001, now);
        add(3, 1_002, later);
        store.commit(batch).await.unwrap();
        let first = list_due(&store, 7, now).await.unwrap();
        let due_of = |number| first.due.iter().filter(|about| about.0 == account(number)).count();
        assert_eq!((due_of(1), due_of(2), due_of(3)), (LOOK, 1, 1));
        assert_eq!((first.has_more, first.later), (true, Some(later)));
        assert_eq!(list_due(&store, 8, now).await.unwrap(), DueSchedules::default());
        assert_eq!(list_due(&store, 7, later).await.unwrap().due.len(), LOOK + 3);
    }
}
