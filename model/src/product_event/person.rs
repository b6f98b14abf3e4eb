//! A person in product analytics: a summary of their visits, sign-up and events, so that funnels need not read events.
//!
//! A person is identified by the product's user id, the email address, and the visitor cookie. An event that carries
//! two of these merges them into one person. The first time of each event name is stored ("marks"), for up to
//! [`MARKS_MAX`] names, and always for the names in [`ALWAYS_MARKED`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::counting_status::CountingStatus;
use super::signup_context::{SUBSCRIPTION_STARTED, USER_CREATED};

/// Event names with a stored first time, per person.
pub const MARKS_MAX: usize = 24;
/// Mark name of a site visit.
pub const VISIT: &str = "visit";
/// Names that are stored regardless of [`MARKS_MAX`].
pub const ALWAYS_MARKED: &[&str] =
    &[VISIT, USER_CREATED, "user.activated", SUBSCRIPTION_STARTED, "subscription.churned"];
/// Maximum number of aliases per person.
pub const ALIASES_MAX: usize = 12;

/// Identifier of a person, the most reliable kind first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PersonAlias {
    /// The product's user id.
    User(String),
    /// An address in lower case.
    Email(String),
    /// The visitor cookie.
    Visitor(String),
}

impl PersonAlias {
    /// Stored form: one letter for the kind, then the identifier.
    pub fn text(&self) -> String {
        match self {
            Self::User(id) => format!("u{id}"),
            Self::Email(email) => format!("e{email}"),
            Self::Visitor(id) => format!("v{id}"),
        }
    }

    /// Parses the form of [`PersonAlias::text`].
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

/// Serde for aliases as texts.
mod aliases {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::PersonAlias;

    pub(super) fn serialize<S: Serializer>(aliases: &[PersonAlias], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(aliases.iter().map(PersonAlias::text))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<PersonAlias>, D::Error> {
        let texts = Vec::<String>::deserialize(input)?;
        Ok(texts.iter().filter_map(|text| PersonAlias::parse(text)).collect())
    }
}

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AnalyticsPerson {
    #[serde(with = "aliases")]
    pub aliases: Vec<PersonAlias>,
    /// First time of each event name.
    pub marks: BTreeMap<String, Timestamp>,
    /// Source of their first measured visit.
    pub source: Option<String>,
    /// Source of their last visit.
    pub last_source: Option<String>,
    /// The product's own name of the origin.
    pub came_from: Option<String>,
    pub signup_method: Option<String>,
    #[serde(default)]
    pub standing: CountingStatus,
}

impl AnalyticsPerson {
    /// The alias that is the product's user id, if known.
    pub fn user(&self) -> Option<&PersonAlias> {
        self.aliases.iter().find(|alias| alias.is_user())
    }

    /// Returns whether the alias can belong to this person: a person has one user id at most.
    pub fn accepts_alias(&self, alias: &PersonAlias) -> bool {
        !alias.is_user() || self.user().is_none_or(|user| user == alias)
    }

    /// Adds an alias. Returns false if [`ALIASES_MAX`] is reached.
    pub fn add_alias(&mut self, alias: &PersonAlias) -> bool {
        if self.aliases.contains(alias) {
            return true;
        }
        let is_free = self.aliases.len() < ALIASES_MAX;
        if is_free {
            self.aliases.push(alias.clone());
        }
        is_free
    }

    /// Records an event; the earliest time of its name is stored.
    pub fn mark(&mut self, name: &str, at: Timestamp) {
        if let Some(first) = self.marks.get_mut(name) {
            *first = (*first).min(at);
        } else if ALWAYS_MARKED.contains(&name) || self.marks.len() < MARKS_MAX {
            self.marks.insert(name.to_owned(), at);
        }
    }

    /// Combines the counting status with another: excluded overrides seat, and seat overrides counted.
    pub fn exclude_or_keep(&mut self, status: CountingStatus) {
        self.standing = match (self.standing, status) {
            (CountingStatus::Excluded, _) | (_, CountingStatus::Excluded) => CountingStatus::Excluded,
            (CountingStatus::Seat, _) | (_, CountingStatus::Seat) => CountingStatus::Seat,
            (CountingStatus::Counted, CountingStatus::Counted) => CountingStatus::Counted,
        };
    }

    /// Merges another person into this one. First times, and the source of the earlier first visit, are preserved.
    pub fn merge(&mut self, other: &Self) {
        let earlier = other
            .marks
            .get(VISIT)
            .is_some_and(|other_field| self.marks.get(VISIT).is_none_or(|field| other_field < field));
        if earlier && other.source.is_some() {
            self.source.clone_from(&other.source);
        }
        for alias in &other.aliases {
            self.add_alias(alias);
        }
        for (name, at) in &other.marks {
            self.mark(name, *at);
        }
        for (field, other_field) in [
            (&mut self.source, &other.source),
            (&mut self.last_source, &other.last_source),
            (&mut self.came_from, &other.came_from),
            (&mut self.signup_method, &other.signup_method),
        ] {
            if field.is_none() {
                field.clone_from(other_field);
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
    fn first_times_of_a_bounded_number_of_names_are_stored() {
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
    fn two_people_are_merged() {
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
