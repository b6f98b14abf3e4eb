//! Whether an event counts: not that of a workspace's own people, and an invited teammate is a seat.
//!
//! Own people are the users of the account, with any plus-alias of their addresses, and whoever an event calls
//! `internal`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::context::{Context, USER_CREATED};

/// As what an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It counts.
    #[default]
    Counted,
    /// A teammate who joined: a seat, not a sign-up.
    Seat,
    /// One of the customer's own: kept, never counted.
    Excluded,
}

/// The addresses of an account's own people, as they are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(BTreeSet<String>);

impl Members {
    /// Those with these addresses.
    pub fn new<T: AsRef<str>>(addresses: impl IntoIterator<Item = T>) -> Self {
        Self(addresses.into_iter().map(|address| base(address.as_ref())).collect())
    }

    /// Whether an address is one of theirs, or a plus-alias of one.
    #[must_use]
    pub fn has(&self, address: &str) -> bool {
        self.0.contains(&base(address))
    }
}

/// An address in lower case and without what follows the first `+` of its local part.
#[must_use]
pub fn base(address: &str) -> String {
    let lower = address.trim().to_lowercase();
    match lower.rsplit_once('@') {
        Some((local, domain)) => {
            // An address that begins with `+` has no other.
            let plain = local.split('+').next().filter(|plain| !plain.is_empty()).unwrap_or(local);
            format!("{plain}@{domain}")
        }
        None => lower,
    }
}

impl Standing {
    /// As what an event of this name and address counts.
    #[must_use]
    pub fn of(name: &str, email: Option<&str>, context: &Context, members: &Members) -> Self {
        if context.internal || email.is_some_and(|email| members.has(email)) {
            Self::Excluded
        } else if context.invited && name == USER_CREATED {
            Self::Seat
        } else {
            Self::Counted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_events_count() {
        let members = Members::new(["Ada@Example.com", "bob+work@example.com"]);
        let plain = Context::default();
        let (invited, internal) =
            (Context { invited: true, ..plain.clone() }, Context { internal: true, ..plain.clone() });
        for (name, email, context, standing) in [
            (USER_CREATED, Some("grace@example.net"), &plain, Standing::Counted),
            (USER_CREATED, None, &plain, Standing::Counted),
            (USER_CREATED, Some("ada@example.com"), &plain, Standing::Excluded),
            (USER_CREATED, Some("ADA+test+2@example.COM"), &plain, Standing::Excluded),
            (USER_CREATED, Some("bob@example.com"), &plain, Standing::Excluded),
            (USER_CREATED, Some("ada@example.net"), &plain, Standing::Counted),
            (USER_CREATED, Some("+@example.com"), &plain, Standing::Counted),
            (USER_CREATED, Some("g@example.net"), &invited, Standing::Seat),
            ("user.activated", Some("g@example.net"), &invited, Standing::Counted),
            (USER_CREATED, Some("ada@example.com"), &invited, Standing::Excluded),
            ("a", None, &internal, Standing::Excluded),
        ] {
            assert_eq!(Standing::of(name, email, context, &members), standing, "{name} {email:?}");
        }
    }
}
