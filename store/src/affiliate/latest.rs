//! The latest link of each partner, and its latest lead: a row each, which every commit writes that adds one.
//!
//! How many there are is counted where they are listed. Who counts reads this first, and writes it with what is added: of
//! two who counted the same, one begins anew. So nobody is let past a number that may not be passed.

use mail::id::{AccountId, PartnerId, PartnerLinkId, ReferralId};

use crate::engine::{Batch, Key, ReadError, Store, Value};
use crate::key::{Space, key};

/// Of what it is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum GuardedLimit {
    Links = 1,
    Leads = 2,
}

/// What was the latest when it was read.
#[derive(Debug, Clone)]
pub struct LimitGuard {
    at: Key,
    seen: Option<Value>,
}

impl LimitGuard {
    /// A link of the partner.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn for_links(store: &Store, of: (AccountId, PartnerId)) -> Result<Self, ReadError> {
        Self::read(store, of, GuardedLimit::Links).await
    }

    /// A lead of the partner.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn for_leads(store: &Store, of: (AccountId, PartnerId)) -> Result<Self, ReadError> {
        Self::read(store, of, GuardedLimit::Leads).await
    }

    async fn read(
        store: &Store,
        (account, partner): (AccountId, PartnerId),
        of: GuardedLimit,
    ) -> Result<Self, ReadError> {
        let at = key(Space::PartnerLimitGuard).account(account).id(partner.to_bytes()).u8(of as u8).build();
        let seen = store.get(&at).await?;
        Ok(Self { at, seen })
    }

    /// This link is the latest; the commit conflicts when another one is by now.
    pub fn put_link(&self, batch: &mut Batch, link: PartnerLinkId) {
        self.put(batch, &link.to_string());
    }

    /// This lead is the latest; the commit conflicts when another one is by now.
    pub fn put_lead(&self, batch: &mut Batch, lead: ReferralId) {
        self.put(batch, &lead.to_string());
    }

    fn put(&self, batch: &mut Batch, id: &str) {
        batch.check(self.at.clone(), self.seen.clone());
        batch.put(self.at.clone(), id.as_bytes().to_vec());
    }
}
