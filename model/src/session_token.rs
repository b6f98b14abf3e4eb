//! Session cookies of users and of partners at the portal.
//!
//! A token contains the ids of its session, so that one read finds the session, and 32 random bytes. The store holds
//! its hash. The CSRF token is derived from the session token, so only holders of the cookie can compute it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::credential::SecretHash;
use crate::id::{AccountId, PartnerId, SessionId, UserId};

/// A kind of person who can sign in.
pub trait SessionOwner: Copy + Eq {
    /// Hash prefix of the CSRF token, different per kind.
    const DERIVED_WITH: &'static [u8];

    fn bytes(self) -> [u8; 16];
    fn from_id_bytes(bytes: [u8; 16]) -> Self;
}

macro_rules! signs_in {
    ($($id:ident $with:literal;)*) => {$(
        impl SessionOwner for $id {
            const DERIVED_WITH: &'static [u8] = $with;

            fn bytes(self) -> [u8; 16] {
                self.to_bytes()
            }
            fn from_id_bytes(bytes: [u8; 16]) -> Self {
                Self::from_bytes(bytes)
            }
        }
    )*};
}
signs_in! {
    UserId b"csrf ";
    PartnerId b"portal form ";
}

#[derive(Clone, PartialEq, Eq)]
pub struct SessionCookieToken<P> {
    pub account: AccountId,
    pub owner: P,
    pub session: SessionId,
    secret: [u8; 32],
}

impl<P> fmt::Debug for SessionCookieToken<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, hidden)", self.session)
    }
}

/// Three ids and the secret.
const TOKEN_BYTES: usize = 16 + 16 + 16 + 32;

impl<P: SessionOwner> SessionCookieToken<P> {
    pub fn new(account: AccountId, owner: P, session: SessionId, secret: [u8; 32]) -> Self {
        Self { account, owner, session, secret }
    }

    /// Parses a cookie value; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; TOKEN_BYTES] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (account, rest) = bytes.split_first_chunk::<16>()?;
        let (owner, rest) = rest.split_first_chunk::<16>()?;
        let (session, rest) = rest.split_first_chunk::<16>()?;
        Some(Self {
            account: AccountId::from_bytes(*account),
            owner: P::from_id_bytes(*owner),
            session: SessionId::from_bytes(*session),
            secret: rest.try_into().ok()?,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let ids = [self.account.to_bytes(), self.owner.bytes(), self.session.to_bytes()].concat();
        [&ids[..], &self.secret].concat()
    }

    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes())
    }

    /// The hash to store.
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.bytes())
    }

    /// The CSRF token that a state-changing request must carry in addition to the cookie.
    pub fn csrf(&self) -> String {
        let digest = Sha256::new().chain_update(P::DERIVED_WITH).chain_update(self.bytes()).finalize();
        URL_SAFE_NO_PAD.encode(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token<P: SessionOwner>() -> SessionCookieToken<P> {
        let (account, owner) = (AccountId::from_bytes([1; 16]), P::from_id_bytes([2; 16]));
        SessionCookieToken::new(account, owner, SessionId::from_bytes([3; 16]), [4; 32])
    }

    #[test]
    fn tokens_round_trip_and_are_hidden_in_debug() {
        let token = token::<UserId>();
        assert_eq!(SessionCookieToken::parse(&token.text()), Some(token.clone()));
        assert!(format!("{token:?}").ends_with("hidden)"));
        assert_ne!(token.csrf(), token.text());
        for bad in ["", "x", "!!", &token.text()[1..], &format!("{}A", token.text())] {
            assert_eq!(SessionCookieToken::<UserId>::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn csrf_tokens_differ_by_kind() {
        let (user, partner) = (token::<UserId>(), token::<PartnerId>());
        assert_eq!(user.text(), partner.text());
        assert_ne!(user.csrf(), partner.csrf());
    }
}
