//! `Retry-After` (RFC 9110 10.2.3): a number of seconds, or a date.

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;

use crate::clock;

/// Seconds until the request may be repeated. A date counts from the server's `Date`, or else from the time of this
/// machine.
pub(crate) fn seconds(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let at = date(text)?;
    let sent_at = headers.get(DATE).and_then(|value| date(value.to_str().ok()?));
    let now = sent_at.or_else(|| clock::now().ok())?;
    // Part of a second counts as a whole one; a date in the past is no wait.
    let milliseconds = at.as_millisecond().saturating_sub(now.as_millisecond());
    Some(u64::try_from(milliseconds).unwrap_or_default().div_ceil(1_000))
}

/// An HTTP date (RFC 9110 5.6.7).
fn date(text: &str) -> Option<Timestamp> {
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let read = |fields: &[(http::HeaderName, &str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            seconds(&fields.collect::<HeaderMap>())
        };
        let sent_at = (DATE, "Thu, 01 Jan 2026 00:00:00 GMT");
        for (text, expected) in [
            ("7", Some(7)),
            ("Thu, 01 Jan 2026 00:00:09 GMT", Some(9)),
            ("Wed, 31 Dec 2025 23:59:00 GMT", Some(0)),
            ("soon", None),
        ] {
            assert_eq!(read(&[sent_at.clone(), (RETRY_AFTER, text)]), expected, "{text}");
        }
        assert_eq!(read(&[(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(0));
        assert_eq!(read(&[sent_at]), None);
    }
}
