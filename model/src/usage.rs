//! Plan usage: how many emails of its plan an account has used, per day and per month (UTC).
//!
//! One accepted recipient is one email. A scheduled email counts when it is accepted, and is credited back when it is
//! cancelled. Mail of the service itself (DSNs) and blocked recipients do not count.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::event::{Event, EventKind};
use crate::plan::PlanLimits;

/// A period with its own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsagePeriod {
    /// A day (UTC).
    Day(Date),
    /// The calendar month (UTC) that begins on this day.
    Month(Date),
}

impl UsagePeriod {
    /// The day that contains a timestamp.
    pub fn day(at: Timestamp) -> Self {
        Self::Day(TimeZone::UTC.to_datetime(at).date())
    }

    /// The month that contains a timestamp.
    pub fn month(at: Timestamp) -> Self {
        Self::Month(TimeZone::UTC.to_datetime(at).date().first_of_month())
    }

    /// Name in the API: `daily`, `monthly`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day(_) => "daily",
            Self::Month(_) => "monthly",
        }
    }

    pub fn first_day(self) -> Date {
        match self {
            Self::Day(date) | Self::Month(date) => date,
        }
    }

    pub fn begins_at(self) -> Timestamp {
        midnight(self.first_day())
    }

    /// Start of the next period.
    pub fn ends_at(self) -> Timestamp {
        let next = match self {
            Self::Day(date) => date.tomorrow(),
            Self::Month(date) => date.last_of_month().tomorrow(),
        };
        next.map_or(Timestamp::MAX, midnight)
    }
}

fn midnight(date: Date) -> Timestamp {
    date.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp())
}

/// Usage of the current day and month. It can be negative for a while, if a credit is counted before its charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanUsage {
    pub day: i64,
    pub month: i64,
}

/// A cap that another send would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededCap {
    pub period: UsagePeriod,
    pub used: u64,
    pub cap: u64,
}

/// Returns the cap that `added` emails at `now` would exceed, if any.
pub fn exceeded_cap(limits: &PlanLimits, used: PlanUsage, added: u64, now: Timestamp) -> Option<ExceededCap> {
    let monthly = limits.emails_per_month.filter(|_| !limits.overage);
    [(limits.emails_per_day, UsagePeriod::day(now), used.day), (monthly, UsagePeriod::month(now), used.month)]
        .into_iter()
        .filter_map(|(cap, period, used)| {
            Some(ExceededCap { period, used: u64::try_from(used).unwrap_or(0), cap: cap? })
        })
        .find(|cap| cap.used.saturating_add(added) > cap.cap)
}

/// Emails left under a plan's caps; `None` if there is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanRemaining {
    /// Left today.
    pub day: Option<u64>,
    /// Left this month.
    pub month: Option<u64>,
}

impl PlanRemaining {
    /// Computes the remaining emails from the usage.
    pub fn from_usage(limits: &PlanLimits, used: PlanUsage) -> Self {
        let left = |cap: Option<u64>, used: i64| cap.map(|cap| cap.saturating_sub(u64::try_from(used).unwrap_or(0)));
        let monthly = limits.emails_per_month.filter(|_| !limits.overage);
        Self { day: left(limits.emails_per_day, used.day), month: left(monthly, used.month) }
    }
}

/// Returns whether a plan has a hard cap.
pub fn has_caps(limits: &PlanLimits) -> bool {
    limits.emails_per_day.is_some() || limits.emails_per_month.is_some() && !limits.overage
}

/// Returns the usage change of an event: the time whose periods it counts to, and the number of emails. The number is
/// negative for credits.
pub fn usage_of_event(event: &Event) -> Option<(Timestamp, i64)> {
    let number = |name: &str| event.detail.get(name).and_then(serde_json::Value::as_i64);
    let time = |name: &str| event.detail.get(name)?.as_str()?.parse::<Timestamp>().ok();
    if let Some(back) = number("given_back") {
        return Some((time("accepted_at")?, back.checked_neg()?));
    }
    let count = number("recipients_count")?;
    match event.kind {
        EventKind::Scheduled => Some((event.created_at, count)),
        EventKind::Sent if event.detail.get("uncounted").is_none() => Some((event.created_at, count)),
        EventKind::Cancelled => Some((time("accepted_at")?, -count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Plan;
    use crate::id::{AccountId, EmailId, EventId};
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn periods_begin_and_end_at_midnight_utc() {
        let moment = at("2026-02-28T23:59:59.999Z");
        assert_eq!(UsagePeriod::day(moment).ends_at(), at("2026-03-01T00:00:00Z"));
        assert_eq!(UsagePeriod::month(moment).begins_at(), at("2026-02-01T00:00:00Z"));
        assert_eq!(UsagePeriod::month(moment).ends_at(), at("2026-03-01T00:00:00Z"));
        assert_ne!(UsagePeriod::day(moment), UsagePeriod::day(at("2026-03-01T00:00:00Z")));
    }

    #[test]
    fn the_exceeded_cap_is_returned() {
        let free = PlanLimits::for_plan(Plan::Free);
        let now = at("2026-01-01T12:00:00Z");
        assert_eq!(exceeded_cap(&free, PlanUsage { day: 99, month: 99 }, 1, now), None);
        let daily = exceeded_cap(&free, PlanUsage { day: 99, month: 99 }, 2, now).unwrap();
        assert_eq!((daily.period, daily.used, daily.cap), (UsagePeriod::day(now), 99, 100));
        let monthly = exceeded_cap(&free, PlanUsage { day: 0, month: 3_000 }, 1, now).unwrap();
        assert_eq!((monthly.period, monthly.cap), (UsagePeriod::month(now), 3_000));
        // Metered plans have no hard cap.
        let pro = PlanLimits::for_plan(Plan::Pro);
        assert_eq!(exceeded_cap(&pro, PlanUsage { day: i64::MAX, month: i64::MAX }, 1, now), None);
        assert!(has_caps(&free) && !has_caps(&pro));
    }

    #[test]
    fn a_cancelled_email_is_refunded_in_its_period() {
        let event = |kind, detail| Event {
            id: EventId::new(at("2026-01-02T00:00:00Z"), 1),
            account: AccountId::new(at("2026-01-02T00:00:00Z"), 1),
            subject: EmailId::new(at("2026-01-02T00:00:00Z"), 1).into(),
            kind,
            recipient: None,
            created_at: at("2026-01-02T00:00:00Z"),
            detail,
        };
        let now = at("2026-01-02T00:00:00Z");
        assert_eq!(usage_of_event(&event(EventKind::Sent, json!({"recipients_count": 3}))), Some((now, 3)));
        let again = json!({"recipients_count": 3, "uncounted": true});
        assert_eq!(usage_of_event(&event(EventKind::Sent, again)), None);
        assert_eq!(usage_of_event(&event(EventKind::Scheduled, json!({"recipients_count": 2}))), Some((now, 2)));
        let back = json!({"recipients_count": 2, "accepted_at": "2026-01-01T00:00:00Z"});
        assert_eq!(usage_of_event(&event(EventKind::Cancelled, back)), Some((at("2026-01-01T00:00:00Z"), -2)));
        assert_eq!(usage_of_event(&event(EventKind::Cancelled, json!({"by": "operator"}))), None);
    }
}
