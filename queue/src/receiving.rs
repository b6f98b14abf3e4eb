//! Whose mail comes in here: asked before mail that would go to ourselves is taken for a loop (RFC 5321 6.3).
//!
//! A domain whose MX record names us and whose mail we take is no loop: what is for it goes to our own door like mail
//! from anybody, with the verdicts, the events and the bounces that come of that.

use mail::address::DomainName;
use store::engine::{ReadError, Store};

use crate::inbound::OwnHostnames;

/// Knows it.
#[derive(Debug, Clone)]
pub struct LocalDomains {
    store: Store,
    hostnames: OwnHostnames,
}

impl LocalDomains {
    /// What the store says of domains, and what we are called ourselves.
    #[must_use]
    pub fn new(store: Store, hostnames: OwnHostnames) -> Self {
        Self { store, hostnames }
    }

    /// Whether the mail of a domain comes in here.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn contains(&self, domain: &DomainName) -> Result<bool, ReadError> {
        if self.hostnames.is_own(domain) || OwnHostnames::is_return_path(domain) {
            return Ok(true);
        }
        let found = store::domain::find_by_name(&self.store, domain).await?;
        Ok(found.is_some_and(|domain| domain.accepts_inbound()))
    }
}
