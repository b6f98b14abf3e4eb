//! Times as clients write and read them: ISO 8601, in the form of RFC 3339.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

/// What is said of a text that is no time. An example would be refused some day: too far ahead, or over.
const INVALID_TIME: &str = "must be an ISO 8601 time with an offset: YYYY-MM-DDThh:mm:ssZ or …+hh:mm";
/// What is said of a time that is beyond those that can be reckoned with: in the last hours of the year 9999.
const TIME_TOO_FAR: &str = "is too far in the future";

/// Reads a time, with its offset: without one nobody knows when it is.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| match Pieces::parse(text) {
        Ok(pieces) if pieces.offset().is_some() && pieces.date().year() == 9999 => TIME_TOO_FAR,
        _ => INVALID_TIME,
    })
}

/// Writes a time, in milliseconds.
#[must_use]
pub fn to_rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        let read_and_written = |text| parse(text).map(to_rfc3339);
        assert_eq!(read_and_written("2030-01-31T10:00:00+01:00").as_deref(), Ok("2030-01-31T09:00:00.000Z"));
        assert_eq!(read_and_written("9999-12-01T00:00:00Z").as_deref(), Ok("9999-12-01T00:00:00.000Z"));
        assert_eq!(parse("9999-12-31T23:59:59Z"), Err(TIME_TOO_FAR));
        for none in ["", "soon", "2030-01-31", "2030-01-31T09:00:00", "9999-12-31T23:59:59", "2030-13-01T00:00:00Z"] {
            assert_eq!(parse(none), Err(INVALID_TIME), "{none}");
        }
    }
}
