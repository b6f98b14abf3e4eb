//! Payouts: a row each under the account, and keys by what they are listed by; and a key for each line that one was
//! made of, which stays when a payout fails.

use mail::affiliate::payout::{Payout, PayoutState};
use mail::id::{AccountId, CommissionId, PartnerId, PayoutId, PayoutRunId};
use serde::{Deserialize as _, Serialize as _};

use super::By;
use super::listing::{self, Page, Source, Wanted};
use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{Space, after as key_after, key};
use crate::row::{self, stored};

stored!(Payout);

/// By what payouts are listed.
#[repr(u8)]
enum Field {
    Partner = 1,
    Run = 2,
    State = 3,
    /// By the processor's id of the transfer.
    Transfer = 4,
    /// By its run, while the processor is to make it.
    ToTransfer = 5,
    /// By its partner, while it is open.
    OpenOf = 6,
}

fn by(field: Field, id: [u8; 16]) -> By {
    (field as u8, id.to_vec())
}

fn by_state(state: PayoutState) -> By {
    (Field::State as u8, state.as_str().as_bytes().to_vec())
}

fn by_transfer(transfer: &str) -> By {
    (Field::Transfer as u8, transfer.as_bytes().to_vec())
}

fn listed_by(payout: &Payout) -> Vec<By> {
    let mut listed = vec![by(Field::Run, payout.run.to_bytes()), by_state(payout.state)];
    if payout.state != PayoutState::Dropped {
        listed.push(by(Field::Partner, payout.partner.to_bytes()));
    }
    listed.extend(payout.transfer.as_deref().map(by_transfer));
    if payout.state == PayoutState::Open {
        listed.push(by(Field::OpenOf, payout.partner.to_bytes()));
        if !payout.method.is_manual() {
            listed.push(by(Field::ToTransfer, payout.run.to_bytes()));
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

fn place(payout: &Payout) -> (Space, AccountId, [u8; 16]) {
    (Space::PayoutBy, payout.account, payout.id.to_bytes())
}

/// Writes a new payout.
pub fn create(batch: &mut Batch, payout: &Payout) {
    listing::relist(batch, place(payout), &[], &listed_by(payout));
    batch.put(key_of(payout.account, payout.id), row::encode(payout));
}

/// What is committed holds only while the payout is as it was read.
pub fn expect(batch: &mut Batch, payout: &Payout) {
    batch.check(key_of(payout.account, payout.id), Some(row::encode(payout)));
}

/// Changes a payout that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Payout, after: &Payout) {
    expect(batch, before);
    listing::relist(batch, place(before), &listed_by(before), &listed_by(after));
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// Forgets a payout that was read as `before`; the commit conflicts when it is no more like that.
pub fn delete(batch: &mut Batch, before: &Payout) {
    expect(batch, before);
    listing::relist(batch, place(before), &listed_by(before), &[]);
    batch.delete(key_of(before.account, before.id));
}

/// A line is in a payout, with so much.
pub fn put_item(
    batch: &mut Batch,
    account: AccountId,
    (payout, line): (PayoutId, CommissionId),
    amount: i64,
) {
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
pub async fn items(
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
    store.scan(range, Order::Ascending, limit).await?.into_iter().map(read).collect()
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
pub async fn of_transfer(
    store: &Store,
    account: AccountId,
    transfer: &str,
) -> Result<Option<Payout>, ReadError> {
    Ok(first(store, account, by_transfer(transfer), 1).await?.pop())
}

/// Open payouts of a partner, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn open_of(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    onwards(store, account, (by(Field::OpenOf, partner.to_bytes()), after), limit).await
}

/// Payouts of a run that the processor is to make, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn to_transfer(
    store: &Store,
    (account, run): (AccountId, PayoutRunId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    onwards(store, account, (by(Field::ToTransfer, run.to_bytes()), after), limit).await
}

/// Payouts of a run, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn of_run(
    store: &Store,
    (account, run): (AccountId, PayoutRunId),
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    onwards(store, account, (by(Field::Run, run.to_bytes()), after), limit).await
}

/// The newest payout's id, whatever became of it.
///
/// # Errors
/// The store cannot be read.
pub async fn newest(store: &Store, account: AccountId) -> Result<Option<PayoutId>, ReadError> {
    let rows = store.scan(key(Space::Payout).account(account).range(), Order::Descending, 1).await?;
    Ok(rows.first().and_then(|(row_key, _)| row_key.last_chunk::<16>().copied()).map(PayoutId::from_bytes))
}

async fn first(store: &Store, account: AccountId, by: By, limit: usize) -> Result<Vec<Payout>, ReadError> {
    onwards(store, account, (by, None), limit).await
}

async fn onwards(
    store: &Store,
    account: AccountId,
    ((field, value), after): (By, Option<PayoutId>),
    limit: usize,
) -> Result<Vec<Payout>, ReadError> {
    let at = key(Space::PayoutBy).account(account).u8(field).bytes(&value);
    let mut range = at.clone().range();
    if let Some(after) = after {
        range.start = key_after(&at.id(after.to_bytes()).build());
    }
    let found = store.scan(range, Order::Ascending, limit).await?;
    let id = |(row_key, _): &(Key, Value)| row_key.last_chunk::<16>().copied().map(PayoutId::from_bytes);
    let keys: Vec<Key> = found.iter().filter_map(id).map(|id| key_of(account, id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}

/// Which payouts are listed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
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
    filter: &Filter,
    (wanted, passes): (Wanted, &(dyn Fn(&Payout) -> bool + Sync)),
) -> Result<Page<Payout>, ReadError> {
    // By what leaves the fewest.
    let values = match (filter.partner, filter.run) {
        (Some(partner), _) => vec![by(Field::Partner, partner.to_bytes())],
        (None, Some(run)) => vec![by(Field::Run, run.to_bytes())],
        (None, None) => filter.states.iter().copied().map(by_state).collect(),
    };
    let source = Source { rows: Space::Payout, by: Space::PayoutBy, account, values };
    let all = |payout: &Payout| {
        (filter.states.is_empty() || filter.states.contains(&payout.state))
            && filter.run.is_none_or(|run| payout.run == run)
            && passes(payout)
    };
    listing::list(store, &source, wanted, &all).await
}
