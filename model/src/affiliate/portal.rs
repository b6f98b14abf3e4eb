//! Partner portal authentication: one-time links and sessions.
//!
//! ```text
//! login link (1 minute; created by the program's server) ─┐
//! emailed link (15 minutes; invitation: 7 days) ──────────┴─► session (12 hours, cookie)
//! emailed confirmation of a payout destination (1 hour) ────► the destination is changed
//! ```
//!
//! A link carries 32 random bytes and works once; the store holds only their hash. A session cookie carries a
//! [`PortalToken`].

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::program::PayoutMethod;
use crate::credential::SecretHash;
use crate::id::{AccountId, PartnerId, SessionId};
use crate::redacted;
use crate::session_token::SessionCookieToken;

/// Lifetime of a login link.
pub const LOGIN_LINK_TTL: Duration = Duration::from_secs(60);
/// Lifetime of an emailed sign-in link that the partner requested.
pub const MAILED_LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// Lifetime of the link in an invitation.
pub const INVITATION_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Lifetime of the link that confirms a new payout destination.
pub const CONFIRMATION_TTL: Duration = Duration::from_secs(3600);
/// Lifetime of a session.
pub const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);

/// The secret of a one-time link.
#[derive(Clone, PartialEq, Eq)]
pub struct PortalLinkSecret([u8; 32]);

redacted!(PortalLinkSecret, "LinkSecret(hidden)");

impl PortalLinkSecret {
    /// Takes 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses the base64url text of the URL path; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The base64url text for the URL path.
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The hash that is stored.
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortalLinkPurpose {
    /// Signs in at once. The program's own server requested the link just now.
    Login,
    /// Signs in after a click on a button. The link was emailed, and mail scanners follow links.
    Mailed,
    /// Changes the payout destination after a click on a button.
    Payout { method: PayoutMethod, destination: String },
}

impl PortalLinkPurpose {
    /// Number of the purpose in store keys.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Login => 1,
            Self::Mailed => 2,
            Self::Payout { .. } => 3,
        }
    }

    /// Maximum number of valid links of a partner with this purpose; a new link revokes the oldest. Anyone can request
    /// an emailed link, so several are allowed: another person's request does not revoke the partner's link at once.
    pub fn live_links_max(&self) -> usize {
        match self {
            Self::Login | Self::Payout { .. } => 1,
            Self::Mailed => 5,
        }
    }

    pub fn signs_in(&self) -> bool {
        matches!(self, Self::Login | Self::Mailed)
    }
}

/// A one-time link that has not been used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalLink {
    pub account: AccountId,
    pub partner: PartnerId,
    pub purpose: PortalLinkPurpose,
    pub expires_at: Timestamp,
}

/// A partner's signed-in session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalSession {
    pub id: SessionId,
    pub account: AccountId,
    pub partner: PartnerId,
    /// The hash of its token.
    pub secret: SecretHash,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl PortalSession {
    /// Creates a session that lasts [`SESSION_TTL`].
    pub fn new(token: &PortalToken, now: Timestamp) -> Self {
        Self {
            id: token.session,
            account: token.account,
            partner: token.owner,
            secret: token.hash(),
            created_at: now,
            expires_at: now.checked_add(SESSION_TTL).unwrap_or(Timestamp::MAX),
        }
    }

    /// True if the session has not expired.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

pub type PortalToken = SessionCookieToken<PartnerId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_secrets_round_trip_and_are_hidden_in_debug() {
        let secret = PortalLinkSecret::new([5; 32]);
        assert_eq!(PortalLinkSecret::parse(&secret.text()), Some(secret.clone()));
        assert_eq!((secret.text().len(), format!("{secret:?}")), (43, "LinkSecret(hidden)".to_owned()));
        assert_eq!(PortalLinkSecret::parse(&secret.text()[1..]), None);
    }
}
