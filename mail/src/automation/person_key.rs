//! Person keys: fixed-length keys by which the runs of a person are indexed.
//!
//! Two events concern the same person if they have the same user id. If one of them has no user id, their email
//! addresses must be equal without regard to case.

use sha2::{Digest as _, Sha256};

/// A hash of a user id or an email address: the first 16 bytes of its SHA-256.
pub type PersonKey = [u8; 16];

fn hash_key(kind: &[u8], text: &str) -> PersonKey {
    let hash = Sha256::new().chain_update(kind).chain_update(text.as_bytes()).finalize();
    hash.first_chunk::<16>().copied().unwrap_or_default()
}

#[must_use]
pub fn user_key(user_id: &str) -> PersonKey {
    hash_key(b"user\0", user_id)
}

/// The key of an email address, without regard to case.
#[must_use]
pub fn email_key(email: &str) -> PersonKey {
    hash_key(b"email\0", &email.trim().to_lowercase())
}

/// True if two pairs of user id and email address belong to the same person.
#[must_use]
pub fn is_same_person(one: (Option<&str>, Option<&str>), other: (Option<&str>, Option<&str>)) -> bool {
    match (one.0, other.0) {
        (Some(one), Some(other)) => one == other,
        _ => matches!((one.1, other.1), (Some(one), Some(other)) if email_key(one) == email_key(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_takes_precedence_over_an_address() {
        let a = (Some("1"), Some("a@x.example"));
        for (other, same) in [
            ((Some("1"), None), true),
            ((Some("1"), Some("b@x.example")), true),
            ((Some("2"), Some("a@x.example")), false),
            ((None, Some("A@X.example")), true),
            ((None, Some("b@x.example")), false),
            ((None, None), false),
        ] {
            assert_eq!(is_same_person(a, other), same, "{other:?}");
        }
        assert_ne!(user_key("a"), email_key("a"));
    }
}
