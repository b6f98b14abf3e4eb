//! Imports of suppressions: read in the background, a slice at a time, each with the note of how far it is
//! in its own commit, so that a restart goes on where the last slice ended.
//!
//! Accounts take turns: of each, in the order of their ids, the oldest list is read for some slices, and then
//! it is the next one's turn. So a small list waits for one turn of every other account, not for all that
//! others have handed in.
//!
//! Of several nodes one reads, the owner of the first partition; should two do so for a moment, the commits
//! tell the second, which leaves it.

use std::sync::Arc;
use std::time::Duration;

use mail::csv::{Record, Records};
use mail::id::{AccountId, ImportId};
use mail::import::{BadLine, Columns, ERRORS_MAX, Import, ImportStatus};
use mail::quota::Noun;
use mail::suppression::Grounds;
use store::engine::{CommitError, ReadError};
use store::import::Found;
use tokio_util::sync::CancellationToken;

use crate::contacts::{Contacts, ContactsError, Suppressed};
use crate::quota::{Quotas, Reserved};
use crate::worker::Worker;

/// Records of one commit.
const SLICE_RECORDS: usize = 500;
/// Slices of one turn. The list is read from disk for each turn, up to 16 MB: some thousands of records are worth
/// that, and take a second or so.
const TURN_SLICES: usize = 16;
/// How soon is looked for imports that another node took, or that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Worker {
    /// Keeps reading lists that are handed in until the worker stops.
    pub(crate) async fn import_lists(self: Arc<Self>) {
        let contacts = self.contacts();
        loop {
            if self.leases.is_active(0)
                && let Err(error) = read_open(&contacts, self.quotas.get(), &self.stop).await
            {
                store::warn_unless_away!(self.store, %error, "importing suppressions; trying again in {LOOK_AGAIN:?}");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = self.list_handed_in.notified() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// What changes what is known of addresses.
    pub(crate) fn contacts(&self) -> Contacts {
        Contacts { store: self.store.clone(), clock: self.clock.clone(), entropy: self.entropy.clone() }
    }
}

/// Reads all lists that are not done, to their ends or until `stop`; accounts take turns.
///
/// # Errors
/// The store cannot be read or written.
pub async fn read_open(
    contacts: &Contacts,
    quotas: Option<&Arc<Quotas>>,
    stop: &CancellationToken,
) -> Result<(), ContactsError> {
    let mut last = None;
    // Whether anything was done since the round began: what another node reads is left to it.
    let mut any = false;
    while !stop.is_cancelled() {
        match store::import::next_open(&contacts.store, last).await? {
            Some(next) => {
                any |= take_turn(contacts, quotas, next, stop).await?;
                last = Some(next.0);
            }
            None if !any => return Ok(()),
            None => (last, any) = (None, false),
        }
    }
    Ok(())
}

/// Reads on in a list for one turn, and on to its end while no other account waits. False when nothing could
/// be done.
async fn take_turn(
    contacts: &Contacts,
    quotas: Option<&Arc<Quotas>>,
    (account, id): (AccountId, ImportId),
    stop: &CancellationToken,
) -> Result<bool, ContactsError> {
    let list = match store::import::list_of(&contacts.store, account, id).await {
        // Nobody else waits for what cannot be read.
        Err(ReadError::Corrupt(_)) => None,
        list => list?,
    };
    let text = list.as_deref().and_then(|list| std::str::from_utf8(list).ok());
    let columns = text.and_then(|text| Columns::find(text).ok());
    let mut slices = 0;
    while !stop.is_cancelled() {
        if slices >= TURN_SLICES
            && slices.is_multiple_of(TURN_SLICES)
            && others_wait(contacts, account).await?
        {
            return Ok(true);
        }
        let found = match store::import::get(&contacts.store, account, id).await {
            Err(ReadError::Corrupt(error)) => {
                tracing::error!(import.id = %id, %error, "an import cannot be read; it is passed over");
                return Ok(slices > 0);
            }
            found => found?,
        };
        let is_over =
            |import: &Import| matches!(import.status, ImportStatus::Completed | ImportStatus::Failed);
        let Some(found) = found.filter(|found| !is_over(&found.import)) else { return Ok(slices > 0) };
        let slice = match (text, &columns) {
            (Some(text), Some(columns)) => Slice::cut(text, columns, &found.import, contacts),
            // It was looked at when it was handed in: its bytes are lost.
            _ => Slice::lost(&found.import),
        };
        let is_last = is_over(&slice.after);
        match slice.book(contacts, quotas, &found).await {
            Ok(()) if is_last => return Ok(true),
            Ok(()) => slices += 1,
            Err(ContactsError::Commit(CommitError::Conflict { key }))
                if store::import::is_about_one(&key) =>
            {
                tracing::info!(import.id = %id, "another node reads this list");
                return Ok(slices > 0);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn others_wait(contacts: &Contacts, account: AccountId) -> Result<bool, ReadError> {
    let (first, next) = tokio::try_join!(
        store::import::next_open(&contacts.store, None),
        store::import::next_open(&contacts.store, Some(account)),
    )?;
    Ok(next.is_some() || first.is_some_and(|(first, _)| first != account))
}

/// The next records of a list, read.
struct Slice {
    after: Import,
    grounds: Vec<Grounds>,
}

impl Slice {
    fn cut(text: &str, columns: &Columns, before: &Import, contacts: &Contacts) -> Self {
        let now = contacts.clock.now();
        let at = usize::try_from(before.place.0).unwrap_or(usize::MAX);
        let mut records = Records::resume(text, (at, before.place.1));
        if at == 0 && columns.has_header {
            let _names = records.next();
        }
        let mut after = Import { status: ImportStatus::Running, ..before.clone() };
        let mut grounds = Vec::with_capacity(SLICE_RECORDS);
        let slice: Vec<Record> = records.by_ref().take(SLICE_RECORDS).collect();
        after.counts.processed += slice.len() as u64;
        for record in &slice {
            match columns.read(record, now) {
                Ok(one) => grounds.push(one),
                Err(message) => {
                    after.counts.invalid += 1;
                    if after.errors.len() < ERRORS_MAX {
                        after.errors.push(BadLine { line: record.line, message });
                    }
                }
            }
        }
        let (at, line) = records.place();
        after.place = (at as u64, line);
        if slice.len() < SLICE_RECORDS {
            after.status = ImportStatus::Completed;
            after.completed_at = Some(now);
        }
        Self { after, grounds }
    }

    fn lost(before: &Import) -> Self {
        Self { after: Import { status: ImportStatus::Failed, ..before.clone() }, grounds: Vec::new() }
    }

    /// Reserves room for what it adds; what there is no room for is left out, and counted. Addresses that are
    /// suppressed already need none.
    async fn reserve(
        &mut self,
        contacts: &Contacts,
        quotas: &Arc<Quotas>,
    ) -> Result<Option<Reserved>, ContactsError> {
        let Some(account) = store::account::get(&contacts.store, self.after.account).await? else {
            return Ok(None);
        };
        let mut adds = contacts.adds(account.id, &self.grounds).await?.into_iter();
        let asked = adds.clone().filter(|adds| *adds).count() as u64;
        let asked = (asked, self.after.created_at);
        let reserved = quotas.reserve_up_to(&account, Noun::Suppressions, asked).await?;
        let (before, mut room) = (self.grounds.len(), reserved.amount());
        self.grounds.retain(|_| match adds.next() {
            Some(true) => room.checked_sub(1).map(|left| room = left).is_some(),
            _ => true,
        });
        let refused = (before - self.grounds.len()) as u64;
        if refused > 0 {
            if self.after.counts.refused == 0 && self.after.errors.len() < ERRORS_MAX {
                let cap = quotas.cap(&account, Noun::Suppressions).unwrap_or_default();
                let message = format!(
                    "the plan includes {cap} suppressions: the rest of the list is refused; delete some, or take a \
                     larger plan, and import it again"
                );
                self.after.errors.push(BadLine { line: self.after.place.1, message });
            }
            self.after.counts.refused += refused;
        }
        Ok(Some(reserved))
    }

    async fn book(
        mut self,
        contacts: &Contacts,
        quotas: Option<&Arc<Quotas>>,
        found: &Found,
    ) -> Result<(), ContactsError> {
        let reserved = match quotas {
            Some(quotas) => self.reserve(contacts, quotas).await?,
            None => None,
        };
        let Self { after, grounds } = self;
        let also = |outcomes: &[Suppressed], batch: &mut store::engine::Batch| {
            let mut after = after.clone();
            let created = outcomes.iter().filter(|outcome| outcome.is_new).count();
            after.counts.created += created as u64;
            after.counts.exists += (outcomes.len() - created) as u64;
            store::import::update(batch, found, &after);
        };
        let outcomes = contacts.suppress(after.account, &grounds, &also).await?;
        if let Some(reserved) = reserved {
            reserved.keep_part(outcomes.iter().filter(|outcome| outcome.before.is_none()).count() as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::entropy::Entropy;
    use jiff::Timestamp;
    use mail::import::Counts;
    use store::engine::{Batch, Body, Store};

    fn import(total: u64) -> Import {
        Import {
            id: ImportId::new(Timestamp::UNIX_EPOCH, 1),
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            status: ImportStatus::Queued,
            counts: Counts { total, ..Counts::default() },
            place: (0, 1),
            errors: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            completed_at: None,
        }
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end_from_wherever_it_was_left() {
        let contacts =
            Contacts { store: Store::memory(), clock: Clock::default(), entropy: Entropy::default() };
        let mut text = "email,reason\r\n".to_owned();
        for n in 0..1_234 {
            text.push_str(&format!(
                "a{}@example.net,{}\r\n",
                n % 1_200,
                if n % 2 == 0 { "bounce" } else { "?" }
            ));
        }
        text.push_str("nobody,\r\n");
        let handed_in = import(1_235);
        let mut batch = Batch::intake();
        store::import::create(&mut batch, &handed_in, Body::from(text.clone().into_bytes()));
        contacts.store.commit(batch).await.unwrap();
        // A slice, then the process dies; the next one reads the rest.
        let get = async || {
            store::import::get(&contacts.store, handed_in.account, handed_in.id).await.unwrap().unwrap()
        };
        let columns = Columns::find(&text).unwrap();
        let found = get().await;
        Slice::cut(&text, &columns, &found.import, &contacts).book(&contacts, None, &found).await.unwrap();
        assert_eq!(get().await.import.status, ImportStatus::Running);
        let again = Slice::cut(&text, &columns, &found.import, &contacts).book(&contacts, None, &found).await;
        assert!(again.is_err(), "a slice is booked once");
        read_open(&contacts, None, &CancellationToken::new()).await.unwrap();
        let Import { status, counts, errors, completed_at, .. } = get().await.import;
        assert_eq!(status, ImportStatus::Completed);
        assert_eq!(
            counts,
            Counts { total: 1_235, processed: 1_235, created: 1_200, exists: 34, invalid: 1, refused: 0 }
        );
        assert_eq!((errors.len(), errors[0].line), (1, 1_236));
        assert!(completed_at.is_some());
        assert!(store::import::open(&contacts.store, None, 1).await.unwrap().is_empty());
    }
    #[tokio::test]
    async fn a_small_list_does_not_wait_for_the_large_ones_of_another_account() {
        let contacts =
            Contacts { store: Store::memory(), clock: Clock::default(), entropy: Entropy::default() };
        let total = |turns: usize| turns * TURN_SLICES * SLICE_RECORDS;
        let hand_in = async |account: u128, n: u128, records: usize| {
            let handed_in = Import {
                id: ImportId::new(Timestamp::UNIX_EPOCH, n),
                account: AccountId::new(Timestamp::UNIX_EPOCH, account),
                ..import(records as u64)
            };
            let mut list = "email\r\n".to_owned();
            (0..records).for_each(|n| list.push_str(&format!("a{n}@example.net\r\n")));
            let mut batch = Batch::intake();
            store::import::create(&mut batch, &handed_in, Body::from(list.into_bytes()));
            contacts.store.commit(batch).await.unwrap();
            (handed_in.account, handed_in.id)
        };
        let (large, further) = (hand_in(1, 1, total(2) + 1).await, hand_in(1, 2, 1).await);
        let small = hand_in(2, 3, 10).await;
        let status = async |(account, id)| {
            store::import::get(&contacts.store, account, id).await.unwrap().unwrap().import
        };
        let go_on = CancellationToken::new();
        assert!(take_turn(&contacts, None, large, &go_on).await.unwrap());
        let import = status(large).await;
        assert_eq!((import.status, import.counts.processed), (ImportStatus::Running, total(1) as u64));
        assert_eq!(store::import::next_open(&contacts.store, Some(large.0)).await.unwrap(), Some(small));
        assert!(take_turn(&contacts, None, small, &go_on).await.unwrap());
        assert_eq!(status(small).await.status, ImportStatus::Completed);
        // Nobody else waits any more: on to the end, and then the next one.
        assert!(take_turn(&contacts, None, large, &go_on).await.unwrap());
        assert_eq!(status(large).await.counts.processed, (total(2) + 1) as u64);
        assert_eq!(status(further).await.status, ImportStatus::Queued);
        assert!(!take_turn(&contacts, None, large, &go_on).await.unwrap(), "it is done");
        read_open(&contacts, None, &go_on).await.unwrap();
        assert_eq!(status(further).await.status, ImportStatus::Completed);
    }
}
