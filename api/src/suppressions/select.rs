//! Which suppressions a list or an export is to have, as the query says it.

use jiff::Timestamp;
use mail::moment;
use mail::suppression::{SuppressionReason, SuppressionSource, SuppressionTarget};
use serde_json::{Value, json};
use store::suppression::SuppressionFilter;

use super::view::{reason_words, source_words};
use crate::call::{FromRequest, Request, RequestSpec};
use crate::page::{self, PageParameters};
use crate::problem::{FieldErrors, Problem};
use crate::schema::{self, Schemas};

/// Which suppressions are wanted.
#[derive(Debug, Clone, Default)]
pub struct SuppressionQuery {
    /// The one of this address or domain.
    pub email: Option<SuppressionTarget>,
    /// Those of these kinds and times.
    pub filter: SuppressionFilter,
}

impl SuppressionQuery {
    /// Reads the query.
    ///
    /// # Errors
    /// What is wrong with it, all at once.
    pub fn from_query(query: &str) -> Result<Self, Problem> {
        let parameters = page::parse_query(query)?;
        let mut errors = FieldErrors::default();
        let given = |name| page::single_value(&parameters, name);
        let mut selection = Self::default();
        if let Some(text) = given("email")? {
            let target = SuppressionTarget::parse(text).map_err(|error| errors.add("email", error.to_string()));
            selection.email = target.ok();
        }
        if let Some(text) = given("reason")? {
            selection.filter.reasons =
                parse_words(text, "reason", (SuppressionReason::from_word, &reason_words()), &mut errors);
        }
        if let Some(text) = given("source")? {
            selection.filter.sources =
                parse_words(text, "source", (SuppressionSource::from_word, &source_words()), &mut errors);
        }
        if let Some(text) = given("created_after")? {
            selection.filter.created_after = parse_time(text, "created_after", &mut errors);
        }
        if let Some(text) = given("created_before")? {
            selection.filter.created_before = parse_time(text, "created_before", &mut errors);
        }
        if errors.is_empty() { Ok(selection) } else { Err(errors.into()) }
    }

    /// The parameters, for the document.
    #[must_use]
    pub fn parameters() -> Vec<Value> {
        let text = || json!({"type": "string"});
        let reason = format!("Those of these reasons, with commas between: {}", reason_words().join(", "));
        let source = format!("Those of these sources, with commas between: {}", source_words().join(", "));
        vec![
            schema::query_parameter("email", "The one of this address, or of `@domain.tld`", text()),
            schema::query_parameter("reason", &reason, text()),
            schema::query_parameter("source", &source, text()),
            schema::time_parameter("created_after", "Those that began after this"),
            schema::time_parameter("created_before", "Those that began before this"),
        ]
    }
}

fn parse_words<T: PartialEq>(
    text: &str,
    name: &str,
    (from_word, known): (impl Fn(&str) -> Option<T>, &[&str]),
    errors: &mut FieldErrors,
) -> Vec<T> {
    let mut found = Vec::new();
    for word in text.split(',').map(str::trim) {
        match from_word(word) {
            Some(one) if !found.contains(&one) => found.push(one),
            Some(_) => {}
            None => errors.add(name, format!("must be among {}", known.join(", "))),
        }
    }
    found
}

fn parse_time(text: &str, name: &str, errors: &mut FieldErrors) -> Option<Timestamp> {
    // A `+` that was not encoded came as a space.
    let parsed = moment::parse(text).or_else(|_| moment::parse(&text.replace(' ', "+")));
    parsed.map_err(|wrong| errors.add(name, wrong)).ok()
}

/// What `GET /suppressions` takes.
#[derive(Debug)]
pub struct ListSuppressions {
    /// Which part of the list.
    pub page: PageParameters,
    /// Which suppressions.
    pub selection: SuppressionQuery,
}

impl FromRequest for ListSuppressions {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        parameters.extend(SuppressionQuery::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self {
            page: PageParameters::from_query(&call.query)?,
            selection: SuppressionQuery::from_query(&call.query)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ErrorCode;

    #[test]
    fn what_a_query_may_say() {
        let read = SuppressionQuery::from_query(
            "reason=hard_bounce,complaint,hard_bounce&source=system&created_after=2030-01-31T09:00:00%2B01:00\
             &created_before=2031-01-01T00:00:00+01:00&email=%40example.org",
        )
        .unwrap();
        assert_eq!(read.filter.reasons, [SuppressionReason::HardBounce, SuppressionReason::Complaint]);
        assert_eq!(read.filter.sources, [SuppressionSource::System]);
        assert_eq!(read.filter.created_after, "2030-01-31T08:00:00Z".parse().ok());
        assert_eq!(read.filter.created_before, "2030-12-31T23:00:00Z".parse().ok());
        assert_eq!(read.email.unwrap().to_string(), "@example.org");
        assert!(SuppressionQuery::from_query("reason=&email=").unwrap().filter.reasons.is_empty());
        for bad in ["reason=bounce", "source=x", "created_after=yesterday", "email=x", "reason=import&reason=manual"] {
            assert_eq!(SuppressionQuery::from_query(bad).unwrap_err().code(), ErrorCode::VALIDATION_ERROR, "{bad}");
        }
    }
}
