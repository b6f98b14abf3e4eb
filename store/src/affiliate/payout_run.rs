//! Payout runs: a row each under the account; a row that says which one is being drafted, so that there is one at most;
//! and a row for each partner who is left out, and why.

use mail::affiliate::payout::{PayoutRun, SkippedPartner};
use mail::id::{AccountId, PayoutRunId};
use serde::{Deserialize as _, Serialize as _};

use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key, successor as key_after};
use crate::row::{self, stored};

stored!(PayoutRun);

stored!(SkippedPartner);

fn key_of(account: AccountId, id: PayoutRunId) -> Key {
    key(Space::PayoutRun).account(account).id(id.to_bytes()).build()
}

fn open_key(account: AccountId) -> Key {
    key(Space::OpenPayoutRun).account(account).build()
}

fn id_bytes(id: PayoutRunId) -> Vec<u8> {
    id.to_string().into_bytes()
}

/// Writes a new run that is being drafted; the commit conflicts when there is one.
pub fn create(batch: &mut Batch, run: &PayoutRun) {
    check_open(batch, run.account, None);
    batch.put(open_key(run.account), id_bytes(run.id));
    batch.put(key_of(run.account, run.id), row::encode(run));
}

/// What is committed holds only while the run is as it was read.
pub fn check_unchanged(batch: &mut Batch, run: &PayoutRun) {
    batch.check(key_of(run.account, run.id), Some(row::encode(run)));
}

/// Changes a run that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &PayoutRun, after: &PayoutRun) {
    check_unchanged(batch, before);
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// Forgets a run that was read as `before`.
pub fn delete(batch: &mut Batch, before: &PayoutRun) {
    check_unchanged(batch, before);
    batch.delete(key_of(before.account, before.id));
}

/// The run is not the one that is drafted any more: another one may be.
pub fn close(batch: &mut Batch, run: &PayoutRun) {
    check_open(batch, run.account, Some(run.id));
    batch.delete(open_key(run.account));
}

/// What is committed holds only while this one is being drafted, or none is.
pub fn check_open(batch: &mut Batch, account: AccountId, run: Option<PayoutRunId>) {
    batch.check(open_key(account), run.map(|run| id_bytes(run).into()));
}

/// A run.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: PayoutRunId) -> Result<Option<PayoutRun>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// Several runs, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn get_each(
    store: &Store,
    account: AccountId,
    ids: &[PayoutRunId],
) -> Result<Vec<Option<PayoutRun>>, ReadError> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().map(|row| row.map(|row| row::decode(&row)).transpose()).collect()
}

/// The run that is being drafted, waits for the owner's word, or was cancelled and is being taken apart.
///
/// # Errors
/// The store cannot be read.
pub async fn find_open(store: &Store, account: AccountId) -> Result<Option<PayoutRun>, ReadError> {
    let Some(row) = store.get(&open_key(account)).await? else { return Ok(None) };
    match std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok()) {
        Some(id) => get(store, account, id).await,
        None => Err(row::damaged("a run's id")),
    }
}

/// A page of an account's runs that are whole.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    wanted: ListPageRequest,
) -> Result<ListPage<PayoutRun>, ReadError> {
    let source = ListQuery { rows: Space::PayoutRun, by: Space::PayoutRun, account, values: Vec::new() };
    listing::list(store, &source, wanted, &PayoutRun::is_drafted).await
}

/// A page of all of an account's runs, whether they are whole or not.
///
/// # Errors
/// The store cannot be read.
pub async fn list_all(
    store: &Store,
    account: AccountId,
    wanted: ListPageRequest,
) -> Result<ListPage<PayoutRun>, ReadError> {
    let source = ListQuery { rows: Space::PayoutRun, by: Space::PayoutRun, account, values: Vec::new() };
    listing::list(store, &source, wanted, &|_: &PayoutRun| true).await
}

fn skipped_key(account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) -> Key {
    let at = key(Space::Skipped).account(account).id(run.to_bytes()).id(skipped.partner.to_bytes());
    at.text(skipped.currency.as_str()).text(skipped.reason.as_str()).build()
}

/// A partner is not in a run.
pub fn put_skipped(batch: &mut Batch, account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) {
    batch.put(skipped_key(account, run, skipped), row::encode(skipped));
}

/// Forgets that a partner is not in a run.
pub fn delete_skipped(batch: &mut Batch, account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) {
    batch.delete(skipped_key(account, run, skipped));
}

/// Partners who are not in a run, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_skipped(
    store: &Store,
    (account, run): (AccountId, PayoutRunId),
    after: Option<&SkippedPartner>,
    limit: usize,
) -> Result<Vec<SkippedPartner>, ReadError> {
    let mut range = key(Space::Skipped).account(account).id(run.to_bytes()).range();
    if let Some(after) = after {
        range.start = key_after(&skipped_key(account, run, after));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}
