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

pub fn user_key(user_id: &str) -> PersonKey {
    hash_key(b"user\0", user_id)
}

/// The key of an email address, without regard to case.
pub fn email_key(email: &str) -> PersonKey {
    hash_key(b"email\0", &email.trim().to_lowercase())
}

/// User id and email address of the person whom an event or a run is about, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonIdentity<'a> {
    pub user_id: Option<&'a str>,
    pub email: Option<&'a str>,
}

impl PersonIdentity<'_> {
    /// True if both belong to the same person.
    pub fn is_same_person(self, other: PersonIdentity<'_>) -> bool {
        match (self.user_id, other.user_id) {
            (Some(one), Some(other)) => one == other,
            _ => self.has_same_email(other),
        }
    }

    /// True if both have an email address, equal without regard to case.
    pub fn has_same_email(self, other: PersonIdentity<'_>) -> bool {
        matches!((self.email, other.email), (Some(one), Some(other)) if email_key(one) == email_key(other))
    }

    /// The keys of the user id and of the email address.
    pub fn keys(self) -> [Option<PersonKey>; 2] {
        [self.user_id.map(user_key), self.email.map(email_key)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_takes_precedence_over_an_address() {
        let a = PersonIdentity { user_id: Some("1"), email: Some("a@x.example") };
        for (other, same) in [
            ((Some("1"), None), true),
            ((Some("1"), Some("b@x.example")), true),
            ((Some("2"), Some("a@x.example")), false),
            ((None, Some("A@X.example")), true),
            ((None, Some("b@x.example")), false),
            ((None, None), false),
        ] {
            let other = PersonIdentity { user_id: other.0, email: other.1 };
            assert_eq!(a.is_same_person(other), same, "{other:?}");
        }
        assert_ne!(user_key("a"), email_key("a"));
    }
}
