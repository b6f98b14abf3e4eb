//! Usage: how many emails of its plan an account has used up, by the day and by the month (UTC).
//!
//! One accepted recipient is one email. What was scheduled counts when it is taken on, and is given back
//! when it is cancelled; what the service writes itself (delivery reports) and what was blocked does not
//! count.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::event::{Event, EventKind};
use crate::plan::PlanLimits;

/// A stretch of time that is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsagePeriod {
    /// A day, of UTC.
    Day(Date),
    /// The calendar month that begins on this day, of UTC.
    Month(Date),
}

impl UsagePeriod {
    /// The day that a moment lies in.
    #[must_use]
    pub fn day(at: Timestamp) -> Self {
        Self::Day(TimeZone::UTC.to_datetime(at).date())
    }

    /// The month that a moment lies in.
    #[must_use]
    pub fn month(at: Timestamp) -> Self {
        Self::Month(TimeZone::UTC.to_datetime(at).date().first_of_month())
    }

    /// What it is called: `daily`, `monthly`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day(_) => "daily",
            Self::Month(_) => "monthly",
        }
    }

    /// Its first day.
    #[must_use]
    pub fn first_day(self) -> Date {
        match self {
            Self::Day(date) | Self::Month(date) => date,
        }
    }

    /// When it begins.
    #[must_use]
    pub fn begins_at(self) -> Timestamp {
        midnight(self.first_day())
    }

    /// When the next one begins.
    #[must_use]
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

/// What was used up in the day and in the month of one moment. Less than nothing for a while, when what is
/// given back is told before what was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanUsage {
    /// In its day.
    pub day: i64,
    /// In its month.
    pub month: i64,
}

/// A cap that another send would go beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededCap {
    /// Which stretch of time.
    pub period: UsagePeriod,
    /// Used up so far.
    pub used: u64,
    /// The most that may be.
    pub cap: u64,
}

/// Whether `more` emails may be sent at a moment, after what was used: the cap that is in the way, if one is.
#[must_use]
pub fn exceeded_cap(limits: &PlanLimits, used: PlanUsage, more: u64, now: Timestamp) -> Option<ExceededCap> {
    let monthly = limits.emails_per_month.filter(|_| !limits.overage);
    [(limits.emails_per_day, UsagePeriod::day(now), used.day), (monthly, UsagePeriod::month(now), used.month)]
        .into_iter()
        .filter_map(|(cap, period, used)| {
            Some(ExceededCap { period, used: u64::try_from(used).unwrap_or(0), cap: cap? })
        })
        .find(|cap| cap.used.saturating_add(more) > cap.cap)
}

/// What is left of a plan's caps; none where there is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanRemaining {
    /// Today.
    pub day: Option<u64>,
    /// This month.
    pub month: Option<u64>,
}

impl PlanRemaining {
    /// What is left of the caps after what was used.
    #[must_use]
    pub fn from_usage(limits: &PlanLimits, used: PlanUsage) -> Self {
        let left = |cap: Option<u64>, used: i64| cap.map(|cap| cap.saturating_sub(u64::try_from(used).unwrap_or(0)));
        let monthly = limits.emails_per_month.filter(|_| !limits.overage);
        Self { day: left(limits.emails_per_day, used.day), month: left(monthly, used.month) }
    }
}

/// Whether a plan has caps at all.
#[must_use]
pub fn has_caps(limits: &PlanLimits) -> bool {
    limits.emails_per_day.is_some() || limits.emails_per_month.is_some() && !limits.overage
}

/// What an event does to the usage: how many emails, counted to which moment's periods. Negative when it
/// gives some back.
#[must_use]
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
    fn the_cap_in_the_way_is_named() {
        let free = PlanLimits::for_plan(Plan::Free);
        let now = at("2026-01-01T12:00:00Z");
        assert_eq!(exceeded_cap(&free, PlanUsage { day: 99, month: 99 }, 1, now), None);
        let daily = exceeded_cap(&free, PlanUsage { day: 99, month: 99 }, 2, now).unwrap();
        assert_eq!((daily.period, daily.used, daily.cap), (UsagePeriod::day(now), 99, 100));
        let monthly = exceeded_cap(&free, PlanUsage { day: 0, month: 3_000 }, 1, now).unwrap();
        assert_eq!((monthly.period, monthly.cap), (UsagePeriod::month(now), 3_000));
        // Metered: there is no end.
        let pro = PlanLimits::for_plan(Plan::Pro);
        assert_eq!(exceeded_cap(&pro, PlanUsage { day: i64::MAX, month: i64::MAX }, 1, now), None);
        assert!(has_caps(&free) && !has_caps(&pro));
    }

    #[test]
    fn a_cancelled_email_is_given_back_where_it_was_counted() {
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
