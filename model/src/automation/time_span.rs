//! Durations as people write them: `2d4h`, `30m`, `1w`.
//!
//! The units are weeks, days, hours, minutes and seconds, each at most once and in descending order. A day is always 24
//! hours.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

/// Longest duration in seconds (365 days).
pub const SECONDS_MAX: u64 = 365 * 86_400;

/// A duration in whole seconds, from one second to 365 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(u64);

const UNITS: [(u8, u64); 5] = [(b'w', 604_800), (b'd', 86_400), (b'h', 3_600), (b'm', 60), (b's', 1)];

impl TimeSpan {
    /// Parses a duration.
    ///
    /// # Errors
    /// The reason as the end of a sentence that begins with the field's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "must be a duration like `3d`, `2d4h` or `90m` (w, d, h, m, s)";
        let (mut seconds, mut rest, mut units) = (0_u64, text.trim(), UNITS.as_slice());
        if rest.is_empty() {
            return Err(FORM.to_owned());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, unit) = rest.split_at(digits);
            let number: u64 = number.parse().map_err(|_| FORM.to_owned())?;
            let unit_byte = unit.bytes().next().ok_or(FORM)?;
            let at = units.iter().position(|(known, _)| *known == unit_byte).ok_or(FORM)?;
            let (_, factor) = units.get(at).copied().unwrap_or_default();
            units = units.get(at + 1..).unwrap_or_default();
            seconds = seconds.saturating_add(number.saturating_mul(factor));
            rest = unit.get(1..).unwrap_or_default();
        }
        match seconds {
            0 => Err("must be at least one second".to_owned()),
            1..=SECONDS_MAX => Ok(Self(seconds)),
            _ => Err("must be at most 365 days".to_owned()),
        }
    }

    pub fn seconds(self) -> u64 {
        self.0
    }

    /// The time that is this duration after `at`.
    pub fn added_to(self, at: Timestamp) -> Timestamp {
        let span = SignedDuration::from_secs(i64::try_from(self.0).unwrap_or(i64::MAX));
        at.checked_add(span).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        // Weeks are written as days, as in the examples of docs/AUTOMATIONS.md.
        for (unit_byte, factor) in UNITS.into_iter().skip(1) {
            let number = left / factor;
            left %= factor;
            if number > 0 {
                write!(f, "{number}{}", char::from(unit_byte))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_trip() {
        for (given, seconds, written) in [
            ("2d4h", 2 * 86_400 + 4 * 3_600, "2d4h"),
            ("90m", 5_400, "1h30m"),
            ("1w", 604_800, "7d"),
            (" 3d ", 259_200, "3d"),
            ("1s", 1, "1s"),
            ("365d", SECONDS_MAX, "365d"),
        ] {
            let span = TimeSpan::parse(given).unwrap();
            assert_eq!((span.seconds(), span.to_string().as_str()), (seconds, written));
            assert_eq!(TimeSpan::parse(written), Ok(span));
        }
        for bad in [
            "",
            "0s",
            "366d",
            "3",
            "d",
            "3x",
            "4h2d",
            "1d1d",
            "-1d",
            "1.5h",
            "99999999999999999999d",
            "1d 2h",
            "3d\u{e9}",
        ] {
            assert!(TimeSpan::parse(bad).is_err(), "{bad}");
        }
    }
}
