//! Sending domains: a row each under the account, and a key by name that only one account can hold.

use std::collections::BTreeSet;

use jiff::Timestamp;
use mail::address::DomainName;
use mail::address_pattern::AddressPattern;
use mail::domain::{DeliverySettings, DomainState, RetiredDkimRecords, SealedDkimKeys, SealedSecret, SendingDomain};
use mail::id::{AccountId, DomainId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SealedDkimKeys")]
struct DkimRow {
    selector: String,
    rsa_record: String,
    rsa: SealedSecret,
    ed25519_record: String,
    ed25519: SealedSecret,
    ed25519_published: bool,
    #[serde(default = "usual_bits", skip_serializing_if = "is_usual")]
    rsa_bits: u16,
}

fn usual_bits() -> u16 {
    2_048
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_usual(bits: &u16) -> bool {
    *bits == usual_bits()
}

/// Keys that may not be there.
mod dkim_or_none {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, DkimRow, SealedDkimKeys, Serialize};

    #[derive(Serialize, Deserialize)]
    struct OwnedDkim(#[serde(with = "DkimRow")] SealedDkimKeys);

    #[derive(Serialize)]
    struct DkimRef<'a>(#[serde(with = "DkimRow")] &'a SealedDkimKeys);

    #[expect(clippy::ref_option, reason = "serde gives references")]
    pub(super) fn serialize<S: Serializer>(dkim: &Option<SealedDkimKeys>, out: S) -> Result<S::Ok, S::Error> {
        dkim.as_ref().map(DkimRef).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SealedDkimKeys>, D::Error> {
        Ok(Option::<OwnedDkim>::deserialize(input)?.map(|row| row.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SendingDomain")]
struct DomainRow {
    id: DomainId,
    account: AccountId,
    name: DomainName,
    state: DomainState,
    #[serde(with = "DkimRow")]
    dkim: SealedDkimKeys,
    #[serde(default, with = "dkim_or_none", skip_serializing_if = "Option::is_none")]
    next_dkim: Option<SealedDkimKeys>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    former_dkim: Option<RetiredDkimRecords>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inbound_enabled: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inbound_addresses: Vec<AddressPattern>,
    #[serde(default, skip_serializing_if = "DeliverySettings::is_default")]
    delivery: DeliverySettings,
    created_at: Timestamp,
    verified_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_unknown")]
    updated_at: Timestamp,
}
stored!(SendingDomain as DomainRow);

/// Of a row that is older than the field.
fn is_unknown(updated_at: &Timestamp) -> bool {
    *updated_at == Timestamp::default()
}

fn key_of(account: AccountId, id: DomainId) -> Key {
    key(Space::Domain).account(account).id(id.to_bytes()).build()
}

fn key_by_name(name: &DomainName) -> Key {
    key(Space::DomainByName).text(name.as_str()).build()
}

/// How many domains an account has, as it was read: of two that add one more at the same time one conflicts, so
/// that a plan's limit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCount {
    /// The number.
    pub number: u32,
    account: AccountId,
    row: Option<Value>,
}

impl DomainCount {
    fn put(&self, batch: &mut Batch, number: u32) {
        let row_key = key(Space::DomainCount).account(self.account).build();
        batch.check(row_key.clone(), self.row.clone());
        batch.put(row_key, number.to_string().into_bytes());
    }
}

/// How many domains an account has.
///
/// # Errors
/// The store cannot be read.
pub async fn count(store: &Store, account: AccountId) -> Result<DomainCount, ReadError> {
    let row = store.get(&key(Space::DomainCount).account(account).build()).await?;
    let number = match &row {
        Some(row) => std::str::from_utf8(row).ok().and_then(|text| text.parse().ok()),
        None => Some(0),
    };
    let number = number.ok_or_else(|| row::damaged("a count that is no number"))?;
    Ok(DomainCount { number, account, row })
}

/// Writes a new domain; the commit conflicts when the name is taken, by whomever, and when the account's number
/// of domains is no more the one that was read.
pub fn create(batch: &mut Batch, domain: &SendingDomain, before: &DomainCount) {
    batch.check(key_by_name(&domain.name), None);
    put_new(batch, domain);
    before.put(batch, before.number.saturating_add(1));
}

fn put_new(batch: &mut Batch, domain: &SendingDomain) {
    let row_key = key_of(domain.account, domain.id);
    batch.put(key_by_name(&domain.name), row_key.clone());
    batch.put(row_key, row::encode(domain));
}

/// Deletes a domain that was read as `domain`; the commit conflicts when it is no more like that.
pub fn delete(batch: &mut Batch, domain: &SendingDomain, before: &DomainCount) {
    let row_key = key_of(domain.account, domain.id);
    batch.check(row_key.clone(), Some(row::encode(domain)));
    batch.delete(row_key);
    batch.delete(key_by_name(&domain.name));
    before.put(batch, before.number.saturating_sub(1));
}

/// Puts a new domain in the place of another account's of the same name.
pub fn replace(
    batch: &mut Batch,
    (former, of_former): (&SendingDomain, &DomainCount),
    (new, of_new): (&SendingDomain, &DomainCount),
) {
    delete(batch, former, of_former);
    put_new(batch, new);
    of_new.put(batch, of_new.number.saturating_add(1));
}

/// Changes a domain that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &SendingDomain, after: &SendingDomain) {
    batch.check(key_of(before.account, before.id), Some(row::encode(before)));
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// The domain of a name, whoever's it is. The caller compares the account.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_name(store: &Store, name: &DomainName) -> Result<Option<SendingDomain>, ReadError> {
    let Some(row_key) = store.get(&key_by_name(name)).await? else { return Ok(None) };
    store.get(&row_key).await?.map(|row| row::decode(&row)).transpose()
}

/// The domains of all accounts whose names come after one, in the order of their names, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn by_names(
    store: &Store,
    after: Option<&DomainName>,
    limit: usize,
) -> Result<Vec<SendingDomain>, ReadError> {
    let mut range = key(Space::DomainByName).range();
    if let Some(name) = after {
        range.start = crate::key::successor(&key_by_name(name));
    }
    let row_keys: Vec<Key> =
        store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(|(_, row_key)| row_key).collect();
    let rows = store.get_many(&row_keys).await?;
    rows.iter().flatten().map(|row| row::decode(row)).collect()
}

/// The domains of these names and of all names above them, whoever's they are: two reads, however many names.
///
/// # Errors
/// The store cannot be read.
pub async fn find_at_or_above(
    store: &Store,
    names: impl IntoIterator<Item = &DomainName>,
) -> Result<Vec<SendingDomain>, ReadError> {
    let above = |name: &DomainName| std::iter::successors(Some(name.clone()), DomainName::parent);
    let names: BTreeSet<DomainName> = names.into_iter().flat_map(above).collect();
    let keys: Vec<Key> = names.iter().map(key_by_name).collect();
    let row_keys: Vec<Key> = store.get_many(&keys).await?.into_iter().flatten().collect();
    let rows = store.get_many(&row_keys).await?;
    rows.iter().flatten().map(|row| row::decode(row)).collect()
}

/// A domain of an account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: DomainId) -> Result<Option<SendingDomain>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// A page of domains.
#[derive(Debug, Default)]
pub struct DomainPage {
    /// The domains, newest first.
    pub domains: Vec<SendingDomain>,
    /// Where the next page begins, when there may be more: before this one.
    pub next: Option<DomainId>,
}

/// Rows read for one page: a filter that passes few gives a short page, and where to go on.
const LOOKED_AT_MAX: usize = 2_000;

/// An account's domains, newest first, of those before `before`: at most `limit` of those that pass.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<DomainId>,
    limit: usize,
    passes: impl Fn(&SendingDomain) -> bool,
) -> Result<DomainPage, ReadError> {
    let mut range = key(Space::Domain).account(account).range();
    if let Some(before) = before {
        range.end = key_of(account, before);
    }
    let (mut listed, mut looked_at) = (DomainPage::default(), 0);
    loop {
        let step = limit.clamp(50, 500);
        let rows = store.scan(range.clone(), ScanOrder::Descending, step).await?;
        for (at, row) in &rows {
            let domain: SendingDomain = row::decode(row)?;
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
            listed.next = rows.last().map(|(_, row)| row::decode::<SendingDomain>(row)).transpose()?.map(|d| d.id);
            return Ok(listed);
        }
    }
}
