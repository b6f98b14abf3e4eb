//! Whose mail comes in here: asked before mail that would go to ourselves is taken for a loop (RFC 5321 6.3).
//!
//! A domain whose MX record names us and whose mail we take is no loop: what is for it goes to our own door like mail
//! from anybody, with the verdicts, the events and the bounces that come of that.

use mail::address::Name;
use store::engine::{ReadError, Store};

use crate::inbound::Names;

/// Knows it.
#[derive(Debug, Clone)]
pub struct Receiving {
    store: Store,
    names: Names,
}

impl Receiving {
    /// What the store says of domains, and what we are called ourselves.
    #[must_use]
    pub fn new(store: Store, names: Names) -> Self {
        Self { store, names }
    }

    /// Whether the mail of a domain comes in here.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn takes(&self, domain: &Name) -> Result<bool, ReadError> {
        if self.names.is_own(domain) || Names::is_return_path(domain) {
            return Ok(true);
        }
        let found = store::domain::by_name(&self.store, domain).await?;
        Ok(found.is_some_and(|domain| domain.takes_mail_in()))
    }
}
