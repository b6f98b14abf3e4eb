//! Payouts: one row each under the account, index entries for lists, and one item per commission line with its amount.
//! Items are retained when a payout fails.

use model::affiliate::payout::{Payout, PayoutState};
use model::id::{AccountId, CommissionId, PartnerId, PayoutId, PayoutRunId};

use super::IndexValue;
use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

account_rows!(Payout, PayoutId, Payout);

/// Fields of the secondary index.
#[repr(u8)]
enum PayoutIndex {
    Partner = 1,
    Run = 2,
    State = 3,
    /// The processor's transfer id.
    Transfer = 4,
    /// Open payouts that the processor pays, by run.
    ToTransfer = 5,
    /// Open payouts, by partner.
    OpenByPartner = 6,
}

fn index_value(field: PayoutIndex, id: [u8; 16]) -> IndexValue {
    (field as u8, id.to_vec())
}

fn by_state(state: PayoutState) -> IndexValue {
    (PayoutIndex::State as u8, state.word().as_bytes().to_vec())
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

fn item_key(account: AccountId, payout: PayoutId, line: CommissionId) -> Key {
    key(Space::PayoutItem).account(account).id(payout.to_bytes()).id(line.to_bytes()).build()
}

fn index_ref(payout: &Payout) -> listing::IndexRef {
    listing::IndexRef { space: Space::PayoutBy, account: payout.account, id: payout.id.to_bytes() }
}

pub fn create(batch: &mut Batch, payout: &Payout) {
    listing::update_index(batch, index_ref(payout), &[], &index_values(payout));
    batch.put(key_of(payout.account, payout.id), codec::encode(payout));
}

/// Updates a payout that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Payout, after: &Payout) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Deletes a payout that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn delete(batch: &mut Batch, before: &Payout) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &[]);
    batch.delete(key_of(before.account, before.id));
}

/// Writes the item of a line, with its amount.
pub fn put_item(batch: &mut Batch, account: AccountId, payout: PayoutId, line: CommissionId, amount: i64) {
    batch.put(item_key(account, payout, line), amount.to_string().into_bytes());
}

/// Deletes the item of a line that was removed from a payout.
pub fn delete_item(batch: &mut Batch, account: AccountId, payout: PayoutId, line: CommissionId) {
    batch.delete(item_key(account, payout, line));
}

/// Lists the lines and amounts of which a payout was made, after one of them, at most `limit`.
pub async fn list_items(
    store: &Store,
    account: AccountId,
    payout: PayoutId,
    after: Option<CommissionId>,
    limit: usize,
) -> Result<Vec<(CommissionId, i64)>> {
    let range =
        key(Space::PayoutItem).account(account).id(payout.to_bytes()).range_after(after.map(CommissionId::to_bytes));
    let read = |(row_key, row): (Key, Value)| {
        let id = row_key.last_chunk::<16>().copied().map(CommissionId::from_bytes);
        let amount = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
        id.zip(amount).ok_or_else(|| codec::damaged("an invalid payout item"))
    };
    store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(read).collect()
}

pub async fn find_by_transfer(store: &Store, account: AccountId, transfer: &str) -> Result<Option<Payout>> {
    Ok(scan_after(store, account, by_transfer(transfer), None, 1).await?.pop())
}

/// Lists the open payouts of a partner, oldest first, after one of them, at most `limit`.
pub async fn list_open_by_partner(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>> {
    scan_after(store, account, index_value(PayoutIndex::OpenByPartner, partner.to_bytes()), after, limit).await
}

/// Lists the open payouts of a run that the processor pays, oldest first, after one of them, at most `limit`.
pub async fn list_to_transfer(
    store: &Store,
    account: AccountId,
    run: PayoutRunId,
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>> {
    scan_after(store, account, index_value(PayoutIndex::ToTransfer, run.to_bytes()), after, limit).await
}

/// Lists the payouts of a run, oldest first, after one of them, at most `limit`.
pub async fn list_by_run(
    store: &Store,
    account: AccountId,
    run: PayoutRunId,
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>> {
    scan_after(store, account, index_value(PayoutIndex::Run, run.to_bytes()), after, limit).await
}

/// The id of the account's newest payout, in any state.
pub async fn newest_id(store: &Store, account: AccountId) -> Result<Option<PayoutId>> {
    let rows = store.scan(key(Space::Payout).account(account).range(), ScanOrder::Descending, 1).await?;
    Ok(rows.first().and_then(|(row_key, _)| row_key.last_chunk::<16>().copied()).map(PayoutId::from_bytes))
}

async fn scan_after(
    store: &Store,
    account: AccountId,
    by: IndexValue,
    after: Option<PayoutId>,
    limit: usize,
) -> Result<Vec<Payout>> {
    let ids = listing::list_ids(store, Space::PayoutBy, account, by, after.map(PayoutId::to_bytes), limit).await?;
    let keys: Vec<Key> = ids.into_iter().map(|id| key_of(account, PayoutId::from_bytes(id))).collect();
    rows::get_existing(store, &keys).await
}

/// Filter of a payout list; all conditions must match.
#[derive(Debug, Clone, Default)]
pub struct PayoutFilter {
    pub run: Option<PayoutRunId>,
    pub partner: Option<PartnerId>,
    /// Any of these; all states if empty.
    pub states: Vec<PayoutState>,
}

/// Reads a page of an account's payouts that match the filter and `passes`.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &PayoutFilter,
    wanted: ListPageRequest,
    passes: &(dyn Fn(&Payout) -> bool + Sync),
) -> Result<ListPage<Payout>> {
    // The most selective index first.
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
