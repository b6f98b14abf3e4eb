//! Time limits of the affiliate program: attribution of clicks, earning period of a customer, hold of a commission.
//!
//! All of them are computed from the processor's timestamps in UTC: the time of payment, not of its receipt. The
//! functions here are pure and read no clock.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use super::arithmetic::ArithmeticError;
use super::campaign::CommissionDuration;

/// Renewals are paid some hours early or late. An earning period therefore ends this long before the calendar month is
/// complete.
const DRIFT: SignedDuration = SignedDuration::from_hours(12);
/// A day always has 24 hours here.
const DAY_HOURS: i64 = 24;

/// The end of a commission's hold of `hold_days`.
pub fn earns_at(since: Timestamp, hold_days: u16) -> Result<Timestamp, ArithmeticError> {
    days_after(since, hold_days)
}

/// The end of the attribution of a visit, or of a lead that is not linked to a customer.
pub fn binds_until(since: Timestamp, cookie_days: u16) -> Result<Timestamp, ArithmeticError> {
    days_after(since, cookie_days)
}

fn days_after(since: Timestamp, days: u16) -> Result<Timestamp, ArithmeticError> {
    let hours = i64::from(days).checked_mul(DAY_HOURS).ok_or(ArithmeticError::BeyondTime)?;
    since.checked_add(SignedDuration::from_hours(hours)).map_err(|_| ArithmeticError::BeyondTime)
}

/// The time from which a customer's sales no longer earn; `None` if it is out of range.
///
/// Months are calendar months. If a month lacks the day, its last day is used.
pub fn earning_ends_at(converted_at: Timestamp, months: u16) -> Option<Timestamp> {
    let first = TimeZone::UTC.to_datetime(converted_at);
    let last = first.checked_add(Span::new().try_months(months).ok()?).ok()?;
    let last = TimeZone::UTC.to_timestamp(last).ok()?;
    last.checked_sub(DRIFT).ok()
}

/// True if a sale paid at `paid_at` is within the earning period of a customer who converted at `converted_at`.
///
/// Always true for [`CommissionDuration::Once`], which limits the number of sales, not their time.
pub fn is_within_duration(duration: CommissionDuration, converted_at: Timestamp, paid_at: Timestamp) -> bool {
    match duration {
        CommissionDuration::Once | CommissionDuration::Recurring(None) => true,
        CommissionDuration::Recurring(Some(months)) => {
            earning_ends_at(converted_at, months).is_none_or(|end| paid_at < end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn earning_months_are_clamped_and_end_twelve_hours_early() {
        let table = [
            // converted, months, paid, whether it earns
            ("2026-01-15T10:00:00Z", 1, "2026-02-14T21:59:59Z", true),
            ("2026-01-15T10:00:00Z", 1, "2026-02-14T22:00:00Z", false),
            ("2026-01-15T10:00:00Z", 12, "2026-12-15T10:05:00Z", true), // the twelfth
            ("2026-01-15T10:00:00Z", 12, "2027-01-15T09:55:00Z", false), // the thirteenth, some minutes early
            ("2026-01-31T10:00:00Z", 1, "2026-02-27T21:59:59Z", true),  // a month after 31 January is 28 February
            ("2026-01-31T10:00:00Z", 1, "2026-02-28T10:00:00Z", false),
            ("2028-01-31T10:00:00Z", 1, "2028-02-28T21:59:59Z", true), // or the 29th
            ("2028-02-29T10:00:00Z", 12, "2029-02-27T21:59:59Z", true),
            ("2028-02-29T10:00:00Z", 12, "2029-02-28T00:00:00Z", false),
            ("2026-01-15T10:00:00Z", 12, "2025-12-01T00:00:00Z", true), // received late
            ("2026-01-15T10:00:00Z", u16::MAX, "2999-01-01T00:00:00Z", true),
            ("9999-06-01T00:00:00Z", 12, "9999-12-01T00:00:00Z", true), // the end is out of range
        ];
        for (converted, months, paid, earns) in table {
            let duration = CommissionDuration::Recurring(Some(months));
            assert_eq!(is_within_duration(duration, at(converted), at(paid)), earns, "{converted} + {months}: {paid}");
        }
        assert!(is_within_duration(
            CommissionDuration::Recurring(None),
            at("2026-01-15T10:00:00Z"),
            at("2999-01-15T10:00:00Z")
        ));
    }

    #[test]
    fn days_are_24_hours() {
        assert_eq!(earns_at(at("2026-03-28T23:30:00Z"), 30), Ok(at("2026-04-27T23:30:00Z")));
        assert_eq!(earns_at(at("2026-03-28T23:30:00Z"), 0), Ok(at("2026-03-28T23:30:00Z")));
        assert_eq!(binds_until(at("2026-03-01T00:00:00Z"), 60), Ok(at("2026-04-30T00:00:00Z")));
        assert_eq!(earns_at(Timestamp::MAX, 1), Err(ArithmeticError::BeyondTime));
    }
}
