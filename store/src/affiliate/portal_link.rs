//! Portal links, by which partners sign in: one row each by the hash of the link's secret. Another row per partner and
//! purpose lists the live links, so that a new link revokes older ones.
//!
//! ```text
//! PortalLink    · hash                    ─►  the link
//! PortalLinksOf · account, partner, kind  ─►  hashes and expiry times
//! ```
//!
//! A partner has at most [`PortalLinkPurpose::live_links_max`] links of a purpose, so expired rows need no purge.

use jiff::Timestamp;
use model::affiliate::portal::{PortalLink, PortalLinkPurpose, PortalLinkSecret};
use model::credential::SecretHash;
use model::id::{AccountId, PartnerId};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

stored!(PortalLink);

/// A link as listed by partner and purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IssuedPortalLink {
    hash: SecretHash,
    expires_at: Timestamp,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct IssuedPortalLinks {
    links: Vec<IssuedPortalLink>,
}
stored!(IssuedPortalLinks);

fn key_of(hash: &SecretHash) -> Key {
    key(Space::PortalLink).fixed(*hash.as_bytes()).build()
}

fn key_of_links(account: AccountId, partner: PartnerId, purpose: &PortalLinkPurpose) -> Key {
    key(Space::PortalLinksOf).account(account).id(partner.to_bytes()).u8(purpose.kind()).build()
}

/// Returns whether the conflicting key is a portal link, that is, it was used or replaced.
pub fn caused_conflict(conflict: &Key) -> bool {
    Space::PortalLink.holds(conflict)
}

/// A new link, with the links that it revokes.
#[derive(Debug, Clone)]
pub struct NewPortalLink {
    link: PortalLink,
    hash: SecretHash,
    row: Option<Value>,
    live: Vec<IssuedPortalLink>,
    revoked: Vec<IssuedPortalLink>,
}

/// Reads the live links of the partner and determines which ones the new link revokes.
pub async fn prepare(
    store: &Store,
    link: PortalLink,
    secret: &PortalLinkSecret,
    now: Timestamp,
) -> Result<NewPortalLink> {
    let row = store.get(&key_of_links(link.account, link.partner, &link.purpose)).await?;
    let links: IssuedPortalLinks = row.as_deref().map(codec::decode).transpose()?.unwrap_or_default();
    let (mut live, mut revoked): (Vec<IssuedPortalLink>, Vec<IssuedPortalLink>) =
        links.links.into_iter().partition(|issued| now < issued.expires_at);
    let too_many = (live.len() + 1).saturating_sub(link.purpose.live_links_max());
    revoked.extend(live.drain(..too_many.min(live.len())));
    Ok(NewPortalLink { link, hash: secret.hash(), row, live, revoked })
}

impl NewPortalLink {
    /// Writes the link. The commit conflicts if another link of the same purpose was created since [`prepare`].
    pub fn write(&self, batch: &mut Batch) {
        let Self { link, hash, row, live, revoked } = self;
        let links_key = key_of_links(link.account, link.partner, &link.purpose);
        batch.check(links_key.clone(), row.clone());
        for old in revoked {
            batch.delete(key_of(&old.hash));
        }
        let new = IssuedPortalLink { hash: *hash, expires_at: link.expires_at };
        let links = live.iter().cloned().chain([new]).collect();
        batch.put(links_key, codec::encode(&IssuedPortalLinks { links }));
        batch.put(key_of(hash), codec::encode(link));
    }
}

/// Reads an unused link.
pub async fn get(store: &Store, secret: &PortalLinkSecret) -> Result<Option<PortalLink>> {
    rows::get(store, &key_of(&secret.hash())).await
}

/// Deletes a link as used. Of two concurrent uses, one conflicts.
pub fn consume(batch: &mut Batch, secret: &PortalLinkSecret, link: &PortalLink) {
    let at = key_of(&secret.hash());
    rows::delete(batch, at, link);
}

/// Deletes all links of a partner.
pub async fn purge_by_partner(store: &Store, batch: &mut Batch, account: AccountId, partner: PartnerId) -> Result<()> {
    let range = key(Space::PortalLinksOf).account(account).id(partner.to_bytes()).range();
    for (at, row) in store.scan(range, ScanOrder::Ascending, KINDS_MAX).await? {
        for issued in codec::decode::<IssuedPortalLinks>(&row)?.links {
            batch.delete(key_of(&issued.hash));
        }
        batch.delete(at);
    }
    Ok(())
}

/// Upper bound on the number of link purposes.
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
    async fn a_new_link_revokes_the_previous_one() {
        let store = Store::memory();
        let first = mint(&store, PortalLinkPurpose::Login, 1, 0).await;
        let mailed = mint(&store, PortalLinkPurpose::Mailed, 9, 0).await;
        let second = mint(&store, PortalLinkPurpose::Login, 2, 1).await;
        assert_eq!(get(&store, &first).await.unwrap(), None);
        let found = get(&store, &second).await.unwrap().unwrap();
        assert!(get(&store, &mailed).await.unwrap().is_some(), "links of another purpose remain valid");
        // Concurrent creation: one of the two conflicts.
        let minting = async |byte| {
            let secret = PortalLinkSecret::new([byte; 32]);
            prepare(&store, found.clone(), &secret, at(2)).await.unwrap()
        };
        let (concurrent, other) = (minting(3).await, minting(4).await);
        let commit = async |minting: &NewPortalLink| {
            let mut batch = Batch::progress();
            minting.write(&mut batch);
            store.commit(batch).await
        };
        commit(&concurrent).await.unwrap();
        assert!(matches!(commit(&other).await, Err(CommitError::Conflict { .. })));
        // A link can be used once.
        let secret = PortalLinkSecret::new([3; 32]);
        for is_first in [true, false] {
            let mut batch = Batch::progress();
            consume(&mut batch, &secret, &found);
            assert_eq!(store.commit(batch).await.is_ok(), is_first);
        }
    }

    #[tokio::test]
    async fn mailed_links_evict_the_oldest_and_are_purged_with_their_partner() {
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
        let mailed = link(PortalLinkPurpose::Mailed, at(0));
        purge_by_partner(&store, &mut batch, mailed.account, mailed.partner).await.unwrap();
        store.commit(batch).await.unwrap();
        for secret in &secrets {
            assert_eq!(get(&store, secret).await.unwrap(), None);
        }
    }
}
