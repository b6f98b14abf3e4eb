//! Adjustments: one row each under the account, with an index by partner and currency while unassigned and by payout
//! once assigned.
//!
//! Each commission line also has a row with the total of its adjustments. Every new adjustment checks and rewrites it,
//! so that concurrent adjustments of one line conflict.

use std::ops::Range;

use model::affiliate::money::Currency;
use model::affiliate::payout::Adjustment;
use model::id::{AccountId, AdjustmentId, CommissionId, PartnerId, PayoutId};

use super::{IndexValue, listing};
use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, prefix_end};
use crate::rows;

account_rows!(Adjustment, AdjustmentId, Adjustment);

/// Fields of the secondary index.
#[repr(u8)]
enum AdjustmentIndex {
    /// Holds the total of a line's adjustments, not an index entry.
    Line = 1,
    /// Adjustments that are in no payout.
    Unassigned = 2,
    Payout = 3,
}

fn partner_and_currency(partner: PartnerId, currency: Currency) -> Vec<u8> {
    [&partner.to_bytes()[..], currency.as_str().as_bytes()].concat()
}

fn index_values(adjustment: &Adjustment) -> Vec<IndexValue> {
    vec![match adjustment.payout {
        None => (AdjustmentIndex::Unassigned as u8, partner_and_currency(adjustment.partner, adjustment.currency)),
        Some(payout) => (AdjustmentIndex::Payout as u8, payout.to_bytes().to_vec()),
    }]
}

fn total_key(account: AccountId, line: CommissionId) -> Key {
    key(Space::AdjustmentBy).account(account).u8(AdjustmentIndex::Line as u8).id(line.to_bytes()).build()
}

fn index_ref(adjustment: &Adjustment) -> listing::IndexRef {
    listing::IndexRef { space: Space::AdjustmentBy, account: adjustment.account, id: adjustment.id.to_bytes() }
}

/// The total of a line's adjustments, with the row it was read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdjustmentTotal {
    /// In the currency's minor unit.
    pub amount: i64,
    row: Option<Value>,
}

/// Reads the totals of the adjustments of several lines, in the order of `lines`.
pub async fn line_totals(store: &Store, account: AccountId, lines: &[CommissionId]) -> Result<Vec<AdjustmentTotal>> {
    let keys: Vec<Key> = lines.iter().map(|line| total_key(account, *line)).collect();
    let read = |row: Option<Value>| {
        let amount = rows::parse_number(row.as_ref(), "an invalid total of adjustments")?;
        Ok(AdjustmentTotal { amount, row })
    };
    store.get_many(&keys).await?.into_iter().map(read).collect()
}

/// Makes the commit conflict if the line's total has changed since it was read.
pub fn check_total(batch: &mut Batch, account: AccountId, line: CommissionId, before: &AdjustmentTotal) {
    batch.check(total_key(account, line), before.row.clone());
}

/// Writes a new adjustment and updates its line's total. The commit conflicts if the total has changed since it was
/// read.
pub fn create(batch: &mut Batch, adjustment: &Adjustment, before: &AdjustmentTotal) {
    let (account, line) = (adjustment.account, adjustment.line);
    check_total(batch, account, line, before);
    let sum = before.amount.saturating_add(adjustment.amount);
    batch.put(total_key(account, line), sum.to_string().into_bytes());
    listing::update_index(batch, index_ref(adjustment), &[], &index_values(adjustment));
    batch.put(key_of(account, adjustment.id), codec::encode(adjustment));
}

/// Assigns an adjustment that was read as `before` to a payout, or removes it from one. The commit conflicts if the
/// stored row has changed since.
pub fn update(batch: &mut Batch, before: &Adjustment, after: &Adjustment) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Lists the adjustments of a payout, at most `limit`.
pub async fn list_by_payout(
    store: &Store,
    account: AccountId,
    payout: PayoutId,
    limit: usize,
) -> Result<Vec<Adjustment>> {
    let at = key(Space::AdjustmentBy).account(account).u8(AdjustmentIndex::Payout as u8).bytes(&payout.to_bytes());
    load_rows(store, account, at.range(), limit).await
}

/// Lists unassigned adjustments from the first to the last of a range of partners and currencies, in key order, at most
/// `limit`.
pub async fn list_unassigned(
    store: &Store,
    account: AccountId,
    first: (PartnerId, Currency),
    last: (PartnerId, Currency),
    limit: usize,
) -> Result<Vec<Adjustment>> {
    let at = |(partner, currency): (PartnerId, Currency)| {
        let start = key(Space::AdjustmentBy).account(account).u8(AdjustmentIndex::Unassigned as u8);
        start.bytes(&partner_and_currency(partner, currency)).build()
    };
    load_rows(store, account, at(first)..prefix_end(&at(last)), limit).await
}

/// Lists unassigned adjustments of the partners and currencies after `after`, up to and including `last`, in key order,
/// at most `limit`. `None` is before the first or after the last of the account.
pub async fn list_unassigned_after(
    store: &Store,
    account: AccountId,
    after: Option<(PartnerId, Currency)>,
    last: Option<(PartnerId, Currency)>,
    limit: usize,
) -> Result<Vec<Adjustment>> {
    let unassigned = || key(Space::AdjustmentBy).account(account).u8(AdjustmentIndex::Unassigned as u8);
    let end_of = |(partner, currency): (PartnerId, Currency)| {
        prefix_end(&unassigned().bytes(&partner_and_currency(partner, currency)).build())
    };
    let mut range = unassigned().range();
    if let Some(after) = after {
        range.start = end_of(after);
    }
    if let Some(last) = last {
        range.end = end_of(last);
    }
    load_rows(store, account, range, limit).await
}

/// Reads the adjustments that a range of the index names.
async fn load_rows(store: &Store, account: AccountId, range: Range<Key>, limit: usize) -> Result<Vec<Adjustment>> {
    let found = store.scan(range, ScanOrder::Ascending, limit).await?;
    let id = |(row_key, _): &(Key, Value)| row_key.last_chunk::<16>().copied().map(AdjustmentId::from_bytes);
    let keys: Vec<Key> = found.iter().filter_map(id).map(|id| key_of(account, id)).collect();
    rows::get_existing(store, &keys).await
}
