//! Sending domains: one row each under the account, and a key by name that is unique across accounts.

use std::collections::BTreeSet;

use message::address::DomainName;
use model::domain::SendingDomain;
use model::id::{AccountId, DomainId};

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

account_rows!(SendingDomain, DomainId, Domain, update);

fn key_by_name(name: &DomainName) -> Key {
    key(Space::DomainByName).text(name.as_str()).build()
}

/// An account's number of domains, with the row it was read from. Commits that add or delete a domain check and rewrite
/// it, so concurrent additions conflict and cannot exceed the plan's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCount {
    pub number: u32,
    account: AccountId,
    row: Option<Value>,
}

impl DomainCount {
    fn put(&self, batch: &mut Batch, number: u32) {
        let row_key = key(Space::DomainCount).account(self.account).build();
        batch.replace(row_key, self.row.clone(), number.to_string().into_bytes());
    }
}

/// Reads an account's number of domains.
pub async fn count(store: &Store, account: AccountId) -> Result<DomainCount> {
    let row = store.get(&key(Space::DomainCount).account(account).build()).await?;
    Ok(DomainCount { number: rows::parse_number(row.as_ref(), "an invalid domain count")?, account, row })
}

/// Writes a new domain. The commit conflicts if any account has the name, or if the account's number of domains has
/// changed since it was read.
pub fn create(batch: &mut Batch, domain: &SendingDomain, before: &DomainCount) {
    batch.check(key_by_name(&domain.name), None);
    put_new(batch, domain);
    before.put(batch, before.number.saturating_add(1));
}

fn put_new(batch: &mut Batch, domain: &SendingDomain) {
    let row_key = key_of(domain.account, domain.id);
    batch.put(key_by_name(&domain.name), row_key.clone());
    batch.put(row_key, codec::encode(domain));
}

/// Deletes a domain that was read as `domain`. The commit conflicts if the stored row or the number of domains has
/// changed since.
pub fn delete(batch: &mut Batch, domain: &SendingDomain, before: &DomainCount) {
    let row_key = key_of(domain.account, domain.id);
    rows::delete(batch, row_key, domain);
    batch.delete(key_by_name(&domain.name));
    before.put(batch, before.number.saturating_sub(1));
}

/// Moves a domain name to another account: deletes the former domain and writes the new one.
pub fn replace(
    batch: &mut Batch,
    former: &SendingDomain,
    of_former: &DomainCount,
    new: &SendingDomain,
    of_new: &DomainCount,
) {
    delete(batch, former, of_former);
    put_new(batch, new);
    of_new.put(batch, of_new.number.saturating_add(1));
}

/// Finds a domain by name in any account. The caller must compare the account.
pub async fn find_by_name(store: &Store, name: &DomainName) -> Result<Option<SendingDomain>> {
    rows::get_by_index(store, &key_by_name(name)).await
}

/// Lists the domains of all accounts by name, after `after`, at most `limit`.
pub async fn by_names(store: &Store, after: Option<&DomainName>, limit: usize) -> Result<Vec<SendingDomain>> {
    let mut range = key(Space::DomainByName).range();
    if let Some(name) = after {
        range.start = crate::key::successor(&key_by_name(name));
    }
    let row_keys: Vec<Key> =
        store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(|(_, row_key)| row_key).collect();
    rows::get_existing(store, &row_keys).await
}

/// Finds the domains of these names and all their parent names, in any account, with two reads in total.
pub async fn find_at_or_above(
    store: &Store,
    names: impl IntoIterator<Item = &DomainName>,
) -> Result<Vec<SendingDomain>> {
    let with_parents = |name: &DomainName| std::iter::successors(Some(name.clone()), DomainName::parent);
    let names: BTreeSet<DomainName> = names.into_iter().flat_map(with_parents).collect();
    let keys: Vec<Key> = names.iter().map(key_by_name).collect();
    let row_keys: Vec<Key> = store.get_many(&keys).await?.into_iter().flatten().collect();
    rows::get_existing(store, &row_keys).await
}

#[derive(Debug, Default)]
pub struct DomainPage {
    /// Newest first.
    pub domains: Vec<SendingDomain>,
    /// Cursor of the next page, which starts before this domain, if there may be one.
    pub next: Option<DomainId>,
}

/// Maximum number of rows scanned for one page. A page that reaches it is short and has a cursor.
const LOOKED_AT_MAX: usize = 2_000;

/// Lists an account's domains before `before` that pass, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<DomainId>,
    limit: usize,
    passes: impl Fn(&SendingDomain) -> bool,
) -> Result<DomainPage> {
    let mut range = key(Space::Domain).account(account).range_before(before.map(DomainId::to_bytes));
    let (mut listed, mut looked_at) = (DomainPage::default(), 0);
    loop {
        let step = limit.clamp(50, 500);
        let rows = store.scan(range.clone(), ScanOrder::Descending, step).await?;
        for (at, row) in &rows {
            let domain: SendingDomain = codec::decode(row)?;
            range.end = at.clone();
            if !passes(&domain) {
                continue;
            }
            if listed.domains.len() == limit {
                listed.next = listed.domains.last().map(|last| last.id);
                return Ok(listed);
            }
            listed.domains.push(domain);
        }
        looked_at += rows.len();
        if rows.len() < step {
            return Ok(listed);
        }
        if looked_at >= LOOKED_AT_MAX {
            listed.next = rows.last().map(|(_, row)| codec::decode::<SendingDomain>(row)).transpose()?.map(|d| d.id);
            return Ok(listed);
        }
    }
}
