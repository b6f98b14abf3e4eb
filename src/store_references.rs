//! Names in the configuration that refer to rows of the store: the accounts of `[[relay]]` and the sandbox sender's
//! domain.
//!
//! ```text
//! serve ─────────────────────────────► store ─► warnings at the start
//! check ─► store, or the running server ┘    ─► problems, notes
//! ```

use message::address::DomainName;
use model::domain::DomainState;
use serde::{Deserialize, Serialize};
use store::engine::{ReadError, Store};

use crate::config::Config;

/// Names in a configuration that refer to rows of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReferences {
    /// `account` of each `[[relay]]` section, in order.
    pub relay_accounts: Vec<String>,
    /// Domain of `sandbox_sender`.
    pub sandbox_domain: Option<DomainName>,
}

/// Result of looking up the [`StoreReferences`] in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFacts {
    /// Indices of the `[[relay]]` sections whose account does not exist.
    pub missing_relay_accounts: Vec<usize>,
    /// True if the domain of `sandbox_sender` is verified, or none is configured.
    pub sandbox_works: bool,
}

impl StoreReferences {
    /// Collects the names.
    pub fn from_config(config: &Config) -> Self {
        Self {
            relay_accounts: config.relay.iter().map(|relay| relay.account.clone()).collect(),
            sandbox_domain: config.service.sandbox_sender.as_ref().map(|sender| sender.domain().clone()),
        }
    }

    /// Returns whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.relay_accounts.is_empty() && self.sandbox_domain.is_none()
    }

    /// Looks the names up.
    pub async fn look_up(&self, store: &Store) -> Result<StoreFacts, ReadError> {
        let mut missing_relay_accounts = Vec::new();
        for (index, account) in self.relay_accounts.iter().enumerate() {
            if store::account::find(store, account).await?.is_none() {
                missing_relay_accounts.push(index);
            }
        }
        let sandbox_works = match &self.sandbox_domain {
            None => true,
            Some(name) => {
                let domain = store::domain::find_by_name(store, name).await?;
                domain.is_some_and(|domain| domain.state == DomainState::Verified)
            }
        };
        Ok(StoreFacts { missing_relay_accounts, sandbox_works })
    }
}

/// Problem of a `[[relay]]` section whose account does not exist.
pub fn relay_account_missing(account: &str) -> String {
    format!(
        "[[relay]] the account {account} does not exist, so its mail is refused: create it (`postrider admin account \
         create --email …`), or set another account"
    )
}
