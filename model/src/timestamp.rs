//! Timestamps in the API: ISO 8601, in the profile of RFC 3339.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

/// Error for a text that is not a time. It shows the format instead of an example, which would become a past time.
const INVALID_TIME: &str = "must be an ISO 8601 time with an offset: YYYY-MM-DDThh:mm:ssZ or …+hh:mm";
/// Error for a time in the last hours of the year 9999, beyond the range of `Timestamp`.
const TIME_TOO_FAR: &str = "is too far in the future";

/// Parses a time. The offset is required: without one the time is ambiguous.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
pub fn parse(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| match Pieces::parse(text) {
        Ok(pieces) if pieces.offset().is_some() && pieces.date().year() == 9999 => TIME_TOO_FAR,
        _ => INVALID_TIME,
    })
}

/// Formats a time with milliseconds.
pub fn to_rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        let read_and_written = |text| parse(text).map(to_rfc3339);
        assert_eq!(read_and_written("2030-01-31T10:00:00+01:00").as_deref(), Ok("2030-01-31T09:00:00.000Z"));
        assert_eq!(read_and_written("9999-12-01T00:00:00Z").as_deref(), Ok("9999-12-01T00:00:00.000Z"));
        assert_eq!(parse("9999-12-31T23:59:59Z"), Err(TIME_TOO_FAR));
        for none in ["", "soon", "2030-01-31", "2030-01-31T09:00:00", "9999-12-31T23:59:59", "2030-13-01T00:00:00Z"] {
            assert_eq!(parse(none), Err(INVALID_TIME), "{none}");
        }
    }
}
