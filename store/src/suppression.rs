//! Suppressions: one row each by target, so that a send reads those of all its recipients at once.
//!
//! ```text
//! account, address or @domain  ─►  the suppression  read by sends, checked by changes
//! account, id                  ─►  the row's key    lists, newest first
//! account, reason, source, id  ─►  the row's key    filtered lists
//! ```
//!
//! A filtered list merges the ranges of the reasons and sources that it includes, so a page costs the same regardless
//! of the number of suppressions. Changes check the row they were based on, so concurrent changes both take effect.

use futures_util::future::try_join_all;
use jiff::Timestamp;
use message::address::Address;
use model::email::Category;
use model::id::{AccountId, SuppressionId};
use model::suppression::{
    BlockReason, BlockedRecipient, OPTIONAL_CATEGORIES, OptOut, Suppression, SuppressionReason, SuppressionSource,
    SuppressionTarget, address_keys, domain_key,
};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::opt_out;

stored!(Suppression);

/// A suppression with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSuppression {
    pub suppression: Suppression,
    /// One of the keys of the target ([`SuppressionTarget::keys`]).
    key: Key,
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

fn key_by_kind(account: AccountId, reason: SuppressionReason, source: SuppressionSource, id: SuppressionId) -> Key {
    let kind = key(Space::SuppressionByTime).account(account).u8(reason as u8).u8(source as u8);
    kind.id(id.to_bytes()).build()
}

fn index(suppression: &Suppression) -> [Key; 2] {
    let Suppression { account, id, reason, source, .. } = suppression;
    [key_by_id(*account, *id), key_by_kind(*account, *reason, *source, *id)]
}

fn decode_stored(key: Key, row: Value) -> Result<StoredSuppression> {
    Ok(StoredSuppression { suppression: codec::decode(&row)?, key, row })
}

/// Reads the suppressions of several targets, in the order of `targets`, including expired ones.
pub async fn get_many(
    store: &Store,
    account: AccountId,
    targets: &[SuppressionTarget],
) -> Result<Vec<Option<StoredSuppression>>> {
    let (mut keys, mut counts) = (Vec::with_capacity(targets.len()), Vec::with_capacity(targets.len()));
    for target in targets {
        let first = keys.len();
        keys.extend(target.keys().map(|key| row_key(account, &key)));
        counts.push(keys.len() - first);
    }
    let rows = store.get_many(&keys).await?;
    let mut rows = keys.into_iter().zip(rows);
    let found = counts.into_iter().map(|count| {
        let rows = rows.by_ref().take(count).filter_map(|(key, row)| Some((key, row?)));
        rows.reduce(|first, _| first).map(|(key, row)| decode_stored(key, row)).transpose()
    });
    found.collect()
}

/// Reads the suppression of a target, even if it has expired.
pub async fn get(store: &Store, account: AccountId, target: &SuppressionTarget) -> Result<Option<StoredSuppression>> {
    Ok(get_many(store, account, std::slice::from_ref(target)).await?.pop().flatten())
}

/// Finds a suppression by its id, even if it has expired.
pub async fn find_by_id(store: &Store, account: AccountId, id: SuppressionId) -> Result<Option<StoredSuppression>> {
    let Some(row_key) = store.get(&key_by_id(account, id)).await? else { return Ok(None) };
    let found = store.get(&row_key).await?.map(|row| decode_stored(row_key, row)).transpose()?;
    Ok(found.filter(|found| found.suppression.id == id))
}

/// Writes a suppression and replaces the one in `before`. The commit conflicts if the row has changed since it was
/// read.
pub fn put(batch: &mut Batch, before: Option<&StoredSuppression>, after: &Suppression) {
    let row_key = key_of(after);
    match before {
        // Version 0.1.0 stored it under another key.
        Some(found) if found.key != row_key => {
            batch.check(row_key.clone(), None);
            batch.remove(found.key.clone(), found.row.clone());
        }
        found => {
            batch.check(row_key.clone(), found.map(|found| found.row.clone()));
        }
    }
    for old in before.iter().flat_map(|found| index(&found.suppression)) {
        batch.delete(old);
    }
    for new in index(after) {
        batch.put(new, row_key.clone());
    }
    batch.put(row_key, codec::encode(after));
}

/// Deletes a suppression. The commit conflicts if the row has changed since it was read.
pub fn delete(batch: &mut Batch, found: &StoredSuppression) {
    batch.remove(found.key.clone(), found.row.clone());
    for old in index(&found.suppression) {
        batch.delete(old);
    }
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::Suppression.holds(conflict)
}

/// Returns the addresses that mail of this category must not be sent to, with the reason: a suppression of the address,
/// of its domain, or an opt-out of the category, in this order. One read for all addresses.
pub async fn find_blocked(
    store: &Store,
    account: AccountId,
    category: Category,
    addresses: &[&Address],
    now: Timestamp,
) -> Result<Vec<BlockedRecipient>> {
    let optional = OPTIONAL_CATEGORIES.contains(&category);
    let (mut keys, mut counts) = (Vec::with_capacity(addresses.len() * 3), Vec::with_capacity(addresses.len()));
    for address in addresses {
        let by_address: Vec<String> = address_keys(address).collect();
        if optional {
            keys.extend(by_address.iter().map(|by_address| opt_out::row_key(account, category, by_address)));
        }
        keys.extend(by_address.iter().map(|by_address| row_key(account, by_address)));
        keys.push(row_key(account, &domain_key(address.domain())));
        counts.push(by_address.len());
    }
    let rows = store.get_many(&keys).await?;
    let (mut blocked, mut rest) = (Vec::new(), rows.as_slice());
    for (address, count) in addresses.iter().zip(counts) {
        let (opted_out, others) = rest.split_at(if optional { count } else { 0 });
        let (suppressed, later) = others.split_at(count + 1);
        rest = later;
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
) -> Result<Option<BlockReason>> {
    for row in suppressed.iter().flatten() {
        let suppression: Suppression = codec::decode(row)?;
        if suppression.is_active(now) {
            let Suppression { id, reason, .. } = suppression;
            return Ok(Some(BlockReason::Suppressed { id, reason }));
        }
    }
    let Some(row) = opted_out.iter().flatten().next() else { return Ok(None) };
    let opt_out: OptOut = codec::decode(row)?;
    Ok(Some(BlockReason::OptedOut { id: opt_out.id, category: opt_out.category }))
}

/// Suppression state of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSuppression {
    /// The active suppression of the address, or else of its domain.
    pub suppression: Option<Suppression>,
    /// Categories from which the address has opted out.
    pub categories: Vec<Category>,
}

/// Reads the suppression state of several targets, in the order of `targets`.
pub async fn list_address_suppressions(
    store: &Store,
    account: AccountId,
    targets: &[SuppressionTarget],
    now: Timestamp,
) -> Result<Vec<AddressSuppression>> {
    let (mut keys, mut counts) = (Vec::new(), Vec::with_capacity(targets.len()));
    for target in targets {
        let own: Vec<String> = target.keys().collect();
        let domain = match target {
            SuppressionTarget::Address(address) => address.domain(),
            SuppressionTarget::Domain(domain) => domain,
        };
        keys.extend(own.iter().map(|own| row_key(account, own)));
        keys.push(row_key(account, &domain_key(domain)));
        for category in OPTIONAL_CATEGORIES {
            keys.extend(own.iter().map(|own| opt_out::row_key(account, category, own)));
        }
        counts.push(own.len());
    }
    let rows = store.get_many(&keys).await?;
    let mut rest = rows.as_slice();
    counts
        .into_iter()
        .map(|count| {
            let (suppressed, others) = rest.split_at(count + 1);
            let (opted_out, later) = others.split_at(count * OPTIONAL_CATEGORIES.len());
            rest = later;
            let mut address_suppression = AddressSuppression { suppression: None, categories: Vec::new() };
            for row in suppressed.iter().flatten() {
                let found: Suppression = codec::decode(row)?;
                if address_suppression.suppression.is_none() && found.is_active(now) {
                    address_suppression.suppression = Some(found);
                }
            }
            for row in opted_out.iter().flatten() {
                address_suppression.categories.push(codec::decode::<OptOut>(row)?.category);
            }
            address_suppression.categories.dedup();
            Ok(address_suppression)
        })
        .collect()
}

/// Filter of a suppression list; empty conditions match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuppressionFilter {
    /// Any of these.
    pub reasons: Vec<SuppressionReason>,
    /// Any of these.
    pub sources: Vec<SuppressionSource>,
    /// Exclusive, with millisecond precision.
    pub created_after: Option<Timestamp>,
    /// Exclusive, with millisecond precision.
    pub created_before: Option<Timestamp>,
    /// Active at this time.
    pub holding_at: Option<Timestamp>,
}

impl SuppressionFilter {
    pub fn matches(&self, suppression: &Suppression) -> bool {
        let millisecond = |at: Timestamp| at.as_millisecond();
        let began = millisecond(suppression.created_at);
        (self.reasons.is_empty() || self.reasons.contains(&suppression.reason))
            && (self.sources.is_empty() || self.sources.contains(&suppression.source))
            && self.created_after.is_none_or(|after| began > millisecond(after))
            && self.created_before.is_none_or(|before| began < millisecond(before))
            && self.holding_at.is_none_or(|now| suppression.is_active(now))
    }

    /// The key ranges to scan: one, or one for each pair of reason and source.
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
        let reasons = if self.reasons.is_empty() { &SuppressionReason::ALL[..] } else { &self.reasons };
        let sources = if self.sources.is_empty() { &SuppressionSource::ALL[..] } else { &self.sources };
        let kinds = reasons.iter().flat_map(|reason| sources.iter().map(|source| (*reason, *source)));
        kinds
            .map(|(reason, source)| {
                let all = key(Space::SuppressionByTime).account(account).u8(reason as u8).u8(source as u8);
                cut(all.range(), &|id| key_by_kind(account, reason, source, id))
            })
            .filter(|range| range.start < range.end)
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionPage {
    /// Newest first.
    pub suppressions: Vec<Suppression>,
    /// Cursor of the next page, which starts before this suppression, if there is one.
    pub next: Option<SuppressionId>,
}

/// Maximum number of pages scanned for one result when many suppressions have expired. The result may be short and have
/// a cursor.
const PAGES_MAX: usize = 10;

/// Lists an account's suppressions that match, before `before`, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &SuppressionFilter,
    before: Option<SuppressionId>,
    limit: usize,
) -> Result<SuppressionPage> {
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
) -> Result<SuppressionPage> {
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
        // A suppression that was changed meanwhile has a new id.
        let suppression = row.as_deref().map(codec::decode::<Suppression>).transpose()?;
        suppressions.extend(suppression.filter(|suppression| suppression.id == id));
    }
    Ok(SuppressionPage { suppressions, next })
}

/// The id at the end of an index key.
fn id_of(entry: &Key) -> Result<SuppressionId> {
    let by_time = KeyReader::new(Space::SuppressionByTime, entry);
    let is_by_time = by_time.is_ok();
    let mut reader = by_time.or_else(|_| KeyReader::new(Space::SuppressionById, entry))?;
    reader.account()?;
    if is_by_time {
        reader.u16()?;
    }
    Ok(SuppressionId::from_bytes(reader.id()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::suppression::SuppressionCause;

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
        let cause = SuppressionCause::new(target(text), reason, SuppressionSource::System);
        let id = SuppressionId::new(at(second), u128::try_from(second).unwrap());
        let current = before.as_ref().map(|found| &found.suppression);
        let after = Suppression::apply_cause(current, cause, account(1), id, at(second)).unwrap();
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
    async fn suppressed_recipients_are_found_for_a_send() {
        let store = Store::memory();
        let hard = suppress(&store, "Ada@example.net", SuppressionReason::HardBounce, 1).await;
        let soft = suppress(&store, "soft@example.net", SuppressionReason::SoftBounce, 2).await;
        let domain = suppress(&store, "@example.org", SuppressionReason::Manual, 3).await;
        let out = model::suppression::OptOut {
            id: model::id::OptOutId::new(at(4), 4),
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
        let reasons = |blocked: Vec<BlockedRecipient>| -> Vec<(String, BlockReason)> {
            blocked.into_iter().map(|b| (b.address.to_string(), b.reason)).collect()
        };
        let suppressed = |s: &Suppression| BlockReason::Suppressed { id: s.id, reason: s.reason };
        let mut expected = vec![
            ("ada@example.net".to_owned(), suppressed(&hard)),
            ("soft@example.net".to_owned(), suppressed(&soft)),
            ("x@example.org".to_owned(), suppressed(&domain)),
        ];
        let found = reasons(find_blocked(&store, account(1), Category::Transactional, &all, at(10)).await.unwrap());
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), expected.iter().map(|f| f.1).collect::<Vec<_>>());
        let later = at(10 + 24 * 3600);
        expected.remove(1);
        let opted = BlockReason::OptedOut { id: out.id, category: Category::Newsletter };
        expected.push(("new@example.net".to_owned(), opted));
        let found = reasons(find_blocked(&store, account(1), Category::Newsletter, &all, later).await.unwrap());
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), expected.iter().map(|f| f.1).collect::<Vec<_>>());
        let other = find_blocked(&store, account(2), Category::Newsletter, &all, at(10)).await.unwrap();
        assert_eq!(other, [], "another account's");
        assert!(find_blocked(&store, account(1), Category::Product, &[], at(10)).await.unwrap().is_empty());
        let targets = [target("NEW@example.net"), target("y@example.org"), target("@example.org")];
        let suppressions = list_address_suppressions(&store, account(1), &targets, later).await.unwrap();
        assert_eq!(suppressions[0], AddressSuppression { suppression: None, categories: vec![Category::Newsletter] });
        assert_eq!(suppressions[1].suppression.as_ref(), Some(&domain));
        assert_eq!(suppressions[2].suppression.as_ref(), Some(&domain));
    }

    #[tokio::test]
    async fn every_spelling_of_an_address_is_blocked() {
        let store = Store::memory();
        let [composed, decomposed]: [Address; 2] =
            ["\u{e9}@example.net", "E\u{301}@example.net"].map(|text| text.parse().unwrap());
        let blocked = async |address: &Address, category| {
            find_blocked(&store, account(1), category, &[address], at(5)).await.unwrap().len()
        };
        suppress(&store, "\u{c9}@example.net", SuppressionReason::Manual, 1).await;
        assert_eq!(blocked(&composed, Category::Transactional).await, 1);
        assert_eq!(blocked(&decomposed, Category::Newsletter).await, 1);
        let found = get(&store, account(1), &decomposed.clone().into()).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        delete(&mut batch, &found);
        store.commit(batch).await.unwrap();
        assert_eq!(rows(&store).await, 0);

        // Rows as version 0.1.0 stored them: their keys are not composed.
        let cause =
            SuppressionCause::new(decomposed.clone(), SuppressionReason::Unsubscribe, SuppressionSource::Recipient);
        let former = Suppression::apply_cause(None, cause, account(1), SuppressionId::new(at(1), 1), at(1)).unwrap();
        let out = OptOut {
            id: model::id::OptOutId::new(at(1), 1),
            account: account(1),
            address: decomposed.clone(),
            category: Category::Newsletter,
            source: SuppressionSource::Recipient,
            email: None,
            created_at: at(1),
        };
        let former_key = row_key(account(1), "e\u{301}@example.net");
        let mut batch = Batch::progress();
        batch.put(former_key.clone(), codec::encode(&former));
        for entry in index(&former) {
            batch.put(entry, former_key.clone());
        }
        let former_key = opt_out::row_key(account(1), out.category, "e\u{301}@example.net");
        batch.put(key(Space::OptOutById).account(account(1)).u8(2).id(out.id.to_bytes()).build(), former_key.clone());
        batch.put(former_key, codec::encode(&out));
        store.commit(batch).await.unwrap();
        assert_eq!(blocked(&decomposed, Category::Transactional).await, 1);
        let targets = [SuppressionTarget::from(decomposed.clone()), target("@example.net")];
        let state = list_address_suppressions(&store, account(1), &targets, at(5)).await.unwrap();
        assert_eq!(
            (state[0].suppression.as_ref(), state[0].categories.as_slice()),
            (Some(&former), &[out.category][..])
        );
        assert_eq!(state[1], AddressSuppression::default());
        // A change moves the row to the key of today.
        let complaint = suppress(&store, "E\u{301}@example.net", SuppressionReason::Complaint, 2).await;
        assert_eq!((complaint.id, rows(&store).await), (former.id, 3), "a row and two entries");
        assert_eq!(blocked(&composed, Category::Transactional).await, 1);
        let found = find_by_id(&store, account(1), complaint.id).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        delete(&mut batch, &found);
        let opt_outs = opt_out::list_by_address(&store, account(1), &decomposed, &OPTIONAL_CATEGORIES).await.unwrap();
        assert_eq!(opt_outs, [out]);
        opt_out::delete(&store, &mut batch, &opt_outs[0]).await.unwrap();
        store.commit(batch).await.unwrap();
        assert_eq!(rows(&store).await, 0);
        assert_eq!(blocked(&decomposed, Category::Newsletter).await, 0);
    }

    #[tokio::test]
    async fn lists_are_filtered_by_kind_and_time_and_paged() {
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
        assert_eq!((wanted.len(), end), (28, None), "two have expired");
        assert_eq!([first, rest].concat(), wanted);
        let none = SuppressionFilter { sources: vec![SuppressionSource::Api], ..SuppressionFilter::default() };
        assert!(list(account(1), &none, None, 100).await.0.is_empty());
        assert!(list(account(2), &everything, None, 100).await.0.is_empty());
        let backwards = SuppressionFilter { created_after: Some(at(20)), created_before: Some(at(9)), ..two.clone() };
        assert!(list(account(1), &backwards, None, 100).await.0.is_empty());
    }

    #[tokio::test]
    async fn no_index_entry_remains() {
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
    async fn the_second_of_two_concurrent_changes_conflicts() {
        let store = Store::memory();
        let cause = |reason| SuppressionCause::new(target("a@example.net"), reason, SuppressionSource::System);
        let id = SuppressionId::new(at(1), 1);
        let suppression =
            Suppression::apply_cause(None, cause(SuppressionReason::SoftBounce), account(1), id, at(1)).unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, None, &suppression);
        store.commit(batch.clone()).await.unwrap();
        match store.commit(batch).await {
            Err(crate::engine::CommitError::Conflict { key }) => assert!(caused_conflict(&key)),
            other => panic!("{other:?}"),
        }
    }
}
