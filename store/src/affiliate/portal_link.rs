//! Links that partners enter the portal by: a row each by the hash of what the link carries, and a row for each partner
//! and purpose that says which ones there are, so that a new one ends those before it.
//!
//! ```text
//! PortalLink · hash                      ─►  the link
//! PortalLinksOf · account, partner, kind ─►  hashes and their ends
//! ```
//!
//! There are never more than a purpose's [`Purpose::at_once`] of a partner, so that none need be swept.

use jiff::Timestamp;
use mail::affiliate::portal::{PortalLink, PortalLinkPurpose, PortalLinkSecret};
use mail::credential::SecretHash;
use mail::id::{AccountId, PartnerId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};

stored!(PortalLink as PortalLink);

/// A link, as the list of them knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IssuedPortalLink {
    hash: SecretHash,
    expires_at: Timestamp,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct IssuedPortalLinks {
    links: Vec<IssuedPortalLink>,
}
stored!(IssuedPortalLinks as IssuedPortalLinks);

fn key_of(hash: &SecretHash) -> Key {
    key(Space::PortalLink).fixed(*hash.as_bytes()).build()
}

fn key_of_links(account: AccountId, partner: PartnerId, purpose: &PortalLinkPurpose) -> Key {
    key(Space::PortalLinksOf).account(account).id(partner.to_bytes()).u8(purpose.kind()).build()
}

/// Whether a conflict was about a link: it was used, or a new one was made.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::PortalLink as u8))
}

/// A link that is to be made.
#[derive(Debug, Clone)]
pub struct NewPortalLink {
    link: PortalLink,
    hash: SecretHash,
    seen: Option<Value>,
    stay: Vec<IssuedPortalLink>,
    go: Vec<IssuedPortalLink>,
}

/// Looks which links a new one ends.
///
/// # Errors
/// The store cannot be read.
pub async fn prepare(
    store: &Store,
    link: PortalLink,
    secret: &PortalLinkSecret,
    now: Timestamp,
) -> Result<NewPortalLink, ReadError> {
    let seen = store.get(&key_of_links(link.account, link.partner, &link.purpose)).await?;
    let links: IssuedPortalLinks = seen.as_deref().map(row::decode).transpose()?.unwrap_or_default();
    let (mut stay, mut go): (Vec<IssuedPortalLink>, Vec<IssuedPortalLink>) =
        links.links.into_iter().partition(|held| now < held.expires_at);
    let too_many = (stay.len() + 1).saturating_sub(link.purpose.live_links_max());
    go.extend(stay.drain(..too_many.min(stay.len())));
    Ok(NewPortalLink { link, hash: secret.hash(), seen, stay, go })
}

impl NewPortalLink {
    /// Writes it; the commit conflicts when another one was made meanwhile.
    pub fn write(&self, batch: &mut Batch) {
        let Self { link, hash, seen, stay, go } = self;
        let of = key_of_links(link.account, link.partner, &link.purpose);
        batch.check(of.clone(), seen.clone());
        for old in go {
            batch.delete(key_of(&old.hash));
        }
        let new = IssuedPortalLink { hash: *hash, expires_at: link.expires_at };
        let links = stay.iter().cloned().chain([new]).collect();
        batch.put(of, row::encode(&IssuedPortalLinks { links }));
        batch.put(key_of(hash), row::encode(link));
    }
}

/// A link that was not used.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, secret: &PortalLinkSecret) -> Result<Option<PortalLink>, ReadError> {
    store.get(&key_of(&secret.hash())).await?.map(|row| row::decode(&row)).transpose()
}

/// Uses a link up; of two who do it at once, one conflicts.
pub fn consume(batch: &mut Batch, secret: &PortalLinkSecret, link: &PortalLink) {
    let at = key_of(&secret.hash());
    batch.check(at.clone(), Some(row::encode(link)));
    batch.delete(at);
}

/// Forgets all links of a partner.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_by_partner(
    store: &Store,
    batch: &mut Batch,
    (account, partner): (AccountId, PartnerId),
) -> Result<(), ReadError> {
    let range = key(Space::PortalLinksOf).account(account).id(partner.to_bytes()).range();
    for (at, row) in store.scan(range, ScanOrder::Ascending, KINDS_MAX).await? {
        for held in row::decode::<IssuedPortalLinks>(&row)?.links {
            batch.delete(key_of(&held.hash));
        }
        batch.delete(at);
    }
    Ok(())
}

/// More kinds of links than there are.
const KINDS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CommitError;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn link(purpose: PortalLinkPurpose, expires_at: Timestamp) -> PortalLink {
        let (account, partner) = (AccountId::from_bytes([1; 16]), PartnerId::from_bytes([2; 16]));
        PortalLink { account, partner, purpose, expires_at }
    }

    async fn mint(store: &Store, purpose: PortalLinkPurpose, byte: u8, now: i64) -> PortalLinkSecret {
        let secret = PortalLinkSecret::new([byte; 32]);
        let minting = prepare(store, link(purpose, at(now + 60)), &secret, at(now)).await.unwrap();
        let mut batch = Batch::progress();
        minting.write(&mut batch);
        store.commit(batch).await.unwrap();
        secret
    }

    #[tokio::test]
    async fn a_new_link_ends_the_one_before_it() {
        let store = Store::memory();
        let first = mint(&store, PortalLinkPurpose::Login, 1, 0).await;
        let mailed = mint(&store, PortalLinkPurpose::Mailed, 9, 0).await;
        let second = mint(&store, PortalLinkPurpose::Login, 2, 1).await;
        assert_eq!(get(&store, &first).await.unwrap(), None);
        let found = get(&store, &second).await.unwrap().unwrap();
        assert!(get(&store, &mailed).await.unwrap().is_some(), "links for something else stay");
        // Two who mint at once: one of them begins anew.
        let minting = async |byte| {
            let secret = PortalLinkSecret::new([byte; 32]);
            prepare(&store, found.clone(), &secret, at(2)).await.unwrap()
        };
        let (one, other) = (minting(3).await, minting(4).await);
        let commit = async |minting: &NewPortalLink| {
            let mut batch = Batch::progress();
            minting.write(&mut batch);
            store.commit(batch).await
        };
        commit(&one).await.unwrap();
        assert!(matches!(commit(&other).await, Err(CommitError::Conflict { .. })));
        // It is used once.
        let secret = PortalLinkSecret::new([3; 32]);
        for is_first in [true, false] {
            let mut batch = Batch::progress();
            consume(&mut batch, &secret, &found);
            assert_eq!(store.commit(batch).await.is_ok(), is_first);
        }
    }

    #[tokio::test]
    async fn mailed_links_end_the_oldest_of_too_many_and_all_go_with_their_partner() {
        let store = Store::memory();
        let mut secrets = Vec::new();
        for byte in 1..=6 {
            secrets.push(mint(&store, PortalLinkPurpose::Mailed, byte, i64::from(byte)).await);
        }
        let mut live = Vec::new();
        for secret in &secrets {
            live.push(get(&store, secret).await.unwrap().is_some());
        }
        assert_eq!(live, [false, true, true, true, true, true]);
        let mut batch = Batch::progress();
        let of = link(PortalLinkPurpose::Mailed, at(0));
        purge_by_partner(&store, &mut batch, (of.account, of.partner)).await.unwrap();
        store.commit(batch).await.unwrap();
        for secret in &secrets {
            assert_eq!(get(&store, secret).await.unwrap(), None);
        }
    }
}
