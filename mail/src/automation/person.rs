//! Persons: whom a run is about, as keys of one length by which runs are found.
//!
//! Two events are about one person when they name the same user id, or, where one of them names none, the same
//! address (without regard to case).

use sha2::{Digest as _, Sha256};

/// A user id or an address, as a key: the first half of its SHA-256.
pub type PersonKey = [u8; 16];

fn hash_key(kind: &[u8], text: &str) -> PersonKey {
    let hash = Sha256::new().chain_update(kind).chain_update(text.as_bytes()).finalize();
    hash.first_chunk::<16>().copied().unwrap_or_default()
}

/// The key of a user id.
#[must_use]
pub fn user_key(user_id: &str) -> PersonKey {
    hash_key(b"user\0", user_id)
}

/// The key of an address.
#[must_use]
pub fn email_key(email: &str) -> PersonKey {
    hash_key(b"email\0", &email.trim().to_lowercase())
}

/// Whether two pairs of user id and address are one person.
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
    fn a_user_id_goes_before_an_address() {
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
