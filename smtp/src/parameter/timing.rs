//! The timing parameters of MAIL: FUTURERELEASE (RFC 4865), DELIVERBY (RFC 2852), MT-PRIORITY (RFC 6710).

use std::time::Duration;

use jiff::Timestamp;
use model::draft::{DeliverBy, FutureRelease};
use model::email::Priority;
use queue::intake::SCHEDULED_AHEAD_MAX;

/// RFC 4865 3.1 and RFC 2852 3: `1*9DIGIT`.
const SECONDS_DIGITS_MAX: usize = 9;

fn parse_seconds(text: &str) -> Option<u64> {
    let digits = (1..=SECONDS_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Parses HOLDFOR: at least one second, and at most the maximum that EHLO announces (RFC 4865 4).
pub(super) fn parse_hold_for(value: &str) -> Option<FutureRelease> {
    let wait = Duration::from_secs(parse_seconds(value)?);
    (!wait.is_zero() && wait <= SCHEDULED_AHEAD_MAX).then_some(FutureRelease::After(wait))
}

/// Parses HOLDUNTIL, an RFC 3339 time. The handler checks whether the time is acceptable, because it has the clock.
pub(super) fn parse_hold_until(value: &str) -> Option<FutureRelease> {
    value.parse::<Timestamp>().ok().map(FutureRelease::At)
}

/// Parses BY: seconds, then `;N` or `;R`, each with an optional `T`. A deadline in the past is valid only with `N`.
pub(super) fn parse_deliver_by(value: &str) -> Option<DeliverBy> {
    let (time, mode) = value.split_once(';')?;
    let (is_negative, digits) = match time.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, time.strip_prefix('+').unwrap_or(time)),
    };
    let seconds = parse_seconds(digits)?;
    match mode.to_ascii_uppercase().as_str() {
        "N" | "NT" => {
            let within_s = i64::try_from(seconds).ok()?;
            Some(DeliverBy::Notify(if is_negative { -within_s } else { within_s }))
        }
        "R" | "RT" if !is_negative && seconds > 0 => Some(DeliverBy::Return(Duration::from_secs(seconds))),
        _ => None,
    }
}

/// Parses MT-PRIORITY, from -9 to 9.
pub(super) fn parse_mt_priority(value: &str) -> Option<Priority> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let digit = Some(digits).filter(|digits| digits.len() == 1)?.parse::<i8>().ok()?;
    Priority::new(sign * digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        assert_eq!(parse_hold_for("60"), Some(FutureRelease::After(Duration::from_secs(60))));
        let at = "2030-01-31T08:00:00Z";
        assert_eq!(parse_hold_until(at), Some(FutureRelease::At(at.parse().unwrap())));
        assert_eq!(parse_deliver_by("120;R"), Some(DeliverBy::Return(Duration::from_secs(120))));
        assert_eq!(parse_deliver_by("120;rt"), Some(DeliverBy::Return(Duration::from_secs(120))));
        assert_eq!(
            (parse_deliver_by("-5;N"), parse_deliver_by("0;nt")),
            (Some(DeliverBy::Notify(-5)), Some(DeliverBy::Notify(0)))
        );
        assert_eq!((parse_mt_priority("-9"), parse_mt_priority("3")), (Priority::new(-9), Priority::new(3)));
    }

    #[test]
    fn invalid_times_are_refused() {
        assert!(parse_hold_for("31622400").is_some());
        for value in ["0", "", "-1", "1.5", "31622401", "1234567890", "x", "+1"] {
            assert_eq!(parse_hold_for(value), None, "{value}");
        }
        for value in ["tomorrow", "2030-01-31", "08:00", ""] {
            assert_eq!(parse_hold_until(value), None, "{value}");
        }
        for value in ["120", "120;", "120;X", "0;R", "-1;R", ";R", "1;R;T", "1234567890;N", "--1;N"] {
            assert_eq!(parse_deliver_by(value), None, "{value}");
        }
        for value in ["10", "-10", "", "-", "x", "1.0", "--1"] {
            assert_eq!(parse_mt_priority(value), None, "{value}");
        }
    }
}
