//! Limit guards: the latest link and the latest lead of each partner, one row each. Every commit that adds one rewrites
//! it.
//!
//! The count itself is taken where links and leads are listed. The caller reads the guard before it counts and writes
//! it with the insert. Of two concurrent inserts one conflicts and counts again, so the limit cannot be exceeded.

use model::id::{AccountId, PartnerId};

use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};

/// The limit that a guard protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum GuardedLimit {
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
    pub async fn read(store: &Store, account: AccountId, partner: PartnerId, limit: GuardedLimit) -> Result<Self> {
        let at = key(Space::PartnerLimitGuard).account(account).id(partner.to_bytes()).u8(limit as u8).build();
        let row = store.get(&at).await?;
        Ok(Self { at, row })
    }

    /// Sets the id of the latest link or lead. The commit conflicts if another one was added since the guard was read.
    pub fn put(&self, batch: &mut Batch, latest: &impl ToString) {
        batch.replace(self.at.clone(), self.row.clone(), latest.to_string().into_bytes());
    }
}
