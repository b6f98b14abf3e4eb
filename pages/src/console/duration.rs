//! Durations as the command line writes them: `90m`, `2h`, `3d`.

use crate::dashboard::backend::Failure;

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Reads a duration in seconds; `None` for an empty text.
///
/// # Errors
/// The text is no duration; the failure names the field.
pub fn parse(field: &str, text: &str) -> Result<Option<u64>, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || Failure::field(field, "Enter a duration like 90m, 2h or 3d");
    let (number, seconds) =
        UNITS.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds))).ok_or_else(refused)?;
    let number: u64 = number.trim().parse().map_err(|_| refused())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).map(Some).ok_or_else(refused)
}

/// The shortest form of a duration in one unit.
pub fn text(seconds: u64) -> String {
    let (unit, size) =
        UNITS.into_iter().find(|(_, size)| seconds >= *size && seconds.is_multiple_of(*size)).unwrap_or(('s', 1));
    format!("{}{unit}", seconds / size)
}

/// The age of something in its largest unit, for people: `3 h`.
pub fn age(seconds: i64) -> String {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let (unit, size) = UNITS.into_iter().find(|(_, size)| seconds >= *size).unwrap_or(('s', 1));
    let word = if unit == 'm' { "min" } else { &unit.to_string() };
    format!("{}\u{202f}{word}", seconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (written, seconds) in [("90m", 5_400), ("2h", 7_200), ("3d", 259_200), ("45s", 45)] {
            assert_eq!(parse("for", written), Ok(Some(seconds)));
            assert_eq!(text(seconds), written);
        }
        assert_eq!(parse("for", " "), Ok(None));
        for wrong in ["2", "h", "-1h", "0s", "1w", "99999999999999999999d", "9999999999999999d", "1h30m"] {
            assert!(parse("for", wrong).is_err_and(|failure| failure.fields.contains_key("for")), "{wrong}");
        }
        assert_eq!((text(3_661), text(0)), ("3661s".to_owned(), "0s".to_owned()));
        assert_eq!((age(59), age(7_300), age(-4)), ("59\u{202f}s".into(), "2\u{202f}h".into(), "0\u{202f}s".into()));
    }
}
