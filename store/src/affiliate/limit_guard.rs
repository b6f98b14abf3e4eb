//! Limit guards: the latest link and the latest lead of each partner, one row each. Every commit that adds one rewrites
//! it.
//!
//! The count itself is taken where links and leads are listed. The caller reads the guard before it counts and writes
//! it with the insert. Of two concurrent inserts one conflicts and counts again, so the limit cannot be exceeded.

use model::id::{AccountId, PartnerId, PartnerLinkId, ReferralId};

use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};

/// The limit that a guard protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum GuardedLimit {
    Links = 1,
    Leads = 2,
}

/// A guard row as it was read.
#[derive(Debug, Clone)]
pub struct LimitGuard {
    at: Key,
    row: Option<Value>,
}

impl LimitGuard {
    /// Reads the guard of the partner's links.
    pub async fn for_links(store: &Store, account: AccountId, partner: PartnerId) -> Result<Self> {
        Self::read(store, account, partner, GuardedLimit::Links).await
    }

    /// Reads the guard of the partner's leads.
    pub async fn for_leads(store: &Store, account: AccountId, partner: PartnerId) -> Result<Self> {
        Self::read(store, account, partner, GuardedLimit::Leads).await
    }

    async fn read(store: &Store, account: AccountId, partner: PartnerId, limit: GuardedLimit) -> Result<Self> {
        let at = key(Space::PartnerLimitGuard).account(account).id(partner.to_bytes()).u8(limit as u8).build();
        let row = store.get(&at).await?;
        Ok(Self { at, row })
    }

    /// Sets the latest link. The commit conflicts if another link was added since the guard was read.
    pub fn put_link(&self, batch: &mut Batch, link: PartnerLinkId) {
        self.put(batch, &link.to_string());
    }

    /// Sets the latest lead. The commit conflicts if another lead was added since the guard was read.
    pub fn put_lead(&self, batch: &mut Batch, lead: ReferralId) {
        self.put(batch, &lead.to_string());
    }

    fn put(&self, batch: &mut Batch, id: &str) {
        batch.check(self.at.clone(), self.row.clone());
        batch.put(self.at.clone(), id.as_bytes().to_vec());
    }
}
