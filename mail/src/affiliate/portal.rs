//! Partners at the portal: the links that let them in, and their sessions.
//!
//! ```text
//! login link (a minute, of the program's server) ─┐
//! mailed link (of who asks for one, or is invited) ┴─► session (12 hours, a cookie)
//! mailed link about a payout's destination ─► the destination is changed
//! ```
//!
//! A link carries 32 bytes of chance, of which the store has the hash; each works once. A session's token is a [`Token`].

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::program::PayoutMethod;
use crate::credential::SecretHash;
use crate::id::{AccountId, PartnerId, SessionId};
use crate::session_token::SessionCookieToken;

/// How long a login link works (affiliate-api.md, "Limits").
pub const LOGIN_LINK_TTL: Duration = Duration::from_secs(60);
/// How long a link works that somebody asked for by mail.
pub const MAILED_LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// How long a link works that comes with an invitation.
pub const INVITATION_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a link works by which another payout destination is confirmed.
pub const CONFIRMATION_TTL: Duration = Duration::from_secs(3600);
/// How long a session lasts (completions-affiliate.md 2.7).
pub const SESSION_TTL: Duration = Duration::from_secs(12 * 3600);

/// What a link carries.
#[derive(Clone, PartialEq, Eq)]
pub struct PortalLinkSecret([u8; 32]);

impl fmt::Debug for PortalLinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSecret(hidden)")
    }
}

impl PortalLinkSecret {
    /// One of these bytes of chance.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a path's part; `None` when it cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The path's part.
    #[must_use]
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.0)
    }
}

/// What a link is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortalLinkPurpose {
    /// Lets in, at once: the program's own server has just asked for it.
    Login,
    /// Lets in, by a button on a page: it came by mail, and whoever looks at mail for safety's sake follows links.
    Mailed,
    /// Says by a button that payouts go there from now on.
    Payout {
        /// In which way.
        method: PayoutMethod,
        /// To whom.
        destination: String,
    },
}

impl PortalLinkPurpose {
    /// A number for it, in keys.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Login => 1,
            Self::Mailed => 2,
            Self::Payout { .. } => 3,
        }
    }

    /// Links of a partner for it that work at the same time; a new one ends the oldest. Somebody else may ask for mailed
    /// ones: that does not end at once the one that is on its way.
    #[must_use]
    pub fn live_links_max(&self) -> usize {
        match self {
            Self::Login | Self::Payout { .. } => 1,
            Self::Mailed => 5,
        }
    }

    /// Whether it lets in.
    #[must_use]
    pub fn signs_in(&self) -> bool {
        matches!(self, Self::Login | Self::Mailed)
    }
}

/// A link that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalLink {
    /// Whose program it is of.
    pub account: AccountId,
    /// Whose it is.
    pub partner: PartnerId,
    /// What it is for.
    pub purpose: PortalLinkPurpose,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// A partner's being signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalSession {
    /// Its id.
    pub id: SessionId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Who.
    pub partner: PartnerId,
    /// The hash of its token.
    pub secret: SecretHash,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl PortalSession {
    /// A new session.
    #[must_use]
    pub fn new(token: &PortalToken, now: Timestamp) -> Self {
        Self {
            id: token.session,
            account: token.account,
            partner: token.who,
            secret: token.hash(),
            created_at: now,
            expires_at: now.checked_add(SESSION_TTL).unwrap_or(Timestamp::MAX),
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// What the browser keeps of a session.
pub type PortalToken = SessionCookieToken<PartnerId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_links_read_back_and_hide_themselves() {
        let secret = PortalLinkSecret::new([5; 32]);
        assert_eq!(PortalLinkSecret::parse(&secret.text()), Some(secret.clone()));
        assert_eq!((secret.text().len(), format!("{secret:?}")), (43, "LinkSecret(hidden)".to_owned()));
        assert_eq!(PortalLinkSecret::parse(&secret.text()[1..]), None);
    }
}
