//! Signed tokens for links: a payload and an authentication tag in one URL-safe text.
//!
//! ```text
//! token = base64url( payload ‖ first 16 bytes of HMAC-SHA-256(key, purpose ‖ payload) )
//! ```
//!
//! One key signs all links in mail (unsubscribe, opens, clicks) and on public pages. The purpose is part of the HMAC
//! input, so a token is valid for its own purpose only. The payload is readable for every holder of the link. A token
//! does not expire by itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// 128 bits: infeasible to guess, and still short in a link.
const TAG_BYTES: usize = 16;
/// Longer tokens are rejected unread: old mail clients accept URLs of 2 KB at most.
const TOKEN_CHARS_MAX: usize = 8 << 10;

/// Purpose of a token. The number is part of the HMAC input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenPurpose {
    Unsubscribe = 1,
    /// The open-tracking pixel.
    Open = 2,
    /// A tracked link.
    Click = 3,
    /// A sign-in link.
    SignIn = 4,
}

/// Key that signs tokens. Its Debug form hides it.
#[derive(Clone)]
pub struct TokenKey([u8; 32]);

crate::redacted!(TokenKey, "TokenKey(hidden)");

impl TokenKey {
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    pub fn sign(&self, purpose: TokenPurpose, payload: &[u8]) -> String {
        let mut bytes = Vec::with_capacity(payload.len() + TAG_BYTES);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&self.tag(purpose, payload));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the payload of a token, or `None` if this key did not sign it for this purpose.
    pub fn verify(&self, purpose: TokenPurpose, token: &str) -> Option<Vec<u8>> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        let mut payload = URL_SAFE_NO_PAD.decode(token).ok()?;
        let received_tag = payload.split_off(payload.len().checked_sub(TAG_BYTES)?);
        let is_valid: bool = self.tag(purpose, &payload).ct_eq(received_tag.as_slice()).into();
        is_valid.then_some(payload)
    }

    fn tag(&self, purpose: TokenPurpose, payload: &[u8]) -> [u8; TAG_BYTES] {
        let tag = hmac_sha256(&self.0, &[[purpose as u8].as_slice(), payload]);
        tag.first_chunk().copied().unwrap_or_default()
    }
}

/// HMAC-SHA-256 of the joined parts (RFC 2104).
pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tokens_round_trip(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            let key = TokenKey::new([1; 32]);
            let token = key.sign(TokenPurpose::Click, &payload);
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(key.verify(TokenPurpose::Click, &token), Some(payload));
            prop_assert_eq!(key.verify(TokenPurpose::Open, &token), None);
            prop_assert_eq!(TokenKey::new([2; 32]).verify(TokenPurpose::Click, &token), None);
        }

        #[test]
        fn a_changed_token_is_refused(at in 0usize..40, to in "[A-Za-z0-9_-]") {
            let key = TokenKey::new([1; 32]);
            let token = key.sign(TokenPurpose::Unsubscribe, b"some payload of it");
            let mut changed = token.clone();
            changed.replace_range(at..=at, &to);
            prop_assert!(changed == token || key.verify(TokenPurpose::Unsubscribe, &changed).is_none());
        }

        #[test]
        fn malformed_tokens_are_refused(token in "\\PC{0,60}") {
            prop_assert_eq!(TokenKey::new([1; 32]).verify(TokenPurpose::Unsubscribe, &token), None);
        }
    }

    #[test]
    fn the_key_is_hidden_in_debug() {
        assert_eq!(format!("{:?}", TokenKey::new([7; 32])), "TokenKey(hidden)");
    }
}
