//! Whether an event counts: not that of a workspace's own people, and an invited teammate is a seat.
//!
//! Own people are the users of the account, with any plus-alias of their addresses, and whoever an event calls
//! `internal`. An event need not name an address for that: a user id that is a member's (their id here, or their
//! address, which many products take for an id) will do, and so will whatever its person is known by, once an
//! event has said that the person is a member ([`super::person::Person`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::context::{SignupContext, USER_CREATED};

/// As what an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountingStatus {
    /// It counts.
    #[default]
    Counted,
    /// A teammate who joined: a seat, not a sign-up.
    Seat,
    /// One of the customer's own: kept, never counted.
    Excluded,
}

/// The addresses and ids of an account's own people, as they are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InternalUsers(BTreeSet<String>);

impl InternalUsers {
    /// Those with these addresses and ids.
    pub fn new<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self(keys.into_iter().map(|key| without_plus_tag(key.as_ref())).collect())
    }

    /// Whether this is an address or the id of one of theirs, or a plus-alias of such an address.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains(&without_plus_tag(key))
    }
}

/// Whom an event says that it is about, in all the ways that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventPerson<'a> {
    /// By address.
    pub email: Option<&'a str>,
    /// By the product's own id.
    pub user_id: Option<&'a str>,
}

/// An address in lower case and without what follows the first `+` of its local part.
#[must_use]
pub fn without_plus_tag(address: &str) -> String {
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

impl CountingStatus {
    /// As what an event of this name counts, by itself.
    #[must_use]
    pub fn classify(name: &str, whom: EventPerson<'_>, context: &SignupContext, members: &InternalUsers) -> Self {
        let signed_up = context.id.as_deref().filter(|_| name == USER_CREATED);
        let keys = [whom.email, whom.user_id, signed_up];
        if context.internal || keys.into_iter().flatten().any(|key| members.contains(key)) {
            Self::Excluded
        } else if context.invited && name == USER_CREATED {
            Self::Seat
        } else {
            Self::Counted
        }
    }

    /// As what it counts when its person is this: what is done by own people never counts, whether or not the
    /// event says that it is them.
    #[must_use]
    pub fn for_person(self, person: Self) -> Self {
        if person == Self::Excluded { Self::Excluded } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_events_count() {
        let members = InternalUsers::new(["Ada@Example.com", "bob+work@example.com", "usr_01KDXJ"]);
        let plain = SignupContext::default();
        let (invited, internal) =
            (SignupContext { invited: true, ..plain.clone() }, SignupContext { internal: true, ..plain.clone() });
        for (name, email, context, standing) in [
            (USER_CREATED, Some("grace@example.net"), &plain, CountingStatus::Counted),
            (USER_CREATED, None, &plain, CountingStatus::Counted),
            (USER_CREATED, Some("ada@example.com"), &plain, CountingStatus::Excluded),
            (USER_CREATED, Some("ADA+test+2@example.COM"), &plain, CountingStatus::Excluded),
            (USER_CREATED, Some("bob@example.com"), &plain, CountingStatus::Excluded),
            (USER_CREATED, Some("ada@example.net"), &plain, CountingStatus::Counted),
            (USER_CREATED, Some("+@example.com"), &plain, CountingStatus::Counted),
            (USER_CREATED, Some("g@example.net"), &invited, CountingStatus::Seat),
            ("user.activated", Some("g@example.net"), &invited, CountingStatus::Counted),
            (USER_CREATED, Some("ada@example.com"), &invited, CountingStatus::Excluded),
            ("a", None, &internal, CountingStatus::Excluded),
        ] {
            let whom = EventPerson { email, user_id: None };
            assert_eq!(CountingStatus::classify(name, whom, context, &members), standing, "{name} {email:?}");
        }
        let paid = "subscription.started";
        for (name, user_id, id, standing) in [
            (paid, Some("u_1"), Some("sub_1"), CountingStatus::Counted),
            (paid, Some("usr_01KDXJ"), Some("sub_1"), CountingStatus::Excluded),
            (paid, Some("ada+trial@example.com"), Some("sub_1"), CountingStatus::Excluded),
            // The id is the subscription's there, and the user's here.
            (paid, None, Some("usr_01KDXJ"), CountingStatus::Counted),
            (USER_CREATED, None, Some("USR_01KDXJ"), CountingStatus::Excluded),
        ] {
            let context = SignupContext { id: id.map(str::to_owned), ..SignupContext::default() };
            let whom = EventPerson { email: None, user_id };
            assert_eq!(CountingStatus::classify(name, whom, &context, &members), standing, "{name} {user_id:?} {id:?}");
        }
        assert_eq!(CountingStatus::Counted.for_person(CountingStatus::Excluded), CountingStatus::Excluded);
        assert_eq!(CountingStatus::Counted.for_person(CountingStatus::Seat), CountingStatus::Counted);
    }
}
