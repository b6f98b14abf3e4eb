//! Opt-outs: one row each by category and address, and an index by category and id for lists.

use futures_util::future::try_join_all;
use message::address::Address;
use model::email::Category;
use model::id::{AccountId, OptOutId};
use model::suppression::{OPTIONAL_CATEGORIES, OptOut, address_key, address_keys};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key};
use crate::rows;

stored!(OptOut);

/// Number of a category in keys; never reused.
fn category_number(category: Category) -> u8 {
    match category {
        Category::Transactional => 0,
        Category::Product => 1,
        Category::Newsletter => 2,
    }
}

/// Key of an address's opt-out; `address_key` is one of [`model::suppression::address_keys`].
pub(crate) fn row_key(account: AccountId, category: Category, address_key: &str) -> Key {
    key(Space::OptOut).account(account).u8(category_number(category)).text(address_key).build()
}

fn key_of(opt_out: &OptOut) -> Key {
    row_key(opt_out.account, opt_out.category, &address_key(&opt_out.address))
}

fn key_by_id(account: AccountId, category: Category, id: OptOutId) -> Key {
    key(Space::OptOutById).account(account).u8(category_number(category)).id(id.to_bytes()).build()
}

/// Writes a new opt-out. The commit conflicts if the address has already opted out of the category.
pub fn create(batch: &mut Batch, opt_out: &OptOut) {
    let row_key = key_of(opt_out);
    batch.check(row_key.clone(), None);
    batch.put(key_by_id(opt_out.account, opt_out.category, opt_out.id), row_key.clone());
    batch.put(row_key, codec::encode(opt_out));
}

/// Deletes an opt-out. The commit conflicts if it was deleted or changed since it was read.
pub async fn delete(store: &Store, batch: &mut Batch, opt_out: &OptOut) -> Result<()> {
    let entry = key_by_id(opt_out.account, opt_out.category, opt_out.id);
    // Version 0.1.0 may have stored it under another key.
    let row_key = store.get(&entry).await?.unwrap_or_else(|| key_of(opt_out));
    rows::delete(batch, row_key, opt_out);
    batch.delete(entry);
    Ok(())
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::OptOut.holds(conflict)
}

/// Lists an address's opt-outs of these categories.
pub async fn list_by_address(
    store: &Store,
    account: AccountId,
    address: &Address,
    categories: &[Category],
) -> Result<Vec<OptOut>> {
    let by_address: Vec<String> = address_keys(address).collect();
    let keys_of = |category: &Category| {
        let category = *category;
        by_address.iter().map(move |by_address| row_key(account, category, by_address))
    };
    rows::get_existing(store, &categories.iter().flat_map(keys_of).collect::<Vec<Key>>()).await
}

pub async fn find_by_id(store: &Store, account: AccountId, id: OptOutId) -> Result<Option<OptOut>> {
    let entries = OPTIONAL_CATEGORIES.map(|category| key_by_id(account, category, id));
    let Some(row_key) = store.get_many(&entries).await?.into_iter().flatten().next() else { return Ok(None) };
    let opt_out: Option<OptOut> = rows::get(store, &row_key).await?;
    Ok(opt_out.filter(|opt_out| opt_out.id == id))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOutPage {
    /// Newest first.
    pub opt_outs: Vec<OptOut>,
    /// Cursor of the next page, which starts before this opt-out, if there is one.
    pub next: Option<OptOutId>,
}

/// Lists an account's opt-outs of these categories before `before`, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    categories: &[Category],
    before: Option<OptOutId>,
    limit: usize,
) -> Result<OptOutPage> {
    let scans = categories.iter().map(|category| {
        let range = key(Space::OptOutById)
            .account(account)
            .u8(category_number(*category))
            .range_before(before.map(OptOutId::to_bytes));
        store.scan(range, ScanOrder::Descending, limit + 1)
    });
    let mut entries = Vec::new();
    for (entry, row_key) in try_join_all(scans).await?.into_iter().flatten() {
        entries.push((id_of(&entry)?, row_key));
    }
    entries.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|(id, _)| *id);
    let keys: Vec<Key> = entries.into_iter().map(|(_, row_key)| row_key).collect();
    Ok(OptOutPage { opt_outs: rows::get_existing(store, &keys).await?, next })
}

/// The id at the end of an index key.
fn id_of(entry: &Key) -> Result<OptOutId> {
    let mut reader = KeyReader::new(Space::OptOutById, entry)?;
    reader.account().and_then(|_| reader.u8())?;
    Ok(OptOutId::from_bytes(reader.id()?))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::suppression::SuppressionSource;

    use super::*;

    #[tokio::test]
    async fn opt_outs_are_written_found_listed_and_deleted() {
        let store = Store::memory();
        let at = |n: u32| Timestamp::from_second(1_800_000_000 + i64::from(n)).unwrap();
        let account = AccountId::new(at(0), 1);
        for n in 0..10 {
            let opt_out = OptOut {
                id: OptOutId::new(at(n), n.into()),
                account,
                address: format!("A{n}@example.net").parse().unwrap(),
                category: OPTIONAL_CATEGORIES[usize::from(n % 3 == 0)],
                source: SuppressionSource::Api,
                email: None,
                created_at: at(n),
            };
            let mut batch = Batch::progress();
            create(&mut batch, &opt_out);
            store.commit(batch.clone()).await.unwrap();
            assert!(store.commit(batch).await.is_err(), "once");
        }
        let first = list(&store, account, &OPTIONAL_CATEGORIES, None, 6).await.unwrap();
        let rest = list(&store, account, &OPTIONAL_CATEGORIES, first.next, 6).await.unwrap();
        assert_eq!((first.opt_outs.len(), rest.opt_outs.len(), rest.next), (6, 4, None));
        assert!(first.opt_outs.iter().chain(&rest.opt_outs).is_sorted_by(|a, b| a.id > b.id));
        let newsletters = list(&store, account, &[Category::Newsletter], None, 10).await.unwrap().opt_outs;
        assert_eq!(newsletters.len(), 4);
        let first = &newsletters[0];
        assert_eq!(find_by_id(&store, account, first.id).await.unwrap().as_ref(), Some(first));
        let listed =
            list_by_address(&store, account, &"a9@EXAMPLE.net".parse().unwrap(), &OPTIONAL_CATEGORIES).await.unwrap();
        assert_eq!(listed.as_slice(), std::slice::from_ref(first));
        let mut batch = Batch::progress();
        delete(&store, &mut batch, first).await.unwrap();
        store.commit(batch).await.unwrap();
        assert_eq!(find_by_id(&store, account, first.id).await.unwrap(), None);
        assert_eq!(list(&store, account, &OPTIONAL_CATEGORIES, None, 10).await.unwrap().opt_outs.len(), 9);
    }
}
