//! Payout runs: one row each under the account, and one row for each skipped partner with the reason. Another row names
//! the open run, so that an account has at most one.

use model::affiliate::payout::{PayoutRun, SkippedPartner};
use model::id::{AccountId, PayoutRunId};

use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use crate::codec::{self, account_rows, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key, successor as key_after};
use crate::rows;

account_rows!(PayoutRun, PayoutRunId, PayoutRun, update);

stored!(SkippedPartner);

fn open_key(account: AccountId) -> Key {
    key(Space::OpenPayoutRun).account(account).build()
}

fn id_bytes(id: PayoutRunId) -> Vec<u8> {
    id.to_string().into_bytes()
}

/// Writes a new draft run. The commit conflicts if another run is open.
pub fn create(batch: &mut Batch, run: &PayoutRun) {
    check_open(batch, run.account, None);
    batch.put(open_key(run.account), id_bytes(run.id));
    batch.put(key_of(run.account, run.id), codec::encode(run));
}

/// Deletes a run that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn delete(batch: &mut Batch, before: &PayoutRun) {
    rows::delete(batch, key_of(before.account, before.id), before);
}

/// Marks the run as no longer open, so that another one can be drafted.
pub fn close(batch: &mut Batch, run: &PayoutRun) {
    check_open(batch, run.account, Some(run.id));
    batch.delete(open_key(run.account));
}

/// Makes the commit conflict unless `run` is the open run, or unless none is open if `run` is `None`.
pub fn check_open(batch: &mut Batch, account: AccountId, run: Option<PayoutRunId>) {
    batch.check(open_key(account), run.map(|run| id_bytes(run).into()));
}

/// Reads several runs, in the order of `ids`.
pub async fn get_each(store: &Store, account: AccountId, ids: &[PayoutRunId]) -> Result<Vec<Option<PayoutRun>>> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    rows::get_each(store, &keys).await
}

/// Finds the open run: it is being drafted, waits for the owner's approval, or was cancelled and is being dismantled.
pub async fn find_open(store: &Store, account: AccountId) -> Result<Option<PayoutRun>> {
    let Some(row) = store.get(&open_key(account)).await? else { return Ok(None) };
    get(store, account, rows::parse_text(&row, "an invalid payout run id")?).await
}

/// Reads a page of an account's runs whose draft is complete.
pub async fn list(store: &Store, account: AccountId, wanted: ListPageRequest) -> Result<ListPage<PayoutRun>> {
    let source = ListQuery { rows: Space::PayoutRun, by: Space::PayoutRun, account, values: Vec::new() };
    listing::list(store, &source, wanted, &PayoutRun::is_drafted).await
}

/// Reads a page of all of an account's runs, complete or not.
pub async fn list_all(store: &Store, account: AccountId, wanted: ListPageRequest) -> Result<ListPage<PayoutRun>> {
    let source = ListQuery { rows: Space::PayoutRun, by: Space::PayoutRun, account, values: Vec::new() };
    listing::list(store, &source, wanted, &|_: &PayoutRun| true).await
}

fn skipped_key(account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) -> Key {
    let at = key(Space::Skipped).account(account).id(run.to_bytes()).id(skipped.partner.to_bytes());
    at.text(skipped.currency.as_str()).text(skipped.reason.word()).build()
}

/// Records that a run skips a partner.
pub fn put_skipped(batch: &mut Batch, account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) {
    batch.put(skipped_key(account, run, skipped), codec::encode(skipped));
}

/// Reads the record that a run skips the partner of `skipped` for its reason.
pub async fn get_skipped(
    store: &Store,
    account: AccountId,
    run: PayoutRunId,
    skipped: &SkippedPartner,
) -> Result<Option<SkippedPartner>> {
    rows::get(store, &skipped_key(account, run, skipped)).await
}

/// Deletes the record that a run skips a partner.
pub fn delete_skipped(batch: &mut Batch, account: AccountId, run: PayoutRunId, skipped: &SkippedPartner) {
    batch.delete(skipped_key(account, run, skipped));
}

/// Lists the partners that a run skips, after one of them, at most `limit`.
pub async fn list_skipped(
    store: &Store,
    account: AccountId,
    run: PayoutRunId,
    after: Option<&SkippedPartner>,
    limit: usize,
) -> Result<Vec<SkippedPartner>> {
    let mut range = key(Space::Skipped).account(account).id(run.to_bytes()).range();
    if let Some(after) = after {
        range.start = key_after(&skipped_key(account, run, after));
    }
    rows::scan(store, range, ScanOrder::Ascending, limit).await
}
