//! Counting status of an event: events of the customer's own team are excluded, and invited teammates are seats.
//!
//! The own team is the users of the account, with any plus-alias of their addresses, and anybody whom an event marks
//! `internal`. The event can identify them by address or by user id: their id here, or their address, which many
//! products use as an id. Once a person is excluded, all events of that person are
//! ([`super::person::AnalyticsPerson`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::signup_context::{SignupContext, USER_CREATED};

/// Counting status of an event or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountingStatus {
    #[default]
    Counted,
    /// An invited teammate: a seat, not a sign-up.
    Seat,
    /// One of the customer's own team: stored, never counted.
    Excluded,
}

/// Addresses and ids of an account's own team, in normal form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InternalUsers(BTreeSet<String>);

impl InternalUsers {
    pub fn new<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self(keys.into_iter().map(|key| without_plus_tag(key.as_ref())).collect())
    }

    /// Returns whether this is an address or an id of the team, or a plus-alias of such an address.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains(&without_plus_tag(key))
    }
}

/// The person of an event, as the event identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventPerson<'a> {
    pub email: Option<&'a str>,
    /// The person's id in the product.
    pub user_id: Option<&'a str>,
}

/// Lower-cases an address and removes its plus tag.
pub fn without_plus_tag(address: &str) -> String {
    let lower = address.trim().to_lowercase();
    match lower.rsplit_once('@') {
        Some((local, domain)) => {
            // A local part that begins with `+` has no tag.
            let plain = local.split('+').next().filter(|plain| !plain.is_empty()).unwrap_or(local);
            format!("{plain}@{domain}")
        }
        None => lower,
    }
}

impl CountingStatus {
    /// Classifies an event by its own contents.
    pub fn classify(
        name: &str,
        event_person: EventPerson<'_>,
        context: &SignupContext,
        members: &InternalUsers,
    ) -> Self {
        let signed_up = context.id.as_deref().filter(|_| name == USER_CREATED);
        let keys = [event_person.email, event_person.user_id, signed_up];
        if context.internal || keys.into_iter().flatten().any(|key| members.contains(key)) {
            Self::Excluded
        } else if context.invited && name == USER_CREATED {
            Self::Seat
        } else {
            Self::Counted
        }
    }

    /// Applies the person's status: events of an excluded person never count, even if the event itself does not say so.
    pub fn for_person(self, person: Self) -> Self {
        if person == Self::Excluded { Self::Excluded } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_internal_users_are_excluded() {
        let members = InternalUsers::new(["Ada@Example.com", "bob+work@example.com", "usr_01KDXJ"]);
        let plain = SignupContext::default();
        let (invited, internal) =
            (SignupContext { invited: true, ..plain.clone() }, SignupContext { internal: true, ..plain.clone() });
        for (name, email, context, status) in [
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
            let event_person = EventPerson { email, user_id: None };
            assert_eq!(CountingStatus::classify(name, event_person, context, &members), status, "{name} {email:?}");
        }
        let paid = "subscription.started";
        for (name, user_id, id, status) in [
            (paid, Some("u_1"), Some("sub_1"), CountingStatus::Counted),
            (paid, Some("usr_01KDXJ"), Some("sub_1"), CountingStatus::Excluded),
            (paid, Some("ada+trial@example.com"), Some("sub_1"), CountingStatus::Excluded),
            // The id belongs to the subscription in the first case and to the user in the second.
            (paid, None, Some("usr_01KDXJ"), CountingStatus::Counted),
            (USER_CREATED, None, Some("USR_01KDXJ"), CountingStatus::Excluded),
        ] {
            let context = SignupContext { id: id.map(str::to_owned), ..SignupContext::default() };
            let event_person = EventPerson { email: None, user_id };
            assert_eq!(
                CountingStatus::classify(name, event_person, &context, &members),
                status,
                "{name} {user_id:?} {id:?}"
            );
        }
        assert_eq!(CountingStatus::Counted.for_person(CountingStatus::Excluded), CountingStatus::Excluded);
        assert_eq!(CountingStatus::Counted.for_person(CountingStatus::Seat), CountingStatus::Counted);
    }
}
