//! Durations on the command line: `30s`, `5m`, `2h`, `7d`, `500ms`; a number alone is seconds.

use std::time::Duration;

use crate::error::CliError;

const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Reads a duration of at most a year.
pub(crate) fn parse(text: &str) -> Result<Duration, CliError> {
    let invalid = || CliError::usage(format!("`{text}` is not a duration (examples: 30s, 5m, 2h, 7d)"));
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    let milliseconds = match text.get(digits.len()..).unwrap_or_default() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(invalid()),
    };
    let duration = number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(invalid)?;
    if duration > DURATION_MAX { Err(invalid()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, seconds) in
            [("30s", Some(30)), ("5m", Some(300)), ("2h", Some(7_200)), ("7d", Some(604_800)), ("9", Some(9))]
        {
            assert_eq!(parse(text).ok().map(|duration| duration.as_secs()), seconds, "{text}");
        }
        for text in ["", "h", "-1s", "1w", "1.5h", "99999999999999999999s", "400d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
