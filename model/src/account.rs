//! Account: the tenant, its plan, and the access level that decides from which domain and to whom it may send.

use jiff::Timestamp;
use message::address::Address;
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::AccountId;

words! {
    /// The pricing plan of an account.
    #[derive(Default)]
    Plan {
        /// Sandbox and Free: hard caps.
        #[default]
        Free = "free",
        /// From 50,000 emails a month.
        Pro = "pro",
        /// Volume tiers.
        Scale = "scale",
        /// Managed servers and addresses.
        Dedicated = "dedicated",
    }
}

impl std::str::FromStr for Plan {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_word(text).ok_or_else(|| format!("unknown plan `{text}`; use free, pro, scale or dedicated"))
    }
}

/// A tenant: a developer team that sends through the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    /// The owner's address. In the sandbox it is the only allowed recipient.
    pub email: Address,
    pub plan: Plan,
    /// True if the operator granted production access: with a verified domain the account may send to any recipient.
    pub production: bool,
    /// True if the payment processor has a payment method on file ([`crate::billing`]). Grants the same access as
    /// `production`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payment_method: bool,
    /// True if no more mail is accepted from this account.
    pub suspended: bool,
    pub created_at: Timestamp,
}

words! {
    /// The level of send access of an account.
    AccessLevel {
        /// From the shared sandbox sender, to the account's own address.
        Sandbox = "sandbox",
        /// From a verified domain, to the account's own address.
        SelfTest = "self_test",
        /// From a verified domain, to any recipient.
        Production = "production",
    }
}

impl Account {
    /// Returns the access level for a sender domain that is, or is not, verified for this account.
    pub fn access_level(&self, domain_verified: bool) -> AccessLevel {
        match (domain_verified, self.production || self.payment_method) {
            (false, _) => AccessLevel::Sandbox,
            (true, false) => AccessLevel::SelfTest,
            (true, true) => AccessLevel::Production,
        }
    }
}
