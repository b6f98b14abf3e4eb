//! Background import of suppression lists, in batches. Each commit includes the position in the list, so that a restart
//! continues after the last batch.
//!
//! Accounts take turns in the order of their ids: some batches of an account's oldest list, then the next account's. So
//! a small list waits for one turn of every other account, not for their whole lists.
//!
//! One node imports: the owner of the first partition. If two do so for a moment, commits of the second conflict, and
//! it stops.

pub mod forecast;

use std::sync::Arc;
use std::time::Duration;

use model::csv::{CsvReader, CsvRecord};
use model::id::{AccountId, ImportId};
use model::import::{ERRORS_MAX, ImportColumns, ImportLineError, ImportStatus, SuppressionImport};
use model::quota::Noun;
use model::suppression::SuppressionCause;
use queue::intake::storage_quota::{StorageQuotaTracker, StorageReservation};
use queue::services::Services;
use store::engine::{CommitError, ReadError, StoreError};
use store::suppression_import::StoredImport;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::suppressions::{SuppressionResult, SuppressionService};

/// Records in one commit.
const BATCH_RECORDS: usize = 500;
/// Batches in one turn. Each turn reads the list from disk, up to 16 MB: a turn of some thousand records is worth it,
/// and takes about a second.
const TURN_BATCHES: usize = 16;
/// Interval of looking for imports that another node took over or that failed.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Imports uploaded suppression lists.
pub struct SuppressionImporter {
    services: Services,
    suppressions: SuppressionService,
    quotas: Arc<StorageQuotaTracker>,
    wakeup: Notify,
}

impl SuppressionImporter {
    pub(crate) fn new(services: Services, quotas: Arc<StorageQuotaTracker>) -> Self {
        Self { suppressions: SuppressionService::new(&services), services, quotas, wakeup: Notify::new() }
    }

    /// Wakes the import: a list was uploaded.
    pub fn wake(&self) {
        self.wakeup.notify_one();
    }

    /// Imports uploaded lists until shutdown.
    pub async fn run(self: Arc<Self>) {
        let Services { store, leases, stop, .. } = &self.services;
        loop {
            if leases.is_active(0)
                && let Err(error) = process_open_imports(&self.suppressions, Some(&self.quotas), stop).await
            {
                store::warn_unless_away!(store, %error, "cannot import suppressions; retrying in {POLL_INTERVAL:?}");
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.wakeup.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }
}

/// Processes all unfinished imports until `stop`; accounts take turns.
pub async fn process_open_imports(
    contacts: &SuppressionService,
    quotas: Option<&Arc<StorageQuotaTracker>>,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let mut last = None;
    // Whether this round made progress; another node's imports are left to it.
    let mut any = false;
    while !stop.is_cancelled() {
        match store::suppression_import::next_open(&contacts.store, last).await? {
            Some((account, id)) => {
                any |= process_turn(contacts, quotas, account, id, stop).await?;
                last = Some(account);
            }
            None if !any => return Ok(()),
            None => (last, any) = (None, false),
        }
    }
    Ok(())
}

/// Processes a list for one turn, or to its end while no other account waits. Returns false if nothing could be done.
async fn process_turn(
    contacts: &SuppressionService,
    quotas: Option<&Arc<StorageQuotaTracker>>,
    account: AccountId,
    id: ImportId,
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let list = match store::suppression_import::get_list(&contacts.store, account, id).await {
        // A corrupt list blocks no other account.
        Err(ReadError::Corrupt(_)) => None,
        list => list?,
    };
    let text = list.as_deref().and_then(|list| std::str::from_utf8(list).ok());
    let columns = text.and_then(|text| ImportColumns::detect(text).ok());
    let mut slices = 0;
    while !stop.is_cancelled() {
        if slices >= TURN_BATCHES
            && slices.is_multiple_of(TURN_BATCHES)
            && other_accounts_wait(contacts, account).await?
        {
            return Ok(true);
        }
        let found = match store::suppression_import::get(&contacts.store, account, id).await {
            Err(ReadError::Corrupt(error)) => {
                tracing::error!(import.id = %id, %error, "corrupt suppression import; skipped");
                return Ok(slices > 0);
            }
            found => found?,
        };
        let is_over =
            |import: &SuppressionImport| matches!(import.status, ImportStatus::Completed | ImportStatus::Failed);
        let Some(found) = found.filter(|found| !is_over(&found.import)) else { return Ok(slices > 0) };
        let slice = match (text, &columns) {
            (Some(text), Some(columns)) => ImportBatch::parse(text, columns, &found.import, contacts),
            // The list was valid when it was uploaded, so its stored bytes are lost.
            _ => ImportBatch::failed(&found.import),
        };
        let is_last = is_over(&slice.after);
        match slice.commit(contacts, quotas, &found).await {
            Ok(()) if is_last => return Ok(true),
            Ok(()) => slices += 1,
            Err(StoreError::Commit(CommitError::Conflict { key }))
                if store::suppression_import::caused_conflict(&key) =>
            {
                tracing::info!(import.id = %id, "another node processes this import");
                return Ok(slices > 0);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn other_accounts_wait(contacts: &SuppressionService, account: AccountId) -> Result<bool, ReadError> {
    let (first, next) = tokio::try_join!(
        store::suppression_import::next_open(&contacts.store, None),
        store::suppression_import::next_open(&contacts.store, Some(account)),
    )?;
    Ok(next.is_some() || first.is_some_and(|(first, _)| first != account))
}

/// The next parsed records of a list.
struct ImportBatch {
    after: SuppressionImport,
    grounds: Vec<SuppressionCause>,
}

impl ImportBatch {
    fn parse(text: &str, columns: &ImportColumns, before: &SuppressionImport, contacts: &SuppressionService) -> Self {
        let now = contacts.clock.now();
        let at = usize::try_from(before.place.0).unwrap_or(usize::MAX);
        let mut records = CsvReader::resume(text, at, before.place.1);
        if at == 0 && columns.has_header {
            let _names = records.next();
        }
        let mut after = SuppressionImport { status: ImportStatus::Running, ..before.clone() };
        let mut grounds = Vec::with_capacity(BATCH_RECORDS);
        let slice: Vec<CsvRecord> = records.by_ref().take(BATCH_RECORDS).collect();
        after.counts.processed += slice.len() as u64;
        for record in &slice {
            match columns.parse_record(record, now) {
                Ok(row) => grounds.push(row),
                Err(message) => {
                    after.counts.invalid += 1;
                    if after.errors.len() < ERRORS_MAX {
                        after.errors.push(ImportLineError { line: record.line, message });
                    }
                }
            }
        }
        let (at, line) = records.position();
        after.place = (at as u64, line);
        if slice.len() < BATCH_RECORDS {
            after.status = ImportStatus::Completed;
            after.completed_at = Some(now);
        }
        Self { after, grounds }
    }

    fn failed(before: &SuppressionImport) -> Self {
        Self { after: SuppressionImport { status: ImportStatus::Failed, ..before.clone() }, grounds: Vec::new() }
    }

    /// Reserves storage for the suppressions that the batch adds. Drops and counts those beyond the plan's limit.
    /// Addresses that are suppressed already need no storage.
    async fn reserve(
        &mut self,
        contacts: &SuppressionService,
        quotas: &Arc<StorageQuotaTracker>,
    ) -> Result<Option<StorageReservation>, StoreError> {
        let Some(account) = store::account::get(&contacts.store, self.after.account).await? else {
            return Ok(None);
        };
        let mut adds = contacts.would_add(account.id, &self.grounds).await?.into_iter();
        let wanted = adds.clone().filter(|adds| *adds).count() as u64;
        let reserved = quotas.reserve_up_to(&account, Noun::Suppressions, wanted, self.after.created_at).await?;
        let (before, mut remaining) = (self.grounds.len(), reserved.amount());
        self.grounds.retain(|_| match adds.next() {
            Some(true) => remaining.checked_sub(1).map(|left| remaining = left).is_some(),
            _ => true,
        });
        let refused = (before - self.grounds.len()) as u64;
        if refused > 0 {
            if self.after.counts.refused == 0 && self.after.errors.len() < ERRORS_MAX {
                let cap = quotas.cap(&account, Noun::Suppressions).unwrap_or_default();
                let message = format!(
                    "your plan includes {cap} suppressions, so the rest of the list was skipped; delete some or \
                     upgrade, then import the list again"
                );
                self.after.errors.push(ImportLineError { line: self.after.place.1, message });
            }
            self.after.counts.refused += refused;
        }
        Ok(Some(reserved))
    }

    async fn commit(
        mut self,
        contacts: &SuppressionService,
        quotas: Option<&Arc<StorageQuotaTracker>>,
        found: &StoredImport,
    ) -> Result<(), StoreError> {
        let reserved = match quotas {
            Some(quotas) => self.reserve(contacts, quotas).await?,
            None => None,
        };
        let Self { after, grounds } = self;
        let extend = |outcomes: &[SuppressionResult], batch: &mut store::engine::Batch| {
            let mut after = after.clone();
            let created = outcomes.iter().filter(|outcome| outcome.is_new).count();
            after.counts.created += created as u64;
            after.counts.exists += (outcomes.len() - created) as u64;
            store::suppression_import::update(batch, found, &after);
        };
        let outcomes = contacts.suppress(after.account, &grounds, &extend).await?;
        if let Some(reserved) = reserved {
            reserved.confirm_part(outcomes.iter().filter(|outcome| outcome.before.is_none()).count() as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::import::ImportCounts;
    use store::engine::{Batch, Body};

    fn import(total: u64) -> SuppressionImport {
        SuppressionImport {
            id: ImportId::new(Timestamp::UNIX_EPOCH, 1),
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            status: ImportStatus::Queued,
            counts: ImportCounts { total, ..ImportCounts::default() },
            place: (0, 1),
            errors: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            completed_at: None,
        }
    }

    #[tokio::test]
    async fn an_import_continues_after_its_last_batch() {
        let contacts = SuppressionService::in_memory();
        let mut text = "email,reason\r\n".to_owned();
        for n in 0..1_234 {
            text.push_str(&format!("a{}@example.net,{}\r\n", n % 1_200, if n % 2 == 0 { "bounce" } else { "?" }));
        }
        text.push_str("nobody,\r\n");
        let submitted = import(1_235);
        let mut batch = Batch::intake();
        store::suppression_import::create(&mut batch, &submitted, Body::from(text.clone().into_bytes()));
        contacts.store.commit(batch).await.unwrap();
        // One batch, then a crash; the next run processes the rest.
        let get = async || {
            store::suppression_import::get(&contacts.store, submitted.account, submitted.id).await.unwrap().unwrap()
        };
        let columns = ImportColumns::detect(&text).unwrap();
        let found = get().await;
        ImportBatch::parse(&text, &columns, &found.import, &contacts).commit(&contacts, None, &found).await.unwrap();
        assert_eq!(get().await.import.status, ImportStatus::Running);
        let repeated =
            ImportBatch::parse(&text, &columns, &found.import, &contacts).commit(&contacts, None, &found).await;
        assert!(repeated.is_err(), "a slice is booked once");
        process_open_imports(&contacts, None, &CancellationToken::new()).await.unwrap();
        let SuppressionImport { status, counts, errors, completed_at, .. } = get().await.import;
        assert_eq!(status, ImportStatus::Completed);
        assert_eq!(
            counts,
            ImportCounts { total: 1_235, processed: 1_235, created: 1_200, exists: 34, invalid: 1, refused: 0 }
        );
        assert_eq!((errors.len(), errors[0].line), (1, 1_236));
        assert!(completed_at.is_some());
        assert!(store::suppression_import::list_open(&contacts.store, None, 1).await.unwrap().is_empty());
    }
    #[tokio::test]
    async fn a_small_import_does_not_wait_for_another_accounts_large_ones() {
        let contacts = SuppressionService::in_memory();
        let total = |turn_count: usize| turn_count * TURN_BATCHES * BATCH_RECORDS;
        let submit = async |account: u128, n: u128, records: usize| {
            let submitted = SuppressionImport {
                id: ImportId::new(Timestamp::UNIX_EPOCH, n),
                account: AccountId::new(Timestamp::UNIX_EPOCH, account),
                ..import(records as u64)
            };
            let mut list = "email\r\n".to_owned();
            (0..records).for_each(|n| list.push_str(&format!("a{n}@example.net\r\n")));
            let mut batch = Batch::intake();
            store::suppression_import::create(&mut batch, &submitted, Body::from(list.into_bytes()));
            contacts.store.commit(batch).await.unwrap();
            (submitted.account, submitted.id)
        };
        let (large, further) = (submit(1, 1, total(2) + 1).await, submit(1, 2, 1).await);
        let small = submit(2, 3, 10).await;
        let status = async |(account, id)| {
            store::suppression_import::get(&contacts.store, account, id).await.unwrap().unwrap().import
        };
        let stop = CancellationToken::new();
        let turn = async |(account, id)| process_turn(&contacts, None, account, id, &stop).await.unwrap();
        assert!(turn(large).await);
        let import = status(large).await;
        assert_eq!((import.status, import.counts.processed), (ImportStatus::Running, total(1) as u64));
        assert_eq!(store::suppression_import::next_open(&contacts.store, Some(large.0)).await.unwrap(), Some(small));
        assert!(turn(small).await);
        assert_eq!(status(small).await.status, ImportStatus::Completed);
        // No other account waits: continue to the end of this list.
        assert!(turn(large).await);
        assert_eq!(status(large).await.counts.processed, (total(2) + 1) as u64);
        assert_eq!(status(further).await.status, ImportStatus::Queued);
        assert!(!turn(large).await, "it is done");
        process_open_imports(&contacts, None, &stop).await.unwrap();
        assert_eq!(status(further).await.status, ImportStatus::Completed);
    }
}
