//! The query of a list or export of suppressions.

use httpd::paging::{self, PageParameters};
use httpd::problem::{FieldErrors, Problem};
use httpd::request::{FromRequest, Request, RequestSpec};
use jiff::Timestamp;
use model::suppression::{SuppressionReason, SuppressionSource, SuppressionTarget};
use model::timestamp;
use schema::Schemas;
use serde_json::{Value, json};
use store::suppression::SuppressionFilter;

/// The filter of a list or export of suppressions.
#[derive(Debug, Clone, Default)]
pub struct SuppressionQuery {
    /// Only the suppression of this address or domain.
    pub email: Option<SuppressionTarget>,
    pub filter: SuppressionFilter,
}

impl SuppressionQuery {
    /// Parses the query.
    ///
    /// # Errors
    /// Some parameters are invalid; the error names all of them.
    pub fn from_query(query: &str) -> Result<Self, Problem> {
        let parameters = paging::parse_query(query)?;
        let mut errors = FieldErrors::default();
        let parameter = |name| paging::single_value(&parameters, name);
        let mut selection = Self::default();
        if let Some(text) = parameter("email")? {
            let target = SuppressionTarget::parse(text).map_err(|error| errors.add("email", error.to_string()));
            selection.email = target.ok();
        }
        if let Some(text) = parameter("reason")? {
            selection.filter.reasons =
                parse_words(text, "reason", SuppressionReason::from_word, SuppressionReason::WORDS, &mut errors);
        }
        if let Some(text) = parameter("source")? {
            selection.filter.sources =
                parse_words(text, "source", SuppressionSource::from_word, SuppressionSource::WORDS, &mut errors);
        }
        if let Some(text) = parameter("created_after")? {
            selection.filter.created_after = parse_time(text, "created_after", &mut errors);
        }
        if let Some(text) = parameter("created_before")? {
            selection.filter.created_before = parse_time(text, "created_before", &mut errors);
        }
        if errors.is_empty() { Ok(selection) } else { Err(errors.into()) }
    }

    /// The OpenAPI description of the parameters.
    pub fn parameters() -> Vec<Value> {
        let text = || json!({"type": "string"});
        let reason = format!("Any of these reasons, separated by commas: {}", SuppressionReason::WORDS.join(", "));
        let source = format!("Any of these sources, separated by commas: {}", SuppressionSource::WORDS.join(", "));
        vec![
            schema::query_parameter("email", "An address, or `@domain.tld`", text()),
            schema::query_parameter("reason", &reason, text()),
            schema::query_parameter("source", &source, text()),
            schema::time_parameter("created_after", "Only those created after this time"),
            schema::time_parameter("created_before", "Only those created before this time"),
        ]
    }
}

fn parse_words<T: PartialEq>(
    text: &str,
    name: &str,
    from_word: impl Fn(&str) -> Option<T>,
    words: &[&str],
    errors: &mut FieldErrors,
) -> Vec<T> {
    let mut found = Vec::new();
    for word in text.split(',').map(str::trim) {
        match from_word(word) {
            Some(value) if !found.contains(&value) => found.push(value),
            Some(_) => {}
            None => errors.add(name, format!("must be one of {}", words.join(", "))),
        }
    }
    found
}

fn parse_time(text: &str, name: &str, errors: &mut FieldErrors) -> Option<Timestamp> {
    // A `+` that was not percent-encoded is decoded as a space.
    let parsed = timestamp::parse(text).or_else(|_| timestamp::parse(&text.replace(' ', "+")));
    parsed.map_err(|error| errors.add(name, error)).ok()
}

/// Parameters of `GET /suppressions`.
#[derive(Debug)]
pub struct ListSuppressions {
    pub page: PageParameters,
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
    use httpd::problem::ErrorCode;

    use super::*;

    #[test]
    fn queries_are_parsed() {
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
