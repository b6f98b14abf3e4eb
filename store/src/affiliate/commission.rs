//! Commissions: a row each under the account, keys by what they are listed by, and a key by time for each that waits for
//! the end of its hold.
//!
//! A hold's key lies in a partition, so that the node that owns it ends the hold, and no other.

use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;
use mail::affiliate::commission::{Commission, Level, Status};
use mail::affiliate::money::Currency;
use mail::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};
use mail::words;
use serde::{Deserialize as _, Serialize as _};

use super::listing::{self, Page, Source, Wanted};
use super::{By, balance};
use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, after as key_after, end_of, key};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

stored!(Commission);

words! {
    /// Where a commission stands, for who asks for a list.
    CommissionStatus {
        /// Waits for the end of its hold.
        Pending = "pending",
        /// Its partner's.
        Earned = "earned",
        /// Paid.
        Paid = "paid",
        /// Taken back.
        Reversed = "reversed",
    }
}

/// By what commissions are listed.
#[repr(u8)]
enum Field {
    Partner = 1,
    Referral = 2,
    Status = 3,
    Invoice = 4,
    Payout = 5,
    /// Earned, and in no payout: what the next run may take.
    Free = 6,
    Bounty = 7,
    PartnerBounty = 8,
}

fn by_partner(partner: PartnerId) -> By {
    (Field::Partner as u8, partner.to_bytes().to_vec())
}

fn by_referral(referral: ReferralId) -> By {
    (Field::Referral as u8, referral.to_bytes().to_vec())
}

fn by_invoice(invoice: &str) -> By {
    (Field::Invoice as u8, invoice.as_bytes().to_vec())
}

fn by_payout(payout: PayoutId) -> By {
    (Field::Payout as u8, payout.to_bytes().to_vec())
}

fn by_bounty(referral: ReferralId) -> By {
    (Field::Bounty as u8, referral.to_bytes().to_vec())
}

fn by_partner_bounty(partner: PartnerId) -> By {
    (Field::PartnerBounty as u8, partner.to_bytes().to_vec())
}

fn by_status(word: &str) -> By {
    (Field::Status as u8, word.as_bytes().to_vec())
}

fn listed_by(line: &Commission) -> Vec<By> {
    let mut by = vec![by_partner(line.partner), by_referral(line.referral), by_status(line.status.word())];
    match line.sold() {
        Some(sold) => by.push(by_invoice(&sold.invoice)),
        None => by.extend([by_bounty(line.referral), by_partner_bounty(line.partner)]),
    }
    by.extend(line.status.payout().map(by_payout));
    if matches!(line.status, Status::Earned { .. }) {
        let value = [&line.partner.to_bytes()[..], line.currency.as_str().as_bytes()].concat();
        by.push((Field::Free as u8, value));
    }
    by
}

fn place_of(level: Level) -> u8 {
    match level {
        Level::One => 1,
        Level::Two => 2,
        Level::OneFixed => 3,
    }
}

/// Invoices have one line of each level, and referrals one bounty (I1): this is checked by what stands at its name.
fn key_of_name(line: &Commission) -> Key {
    let start = key(Space::CommissionBy).account(line.account).u8(0);
    match line.sold() {
        Some(sold) => start.u8(place_of(sold.level)).text(&sold.invoice).build(),
        None => start.u8(0).id(line.referral.to_bytes()).build(),
    }
}

fn key_of(account: AccountId, id: CommissionId) -> Key {
    key(Space::Commission).account(account).id(id.to_bytes()).build()
}

fn due_key(line: &Commission) -> Option<Key> {
    let waits = matches!(line.status, Status::Pending { frozen } if !frozen.is_frozen());
    let [.., last] = line.id.to_bytes();
    let at = key(Space::CommissionDue).u16(u16::from(last) % PARTITIONS).time(line.looked_at());
    waits.then(|| at.id(line.account.to_bytes()).id(line.id.to_bytes()).build())
}

fn place(line: &Commission) -> (Space, AccountId, [u8; 16]) {
    (Space::CommissionBy, line.account, line.id.to_bytes())
}

/// Writes a new line; the commit conflicts when there is one of the same invoice and level, or bounty of the referral.
pub fn create(batch: &mut Batch, line: &Commission) {
    let name = key_of_name(line);
    batch.check(name.clone(), None);
    batch.put(name, line.id.to_string().into_bytes());
    listing::relist(batch, place(line), &[], &listed_by(line));
    balance::note(batch, None, line);
    if let Some(due) = due_key(line) {
        batch.put(due, Vec::new());
    }
    batch.put(key_of(line.account, line.id), row::encode(line));
}

/// What is committed holds only while the line is as it was read.
pub fn expect(batch: &mut Batch, line: &Commission) {
    batch.check(key_of(line.account, line.id), Some(row::encode(line)));
}

/// Changes a line that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Commission, after: &Commission) {
    expect(batch, before);
    listing::relist(batch, place(before), &listed_by(before), &listed_by(after));
    balance::note(batch, Some(before), after);
    let (old, new) = (due_key(before), due_key(after));
    if old != new {
        if let Some(old) = old {
            batch.delete(old);
        }
        if let Some(new) = new {
            batch.put(new, Vec::new());
        }
    }
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// A line.
///
/// # Errors
/// The store cannot be read.
pub async fn get(
    store: &Store,
    account: AccountId,
    id: CommissionId,
) -> Result<Option<Commission>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// The lines of an invoice: the partner's, its recruiter's, and the partner's fixed amounts in another currency, if there
/// are any.
///
/// # Errors
/// The store cannot be read.
pub async fn of_invoice(
    store: &Store,
    account: AccountId,
    invoice: &str,
) -> Result<Vec<Commission>, ReadError> {
    let name = |level: Level| {
        key(Space::CommissionBy).account(account).u8(0).u8(place_of(level)).text(invoice).build()
    };
    named(store, account, &[name(Level::One), name(Level::Two), name(Level::OneFixed)]).await
}

/// The bounty of a referral, if there is one.
///
/// # Errors
/// The store cannot be read.
pub async fn bounty_of(
    store: &Store,
    account: AccountId,
    referral: ReferralId,
) -> Result<Option<Commission>, ReadError> {
    let name = key(Space::CommissionBy).account(account).u8(0).u8(0).id(referral.to_bytes()).build();
    Ok(named(store, account, &[name]).await?.into_iter().next())
}

/// How many bounties of a partner were written since a time, counted up to a bound.
///
/// # Errors
/// The store cannot be read.
pub async fn count_bounties_since(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
    since: Timestamp,
    at_most: usize,
) -> Result<usize, ReadError> {
    let (field, value) = by_partner_bounty(partner);
    let of = key(Space::CommissionBy).account(account).u8(field).bytes(&value);
    let first = of.clone().id(CommissionId::new(since, 0).to_bytes()).build();
    let rows = store.scan(first..of.range().end, Order::Ascending, at_most).await?;
    Ok(rows.len())
}

async fn named(store: &Store, account: AccountId, names: &[Key]) -> Result<Vec<Commission>, ReadError> {
    let mut keys = Vec::new();
    for row in store.get_many(names).await?.into_iter().flatten() {
        let id = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
        keys.push(key_of(account, id.ok_or_else(|| row::damaged("a line's id"))?));
    }
    let rows = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}

/// Which commissions are listed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those that stand in one of these; in any when empty.
    pub statuses: Vec<CommissionStatus>,
    /// Those of this partner.
    pub partner: Option<PartnerId>,
    /// Those of this referral.
    pub referral: Option<ReferralId>,
    /// Those of these currencies; of any when empty.
    pub currencies: Vec<Currency>,
    /// Those in this payout.
    pub payout: Option<PayoutId>,
    /// Those made at this time or later.
    pub created_after: Option<Timestamp>,
    /// Those made before this time.
    pub created_before: Option<Timestamp>,
}

impl Filter {
    fn passes(&self, line: &Commission) -> bool {
        let stands = |status: &CommissionStatus| status.as_str() == line.status.word();
        (self.statuses.is_empty() || self.statuses.iter().any(stands))
            && self.partner.is_none_or(|partner| line.partner == partner)
            && self.referral.is_none_or(|referral| line.referral == referral)
            && (self.currencies.is_empty() || self.currencies.contains(&line.currency))
            && self.payout.is_none_or(|payout| line.status.payout() == Some(payout))
            && self.created_after.is_none_or(|after| line.created_at >= after)
            && self.created_before.is_none_or(|before| line.created_at < before)
    }

    fn values(&self) -> Vec<By> {
        // By what leaves the fewest.
        match (self.referral, self.payout, self.partner) {
            (Some(referral), _, _) => vec![by_referral(referral)],
            (None, Some(payout), _) => vec![by_payout(payout)],
            (None, None, Some(partner)) => vec![by_partner(partner)],
            (None, None, None) => self.statuses.iter().map(|status| by_status(status.as_str())).collect(),
        }
    }
}

/// A page of an account's commissions.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &Filter,
    wanted: Wanted,
) -> Result<Page<Commission>, ReadError> {
    let source =
        Source { rows: Space::Commission, by: Space::CommissionBy, account, values: filter.values() };
    let wanted = wanted.within(filter.created_after, filter.created_before);
    listing::list(store, &source, wanted, &|line| filter.passes(line)).await
}

/// When the next line of these partitions is to be looked at, after a time.
///
/// # Errors
/// The store cannot be read.
pub async fn next_due(
    store: &Store,
    partitions: RangeInclusive<u16>,
    now: Timestamp,
) -> Result<Option<Timestamp>, ReadError> {
    let mut first: Option<Timestamp> = None;
    for partition in partitions {
        let mut range = key(Space::CommissionDue).u16(partition).range();
        range.start = end_of(&key(Space::CommissionDue).u16(partition).time(now).build());
        let Some((due_key, _)) = store.scan(range, Order::Ascending, 1).await?.pop() else { continue };
        let mut reader = KeyReader::new(Space::CommissionDue, &due_key).map_err(row::damaged)?;
        let at = reader.u16().and_then(|_| reader.time()).map_err(row::damaged)?;
        first = Some(first.map_or(at, |first| first.min(at)));
    }
    Ok(first)
}

/// Several lines, in their order; those that there are.
///
/// # Errors
/// The store cannot be read.
pub async fn get_each(
    store: &Store,
    account: AccountId,
    ids: &[CommissionId],
) -> Result<Vec<Commission>, ReadError> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}

/// The lines in a payout, or paid by it, oldest first, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn of_payout(
    store: &Store,
    (account, payout): (AccountId, PayoutId),
    after: Option<CommissionId>,
    limit: usize,
) -> Result<Vec<Commission>, ReadError> {
    let (field, value) = by_payout(payout);
    let at = key(Space::CommissionBy).account(account).u8(field).bytes(&value);
    let mut range = at.clone().range();
    if let Some(after) = after {
        range.start = key_after(&at.id(after.to_bytes()).build());
    }
    let found = store.scan(range, Order::Ascending, limit).await?;
    let id = |(row_key, _): &(Key, Value)| row_key.last_chunk::<16>().copied().map(CommissionId::from_bytes);
    get_each(store, account, &found.iter().filter_map(id).collect::<Vec<_>>()).await
}

/// Where a line stands among those that a run may take: by partner, by currency, by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Free {
    /// Whose it is.
    pub partner: PartnerId,
    /// Of what.
    pub currency: Currency,
    /// The line.
    pub line: CommissionId,
}

fn free_at(account: AccountId) -> KeyBuilder {
    key(Space::CommissionBy).account(account).u8(Field::Free as u8)
}

fn free_of(account: AccountId, (partner, currency): (PartnerId, Currency)) -> KeyBuilder {
    free_at(account).bytes(&[&partner.to_bytes()[..], currency.as_str().as_bytes()].concat())
}

/// Lines that are earned and in no payout, after those of a partner and a currency, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn free(
    store: &Store,
    account: AccountId,
    after: Option<(PartnerId, Currency)>,
    limit: usize,
) -> Result<Vec<Free>, ReadError> {
    let mut range = free_at(account).range();
    if let Some(after) = after {
        range.start = end_of(&free_of(account, after).build());
    }
    free_in(store, range, limit).await
}

/// The same of one partner and one currency, after one of its lines.
///
/// # Errors
/// The store cannot be read.
pub async fn free_in_group(
    store: &Store,
    account: AccountId,
    (group, after): ((PartnerId, Currency), Option<CommissionId>),
    limit: usize,
) -> Result<Vec<Free>, ReadError> {
    let at = free_of(account, group);
    let mut range = at.clone().range();
    if let Some(after) = after {
        range.start = key_after(&at.id(after.to_bytes()).build());
    }
    free_in(store, range, limit).await
}

async fn free_in(store: &Store, range: Range<Key>, limit: usize) -> Result<Vec<Free>, ReadError> {
    let read = |(row_key, _): (Key, Value)| {
        let mut reader = KeyReader::new(Space::CommissionBy, &row_key).map_err(row::damaged)?;
        reader.id().and_then(|_| reader.u8()).map_err(row::damaged)?;
        let value = reader.bytes().map_err(row::damaged)?;
        let line = CommissionId::from_bytes(reader.id().map_err(row::damaged)?);
        let (partner, currency) =
            value.split_first_chunk::<16>().ok_or_else(|| row::damaged("a line's partner"))?;
        let currency = std::str::from_utf8(currency).ok().and_then(|text| text.parse().ok());
        let currency = currency.ok_or_else(|| row::damaged("a line's currency"))?;
        Ok(Free { partner: PartnerId::from_bytes(*partner), currency, line })
    };
    store.scan(range, Order::Ascending, limit).await?.into_iter().map(read).collect()
}

/// A line that the scheduler is to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Whose program it is of.
    pub account: AccountId,
    /// The line.
    pub line: CommissionId,
    at: Key,
}

/// Lines that are to be looked at by now, in these partitions, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn due(
    store: &Store,
    partitions: RangeInclusive<u16>,
    now: Timestamp,
    after: Option<&Due>,
    limit: usize,
) -> Result<Vec<Due>, ReadError> {
    let mut due = Vec::new();
    for partition in partitions {
        if due.len() >= limit {
            break;
        }
        let start = key(Space::CommissionDue).u16(partition).build();
        let end = end_of(&key(Space::CommissionDue).u16(partition).time(now).build());
        let start = after.map_or_else(|| start.clone(), |after| key_after(&after.at).max(start.clone()));
        if start >= end {
            continue;
        }
        for (at, _) in store.scan(start..end, Order::Ascending, limit - due.len()).await? {
            let mut reader = KeyReader::new(Space::CommissionDue, &at).map_err(row::damaged)?;
            reader.u16().and_then(|_| reader.time()).map_err(row::damaged)?;
            let account = AccountId::from_bytes(reader.id().map_err(row::damaged)?);
            let line = CommissionId::from_bytes(reader.id().map_err(row::damaged)?);
            due.push(Due { account, line, at });
        }
    }
    Ok(due)
}

/// The lines themselves; those that there are.
///
/// # Errors
/// The store cannot be read.
pub async fn get_due(store: &Store, due: &[Due]) -> Result<Vec<Commission>, ReadError> {
    let keys: Vec<Key> = due.iter().map(|due| key_of(due.account, due.line)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().flatten().map(|row| row::decode(&row)).collect()
}
