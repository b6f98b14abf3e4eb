//! Proof key for code exchange (RFC 7636), with the method S256 only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Characters of a challenge of S256: 32 bytes in base64url.
const CHALLENGE_CHARS: usize = 43;

/// Returns whether a text has the form of a code challenge of S256 (RFC 7636 4.2).
pub fn is_challenge(text: &str) -> bool {
    text.len() == CHALLENGE_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Returns whether a code verifier (RFC 7636 4.1) has this challenge.
pub fn verify(challenge: &str, verifier: &str) -> bool {
    let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    let is_well_formed = (43..=128).contains(&verifier.len()) && verifier.bytes().all(is_unreserved);
    // The challenge is a hash, so the time of the comparison reveals nothing of the verifier.
    is_well_formed && is_challenge(challenge) && challenge_of(verifier) == challenge
}

pub fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636 appendix B.
    #[test]
    fn the_example_of_rfc_7636_is_verified() {
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(verify(challenge, verifier));
        assert!(!verify(challenge, &verifier.replace('d', "e")));
        assert!(!verify(verifier, verifier), "the method plain");
        assert!(!verify(&challenge_of("short"), "short"));
        let with_space = format!("{verifier} ");
        assert!(!verify(&challenge_of(&with_space), &with_space));
    }
}
