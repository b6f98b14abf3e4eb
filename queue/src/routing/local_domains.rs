//! Local domains: domains whose mail is received here. The router checks them before it treats mail to this server as a
//! loop (RFC 5321 6.3).
//!
//! Mail for a local domain whose MX record names this server is sent to its own MX listener like mail from any other
//! host, with the usual verdicts, events and bounces.

use message::address::DomainName;
use store::engine::{ReadError, Store};

use crate::routing::own_hostnames::OwnHostnames;

/// Checks whether domains are local.
#[derive(Debug, Clone)]
pub struct LocalDomains {
    store: Store,
    hostnames: OwnHostnames,
}

impl LocalDomains {
    /// Creates a check by the store's domains and this server's host names.
    pub fn new(store: Store, hostnames: OwnHostnames) -> Self {
        Self { store, hostnames }
    }

    /// True if the mail of a domain is received here.
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
