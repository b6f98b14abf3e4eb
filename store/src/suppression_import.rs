//! Suppression imports: one row each, the uploaded list as a body, and an index of open imports.

use model::id::{AccountId, ImportId};
use model::import::{ImportStatus, SuppressionImport};

use crate::codec::{self, stored};
use crate::engine::{Batch, Body, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::rows;

stored!(SuppressionImport);

/// An import with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImport {
    pub import: SuppressionImport,
    row: Value,
}

fn key_of(account: AccountId, id: ImportId) -> Key {
    key(Space::SuppressionImport).account(account).id(id.to_bytes()).build()
}

fn open_key(account: AccountId, id: ImportId) -> Key {
    key(Space::SuppressionImportOpen).account(account).id(id.to_bytes()).build()
}

/// Writes a new import with its list.
pub fn create(batch: &mut Batch, import: &SuppressionImport, list: Body) {
    let row_key = key_of(import.account, import.id);
    batch.put(open_key(import.account, import.id), row_key.clone());
    batch.put_body(row_key.clone(), list);
    batch.put(row_key, codec::encode(import));
}

/// Updates the progress of an import. The commit conflicts if the row has changed since it was read. The list of a
/// finished import is deleted.
pub fn update(batch: &mut Batch, before: &StoredImport, after: &SuppressionImport) {
    let row_key = key_of(after.account, after.id);
    batch.check(row_key.clone(), Some(before.row.clone()));
    if matches!(after.status, ImportStatus::Completed | ImportStatus::Failed) {
        batch.delete(open_key(after.account, after.id));
        batch.delete_body(row_key.clone());
    }
    batch.put(row_key, codec::encode(after));
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::SuppressionImport.holds(conflict)
}

pub async fn get(store: &Store, account: AccountId, id: ImportId) -> Result<Option<StoredImport>> {
    let row = store.get(&key_of(account, id)).await?;
    row.map(|row| Ok(StoredImport { import: codec::decode(&row)?, row })).transpose()
}

/// Reads the list of an open import.
pub async fn get_list(store: &Store, account: AccountId, id: ImportId) -> Result<Option<bytes::Bytes>> {
    store.body(&key_of(account, id)).await
}

/// Lists the open imports of all accounts or of one, at most `limit`.
pub async fn list_open(store: &Store, account: Option<AccountId>, limit: usize) -> Result<Vec<(AccountId, ImportId)>> {
    let all = key(Space::SuppressionImportOpen);
    let range = account.map_or_else(|| all.clone().range(), |account| all.clone().account(account).range());
    let entries = store.scan(range, ScanOrder::Ascending, limit).await?;
    entries.iter().map(|(entry, _)| read_key(entry)).collect()
}

/// Finds the oldest open import of the first account after `after` that has one.
pub async fn next_open(store: &Store, after: Option<AccountId>) -> Result<Option<(AccountId, ImportId)>> {
    let mut range = key(Space::SuppressionImportOpen).range();
    if let Some(after) = after {
        range.start = key(Space::SuppressionImportOpen).account(after).range().end;
    }
    let entries = store.scan(range, ScanOrder::Ascending, 1).await?;
    entries.first().map(|(entry, _)| read_key(entry)).transpose()
}

fn read_key(entry: &Key) -> Result<(AccountId, ImportId)> {
    let mut reader = KeyReader::new(Space::SuppressionImportOpen, entry)?;
    Ok((reader.account()?, ImportId::from_bytes(reader.id()?)))
}

/// Lists an account's imports before one, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<ImportId>,
    limit: usize,
) -> Result<Vec<SuppressionImport>> {
    let range = key(Space::SuppressionImport).account(account).range_before(before.map(ImportId::to_bytes));
    rows::scan(store, range, ScanOrder::Descending, limit).await
}

/// Deletes an account's oldest finished imports beyond the newest `kept_max`; open ones remain.
pub async fn purge_oldest(store: &Store, batch: &mut Batch, account: AccountId, kept_max: usize) -> Result<()> {
    let range = key(Space::SuppressionImport).account(account).range();
    let rows = store.scan(range, ScanOrder::Descending, 2 * kept_max).await?;
    for (row_key, row) in rows.into_iter().skip(kept_max) {
        let import: SuppressionImport = codec::decode(&row)?;
        if matches!(import.status, ImportStatus::Completed | ImportStatus::Failed) {
            batch.delete(row_key);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::import::ImportCounts;

    use super::*;

    fn import(n: u32) -> SuppressionImport {
        let at = Timestamp::from_second(1_800_000_000 + i64::from(n)).unwrap();
        SuppressionImport {
            id: ImportId::new(at, n.into()),
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            status: ImportStatus::Queued,
            counts: ImportCounts { total: 3, ..ImportCounts::default() },
            place: (0, 1),
            errors: Vec::new(),
            created_at: at,
            completed_at: None,
        }
    }

    #[tokio::test]
    async fn imports_are_open_until_finished_and_purged_when_old() {
        let store = Store::memory();
        for n in 0..5 {
            let (import, mut batch) = (import(n), Batch::intake());
            create(&mut batch, &import, Body::from(b"a@example.net".to_vec()));
            store.commit(batch).await.unwrap();
        }
        let account = import(0).account;
        assert_eq!(list_open(&store, None, 10).await.unwrap().len(), 5);
        assert_eq!(next_open(&store, None).await.unwrap(), Some((account, import(0).id)));
        assert_eq!(next_open(&store, Some(account)).await.unwrap(), None);
        let page = list(&store, account, Some(import(4).id), 2).await.unwrap();
        assert_eq!(page.iter().map(|import| import.id).collect::<Vec<_>>(), [import(3).id, import(2).id]);
        for n in 0..4 {
            let found = get(&store, account, import(n).id).await.unwrap().unwrap();
            assert!(get_list(&store, account, import(n).id).await.unwrap().is_some());
            let completed = SuppressionImport { status: ImportStatus::Completed, ..found.import.clone() };
            let mut batch = Batch::progress();
            update(&mut batch, &found, &completed);
            store.commit(batch.clone()).await.unwrap();
            assert!(store.commit(batch).await.is_err(), "the import was changed concurrently");
            assert!(get_list(&store, account, import(n).id).await.unwrap().is_none());
        }
        assert_eq!(list_open(&store, Some(account), 10).await.unwrap(), [(account, import(4).id)]);
        let mut batch = Batch::progress();
        purge_oldest(&store, &mut batch, account, 3).await.unwrap();
        store.commit(batch).await.unwrap();
        assert!(get(&store, account, import(1).id).await.unwrap().is_none());
        assert!(get(&store, account, import(2).id).await.unwrap().is_some());
    }
}
