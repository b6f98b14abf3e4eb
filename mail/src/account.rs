//! An account: the tenant, what it pays for, and what it may send to whom.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::AccountId;

/// What an account pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// Sandbox and Free: hard caps.
    #[default]
    Free,
    /// From 50,000 emails a month.
    Pro,
    /// Volume tiers.
    Scale,
    /// Managed servers and addresses.
    Dedicated,
}

impl std::str::FromStr for Plan {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "free" => Ok(Self::Free),
            "pro" => Ok(Self::Pro),
            "scale" => Ok(Self::Scale),
            "dedicated" => Ok(Self::Dedicated),
            other => Err(format!("`{other}` is no plan; the plans are free, pro, scale and dedicated")),
        }
    }
}

/// A tenant: a developer team that sends through the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// The owner's address: the one recipient of a sandbox.
    pub email: Address,
    /// What it pays for.
    pub plan: Plan,
    /// The operator says that a payment method is on file, or vouches for the account: with a verified
    /// domain it may send to anybody.
    pub production: bool,
    /// The operator's payment processor says that a payment method is on file ([`crate::billing`]): so it may, too.
    pub payment_method: bool,
    /// Nothing is accepted from it any more.
    pub suspended: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What an account may send (email-api.md, "Account send access").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLevel {
    /// From the shared sandbox sender, to the account's own address.
    Sandbox,
    /// From a verified domain, to the account's own address.
    SelfTest,
    /// From a verified domain, to anybody.
    Production,
}

impl Account {
    /// What the account may send when the sender's domain is (or is not) verified for it.
    #[must_use]
    pub fn access_level(&self, domain_verified: bool) -> AccessLevel {
        match (domain_verified, self.production || self.payment_method) {
            (false, _) => AccessLevel::Sandbox,
            (true, false) => AccessLevel::SelfTest,
            (true, true) => AccessLevel::Production,
        }
    }
}
