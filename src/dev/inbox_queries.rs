//! Requests of tests to the development inbox: they name a message by recipient, subject or words, and may wait for it.
//!
//! ```text
//! GET /messages[?to=&from=&subject=&search=&after=&limit=&wait=30s]   {total, messages}, newest first
//! GET /messages/{id}                                                  one message with headers, text and attachments
//! GET /latest[?the same]                                              the newest that matches, like /messages/{id}
//! GET /latest/html, /latest/text                                      its HTML or text
//! GET /latest/links                                                   {id, links}
//! GET /latest/code                                                    {id, code, codes}: one-time codes found in it
//! ```
//!
//! `wait` is the longest time to wait for a match: `30s`, `500ms` or seconds, at most a minute. `/latest` answers 404
//! if nothing matches then, and `/latest/code` if the message has no code.

use std::time::Duration;

use http::Uri;

use super::inbox::Entry;

const WAIT_MAX: Duration = Duration::from_secs(60);
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 1_000;

/// The conditions of a request, all of which must hold. Texts are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InboxQuery {
    /// A whole address of the envelope.
    to: Option<String>,
    /// Part of the `From` field.
    from: Option<String>,
    /// Part of the subject.
    subject: Option<String>,
    /// Words of addresses, subject and text.
    pub(super) search: String,
    /// Only messages with a higher number.
    after: u64,
    pub(super) limit: usize,
    pub(super) wait: Duration,
}

impl InboxQuery {
    /// Reads the query of a URL.
    ///
    /// # Errors
    /// A sentence that names the parameter that is unknown or invalid.
    pub(super) fn parse(uri: &Uri) -> Result<Self, String> {
        let mut query = Self { limit: LIMIT_DEFAULT, ..Self::default() };
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            let text = || Some(value.trim().to_lowercase()).filter(|text| !text.is_empty());
            match name.as_ref() {
                "to" => query.to = text(),
                "from" => query.from = text(),
                "subject" => query.subject = text(),
                "search" => query.search = value.into_owned(),
                "after" => {
                    query.after = value.parse().map_err(|_| "`after` must be the number of a message".to_owned())?;
                }
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                    query.limit = limit.ok_or_else(|| format!("`limit` must be a number from 1 to {LIMIT_MAX}"))?;
                }
                "wait" => {
                    query.wait = parse_wait(&value).ok_or_else(|| {
                        format!("`wait` must be a duration such as 30s or 500ms, at most {} s", WAIT_MAX.as_secs())
                    })?;
                }
                // Parameters of the page itself.
                "remote" => {}
                other => {
                    return Err(format!(
                        "`{other}` is not a parameter; use to, from, subject, search, after, limit or wait"
                    ));
                }
            }
        }
        Ok(query)
    }

    /// The same conditions, for the newest message alone.
    pub(super) fn newest(self) -> Self {
        Self { limit: 1, ..self }
    }

    pub(super) fn matches(&self, entry: &Entry) -> bool {
        let has =
            |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.to_lowercase().contains(part));
        entry.id > self.after
            && self.to.as_ref().is_none_or(|to| entry.to.iter().any(|one| one.to_string().to_lowercase() == *to))
            && has(entry.from.as_deref().unwrap_or_default(), &self.from)
            && has(&entry.subject, &self.subject)
    }
}

fn parse_wait(text: &str) -> Option<Duration> {
    let wait = match text.strip_suffix("ms") {
        Some(number) => Duration::from_millis(number.parse().ok()?),
        None => Duration::from_secs(text.strip_suffix('s').unwrap_or(text).parse().ok()?),
    };
    (wait <= WAIT_MAX).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_units_and_a_limit() {
        for (text, wait) in [
            ("30s", Some(Duration::from_secs(30))),
            ("500ms", Some(Duration::from_millis(500))),
            ("2", Some(Duration::from_secs(2))),
            ("61s", None),
            ("-1s", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_wait(text), wait, "{text}");
        }
    }

    #[test]
    fn unknown_parameters_are_named() {
        let parse = |query: &str| InboxQuery::parse(&format!("/messages?{query}").parse().unwrap());
        assert!(parse("too=x").unwrap_err().contains("`too`"));
        assert!(parse("wait=5m").unwrap_err().contains("`wait`"));
        assert!(parse("limit=0").unwrap_err().contains("`limit`"));
        let query = parse("to=Ada%2Bx@Example.com&wait=1s").unwrap();
        assert_eq!((query.to.as_deref(), query.wait), (Some("ada+x@example.com"), Duration::from_secs(1)));
    }
}
