//! The parameters of MAIL that say when: FUTURERELEASE (RFC 4865), DELIVERBY (RFC 2852), MT-PRIORITY (RFC 6710).

use std::time::Duration;

use jiff::Timestamp;
use mail::draft::{DeliverBy, Release};
use mail::email::Priority;
use queue::accept::SCHEDULED_AHEAD_MAX;

/// RFC 4865 3.1 and RFC 2852 3: `1*9DIGIT`.
const SECONDS_DIGITS_MAX: usize = 9;

fn seconds(text: &str) -> Option<u64> {
    let digits = (1..=SECONDS_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// HOLDFOR: seconds, at least one, and no more than EHLO has said (RFC 4865 4).
pub(super) fn hold_for(value: &str) -> Option<Release> {
    let wait = Duration::from_secs(seconds(value)?);
    (!wait.is_zero() && wait <= SCHEDULED_AHEAD_MAX).then_some(Release::After(wait))
}

/// HOLDUNTIL: a time of RFC 3339. Whether it is one to wait for, who knows the clock says.
pub(super) fn hold_until(value: &str) -> Option<Release> {
    value.parse::<Timestamp>().ok().map(Release::At)
}

/// BY: `seconds;N` or `seconds;R`, each with `T` behind it or not. Time that is over can only be told of.
pub(super) fn by(value: &str) -> Option<DeliverBy> {
    let (time, mode) = value.split_once(';')?;
    let (is_past, digits) = match time.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, time.strip_prefix('+').unwrap_or(time)),
    };
    let seconds = seconds(digits)?;
    match mode.to_ascii_uppercase().as_str() {
        "N" | "NT" => {
            let within_s = i64::try_from(seconds).ok()?;
            Some(DeliverBy::Notify(if is_past { -within_s } else { within_s }))
        }
        "R" | "RT" if !is_past && seconds > 0 => Some(DeliverBy::Return(Duration::from_secs(seconds))),
        _ => None,
    }
}

/// MT-PRIORITY: -9 to 9.
pub(super) fn priority(value: &str) -> Option<Priority> {
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
    fn times_are_read() {
        assert_eq!(hold_for("60"), Some(Release::After(Duration::from_secs(60))));
        let at = "2030-01-31T08:00:00Z";
        assert_eq!(hold_until(at), Some(Release::At(at.parse().unwrap())));
        assert_eq!(by("120;R"), Some(DeliverBy::Return(Duration::from_secs(120))));
        assert_eq!(by("120;rt"), Some(DeliverBy::Return(Duration::from_secs(120))));
        assert_eq!((by("-5;N"), by("0;nt")), (Some(DeliverBy::Notify(-5)), Some(DeliverBy::Notify(0))));
        assert_eq!((priority("-9"), priority("3")), (Priority::new(-9), Priority::new(3)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert!(hold_for("31622400").is_some());
        for value in ["0", "", "-1", "1.5", "31622401", "1234567890", "x", "+1"] {
            assert_eq!(hold_for(value), None, "{value}");
        }
        for value in ["tomorrow", "2030-01-31", "08:00", ""] {
            assert_eq!(hold_until(value), None, "{value}");
        }
        for value in ["120", "120;", "120;X", "0;R", "-1;R", ";R", "1;R;T", "1234567890;N", "--1;N"] {
            assert_eq!(by(value), None, "{value}");
        }
        for value in ["10", "-10", "", "-", "x", "1.0", "--1"] {
            assert_eq!(priority(value), None, "{value}");
        }
    }
}
