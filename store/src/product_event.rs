//! Product events: one row each, ordered by time, and index entries by name, address, user and API key.
//!
//! ```text
//! ProductEvent   · account · id                         ─►  the event
//! ProductEventBy · account · index · hash of text · id  ─►  (empty)
//! ```
//!
//! Each condition of a filter is a range of one index. With several conditions, the most selective index is scanned,
//! and the others are checked on the rows. The number of rows scanned is bounded, so a page may be shorter than its
//! limit and still have a cursor.

use model::credential::CredentialId;
use model::id::{AccountId, ProductEventId};
use model::product_event::ProductEvent;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyBuilder, Space, key};
use crate::rows;

/// Maximum number of rows scanned for a page.
pub const LOOKED_THROUGH_MAX: usize = 2_000;
/// Rows per read.
const PAGE_ROWS: usize = 200;

/// A stored event with the credential that sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredProductEvent {
    #[serde(flatten)]
    pub event: ProductEvent,
    /// The API key that sent the event; `None` for a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<CredentialId>,
}

stored!(StoredProductEvent);

/// A secondary index. The number is part of the key.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum ProductEventIndex {
    Name = 1,
    Email = 2,
    User = 3,
    Credential = 4,
}

fn key_of(account: AccountId, id: ProductEventId) -> Key {
    key(Space::ProductEvent).account(account).id(id.to_bytes()).build()
}

/// The first 16 bytes of a text's SHA-256, which keep keys short for any text. The row is compared to rule out
/// collisions.
pub(crate) fn hash(text: &str) -> [u8; 16] {
    let digest = Sha256::digest(text.as_bytes());
    let mut short = [0; 16];
    short.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    short
}

fn index_prefix(account: AccountId, list: ProductEventIndex, text: &str) -> KeyBuilder {
    key(Space::ProductEventBy).account(account).u8(list as u8).fixed(hash(text))
}

/// Normalises an address for comparison.
pub fn normalize_email(email: &str) -> String {
    email.to_lowercase()
}

fn index_keys(stored: &StoredProductEvent) -> Vec<Key> {
    let StoredProductEvent { event, sent_by } = stored;
    let email = event.email.as_deref().map(normalize_email);
    let texts = [
        (ProductEventIndex::Name, Some(event.name.clone())),
        (ProductEventIndex::Email, email),
        (ProductEventIndex::User, event.user_id.clone()),
        (ProductEventIndex::Credential, sent_by.map(|id| id.to_string())),
    ];
    let key = |(list, text): (ProductEventIndex, Option<String>)| {
        Some(index_prefix(event.account, list, &text?).id(event.id.to_bytes()).build())
    };
    texts.into_iter().filter_map(key).collect()
}

/// Writes an event and its index entries.
pub fn record(batch: &mut Batch, stored: &StoredProductEvent) {
    batch.put_fresh(key_of(stored.event.account, stored.event.id), codec::encode(stored));
    for entry in index_keys(stored) {
        batch.put_fresh(entry, Vec::new());
    }
}

/// Reads an event of an account.
pub async fn get(store: &Store, account: AccountId, id: ProductEventId) -> Result<Option<StoredProductEvent>> {
    rows::get(store, &key_of(account, id)).await
}

/// Reads several events of any accounts, in the order of `ids`; `None` for deleted ones.
pub async fn get_many(store: &Store, ids: &[(AccountId, ProductEventId)]) -> Result<Vec<Option<ProductEvent>>> {
    let keys: Vec<Key> = ids.iter().map(|(account, id)| key_of(*account, *id)).collect();
    let found: Vec<Option<StoredProductEvent>> = rows::get_each(store, &keys).await?;
    Ok(found.into_iter().map(|stored| Some(stored?.event)).collect())
}

/// Filter of an event list; all conditions must match.
#[derive(Debug, Clone, Default)]
pub struct ProductEventFilter {
    pub name: Option<String>,
    /// Compared case-insensitively.
    pub email: Option<String>,
    pub user_id: Option<String>,
    /// The API key that sent the event.
    pub sent_by: Option<CredentialId>,
    /// Inclusive.
    pub since: Option<ProductEventId>,
    /// Exclusive.
    pub before: Option<ProductEventId>,
}

impl ProductEventFilter {
    fn matches(&self, stored: &StoredProductEvent) -> bool {
        let StoredProductEvent { event, sent_by } = stored;
        let email = |wanted: &String| event.email.as_deref().map(normalize_email) == Some(normalize_email(wanted));
        self.name.as_ref().is_none_or(|name| *name == event.name)
            && self.email.as_ref().is_none_or(email)
            && self.user_id.as_ref().is_none_or(|user| Some(user) == event.user_id.as_ref())
            && self.sent_by.is_none_or(|key| Some(key) == *sent_by)
    }

    /// Prefix of the index to scan: the first given of user, address, name and API key.
    fn scan_prefix(&self, account: AccountId) -> KeyBuilder {
        let by = |list, text: &str| index_prefix(account, list, text);
        if let Some(user) = &self.user_id {
            by(ProductEventIndex::User, user)
        } else if let Some(email) = &self.email {
            by(ProductEventIndex::Email, &normalize_email(email))
        } else if let Some(name) = &self.name {
            by(ProductEventIndex::Name, name)
        } else if let Some(sent_by) = self.sent_by {
            by(ProductEventIndex::Credential, &sent_by.to_string())
        } else {
            key(Space::ProductEvent).account(account)
        }
    }
}

#[derive(Debug, Default)]
pub struct ProductEventPage {
    /// Newest first.
    pub events: Vec<ProductEvent>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<ProductEventId>,
}

/// Lists an account's events that match a filter, newest first.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &ProductEventFilter,
    limit: usize,
) -> Result<ProductEventPage> {
    let walked = filter.scan_prefix(account);
    let mut range = walked.clone().range();
    if let Some(since) = filter.since {
        range.start = walked.clone().id(since.to_bytes()).build();
    }
    if let Some(before) = filter.before {
        range.end = walked.clone().id(before.to_bytes()).build();
    }
    let (mut page, mut looked) = (ProductEventPage::default(), 0);
    while range.start < range.end {
        let rows = store.scan(range.clone(), ScanOrder::Descending, PAGE_ROWS).await?;
        let ids: Vec<ProductEventId> = rows.iter().filter_map(|(entry, _)| id_of(entry)).collect();
        let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
        for (id, row) in ids.iter().zip(store.get_many(&keys).await?) {
            let Some(row) = row else { continue };
            let stored: StoredProductEvent = codec::decode(&row)?;
            if !filter.matches(&stored) {
                continue;
            }
            if page.events.len() == limit {
                page.next = page.events.last().map(|event| event.id);
                return Ok(page);
            }
            page.events.push(stored.event);
            debug_assert_eq!(page.events.last().map(|event| event.id), Some(*id));
        }
        looked += rows.len();
        let Some((last, _)) = rows.last().filter(|_| rows.len() == PAGE_ROWS) else { return Ok(page) };
        if looked >= LOOKED_THROUGH_MAX {
            page.next = ids.last().copied();
            return Ok(page);
        }
        range.end = last.clone();
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(page)
}

/// The id at the end of a key.
fn id_of(entry: &Key) -> Option<ProductEventId> {
    entry.last_chunk::<16>().map(|bytes| ProductEventId::from_bytes(*bytes))
}

/// Deletes an account's events before an id, oldest first, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: ProductEventId,
    limit: usize,
) -> Result<usize> {
    let range = key(Space::ProductEvent).account(account).build()..key_of(account, before);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, row) in rows {
        batch.delete(row_key);
        for entry in index_keys(&codec::decode::<StoredProductEvent>(&row)?) {
            batch.delete(entry);
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(n: i64, name: &str, user: Option<&str>, email: Option<&str>) -> StoredProductEvent {
        let event = ProductEvent {
            id: ProductEventId::new(at(n), u128::try_from(n).unwrap()),
            account: AccountId::new(at(0), 1),
            name: name.to_owned(),
            user_id: user.map(str::to_owned),
            email: email.map(str::to_owned),
            data: json!({"n": n}),
            source: "api".to_owned(),
            created_at: at(n),
        };
        StoredProductEvent { event, sent_by: None }
    }

    #[tokio::test]
    async fn filters_and_pages_return_all_matches() {
        let store = Store::memory();
        let account = AccountId::new(at(0), 1);
        let mut batch = Batch::intake();
        for n in 0..600 {
            let (name, user) = (["a", "b", "c"][n as usize % 3], format!("u{}", n % 2));
            let email = (n % 5 == 0).then_some("Ada@example.com");
            record(&mut batch, &event(n, name, Some(&user), email));
        }
        store.commit(batch).await.unwrap();
        let all = async |filter: &ProductEventFilter, limit: usize| {
            let (mut filter, mut listed) = (filter.clone(), Vec::new());
            loop {
                let page = list(&store, account, &filter, limit).await.unwrap();
                listed.extend(page.events.iter().map(|event| event.created_at.as_second()));
                filter.before = page.next;
                if page.next.is_none() {
                    return listed;
                }
            }
        };
        let expected = |keep: &dyn Fn(i64) -> bool| (0..600).rev().filter(|n| keep(*n)).collect::<Vec<_>>();
        let text = |text: &str| Some(text.to_owned());
        for limit in [7, 100] {
            assert_eq!(all(&ProductEventFilter::default(), limit).await, expected(&|_| true));
            assert_eq!(
                all(&ProductEventFilter { name: text("b"), ..ProductEventFilter::default() }, limit).await,
                expected(&|n| n % 3 == 1)
            );
            let email = ProductEventFilter { email: text("ada@EXAMPLE.com"), ..ProductEventFilter::default() };
            assert_eq!(all(&email, limit).await, expected(&|n| n % 5 == 0));
            let both = ProductEventFilter { user_id: text("u1"), name: text("a"), ..email };
            assert_eq!(all(&both, limit).await, expected(&|n| n % 2 == 1 && n % 3 == 0 && n % 5 == 0));
            let since = Some(ProductEventId::new(at(500), 0));
            let since = ProductEventFilter { name: text("a"), since, ..ProductEventFilter::default() };
            assert_eq!(all(&since, limit).await, expected(&|n| n >= 500 && n % 3 == 0));
        }
        assert_eq!(
            all(&ProductEventFilter { name: text("none"), ..ProductEventFilter::default() }, 9).await,
            [0i64; 0]
        );
        let other = AccountId::new(at(0), 2);
        assert!(list(&store, other, &ProductEventFilter::default(), 5).await.unwrap().events.is_empty());
        let mut batch = Batch::progress();
        let before = ProductEventId::new(at(590), 0);
        assert_eq!(purge_before(&store, &mut batch, account, before, 1_000).await.unwrap(), 590);
        store.commit(batch).await.unwrap();
        assert_eq!(all(&ProductEventFilter::default(), 7).await, expected(&|n| n >= 590));
        let range = key(Space::ProductEventBy).range();
        let left = store.scan(range, ScanOrder::Ascending, 1_000).await.unwrap();
        assert_eq!(left.len(), 10 + 10 + 2, "no index has entries of deleted events");
    }
}
