//! Payouts: a row each under the account, and keys by what they are listed by; and a key for each line that one was
//! made of, which stays when a payout fails.

use mail::affiliate::payout::{Payout, PayoutState};
use mail::id::{AccountId, CommissionId, PartnerId, PayoutId, PayoutRunId};
use serde::{Deserialize as _, Serialize as _};

use super::IndexValue;
use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key, successor as key_after};
use crate::row::{self, stored};

stored!(Payout);

/// By what payouts are listed.
#[repr(u8)]
enum PayoutIndex {
    Partner = 1,
    Run = 2,
    State = 3,
    /// By the processor's id of the transfer.
    Transfer = 4,
    /// By its run, while the processor is to make it.
    ToTransfer = 5,
    /// By its partner, while it is open.
    OpenByPartner = 6,
}

fn index_value(field: PayoutIndex, id: [u8; 16]) -> IndexValue {
    (field as u8, id.to_vec())
}

fn by_state(state: PayoutState) -> IndexValue {
    (PayoutIndex::State as u8, state.as_str().as_bytes().to_vec())
}

fn by_transfer(transfer: &str) -> IndexValue {
    (PayoutIndex::Transfer as u8, transfer.as_bytes().to_vec())
}

fn index_values(payout: &Payout) -> Vec<IndexValue> {
    let mut listed = vec![index_value(PayoutIndex::Run, payout.run.to_bytes()), by_state(payout.state)];
    if payout.state != PayoutState::Dropped {
        listed.push(index_value(PayoutIndex::Partner, payout.partner.to_bytes()));
    }
    listed.extend(payout.transfer.as_deref().map(by_transfer));
    if payout.state == PayoutState::Open {
        listed.push(index_value(PayoutIndex::OpenByPartner, payout.partner.to_bytes()));
        if !payout.method.is_manual() {
            listed.push(index_value(PayoutIndex::ToTransfer, payout.run.to_bytes()));
        }
    }
    listed
}

fn key_of(account: AccountId, id: PayoutId) -> Key {
    key(Space::Payout).account(account).id(id.to_bytes()).build()
}

fn item_key(account: AccountId, payout: PayoutId, line: CommissionId) -> Key {
    key(Space::PayoutItem).account(account).id(payout.to_bytes()).id(line.to_bytes()).build()
}

fn index_ref(payout: &Payout) -> (Space, AccountId, [u8; 16]) {
    (Space::PayoutBy, payout.account, payout.id.to_bytes())
}

/// Writes a new payout.
pub fn create(batch: &mut Batch, payout: &Payout) {
    listing::update_index(batch, index_ref(payout), &[], &index_values(payout));
    batch.put(key_of(payout.account, payout.id), row::encode(payout));
}

/// What is committed holds only while the payout is as it was read.
pub fn check_unchanged(batch: &mut Batch, payout: &Payout) {
    batch.check(key_of(payout.account, payout.id), Some(row::encode(payout)));
}

/// Changes a payout that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Payout, after: &Payout) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// Forgets a payout that was read as `before`; the commit conflicts when it is no more like that.
pub fn delete(batch: &mut Batch, before: &Payout) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &[]);
    batch.delete(key_of(before.account, before.id));
}

/// A line is in a payout, with so much.
pub fn put_item(batch: &mut Batch, account: AccountId, (payout, line): (PayoutId, CommissionId), amount: i64) {
    batch.put(item_key(account, payout, line), amount.to_string().into_bytes());
}

/// A line is in a payout no more, and never was.
pub fn delete_item(batch: &mut Batch, account: AccountId, (payout, line): (PayoutId, CommissionId)) {
    batch.delete(item_key(account, payout, line));
}

/// What a payout was made of: its lines and their amounts, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_items(
    store: &Store,
    (account, payout): (AccountId, PayoutId),
    after: Option<CommissionId>,
    limit: usize,
) -> Result<Vec<(CommissionId, i64)>, ReadError> {
    let mut range = key(Space::PayoutItem).account(account).id(payout.to_bytes()).range();
    if let Some(after) = after {
        range.start = key_after(&item_key(account, payout, after));
    }
    let read = |(row_key, row): (Key, Value)| {
        let id = row_key.last_chunk::<16>().copied().map(CommissionId::from_bytes);
        let amount = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
        id.zip(amount).ok_or_else(|| row::damaged("a line of a payout"))
    };
    store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(read).collect()
}

/// A payout.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: PayoutId) -> Result<Option<Payout>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// The payout that a transfer made.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_transfer(store: &Store, account: AccountId, transfer: &str) -> Result<Option<Payout>, ReadError> {
    Ok(scan_first(store, account, by_transfer(transfer), 1).await?.pop())
}

/// Open payouts of a partner, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_open_by_partner(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    scan_after(store, account, (index_value(PayoutIndex::OpenByPartner, partner.to_bytes()), after), limit).await
}

/// Payouts of a run that the processor is to make, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_to_transfer(
    store: &Store,
    (account, run): (AccountId, PayoutRunId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    scan_after(store, account, (index_value(PayoutIndex::ToTransfer, run.to_bytes()), after), limit).await
}

/// Payouts of a run, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_by_run(
    store: &Store,
    (account, run): (AccountId, PayoutRunId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    scan_after(store, account, (index_value(PayoutIndex::Run, run.to_bytes()), after), limit).await
}

/// The newest payout's id, whatever became of it.
///
/// # Errors
/// The store cannot be read.
pub async fn newest_id(store: &Store, account: AccountId) -> Result<Option<PayoutId>, ReadError> {
    let rows = store.scan(key(Space::Payout).account(account).range(), ScanOrder::Descending, 1).await?;
    Ok(rows.first().and_then(|(row_key, _)| row_key.last_chunk::<16>().copied()).map(PayoutId::from_bytes))
}

async fn scan_first(store: &Store, account: AccountId, by: IndexValue, limit: usize) -> Result<Vec<Payout>, ReadError> {
    scan_after(store, account, (by, None), limit).await
}

async fn scan_after(
    store: &Store,
    account: AccountId,
    ((field, value), after): (IndexValue, Option<PayoutId>),
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    let at = key(Space::PayoutBy).account(account).u8(field).bytes(&value);
    let mut range = at.clone().range();
    if let Some(after) = after {
        range.start = key_after(&at.id(after.to_bytes()).build());
    }
    let found = store.scan(range, ScanOrder::Ascending, limit).await?;
    let id = |(row_key, _): &(Key, Value)| row_key.last_chunk::<16>().copied().map(PayoutId::from_bytes);
    let keys: Vec<Key> = found.iter().filter_map(id).map(|id| key_of(account, id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}

/// Which payouts are listed.
#[derive(Debug, Clone, Default)]
pub struct PayoutFilter {
    /// Those of this run.
    pub run: Option<PayoutRunId>,
    /// Those of this partner.
    pub partner: Option<PartnerId>,
    /// Those of which one of these became; of any when empty.
    pub states: Vec<PayoutState>,
}

/// A page of an account's payouts that pass.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &PayoutFilter,
    (wanted, passes): (ListPageRequest, &(dyn Fn(&Payout) -> bool + Sync)),
) -> Result<ListPage<Payout>, ReadError> {
    // By what leaves the fewest.
    let values = match (filter.partner, filter.run) {
        (Some(partner), _) => vec![index_value(PayoutIndex::Partner, partner.to_bytes())],
        (None, Some(run)) => vec![index_value(PayoutIndex::Run, run.to_bytes())],
        (None, None) => filter.states.iter().copied().map(by_state).collect(),
    };
    let source = ListQuery { rows: Space::Payout, by: Space::PayoutBy, account, values };
    let all = |payout: &Payout| {
        (filter.states.is_empty() || filter.states.contains(&payout.state))
            && filter.run.is_none_or(|run| payout.run == run)
            && passes(payout)
    };
    listing::list(store, &source, wanted, &all).await
}
