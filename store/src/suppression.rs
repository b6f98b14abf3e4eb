//! Suppressions: a row each under whom they are about, so that a send asks for its recipients at once.
//!
//! ```text
//! account, address or @domain            the suppression       what a send asks, what is changed
//! account, id                            the row's key         lists, newest first
//! account, reason, source, id            the row's key         lists of one kind
//! ```
//!
//! A list with filters merges the ranges of the kinds it wants, so that a page costs the same however many
//! suppressions there are. Changes check the row that they were made of: two at once both count.

use futures_util::future::try_join_all;
use jiff::Timestamp;
use mail::address::Address;
use mail::email::Category;
use mail::id::{AccountId, EmailId, SuppressionId};
use mail::suppression::{
    BlockReason, BlockedRecipient, OPTIONAL_CATEGORIES, SmtpDiagnostic, Suppression, SuppressionReason,
    SuppressionSource, SuppressionTarget, address_key, domain_key,
};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::opt_out;
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Suppression")]
struct SuppressionRow {
    id: SuppressionId,
    account: AccountId,
    target: SuppressionTarget,
    reason: SuppressionReason,
    source: SuppressionSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<EmailId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<SmtpDiagnostic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    soft_bounces: u32,
    created_at: Timestamp,
}
stored!(Suppression as SuppressionRow);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A suppression with its row: what a change of it checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSuppression {
    /// The suppression.
    pub suppression: Suppression,
    row: Value,
}

fn row_key(account: AccountId, target_key: &str) -> Key {
    key(Space::Suppression).account(account).text(target_key).build()
}

fn key_of(suppression: &Suppression) -> Key {
    row_key(suppression.account, &suppression.target.key())
}

fn key_by_id(account: AccountId, id: SuppressionId) -> Key {
    key(Space::SuppressionById).account(account).id(id.to_bytes()).build()
}

fn key_by_kind(account: AccountId, (reason, source): (SuppressionReason, SuppressionSource), id: SuppressionId) -> Key {
    let kind = key(Space::SuppressionByTime).account(account).u8(reason as u8).u8(source as u8);
    kind.id(id.to_bytes()).build()
}

fn index(suppression: &Suppression) -> [Key; 2] {
    let Suppression { account, id, reason, source, .. } = suppression;
    [key_by_id(*account, *id), key_by_kind(*account, (*reason, *source), *id)]
}

fn decode_stored(row: Value) -> Result<StoredSuppression, ReadError> {
    Ok(StoredSuppression { suppression: row::decode(&row)?, row })
}

/// The suppressions of these, in their order, those that have ended too.
///
/// # Errors
/// The store cannot be read.
pub async fn get_many(
    store: &Store,
    account: AccountId,
    targets: &[SuppressionTarget],
) -> Result<Vec<Option<StoredSuppression>>, ReadError> {
    let keys: Vec<Key> = targets.iter().map(|target| row_key(account, &target.key())).collect();
    store.get_many(&keys).await?.into_iter().map(|row| row.map(decode_stored).transpose()).collect()
}

/// The suppression of one, also when it has ended.
///
/// # Errors
/// The store cannot be read.
pub async fn get(
    store: &Store,
    account: AccountId,
    target: &SuppressionTarget,
) -> Result<Option<StoredSuppression>, ReadError> {
    Ok(get_many(store, account, std::slice::from_ref(target)).await?.pop().flatten())
}

/// A suppression by its id, also when it has ended.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_id(
    store: &Store,
    account: AccountId,
    id: SuppressionId,
) -> Result<Option<StoredSuppression>, ReadError> {
    let Some(row_key) = store.get(&key_by_id(account, id)).await? else { return Ok(None) };
    let found = store.get(&row_key).await?.map(decode_stored).transpose()?;
    Ok(found.filter(|found| found.suppression.id == id))
}

/// Writes a suppression in the place of the one that was found there; the commit conflicts when something
/// else stands there by now.
pub fn put(batch: &mut Batch, before: Option<&StoredSuppression>, after: &Suppression) {
    let row_key = key_of(after);
    batch.check(row_key.clone(), before.map(|found| found.row.clone()));
    for old in before.iter().flat_map(|found| index(&found.suppression)) {
        batch.delete(old);
    }
    for new in index(after) {
        batch.put(new, row_key.clone());
    }
    batch.put(row_key, row::encode(after));
}

/// Deletes a suppression; the commit conflicts when it is no more as it was found.
pub fn delete(batch: &mut Batch, found: &StoredSuppression) {
    let row_key = key_of(&found.suppression);
    batch.check(row_key.clone(), Some(found.row.clone())).delete(row_key);
    for old in index(&found.suppression) {
        batch.delete(old);
    }
}

/// Whether a conflict was about a suppression.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::Suppression as u8))
}

/// Which of these addresses a send of this category may not reach, and why: by what is known of the
/// address, of its domain, of the category, in this order. One read for all of them.
///
/// # Errors
/// The store cannot be read.
pub async fn find_blocked(
    store: &Store,
    account: AccountId,
    category: Category,
    addresses: &[&Address],
    now: Timestamp,
) -> Result<Vec<BlockedRecipient>, ReadError> {
    let optional = OPTIONAL_CATEGORIES.contains(&category);
    let mut keys = Vec::with_capacity(addresses.len() * 3);
    for address in addresses {
        let by_address = address_key(address);
        if optional {
            keys.push(opt_out::row_key(account, category, &by_address));
        }
        keys.push(row_key(account, &by_address));
        keys.push(row_key(account, &domain_key(address.domain())));
    }
    let rows = store.get_many(&keys).await?;
    let mut blocked = Vec::new();
    for (address, rows) in addresses.iter().zip(rows.chunks(2 + usize::from(optional))) {
        let (opted_out, suppressed) = rows.split_at(usize::from(optional));
        if let Some(reason) = block_reason(opted_out, suppressed, now)? {
            blocked.push(BlockedRecipient { address: (*address).clone(), reason });
        }
    }
    Ok(blocked)
}

fn block_reason(
    opted_out: &[Option<Value>],
    suppressed: &[Option<Value>],
    now: Timestamp,
) -> Result<Option<BlockReason>, ReadError> {
    for row in suppressed.iter().flatten() {
        let suppression: Suppression = row::decode(row)?;
        if suppression.is_active(now) {
            let Suppression { id, reason, .. } = suppression;
            return Ok(Some(BlockReason::Suppressed { id, reason }));
        }
    }
    let Some(row) = opted_out.iter().flatten().next() else { return Ok(None) };
    let opt_out = opt_out::decode(row)?;
    Ok(Some(BlockReason::OptedOut { id: opt_out.id, category: opt_out.category }))
}

/// What is known of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSuppression {
    /// The suppression that holds: its own, or its domain's.
    pub suppression: Option<Suppression>,
    /// The categories that it opted out of.
    pub categories: Vec<Category>,
}

/// What is known of these, in their order.
///
/// # Errors
/// The store cannot be read.
pub async fn list_address_suppressions(
    store: &Store,
    account: AccountId,
    targets: &[SuppressionTarget],
    now: Timestamp,
) -> Result<Vec<AddressSuppression>, ReadError> {
    /// Its own, its domain's, and one for each category.
    const KEYS_EACH: usize = 2 + OPTIONAL_CATEGORIES.len();
    let mut keys = Vec::with_capacity(targets.len() * KEYS_EACH);
    for target in targets {
        let own = target.key();
        let domain = match target {
            SuppressionTarget::Address(address) => domain_key(address.domain()),
            SuppressionTarget::Domain(_) => own.clone(),
        };
        keys.extend([row_key(account, &own), row_key(account, &domain)]);
        keys.extend(OPTIONAL_CATEGORIES.map(|category| opt_out::row_key(account, category, &own)));
    }
    let rows = store.get_many(&keys).await?;
    rows.chunks(KEYS_EACH)
        .map(|rows| {
            let (suppressed, opted_out) = rows.split_at(2);
            let mut standing = AddressSuppression { suppression: None, categories: Vec::new() };
            for row in suppressed.iter().flatten() {
                let found: Suppression = row::decode(row)?;
                if standing.suppression.is_none() && found.is_active(now) {
                    standing.suppression = Some(found);
                }
            }
            for row in opted_out.iter().flatten() {
                standing.categories.push(opt_out::decode(row)?.category);
            }
            Ok(standing)
        })
        .collect()
}

/// What a list is to show; what is empty does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuppressionFilter {
    /// Those of one of these reasons.
    pub reasons: Vec<SuppressionReason>,
    /// Those of one of these sources.
    pub sources: Vec<SuppressionSource>,
    /// Those that began after this, to the millisecond.
    pub created_after: Option<Timestamp>,
    /// Those that began before this, to the millisecond.
    pub created_before: Option<Timestamp>,
    /// Those that have not ended at this time.
    pub holding_at: Option<Timestamp>,
}

impl SuppressionFilter {
    /// Whether a suppression is one of those.
    #[must_use]
    pub fn matches(&self, suppression: &Suppression) -> bool {
        let millisecond = |at: Timestamp| at.as_millisecond();
        let began = millisecond(suppression.created_at);
        (self.reasons.is_empty() || self.reasons.contains(&suppression.reason))
            && (self.sources.is_empty() || self.sources.contains(&suppression.source))
            && self.created_after.is_none_or(|after| began > millisecond(after))
            && self.created_before.is_none_or(|before| began < millisecond(before))
            && self.holding_at.is_none_or(|now| suppression.is_active(now))
    }

    /// The ranges in which they lie: one, or one for each kind.
    fn ranges(&self, account: AccountId, before: Option<SuppressionId>) -> Vec<std::ops::Range<Key>> {
        let from = self.created_after.map(|after| {
            SuppressionId::new(after.checked_add(jiff::SignedDuration::from_millis(1)).unwrap_or(after), 0)
        });
        let until = self.created_before.map(|before| SuppressionId::new(before, 0));
        let until = until.into_iter().chain(before).min();
        let cut = |mut range: std::ops::Range<Key>, of_id: &dyn Fn(SuppressionId) -> Key| {
            if let Some(from) = from {
                range.start = of_id(from);
            }
            if let Some(until) = until {
                range.end = of_id(until);
            }
            range
        };
        if self.reasons.is_empty() && self.sources.is_empty() {
            let all = key(Space::SuppressionById).account(account).range();
            let range = cut(all, &|id| key_by_id(account, id));
            return Some(range).filter(|range| range.start < range.end).into_iter().collect();
        }
        let reasons = if self.reasons.is_empty() { SuppressionReason::ALL } else { &self.reasons };
        let sources = if self.sources.is_empty() { SuppressionSource::ALL } else { &self.sources };
        let kinds = reasons.iter().flat_map(|reason| sources.iter().map(|source| (*reason, *source)));
        kinds
            .map(|kind| {
                let all = key(Space::SuppressionByTime).account(account).u8(kind.0 as u8).u8(kind.1 as u8);
                cut(all.range(), &|id| key_by_kind(account, kind, id))
            })
            .filter(|range| range.start < range.end)
            .collect()
    }
}

/// A page of suppressions, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionPage {
    /// The suppressions.
    pub suppressions: Vec<Suppression>,
    /// The last of them, when there are more: the next page is of those before it.
    pub next: Option<SuppressionId>,
}

/// How often a page is looked for, when what was found has ended: a list may then be short and go on.
const PAGES_MAX: usize = 10;

/// An account's suppressions, newest first, at most `limit`, those before `before` if it is given.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &SuppressionFilter,
    before: Option<SuppressionId>,
    limit: usize,
) -> Result<SuppressionPage, ReadError> {
    let mut listed = SuppressionPage { suppressions: Vec::new(), next: before };
    for _ in 0..PAGES_MAX {
        let page = scan_page(store, account, filter, listed.next, limit).await?;
        let holds = |suppression: &Suppression| filter.holding_at.is_none_or(|now| suppression.is_active(now));
        listed.suppressions.extend(page.suppressions.into_iter().filter(holds));
        listed.next = page.next;
        if listed.suppressions.len() > limit {
            listed.suppressions.truncate(limit);
            listed.next = listed.suppressions.last().map(|last| last.id);
        }
        if listed.suppressions.len() == limit || listed.next.is_none() {
            break;
        }
    }
    Ok(listed)
}

async fn scan_page(
    store: &Store,
    account: AccountId,
    filter: &SuppressionFilter,
    before: Option<SuppressionId>,
    limit: usize,
) -> Result<SuppressionPage, ReadError> {
    let ranges = filter.ranges(account, before);
    let scans = ranges.into_iter().map(|range| store.scan(range, ScanOrder::Descending, limit + 1));
    let mut entries = Vec::new();
    for (entry, row_key) in try_join_all(scans).await?.into_iter().flatten() {
        entries.push((id_of(&entry)?, row_key));
    }
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.0));
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|(id, _)| *id);
    let keys: Vec<Key> = entries.iter().map(|(_, row_key)| row_key.clone()).collect();
    let rows = store.get_many(&keys).await?;
    let mut suppressions = Vec::with_capacity(rows.len());
    for ((id, _), row) in entries.into_iter().zip(rows) {
        // What was changed in between stands elsewhere in the list by now.
        let suppression = row.as_deref().map(row::decode::<Suppression>).transpose()?;
        suppressions.extend(suppression.filter(|suppression| suppression.id == id));
    }
    Ok(SuppressionPage { suppressions, next })
}

/// The id at the end of an entry's key.
fn id_of(entry: &Key) -> Result<SuppressionId, ReadError> {
    let space = if entry.first() == Some(&(Space::SuppressionById as u8)) {
        Space::SuppressionById
    } else {
        Space::SuppressionByTime
    };
    let mut reader = KeyReader::new(space, entry).map_err(row::damaged)?;
    reader.account().map_err(row::damaged)?;
    if space == Space::SuppressionByTime {
        reader.u16().map_err(row::damaged)?;
    }
    reader.id().map(SuppressionId::from_bytes).map_err(row::damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::suppression::SuppressionCause;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn account(n: u128) -> AccountId {
        AccountId::new(at(0), n)
    }

    fn target(text: &str) -> SuppressionTarget {
        text.parse().unwrap()
    }

    async fn suppress(store: &Store, text: &str, reason: SuppressionReason, second: i64) -> Suppression {
        let before = get(store, account(1), &target(text)).await.unwrap();
        let grounds = SuppressionCause::new(target(text), reason, SuppressionSource::System);
        let id = SuppressionId::new(at(second), u128::try_from(second).unwrap());
        let standing = before.as_ref().map(|found| &found.suppression);
        let after = Suppression::apply_cause(standing, grounds, account(1), id, at(second)).unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, before.as_ref(), &after);
        store.commit(batch).await.unwrap();
        after
    }

    async fn rows(store: &Store) -> usize {
        let spaces = [Space::Suppression, Space::SuppressionById, Space::SuppressionByTime];
        let scans = spaces.map(|space| store.scan(key(space).range(), ScanOrder::Ascending, 10_000));
        try_join_all(scans).await.unwrap().iter().map(Vec::len).sum()
    }

    #[tokio::test]
    async fn a_send_is_told_whom_it_may_not_reach() {
        let store = Store::memory();
        let hard = suppress(&store, "Ada@example.net", SuppressionReason::HardBounce, 1).await;
        let soft = suppress(&store, "soft@example.net", SuppressionReason::SoftBounce, 2).await;
        let domain = suppress(&store, "@example.org", SuppressionReason::Manual, 3).await;
        let out = mail::suppression::OptOut {
            id: mail::id::OptOutId::new(at(4), 4),
            account: account(1),
            address: "new@example.net".parse().unwrap(),
            category: Category::Newsletter,
            source: SuppressionSource::Api,
            email: None,
            created_at: at(4),
        };
        let mut batch = Batch::progress();
        opt_out::create(&mut batch, &out);
        store.commit(batch).await.unwrap();
        let addresses: Vec<Address> =
            ["ada@EXAMPLE.net", "soft@example.net", "x@example.org", "new@example.net", "free@example.net"]
                .map(|text| text.parse().unwrap())
                .to_vec();
        let all: Vec<&Address> = addresses.iter().collect();
        let of = |blocked: Vec<BlockedRecipient>| -> Vec<(String, BlockReason)> {
            blocked.into_iter().map(|b| (b.address.to_string(), b.reason)).collect()
        };
        let suppressed = |s: &Suppression| BlockReason::Suppressed { id: s.id, reason: s.reason };
        let mut expected = vec![
            ("ada@example.net".to_owned(), suppressed(&hard)),
            ("soft@example.net".to_owned(), suppressed(&soft)),
            ("x@example.org".to_owned(), suppressed(&domain)),
        ];
        let found = of(find_blocked(&store, account(1), Category::Transactional, &all, at(10)).await.unwrap());
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), expected.iter().map(|f| f.1).collect::<Vec<_>>());
        let later = at(10 + 24 * 3600);
        expected.remove(1);
        let opted = BlockReason::OptedOut { id: out.id, category: Category::Newsletter };
        expected.push(("new@example.net".to_owned(), opted));
        let found = of(find_blocked(&store, account(1), Category::Newsletter, &all, later).await.unwrap());
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), expected.iter().map(|f| f.1).collect::<Vec<_>>());
        let other = find_blocked(&store, account(2), Category::Newsletter, &all, at(10)).await.unwrap();
        assert_eq!(other, [], "another account's");
        assert!(find_blocked(&store, account(1), Category::Product, &[], at(10)).await.unwrap().is_empty());
        let asked = [target("NEW@example.net"), target("y@example.org"), target("@example.org")];
        let standings = list_address_suppressions(&store, account(1), &asked, later).await.unwrap();
        assert_eq!(standings[0], AddressSuppression { suppression: None, categories: vec![Category::Newsletter] });
        assert_eq!(standings[1].suppression.as_ref(), Some(&domain));
        assert_eq!(standings[2].suppression.as_ref(), Some(&domain));
    }

    #[tokio::test]
    async fn lists_are_filtered_by_kind_and_time_and_go_on_where_they_ended() {
        let store = Store::memory();
        for n in 0..30 {
            let reason =
                [SuppressionReason::HardBounce, SuppressionReason::SoftBounce, SuppressionReason::Complaint][n % 3];
            suppress(&store, &format!("a{n}@example.net"), reason, i64::try_from(n).unwrap()).await;
        }
        let everything = SuppressionFilter::default();
        let list = async |account, filter, before, limit| {
            let listed = list(&store, account, filter, before, limit).await.unwrap();
            (listed.suppressions, listed.next)
        };
        let (all, next) = list(account(1), &everything, None, 100).await;
        assert_eq!(next, None);
        assert_eq!(all.len(), 30);
        assert!(all.is_sorted_by(|a, b| a.id > b.id));
        let mut paged = Vec::new();
        let two = SuppressionFilter {
            reasons: vec![SuppressionReason::HardBounce, SuppressionReason::Complaint],
            ..SuppressionFilter::default()
        };
        let mut before = None;
        loop {
            let (page, next) = list(account(1), &two, before, 7).await;
            paged.extend(page);
            before = next;
            if before.is_none() {
                break;
            }
        }
        let wanted: Vec<_> = all.iter().filter(|s| s.reason != SuppressionReason::SoftBounce).cloned().collect();
        assert_eq!(paged, wanted);
        let window = SuppressionFilter {
            sources: vec![SuppressionSource::System],
            created_after: Some(at(9)),
            created_before: Some(at(20)),
            ..SuppressionFilter::default()
        };
        let in_window = list(account(1), &window, None, 100).await.0;
        assert_eq!(in_window.len(), 10, "after 9 and before 20");
        let holding = SuppressionFilter { holding_at: Some(at(5 + 24 * 3600)), ..SuppressionFilter::default() };
        let (first, next) = list(account(1), &holding, None, 15).await;
        let (rest, end) = list(account(1), &holding, next, 15).await;
        let wanted: Vec<_> = all.iter().filter(|s| s.is_active(at(5 + 24 * 3600))).cloned().collect();
        assert_eq!((wanted.len(), end), (28, None), "two have ended");
        assert_eq!([first, rest].concat(), wanted);
        let none = SuppressionFilter { sources: vec![SuppressionSource::Api], ..SuppressionFilter::default() };
        assert!(list(account(1), &none, None, 100).await.0.is_empty());
        assert!(list(account(2), &everything, None, 100).await.0.is_empty());
        let backwards = SuppressionFilter { created_after: Some(at(20)), created_before: Some(at(9)), ..two.clone() };
        assert!(list(account(1), &backwards, None, 100).await.0.is_empty());
    }

    #[tokio::test]
    async fn no_entry_is_left_behind() {
        let store = Store::memory();
        let soft = suppress(&store, "a@example.net", SuppressionReason::SoftBounce, 1).await;
        let again = suppress(&store, "a@example.net", SuppressionReason::SoftBounce, 24 * 3600 + 2).await;
        assert_ne!(soft.id, again.id);
        assert_eq!(find_by_id(&store, account(1), soft.id).await.unwrap(), None);
        let complaint = suppress(&store, "A@example.net", SuppressionReason::Complaint, 24 * 3600 + 3).await;
        assert_eq!(rows(&store).await, 3, "a row and two entries");
        let found = find_by_id(&store, account(1), complaint.id).await.unwrap().unwrap();
        assert_eq!(found.suppression, complaint);
        let mut batch = Batch::progress();
        delete(&mut batch, &found);
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "gone already");
        assert_eq!(rows(&store).await, 0);
    }

    #[tokio::test]
    async fn of_two_at_once_the_second_is_told() {
        let store = Store::memory();
        let grounds = |reason| SuppressionCause::new(target("a@example.net"), reason, SuppressionSource::System);
        let id = SuppressionId::new(at(1), 1);
        let one =
            Suppression::apply_cause(None, grounds(SuppressionReason::SoftBounce), account(1), id, at(1)).unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, None, &one);
        store.commit(batch.clone()).await.unwrap();
        match store.commit(batch).await {
            Err(crate::engine::CommitError::Conflict { key }) => assert!(caused_conflict(&key)),
            other => panic!("{other:?}"),
        }
    }
}
