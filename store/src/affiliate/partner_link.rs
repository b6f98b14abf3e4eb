//! Links of partners: one row each under the partner, and a unique key by token within the program.
//!
//! The token of a deleted partner stays reserved for a while, so that no other partner profits from links that still
//! circulate.

use jiff::Timestamp;
use model::affiliate::partner::{LINKS_MAX, PartnerLink, PartnerLinkToken};
use model::id::{AccountId, PartnerId, PartnerLinkId};
use serde::{Deserialize, Serialize};

use crate::codec::{self, damaged, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

stored!(PartnerLink);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TokenHolder {
    Link(PartnerId, PartnerLinkId),
    /// Reserved until this time.
    Resting(Timestamp),
}

stored!(TokenHolder);

fn key_of(account: AccountId, partner: PartnerId, id: PartnerLinkId) -> Key {
    key(Space::PartnerLink).account(account).id(partner.to_bytes()).id(id.to_bytes()).build()
}

fn key_by_token(account: AccountId, token: &PartnerLinkToken) -> Key {
    key(Space::PartnerLinkByToken).account(account).text(&token.as_str().to_ascii_lowercase()).build()
}

/// A token that is free, with the row that was read to find out.
#[derive(Debug, Clone)]
pub struct FreeToken {
    token: PartnerLinkToken,
    row: Option<Value>,
}

/// Checks whether a token is free at `now`; returns `None` if it is taken or reserved.
pub async fn find_free_token(
    store: &Store,
    account: AccountId,
    token: &PartnerLinkToken,
    now: Timestamp,
) -> Result<Option<FreeToken>> {
    let row = store.get(&key_by_token(account, token)).await?;
    let is_taken = match &row {
        None => false,
        Some(row) => match codec::decode(row)? {
            TokenHolder::Link(..) => true,
            TokenHolder::Resting(until) => now < until,
        },
    };
    Ok((!is_taken).then(|| FreeToken { token: token.clone(), row }))
}

/// Returns whether the conflicting key is a token, that is, a concurrent commit took it.
pub fn is_token_conflict(conflict: &Key) -> bool {
    Space::PartnerLinkByToken.holds(conflict)
}

/// Writes a new link with a free token. The commit conflicts if the token was taken since it was checked.
pub fn create(batch: &mut Batch, link: &PartnerLink, token: FreeToken) {
    claim_token(batch, link, token);
    batch.put(key_of(link.account, link.partner, link.id), codec::encode(link));
}

fn claim_token(batch: &mut Batch, link: &PartnerLink, token: FreeToken) {
    let by = key_by_token(link.account, &token.token);
    batch.replace(by, token.row, codec::encode(&TokenHolder::Link(link.partner, link.id)));
}

/// Updates a link that was read as `before`, with a new token if one is given. Visits with the old token are no longer
/// attributed.
pub fn rename(batch: &mut Batch, before: &PartnerLink, after: &PartnerLink, token: Option<FreeToken>) {
    check_unchanged(batch, before);
    if let Some(token) = token {
        batch.delete(key_by_token(before.account, &before.token));
        claim_token(batch, after, token);
    }
    batch.put(key_of(after.account, after.partner, after.id), codec::encode(after));
}

fn check_unchanged(batch: &mut Batch, link: &PartnerLink) {
    batch.check(key_of(link.account, link.partner, link.id), Some(codec::encode(link)));
}

/// Deletes a link that was read as `before`. If `resting` is set, its token stays reserved until then.
pub fn delete(batch: &mut Batch, before: &PartnerLink, resting: Option<Timestamp>) {
    check_unchanged(batch, before);
    let by = key_by_token(before.account, &before.token);
    match resting {
        Some(until) => batch.put(by, codec::encode(&TokenHolder::Resting(until))),
        None => batch.delete(by),
    };
    batch.delete(key_of(before.account, before.partner, before.id));
}

pub async fn get(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    id: PartnerLinkId,
) -> Result<Option<PartnerLink>> {
    rows::get(store, &key_of(account, partner, id)).await
}

/// Reads several links, in the order of `links`.
pub async fn get_each(
    store: &Store,
    account: AccountId,
    links: &[(PartnerId, PartnerLinkId)],
) -> Result<Vec<Option<PartnerLink>>> {
    let keys: Vec<Key> = links.iter().map(|(partner, id)| key_of(account, *partner, *id)).collect();
    rows::get_each(store, &keys).await
}

/// Finds the link with a token, case-insensitively.
pub async fn find_by_token(store: &Store, account: AccountId, token: &PartnerLinkToken) -> Result<Option<PartnerLink>> {
    let Some(row) = store.get(&key_by_token(account, token)).await? else { return Ok(None) };
    match codec::decode(&row)? {
        TokenHolder::Link(partner, id) => {
            let link = get(store, account, partner, id).await?;
            link.map(Some).ok_or_else(|| damaged("a partner link token without its link"))
        }
        TokenHolder::Resting(_) => Ok(None),
    }
}

/// Lists a partner's links, oldest first.
pub async fn list(store: &Store, account: AccountId, partner: PartnerId) -> Result<Vec<PartnerLink>> {
    let range = key(Space::PartnerLink).account(account).id(partner.to_bytes()).range();
    // Concurrent creations can exceed the maximum by a few, so read beyond it.
    rows::scan(store, range, ScanOrder::Ascending, 2 * LINKS_MAX).await
}
