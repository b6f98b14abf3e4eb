//! Which suppressions a list or an export is to have, as the query says it.

use jiff::Timestamp;
use mail::moment;
use mail::suppression::{Reason, Source, Target};
use serde_json::{Value, json};
use store::suppression::Filter;

use super::view::{reasons, sources};
use crate::call::{Call, Input, Takes};
use crate::page::{self, Page};
use crate::problem::{FieldErrors, Problem};
use crate::schema::{self, Schemas};

/// Which suppressions are wanted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The one of this address or domain.
    pub email: Option<Target>,
    /// Those of these kinds and times.
    pub filter: Filter,
}

impl Selection {
    /// Reads the query.
    ///
    /// # Errors
    /// What is wrong with it, all at once.
    pub fn read(query: &str) -> Result<Self, Problem> {
        let parameters = page::parameters(query)?;
        let mut errors = FieldErrors::default();
        let given = |name| page::one(&parameters, name);
        let mut selection = Self::default();
        if let Some(text) = given("email")? {
            let target = Target::read(text).map_err(|error| errors.add("email", error.to_string()));
            selection.email = target.ok();
        }
        if let Some(text) = given("reason")? {
            selection.filter.reasons = words(text, "reason", (Reason::of_word, &reasons()), &mut errors);
        }
        if let Some(text) = given("source")? {
            selection.filter.sources = words(text, "source", (Source::of_word, &sources()), &mut errors);
        }
        if let Some(text) = given("created_after")? {
            selection.filter.created_after = time(text, "created_after", &mut errors);
        }
        if let Some(text) = given("created_before")? {
            selection.filter.created_before = time(text, "created_before", &mut errors);
        }
        if errors.is_empty() { Ok(selection) } else { Err(errors.into()) }
    }

    /// The parameters, for the document.
    #[must_use]
    pub fn parameters() -> Vec<Value> {
        let text = || json!({"type": "string"});
        let reason = format!("Those of these reasons, with commas between: {}", reasons().join(", "));
        let source = format!("Those of these sources, with commas between: {}", sources().join(", "));
        vec![
            schema::query_parameter("email", "The one of this address, or of `@domain.tld`", text()),
            schema::query_parameter("reason", &reason, text()),
            schema::query_parameter("source", &source, text()),
            schema::time_parameter("created_after", "Those that began after this"),
            schema::time_parameter("created_before", "Those that began before this"),
        ]
    }
}

fn words<T: PartialEq>(
    text: &str,
    name: &str,
    (of_word, known): (impl Fn(&str) -> Option<T>, &[&str]),
    errors: &mut FieldErrors,
) -> Vec<T> {
    let mut found = Vec::new();
    for word in text.split(',').map(str::trim) {
        match of_word(word) {
            Some(one) if !found.contains(&one) => found.push(one),
            Some(_) => {}
            None => errors.add(name, format!("must be among {}", known.join(", "))),
        }
    }
    found
}

fn time(text: &str, name: &str, errors: &mut FieldErrors) -> Option<Timestamp> {
    // A `+` that was not encoded came as a space.
    let parsed = moment::read(text).or_else(|_| moment::read(&text.replace(' ', "+")));
    parsed.map_err(|wrong| errors.add(name, wrong)).ok()
}

/// What `GET /suppressions` takes.
#[derive(Debug)]
pub struct ListSuppressions {
    /// Which part of the list.
    pub page: Page,
    /// Which suppressions.
    pub selection: Selection,
}

impl Input for ListSuppressions {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        parameters.extend(Selection::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self { page: Page::read(&call.query)?, selection: Selection::read(&call.query)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;

    #[test]
    fn what_a_query_may_say() {
        let read = Selection::read(
            "reason=hard_bounce,complaint,hard_bounce&source=system&created_after=2030-01-31T09:00:00%2B01:00\
             &created_before=2031-01-01T00:00:00+01:00&email=%40example.org",
        )
        .unwrap();
        assert_eq!(read.filter.reasons, [Reason::HardBounce, Reason::Complaint]);
        assert_eq!(read.filter.sources, [Source::System]);
        assert_eq!(read.filter.created_after, "2030-01-31T08:00:00Z".parse().ok());
        assert_eq!(read.filter.created_before, "2030-12-31T23:00:00Z".parse().ok());
        assert_eq!(read.email.unwrap().to_string(), "@example.org");
        assert!(Selection::read("reason=&email=").unwrap().filter.reasons.is_empty());
        for bad in
            ["reason=bounce", "source=x", "created_after=yesterday", "email=x", "reason=import&reason=manual"]
        {
            assert_eq!(Selection::read(bad).unwrap_err().code(), Code::VALIDATION_ERROR, "{bad}");
        }
    }
}
