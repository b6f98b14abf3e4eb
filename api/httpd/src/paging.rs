//! Paging of lists: `limit` (1 to 100, default 25) and an opaque `cursor`; parsing of query parameters.
//!
//! A cursor names the last entry of the page before. Its text is base64url of a kind byte and the entry's position.
//! The kind byte makes a cursor of another list fail with `invalid_cursor`. A cursor holds no secret and no account:
//! the rows that are read never depend on it.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use message::percent;

use crate::problem::{ErrorCode, Problem};

/// The largest `limit`.
pub const LIMIT_MAX: usize = 100;
/// The `limit` when the query gives none.
pub const LIMIT_DEFAULT: usize = 25;
/// Most values of one filter parameter.
pub const VALUES_MAX: usize = 10;
/// Longest query that is parsed; no cursor or filter of this API is longer.
const QUERY_BYTES_MAX: usize = 8 << 10;

pub const KIND_EMAIL: u8 = 1;
const KIND_OFFSET: u8 = 2;
pub const KIND_API_KEY: u8 = 10;
pub const KIND_SMTP_CREDENTIAL: u8 = 11;
pub const KIND_REQUEST: u8 = 12;
pub const KIND_APPROVAL: u8 = 190;
pub const KIND_AUDIT: u8 = 195;
pub const KIND_PRODUCT_EVENT: u8 = 63;
pub const KIND_CONVERSION: u8 = 67;
pub const KIND_RECEIVED: u8 = 78;
pub const KIND_AUTOMATION: u8 = 70;
pub const KIND_AUTOMATION_VERSION: u8 = 71;
pub const KIND_RUN: u8 = 73;
pub const KIND_SUPPRESSION: u8 = 38;
pub const KIND_OPT_OUT: u8 = 41;
pub const KIND_SUPPRESSION_IMPORT: u8 = 43;
pub const KIND_TEMPLATE: u8 = 34;
pub const KIND_WEBHOOK: u8 = 57;
pub const KIND_DELIVERY: u8 = 59;
/// Cursor kind of the webhook event stream (`GET /webhook-events`).
pub const KIND_STREAM: u8 = 55;
pub const KIND_DOMAIN: u8 = 8;
const KIND_TEMPLATE_VERSION: u8 = 37;
pub const KIND_CLAIM: u8 = 9;
pub const KIND_PARTNER: u8 = 95;
pub const KIND_REFERRAL: u8 = 100;
pub const KIND_COMMISSION: u8 = 103;
pub const KIND_PAYOUT: u8 = 130;
pub const KIND_PAYOUT_RUN: u8 = 131;
pub const KIND_PROCESSOR_EVENT: u8 = 108;
/// Cursor kind of the fraud reviews of referrals.
pub const KIND_REVIEW: u8 = 160;
/// Cursor kind of the ledger of a partner.
pub const KIND_LEDGER: u8 = 162;
/// Cursor kind of the list of backfills.
pub const KIND_BACKFILL: u8 = 136;
/// Cursor kind of the grants of an account.
pub const KIND_GRANT: u8 = 182;
/// Cursor kind of the postback log of a partner.
pub const KIND_POSTBACK: u8 = 161;

/// `limit` and `cursor` of a list request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageParameters {
    pub limit: usize,
    cursor: Option<String>,
}

impl PageParameters {
    /// Parses `limit` and `cursor`.
    ///
    /// # Errors
    /// `limit` is not a number from 1 to 100, or a parameter is given twice.
    pub(crate) fn from_parameters(parameters: &[(String, String)]) -> Result<Self, Problem> {
        let limit = match single_value(parameters, "limit")? {
            None => LIMIT_DEFAULT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|n| (1..=LIMIT_MAX).contains(n))
                .ok_or_else(|| Problem::field("limit", format!("must be a number from 1 to {LIMIT_MAX}")))?,
        };
        let cursor = single_value(parameters, "cursor")?.map(str::to_owned);
        Ok(Self { limit, cursor })
    }

    /// Cuts a list that was read with one entry more than a page has. Returns the cursor of the next page, if there is
    /// one.
    pub fn cut<T>(&self, found: &mut Vec<T>, cursor: impl FnOnce(&T) -> String) -> Option<String> {
        let has_more = found.len() > self.limit;
        found.truncate(self.limit);
        found.last().filter(|_| has_more).map(cursor)
    }

    /// The id in a cursor of this kind; the page begins after it.
    pub fn before_id(&self, kind: u8) -> Result<Option<[u8; 16]>, Problem> {
        self.cursor_bytes::<16>(kind)
    }

    /// The number in a cursor of this kind. The caller decides whether the page begins after or before it.
    pub fn cursor_number(&self, kind: u8) -> Result<Option<u64>, Problem> {
        self.cursor_bytes::<8>(kind).map(|position| position.map(u64::from_be_bytes))
    }

    /// The time in a cursor of this kind, and the text that orders entries of the same time.
    pub fn cursor_time(&self, kind: u8) -> Result<Option<(Timestamp, String)>, Problem> {
        let Some(position) = self.bytes_after(kind)? else { return Ok(None) };
        let (time, text) = position.split_first_chunk::<8>().ok_or_else(invalid_cursor)?;
        let time = Timestamp::from_microsecond(i64::from_be_bytes(*time)).map_err(|_| invalid_cursor())?;
        let text = std::str::from_utf8(text).map_err(|_| invalid_cursor())?;
        Ok(Some((time, text.to_owned())))
    }

    /// Position of the cursor in a list of a template's versions.
    pub fn before_template_version(&self) -> Result<Option<u32>, Problem> {
        self.cursor_bytes::<4>(KIND_TEMPLATE_VERSION).map(|position| position.map(u32::from_be_bytes))
    }

    /// Cuts a page out of a list that is wholly in memory. The list is oldest first, the page newest first.
    pub fn paginate<T>(&self, mut entries: Vec<T>) -> Result<(Vec<T>, Option<String>), Problem> {
        if let Some(position) = self.cursor_bytes::<4>(KIND_OFFSET)? {
            let position = usize::try_from(u32::from_be_bytes(position)).unwrap_or(usize::MAX);
            if position > entries.len() {
                return Err(invalid_cursor());
            }
            entries.truncate(position);
        }
        let start = entries.len().saturating_sub(self.limit);
        let mut page = entries.split_off(start);
        page.reverse();
        let next = u32::try_from(start).ok().filter(|n| *n > 0);
        Ok((page, next.map(|n| after_bytes(KIND_OFFSET, &n.to_be_bytes()))))
    }

    fn cursor_bytes<const N: usize>(&self, kind: u8) -> Result<Option<[u8; N]>, Problem> {
        self.bytes_after(kind)?.map(|position| position.try_into().map_err(|_| invalid_cursor())).transpose()
    }

    /// The position in a cursor of this kind that [`after_bytes`] made.
    pub fn bytes_after(&self, kind: u8) -> Result<Option<Vec<u8>>, Problem> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid_cursor())?;
        match bytes.split_first() {
            Some((found, position)) if *found == kind => Ok(Some(position.to_vec())),
            _ => Err(invalid_cursor()),
        }
    }
}

/// The cursor of a page that ends at this position.
pub fn after_bytes(kind: u8, position: &[u8]) -> String {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(position);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The cursor of a page whose last entry has this id.
pub fn after_id(kind: u8, id: [u8; 16]) -> String {
    after_bytes(kind, &id)
}

/// The cursor of a page whose last entry has this number.
pub fn after_number(kind: u8, number: u64) -> String {
    after_bytes(kind, &number.to_be_bytes())
}

/// The cursor of a page whose last entry has this time and text.
pub fn after_time(kind: u8, time: Timestamp, text: &str) -> String {
    after_bytes(kind, &[&time.as_microsecond().to_be_bytes()[..], text.as_bytes()].concat())
}

/// The number in a cursor of this kind; `None` for an invalid cursor.
pub fn decode_number(kind: u8, cursor: &str) -> Option<u64> {
    let page = PageParameters { limit: 1, cursor: Some(cursor.to_owned()) };
    page.cursor_number(kind).ok().flatten()
}

/// The cursor of a page whose last entry is this version of a template.
pub fn after_template_version(number: u32) -> String {
    after_bytes(KIND_TEMPLATE_VERSION, &number.to_be_bytes())
}

/// A timestamp, ISO 8601 with an offset. A space counts as `+`, because clients forget to escape it as `%2B`.
///
/// # Errors
/// The text is no timestamp, or the parameter is given twice.
pub fn parse_time(parameters: &[(String, String)], name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = single_value(parameters, name)? else { return Ok(None) };
    let parsed = text.parse().ok().or_else(|| {
        let (time, offset) = text.rsplit_once(' ')?;
        format!("{time}+{offset}").parse().ok()
    });
    parsed.map(Some).ok_or_else(|| {
        Problem::field(name, "must be a time with an offset, like `2026-01-01T10:00:00Z` (escape `+` as `%2B`)")
    })
}

/// The error for a cursor that this list did not issue.
pub fn invalid_cursor() -> Problem {
    Problem::new(ErrorCode::INVALID_CURSOR, "Invalid cursor: it was not returned by this list")
}

/// Splits a query into decoded names and values. A parameter without a value is left out, because HTML forms send
/// every field.
///
/// # Errors
/// The query is longer than 8 KiB, or is not UTF-8.
pub fn parse_query(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let refused = || Problem::new(ErrorCode::VALIDATION_ERROR, "The query string is too long or not valid UTF-8");
    if query.len() > QUERY_BYTES_MAX {
        return Err(refused());
    }
    // Queries are `application/x-www-form-urlencoded` (WHATWG URL 5.1), where `+` is a space.
    let decode = |text: &str| percent::decode(&text.replace('+', " "));
    query
        .split('&')
        .filter_map(|pair| pair.split_once('=').filter(|(_, value)| !value.is_empty()))
        .map(|(name, value)| Some((decode(name)?, decode(value)?)))
        .collect::<Option<_>>()
        .ok_or_else(refused)
}

/// The value of a parameter, if it is given.
///
/// # Errors
/// The parameter is given more than once.
pub fn single_value<'a>(parameters: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Problem> {
    let mut found = parameters.iter().filter(|(n, _)| n == name);
    match (found.next(), found.next()) {
        (first, None) => Ok(first.map(|(_, value)| value.as_str())),
        _ => Err(Problem::field(name, "must be given once")),
    }
}

/// Splits a list at its commas. A comma in a quoted string belongs to its value, as in `"a,b"@example.net` (RFC 5321
/// 4.1.2).
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if !was_escaped => is_escaped = is_quoted,
            _ => {}
        }
        c == ',' && !is_quoted
    })
}

/// The values of a filter `a,b`; empty without the parameter. `expected` describes a value in the error message.
///
/// # Errors
/// A value is invalid, there are more than [`VALUES_MAX`], or the parameter is given twice.
pub fn parse_values<T: FromStr>(
    parameters: &[(String, String)],
    name: &str,
    expected: &str,
) -> Result<Vec<T>, Problem> {
    let text = single_value(parameters, name)?.unwrap_or_default();
    let values: Vec<&str> = split_list(text).map(str::trim).filter(|value| !value.is_empty()).collect();
    if values.len() > VALUES_MAX {
        return Err(Problem::field(name, format!("has more than {VALUES_MAX} values")));
    }
    let refused = || Problem::field(name, format!("must be {expected}, or several separated by commas"));
    values.into_iter().map(|value| value.parse().map_err(|_| refused())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(query: &str) -> Result<PageParameters, Problem> {
        PageParameters::from_parameters(&parse_query(query)?)
    }

    #[test]
    fn limits() {
        assert_eq!(page_of("").unwrap().limit, 25);
        assert_eq!(page_of("limit=100&x=y").unwrap().limit, 100);
        assert_eq!(page_of("lim%69t=1").unwrap().limit, 1);
        assert_eq!(page_of("limit=").unwrap().limit, 25);
        for bad in ["limit=0", "limit=101", "limit=-1", "limit=x", "limit=1&limit=2", "limit=%f"] {
            assert_eq!(page_of(bad).unwrap_err().code(), ErrorCode::VALIDATION_ERROR, "{bad}");
        }
    }

    #[test]
    fn cursors_round_trip_and_foreign_ones_are_refused() {
        let id = [7; 16];
        let page = page_of(&format!("cursor={}", after_id(KIND_EMAIL, id))).unwrap();
        assert_eq!(page.before_id(KIND_EMAIL).unwrap(), Some(id));
        assert_eq!(page.paginate(vec![1]).unwrap_err().code(), ErrorCode::INVALID_CURSOR);
        for bad in ["x", "!!", "AQ", "AQAA", "%20"] {
            let page = page_of(&format!("cursor={bad}")).unwrap();
            assert_eq!(page.before_id(KIND_EMAIL).unwrap_err().code(), ErrorCode::INVALID_CURSOR, "{bad}");
        }
        assert_eq!(page_of("cursor=").unwrap().before_id(KIND_EMAIL).unwrap(), None);
    }

    #[test]
    fn a_comma_in_quotes_belongs_to_its_value() {
        for (text, expected) in [
            ("a@x.example,b@x.example", vec!["a@x.example", "b@x.example"]),
            (r#""a,b"@x.example, c@x.example"#, vec![r#""a,b"@x.example"#, "c@x.example"]),
            (r#""a\",b"@x.example,c"#, vec![r#""a\",b"@x.example"#, "c"]),
            (r#""a\\",b"#, vec![r#""a\\""#, "b"]),
            (r#"a\",b""#, vec![r#"a\",b""#]),
            (",,", vec![]),
        ] {
            let given = [("to".to_owned(), text.to_owned())];
            assert_eq!(parse_values::<String>(&given, "to", "an address").unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_list_in_memory_is_paged_from_its_newest() {
        let all: Vec<u32> = (1..=5).collect();
        let mut pages = Vec::new();
        let mut query = "limit=2".to_owned();
        loop {
            let (page, next) = page_of(&query).unwrap().paginate(all.clone()).unwrap();
            pages.extend(page);
            match next {
                None => break,
                Some(next) => query = format!("limit=2&cursor={next}"),
            }
        }
        assert_eq!(pages, [5, 4, 3, 2, 1]);
    }
}
