//! Commissions: one row each under the account, index entries for lists, and a due key while a commission is held.
//!
//! A due key is in a partition, so that only the node that owns the partition ends the hold.

use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;
use message::words;
use model::affiliate::commission::{Commission, CommissionLevel, CommissionState};
use model::affiliate::money::Currency;
use model::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};

use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use super::{IndexValue, balance};
use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key, prefix_end, read_time, successor as key_after};
use crate::rows;
use crate::task::PARTITIONS;

account_rows!(Commission, CommissionId, Commission);

words! {
    /// Status of a commission, as a list filter.
    CommissionStatus {
        /// Held until the hold period ends.
        Pending = "pending",
        /// Confirmed, not paid yet.
        Earned = "earned",
        Paid = "paid",
        Reversed = "reversed",
    }
}

/// Fields of the secondary index.
#[repr(u8)]
enum CommissionIndex {
    Partner = 1,
    Referral = 2,
    Status = 3,
    Invoice = 4,
    Payout = 5,
    /// Earned and in no payout: payable by the next run.
    Payable = 6,
    Bounty = 7,
    PartnerBounty = 8,
}

fn by(field: CommissionIndex, value: impl AsRef<[u8]>) -> IndexValue {
    (field as u8, value.as_ref().to_vec())
}

fn index_values(line: &Commission) -> Vec<IndexValue> {
    let (partner, referral) = (line.partner.to_bytes(), line.referral.to_bytes());
    let mut values = vec![
        by(CommissionIndex::Partner, partner),
        by(CommissionIndex::Referral, referral),
        by(CommissionIndex::Status, line.status.word()),
    ];
    match line.sold_invoice() {
        Some(sold) => values.push(by(CommissionIndex::Invoice, &sold.invoice)),
        None => {
            values.extend([by(CommissionIndex::Bounty, referral), by(CommissionIndex::PartnerBounty, partner)]);
        }
    }
    values.extend(line.status.payout().map(|payout| by(CommissionIndex::Payout, payout.to_bytes())));
    if matches!(line.status, CommissionState::Earned { .. }) {
        values.push(by(CommissionIndex::Payable, [&partner[..], line.currency.as_str().as_bytes()].concat()));
    }
    values
}

fn level_number(level: CommissionLevel) -> u8 {
    match level {
        CommissionLevel::One => 1,
        CommissionLevel::Two => 2,
        CommissionLevel::OneFixed => 3,
    }
}

/// Unique key: an invoice has one line of each level, and a referral has one bounty (I1).
fn uniqueness_key(line: &Commission) -> Key {
    let start = key(Space::CommissionBy).account(line.account).u8(0);
    match line.sold_invoice() {
        Some(sold) => start.u8(level_number(sold.level)).text(&sold.invoice).build(),
        None => start.u8(0).id(line.referral.to_bytes()).build(),
    }
}

fn due_key(line: &Commission) -> Option<Key> {
    let waits = matches!(line.status, CommissionState::Pending { frozen } if !frozen.is_frozen());
    let [.., last] = line.id.to_bytes();
    let at = key(Space::CommissionDue).u16(u16::from(last) % PARTITIONS).time(line.next_check_at());
    waits.then(|| at.id(line.account.to_bytes()).id(line.id.to_bytes()).build())
}

fn index_ref(line: &Commission) -> listing::IndexRef {
    listing::IndexRef { space: Space::CommissionBy, account: line.account, id: line.id.to_bytes() }
}

/// Writes a new commission line. The commit conflicts if the invoice has a line of this level, or the referral has a
/// bounty.
pub fn create(batch: &mut Batch, line: &Commission) {
    let name = uniqueness_key(line);
    batch.replace(name, None, line.id.to_string().into_bytes());
    listing::update_index(batch, index_ref(line), &[], &index_values(line));
    balance::record_change(batch, None, line);
    rows::move_entry(batch, None, due_key(line));
    batch.put(key_of(line.account, line.id), codec::encode(line));
}

/// Updates a line that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Commission, after: &Commission) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    balance::record_change(batch, Some(before), after);
    rows::move_entry(batch, due_key(before), due_key(after));
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Lists the lines of an invoice that exist: the partner's, its recruiter's, and the partner's fixed amount in another
/// currency.
pub async fn list_by_invoice(store: &Store, account: AccountId, invoice: &str) -> Result<Vec<Commission>> {
    let name = |level: CommissionLevel| {
        key(Space::CommissionBy).account(account).u8(0).u8(level_number(level)).text(invoice).build()
    };
    let names = [CommissionLevel::One, CommissionLevel::Two, CommissionLevel::OneFixed].map(name);
    load_by_unique_keys(store, account, &names).await
}

/// Finds the bounty of a referral.
pub async fn find_bounty(store: &Store, account: AccountId, referral: ReferralId) -> Result<Option<Commission>> {
    let name = key(Space::CommissionBy).account(account).u8(0).u8(0).id(referral.to_bytes()).build();
    Ok(load_by_unique_keys(store, account, &[name]).await?.into_iter().next())
}

/// Counts the bounties of a partner since a time, up to `at_most`.
pub async fn count_bounties_since(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    since: Timestamp,
    at_most: usize,
) -> Result<usize> {
    let (field, value) = by(CommissionIndex::PartnerBounty, partner.to_bytes());
    let prefix = key(Space::CommissionBy).account(account).u8(field).bytes(&value);
    let first = prefix.clone().id(CommissionId::new(since, 0).to_bytes()).build();
    rows::count(store, first..prefix.range().end, at_most).await
}

async fn load_by_unique_keys(store: &Store, account: AccountId, names: &[Key]) -> Result<Vec<Commission>> {
    let mut keys = Vec::new();
    for row in store.get_many(names).await?.into_iter().flatten() {
        keys.push(key_of(account, rows::parse_text(&row, "an invalid commission id")?));
    }
    rows::get_existing(store, &keys).await
}

/// Filter of a commission list; all conditions must match.
#[derive(Debug, Clone, Default)]
pub struct CommissionFilter {
    /// Any of these; all statuses if empty.
    pub statuses: Vec<CommissionStatus>,
    pub partner: Option<PartnerId>,
    pub referral: Option<ReferralId>,
    /// Any of these; all currencies if empty.
    pub currencies: Vec<Currency>,
    pub payout: Option<PayoutId>,
    /// Inclusive.
    pub created_after: Option<Timestamp>,
    /// Exclusive.
    pub created_before: Option<Timestamp>,
}

impl CommissionFilter {
    fn passes(&self, line: &Commission) -> bool {
        let has_status = |status: &CommissionStatus| status.word() == line.status.word();
        (self.statuses.is_empty() || self.statuses.iter().any(has_status))
            && self.partner.is_none_or(|partner| line.partner == partner)
            && self.referral.is_none_or(|referral| line.referral == referral)
            && (self.currencies.is_empty() || self.currencies.contains(&line.currency))
            && self.payout.is_none_or(|payout| line.status.payout() == Some(payout))
            && self.created_after.is_none_or(|after| line.created_at >= after)
            && self.created_before.is_none_or(|before| line.created_at < before)
    }

    fn index_ranges(&self) -> Vec<IndexValue> {
        // The most selective index first.
        match (self.referral, self.payout, self.partner) {
            (Some(referral), _, _) => vec![by(CommissionIndex::Referral, referral.to_bytes())],
            (None, Some(payout), _) => vec![by(CommissionIndex::Payout, payout.to_bytes())],
            (None, None, Some(partner)) => vec![by(CommissionIndex::Partner, partner.to_bytes())],
            (None, None, None) => {
                self.statuses.iter().map(|status| by(CommissionIndex::Status, status.word())).collect()
            }
        }
    }
}

/// Reads a page of an account's commissions.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &CommissionFilter,
    wanted: ListPageRequest,
) -> Result<ListPage<Commission>> {
    let source = ListQuery { rows: Space::Commission, by: Space::CommissionBy, account, values: filter.index_ranges() };
    let wanted = wanted.created_between(filter.created_after, filter.created_before);
    listing::list(store, &source, wanted, &|line| filter.passes(line)).await
}

/// The time after `now` at which the next held line of these partitions is due.
pub async fn next_due(store: &Store, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut first: Option<Timestamp> = None;
    for partition in partitions {
        let mut range = key(Space::CommissionDue).u16(partition).range();
        range.start = prefix_end(&key(Space::CommissionDue).u16(partition).time(now).build());
        let Some((due_key, _)) = store.scan(range, ScanOrder::Ascending, 1).await?.pop() else { continue };
        let at = read_time(Space::CommissionDue, &due_key)?;
        first = Some(first.map_or(at, |first| first.min(at)));
    }
    Ok(first)
}

/// Reads several lines in the order of `ids`; missing ones are left out.
pub async fn get_each(store: &Store, account: AccountId, ids: &[CommissionId]) -> Result<Vec<Commission>> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    rows::get_existing(store, &keys).await
}

/// Lists the lines assigned to or paid by a payout, oldest first, after one of them, at most `limit`.
pub async fn list_by_payout(
    store: &Store,
    account: AccountId,
    payout: PayoutId,
    after: Option<CommissionId>,
    limit: usize,
) -> Result<Vec<Commission>> {
    let payout = by(CommissionIndex::Payout, payout.to_bytes());
    let after = after.map(CommissionId::to_bytes);
    let ids = listing::list_ids(store, Space::CommissionBy, account, payout, after, limit).await?;
    get_each(store, account, &ids.into_iter().map(CommissionId::from_bytes).collect::<Vec<_>>()).await
}

/// A payable line as listed in the index: ordered by partner, currency and age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayableCommission {
    pub partner: PartnerId,
    pub currency: Currency,
    pub line: CommissionId,
}

fn payable_prefix(account: AccountId) -> KeyBuilder {
    key(Space::CommissionBy).account(account).u8(CommissionIndex::Payable as u8)
}

fn payable_group_prefix(account: AccountId, partner: PartnerId, currency: Currency) -> KeyBuilder {
    payable_prefix(account).bytes(&[&partner.to_bytes()[..], currency.as_str().as_bytes()].concat())
}

/// Lists payable lines after those of a partner and a currency, at most `limit`.
pub async fn list_payable(
    store: &Store,
    account: AccountId,
    after: Option<(PartnerId, Currency)>,
    limit: usize,
) -> Result<Vec<PayableCommission>> {
    let mut range = payable_prefix(account).range();
    if let Some((partner, currency)) = after {
        range.start = prefix_end(&payable_group_prefix(account, partner, currency).build());
    }
    scan_payable(store, range, limit).await
}

/// Lists the payable lines of one partner and one currency, after one of them, at most `limit`.
pub async fn list_payable_in_group(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    currency: Currency,
    after: Option<CommissionId>,
    limit: usize,
) -> Result<Vec<PayableCommission>> {
    let range = payable_group_prefix(account, partner, currency).range_after(after.map(CommissionId::to_bytes));
    scan_payable(store, range, limit).await
}

async fn scan_payable(store: &Store, range: Range<Key>, limit: usize) -> Result<Vec<PayableCommission>> {
    let read = |(row_key, _): (Key, Value)| {
        let mut reader = KeyReader::new(Space::CommissionBy, &row_key)?;
        reader.id().and_then(|_| reader.u8())?;
        let value = reader.bytes()?;
        let line = CommissionId::from_bytes(reader.id()?);
        let (partner, currency) = value
            .split_first_chunk::<16>()
            .ok_or_else(|| codec::damaged("an invalid partner id in an index key of a commission"))?;
        let currency = rows::parse_text(currency, "an invalid currency in an index key of a commission")?;
        Ok(PayableCommission { partner: PartnerId::from_bytes(*partner), currency, line })
    };
    store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(read).collect()
}

/// A line whose hold is due to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCommission {
    pub account: AccountId,
    pub line: CommissionId,
    at: Key,
}

/// Lists the lines of these partitions that are due at `now`, after one of them, at most `limit`.
pub async fn list_due(
    store: &Store,
    partitions: RangeInclusive<u16>,
    now: Timestamp,
    after: Option<&DueCommission>,
    limit: usize,
) -> Result<Vec<DueCommission>> {
    let mut due = Vec::new();
    for partition in partitions {
        if due.len() >= limit {
            break;
        }
        let start = key(Space::CommissionDue).u16(partition).build();
        let end = prefix_end(&key(Space::CommissionDue).u16(partition).time(now).build());
        let start = after.map_or_else(|| start.clone(), |after| key_after(&after.at).max(start.clone()));
        if start >= end {
            continue;
        }
        for (at, _) in store.scan(start..end, ScanOrder::Ascending, limit - due.len()).await? {
            let mut reader = KeyReader::new(Space::CommissionDue, &at)?;
            reader.u16().and_then(|_| reader.time())?;
            let account = AccountId::from_bytes(reader.id()?);
            let line = CommissionId::from_bytes(reader.id()?);
            due.push(DueCommission { account, line, at });
        }
    }
    Ok(due)
}

/// Reads the due lines; missing ones are left out.
pub async fn get_due(store: &Store, due: &[DueCommission]) -> Result<Vec<Commission>> {
    let keys: Vec<Key> = due.iter().map(|due| key_of(due.account, due.line)).collect();
    rows::get_existing(store, &keys).await
}
