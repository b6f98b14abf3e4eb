//! A person: what is remembered of somebody who visited, signed up and did things, so that funnels need no
//! look at events.
//!
//! A person is known by the product's user id, by address, and by the cookie of the visits; an event that
//! brings two of them together says that they are one. Of each event name the first time is remembered
//! ("marks"), of [`MARKS_MAX`] names, and always of those that funnels begin with ([`ALWAYS`]).

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::context::{SUBSCRIPTION_STARTED, USER_CREATED};
use super::standing::CountingStatus;

/// Names of which the first time is remembered, of one person.
pub const MARKS_MAX: usize = 24;
/// The mark of a visit.
pub const VISIT: &str = "visit";
/// Names that are always remembered.
pub const ALWAYS_MARKED: &[&str] =
    &[VISIT, USER_CREATED, "user.activated", SUBSCRIPTION_STARTED, "subscription.churned"];
/// What one person is known by, at most.
pub const ALIASES_MAX: usize = 12;

/// What a person is known by. The order is that of how much it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PersonAlias {
    /// The product's user id.
    User(String),
    /// An address, in lower case.
    Email(String),
    /// The cookie of the visits.
    Visitor(String),
}

impl PersonAlias {
    /// As it is stored: a letter and the text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::User(id) => format!("u{id}"),
            Self::Email(email) => format!("e{email}"),
            Self::Visitor(id) => format!("v{id}"),
        }
    }

    /// Back from [`Alias::text`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.get(1..)?.to_owned();
        match text.as_bytes().first()? {
            b'u' => Some(Self::User(rest)),
            b'e' => Some(Self::Email(rest)),
            b'v' => Some(Self::Visitor(rest)),
            _ => None,
        }
    }

    fn is_user(&self) -> bool {
        matches!(self, Self::User(_))
    }
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnalyticsPerson {
    /// What they are known by.
    pub aliases: Vec<PersonAlias>,
    /// The first time of each event.
    pub marks: BTreeMap<String, Timestamp>,
    /// Where their first measured visit came from.
    pub source: Option<String>,
    /// Where their last one came from.
    pub last_source: Option<String>,
    /// What the product calls their origin.
    pub came_from: Option<String>,
    /// How they signed up.
    pub signup_method: Option<String>,
    /// As what they count.
    pub standing: CountingStatus,
}

impl AnalyticsPerson {
    /// Whether they are a user of the product, and which.
    #[must_use]
    pub fn user(&self) -> Option<&PersonAlias> {
        self.aliases.iter().find(|alias| alias.is_user())
    }

    /// Whether they may be known by this as well: nobody is two users.
    #[must_use]
    pub fn accepts_alias(&self, alias: &PersonAlias) -> bool {
        !alias.is_user() || self.user().is_none_or(|user| user == alias)
    }

    /// They are known by this from now on. False when there is no room.
    pub fn add_alias(&mut self, alias: &PersonAlias) -> bool {
        if self.aliases.contains(alias) {
            return true;
        }
        let room = self.aliases.len() < ALIASES_MAX;
        if room {
            self.aliases.push(alias.clone());
        }
        room
    }

    /// They did this then.
    pub fn mark(&mut self, name: &str, at: Timestamp) {
        if let Some(first) = self.marks.get_mut(name) {
            *first = (*first).min(at);
        } else if ALWAYS_MARKED.contains(&name) || self.marks.len() < MARKS_MAX {
            self.marks.insert(name.to_owned(), at);
        }
    }

    /// They turn out to count as this: own people stay out, whatever else is said of them.
    pub fn exclude_or_keep(&mut self, standing: CountingStatus) {
        self.standing = match (self.standing, standing) {
            (CountingStatus::Excluded, _) | (_, CountingStatus::Excluded) => CountingStatus::Excluded,
            (CountingStatus::Seat, _) | (_, CountingStatus::Seat) => CountingStatus::Seat,
            (CountingStatus::Counted, CountingStatus::Counted) => CountingStatus::Counted,
        };
    }

    /// Another turns out to be the same: what was first counts.
    pub fn merge(&mut self, other: &Self) {
        let earlier =
            other.marks.get(VISIT).is_some_and(|theirs| self.marks.get(VISIT).is_none_or(|ours| theirs < ours));
        if earlier && other.source.is_some() {
            self.source.clone_from(&other.source);
        }
        for alias in &other.aliases {
            self.add_alias(alias);
        }
        for (name, at) in &other.marks {
            self.mark(name, *at);
        }
        for (ours, theirs) in [
            (&mut self.source, &other.source),
            (&mut self.last_source, &other.last_source),
            (&mut self.came_from, &other.came_from),
            (&mut self.signup_method, &other.signup_method),
        ] {
            if ours.is_none() {
                ours.clone_from(theirs);
            }
        }
        self.exclude_or_keep(other.standing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn first_times_are_remembered_of_so_many_names() {
        let mut person = AnalyticsPerson::default();
        person.mark("a", at(5));
        person.mark("a", at(9));
        person.mark("a", at(3));
        for n in 0..100 {
            person.mark(&format!("n{n}"), at(n));
        }
        person.mark(USER_CREATED, at(7));
        assert_eq!((person.marks["a"], person.marks[USER_CREATED]), (at(3), at(7)));
        assert_eq!(person.marks.len(), MARKS_MAX + 1);
    }

    #[test]
    fn two_turn_out_to_be_one() {
        let visitor = PersonAlias::Visitor("v".into());
        let mut user = AnalyticsPerson { source: Some("late".into()), ..AnalyticsPerson::default() };
        user.add_alias(&PersonAlias::User("u".into()));
        user.mark(VISIT, at(9));
        let mut before = AnalyticsPerson {
            source: Some("early".into()),
            last_source: Some("x".into()),
            ..AnalyticsPerson::default()
        };
        before.add_alias(&visitor);
        before.mark(VISIT, at(1));
        before.exclude_or_keep(CountingStatus::Seat);
        user.merge(&before);
        assert_eq!((user.marks[VISIT], user.source.as_deref()), (at(1), Some("early")));
        assert_eq!((user.last_source.as_deref(), user.standing), (Some("x"), CountingStatus::Seat));
        assert!(user.aliases.contains(&visitor));
        assert!(
            !user.accepts_alias(&PersonAlias::User("other".into()))
                && user.accepts_alias(&PersonAlias::User("u".into()))
        );
        user.exclude_or_keep(CountingStatus::Excluded);
        user.exclude_or_keep(CountingStatus::Counted);
        assert_eq!(user.standing, CountingStatus::Excluded);
        for alias in [PersonAlias::User("ä".into()), PersonAlias::Email("e@x".into()), visitor] {
            assert_eq!(PersonAlias::parse(&alias.text()), Some(alias));
        }
        assert_eq!((PersonAlias::parse(""), PersonAlias::parse("x1"), PersonAlias::parse("ä")), (None, None, None));
    }
}
