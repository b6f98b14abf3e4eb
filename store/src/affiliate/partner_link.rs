//! Links of partners: a row each under the partner, and a key by token that only one link of a program can hold.
//!
//! A token that is given up by a deleted partner stays taken for a while, so that nobody reaps what it has sown.

use jiff::Timestamp;
use mail::affiliate::partner::{LINKS_MAX, PartnerLink, PartnerLinkToken};
use mail::id::{AccountId, PartnerId, PartnerLinkId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, damaged, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "PartnerLink")]
struct PartnerLinkRow {
    id: PartnerLinkId,
    account: AccountId,
    partner: PartnerId,
    #[serde(with = "token")]
    token: PartnerLinkToken,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    created_at: Timestamp,
}
stored!(PartnerLink as PartnerLinkRow);

/// A token as its text.
mod token {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::PartnerLinkToken;

    pub(super) fn serialize<S: Serializer>(token: &PartnerLinkToken, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(token.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<PartnerLinkToken, D::Error> {
        PartnerLinkToken::parse(&String::deserialize(input)?).map_err(D::Error::custom)
    }
}

/// Who has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TokenHolder {
    /// A link.
    Link(PartnerId, PartnerLinkId),
    /// Nobody, and nobody may take it before this time.
    Resting(Timestamp),
}

stored!(TokenHolder);

fn key_of(account: AccountId, partner: PartnerId, id: PartnerLinkId) -> Key {
    key(Space::PartnerLink).account(account).id(partner.to_bytes()).id(id.to_bytes()).build()
}

fn key_by_token(account: AccountId, token: &PartnerLinkToken) -> Key {
    key(Space::PartnerLinkByToken).account(account).text(&token.as_str().to_ascii_lowercase()).build()
}

/// A token that nobody has: what was read when it was looked for.
#[derive(Debug, Clone)]
pub struct FreeToken {
    token: PartnerLinkToken,
    seen: Option<Value>,
}

/// Looks whether a token is free.
///
/// # Errors
/// The store cannot be read.
pub async fn find_free_token(
    store: &Store,
    account: AccountId,
    token: &PartnerLinkToken,
    now: Timestamp,
) -> Result<Option<FreeToken>, ReadError> {
    let seen = store.get(&key_by_token(account, token)).await?;
    let taken = match &seen {
        None => false,
        Some(row) => match row::decode(row)? {
            TokenHolder::Link(..) => true,
            TokenHolder::Resting(until) => now < until,
        },
    };
    Ok((!taken).then(|| FreeToken { token: token.clone(), seen }))
}

/// Whether a conflict was about a token: somebody else took it.
#[must_use]
pub fn is_token_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::PartnerLinkByToken as u8))
}

/// Writes a new link with a token that was free; the commit conflicts when it is so no more.
pub fn create(batch: &mut Batch, link: &PartnerLink, token: FreeToken) {
    claim_token(batch, link, token);
    batch.put(key_of(link.account, link.partner, link.id), row::encode(link));
}

fn claim_token(batch: &mut Batch, link: &PartnerLink, token: FreeToken) {
    let by = key_by_token(link.account, &token.token);
    batch.check(by.clone(), token.seen);
    batch.put(by, row::encode(&TokenHolder::Link(link.partner, link.id)));
}

/// Gives a link that was read as `before` another token; visitors who bring the old one are nobody's.
pub fn rename(batch: &mut Batch, before: &PartnerLink, after: &PartnerLink, token: Option<FreeToken>) {
    check_unchanged(batch, before);
    if let Some(token) = token {
        batch.delete(key_by_token(before.account, &before.token));
        claim_token(batch, after, token);
    }
    batch.put(key_of(after.account, after.partner, after.id), row::encode(after));
}

fn check_unchanged(batch: &mut Batch, link: &PartnerLink) {
    batch.check(key_of(link.account, link.partner, link.id), Some(row::encode(link)));
}

/// Forgets a link that was read as `before`. With a time, its token rests until then.
pub fn delete(batch: &mut Batch, before: &PartnerLink, resting: Option<Timestamp>) {
    check_unchanged(batch, before);
    let by = key_by_token(before.account, &before.token);
    match resting {
        Some(until) => batch.put(by, row::encode(&TokenHolder::Resting(until))),
        None => batch.delete(by),
    };
    batch.delete(key_of(before.account, before.partner, before.id));
}

/// A link of a partner.
///
/// # Errors
/// The store cannot be read.
pub async fn get(
    store: &Store,
    account: AccountId,
    (partner, id): (PartnerId, PartnerLinkId),
) -> Result<Option<PartnerLink>, ReadError> {
    store.get(&key_of(account, partner, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// Links of partners, in the order in which they are asked for.
///
/// # Errors
/// The store cannot be read.
pub async fn get_each(
    store: &Store,
    account: AccountId,
    which: &[(PartnerId, PartnerLinkId)],
) -> Result<Vec<Option<PartnerLink>>, ReadError> {
    let keys: Vec<Key> = which.iter().map(|(partner, id)| key_of(account, *partner, *id)).collect();
    let rows = store.get_many(&keys).await?;
    rows.into_iter().map(|row| row.map(|row| row::decode(&row)).transpose()).collect()
}

/// The link with a token, whatever its case.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_token(
    store: &Store,
    account: AccountId,
    token: &PartnerLinkToken,
) -> Result<Option<PartnerLink>, ReadError> {
    let Some(row) = store.get(&key_by_token(account, token)).await? else { return Ok(None) };
    match row::decode(&row)? {
        TokenHolder::Link(partner, id) => {
            let link = get(store, account, (partner, id)).await?;
            link.map(Some).ok_or_else(|| damaged("a token's link"))
        }
        TokenHolder::Resting(_) => Ok(None),
    }
}

/// A partner's links, oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId, partner: PartnerId) -> Result<Vec<PartnerLink>, ReadError> {
    let range = key(Space::PartnerLink).account(account).id(partner.to_bytes()).range();
    // Two that are made at the same time are one too many at most.
    let rows = store.scan(range, ScanOrder::Ascending, 2 * LINKS_MAX).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}
