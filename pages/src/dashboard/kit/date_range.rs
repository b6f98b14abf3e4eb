//! The range of days of a page with figures, as filters in the address, and its periods: hours, days or weeks in UTC.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::filter::Filter;
use crate::dashboard::backend::Call;
use crate::dashboard::form::choices;
use crate::dashboard::request::Fields;

const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
/// The days without a filter.
const DAYS: i64 = 30;
/// The longest range in days; counts are stored for two years.
const DAYS_MAX: i64 = 731;
/// Longer ranges have a period for each week.
const DAYS_BY_DAY_MAX: i64 = 92;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodLength {
    Hour,
    Day,
    Week,
}

impl PeriodLength {
    const fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
        }
    }

    /// The head of the column of periods.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hour => "Hour (UTC)",
            Self::Day => "Day (UTC)",
            Self::Week => "Week from",
        }
    }
}

/// A range of time, cut into periods.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    pub from: Timestamp,
    /// Exclusive.
    pub to: Timestamp,
    pub step: PeriodLength,
}

impl DateRange {
    /// The filters: a range up to now, or two days.
    pub fn filters() -> [Filter; 3] {
        let ranges = [
            ("1", "Last 24 hours"),
            ("7", "Last 7 days"),
            ("", "Last 30 days"),
            ("90", "Last 90 days"),
            ("365", "Last 12 months"),
        ];
        let range = Filter::select("range", "Range", choices(&ranges));
        [range, Filter::date("from", "From date"), Filter::date("to", "To date")]
    }

    /// The range of a query. Its second part says what is wrong with the days; then the range is the usual one.
    pub fn read(query: &Fields, now: Timestamp) -> (Self, Option<&'static str>) {
        let (from, to) = (query.get("from").trim(), query.get("to").trim());
        if from.is_empty() && to.is_empty() {
            return (Self::until_now(query.get("range"), now), None);
        }
        match Self::between(from, to, now) {
            Ok(range) => (range, None),
            Err(wrong) => (Self::until_now("", now), Some(wrong)),
        }
    }

    fn until_now(days: &str, now: Timestamp) -> Self {
        if days == "1" {
            let to = floor(now, HOUR).saturating_add(SignedDuration::from_secs(HOUR)).unwrap_or(now);
            return Self { from: earlier(to, DAY), to, step: PeriodLength::Hour };
        }
        let days = days.parse().ok().filter(|days| (1..=DAYS_MAX).contains(days)).unwrap_or(DAYS);
        let to = floor(now, DAY).saturating_add(SignedDuration::from_secs(DAY)).unwrap_or(now);
        Self::of_days(earlier(to, days * DAY), to)
    }

    fn between(from: &str, to: &str, now: Timestamp) -> Result<Self, &'static str> {
        let last =
            if to.is_empty() { floor(now, DAY) } else { day_start(to).ok_or("The last day is not a valid date.")? };
        let to = last.saturating_add(SignedDuration::from_secs(DAY)).unwrap_or(last);
        let from = if from.is_empty() {
            earlier(to, DAYS * DAY)
        } else {
            day_start(from).ok_or("The first day is not a valid date.")?
        };
        if from >= to {
            return Err("The first day is after the last day.");
        }
        if to.as_second() - from.as_second() > DAYS_MAX * DAY {
            return Err("The range is longer than two years; choose a shorter one.");
        }
        Ok(Self::of_days(from, to))
    }

    fn of_days(from: Timestamp, to: Timestamp) -> Self {
        let days = (to.as_second() - from.as_second()) / DAY;
        Self { from, to, step: if days > DAYS_BY_DAY_MAX { PeriodLength::Week } else { PeriodLength::Day } }
    }

    fn seconds(&self) -> i64 {
        self.to.as_second() - self.from.as_second()
    }

    /// The range of the same length before this one.
    pub fn previous(self) -> Self {
        Self { from: earlier(self.from, self.seconds()), to: self.from, step: self.step }
    }

    /// The last part of this range, at most so many days, by the hour.
    pub fn last_days_by_hour(self, days: i64) -> Self {
        Self { from: self.from.max(earlier(self.to, days * DAY)), to: self.to, step: PeriodLength::Hour }
    }

    /// The same range in days, for operations that count by day only.
    pub fn by_day(self) -> Self {
        match self.step {
            PeriodLength::Hour => Self { from: floor(self.from, DAY), step: PeriodLength::Day, ..self },
            PeriodLength::Day | PeriodLength::Week => self,
        }
    }

    /// "the 30 days before".
    pub fn before_words(self) -> String {
        match self.seconds() / DAY {
            0 | 1 if self.step == PeriodLength::Hour => "the 24 hours before".to_owned(),
            0 | 1 => "the day before".to_owned(),
            days => format!("the {days} days before"),
        }
    }

    /// The range for people: "14 Nov to 26 Nov 2026".
    pub fn words(self) -> String {
        let last = earlier(self.to, 1);
        let (from, to) = (self.from.strftime("%-d %b %Y").to_string(), last.strftime("%-d %b %Y").to_string());
        if from == to { from } else { format!("{from} to {to}") }
    }

    /// Adds the range to a call of an operation that counts by hour or day.
    pub fn within(self, call: Call) -> Call {
        let granularity = if self.step == PeriodLength::Hour { "hour" } else { "day" };
        self.between_times(call).query("granularity", granularity)
    }

    /// Adds the range to a call.
    pub fn between_times(self, call: Call) -> Call {
        call.query("from", self.from.to_string()).query("to", self.to.to_string())
    }

    /// The number of periods.
    pub fn len(self) -> usize {
        let step = self.step.seconds();
        usize::try_from((self.seconds() + step - 1) / step).unwrap_or_default()
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The period of a time of the API.
    pub fn period_of(self, time: &str) -> Option<usize> {
        let time = time.parse::<Timestamp>().ok()?;
        if time < self.from || time >= self.to {
            return None;
        }
        usize::try_from((time.as_second() - self.from.as_second()) / self.step.seconds()).ok()
    }

    /// The starts of the periods.
    pub fn starts(self) -> impl Iterator<Item = Timestamp> {
        (0..self.len()).map(move |n| {
            let seconds = i64::try_from(n).unwrap_or_default() * self.step.seconds();
            self.from.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(self.to)
        })
    }

    /// The labels of the periods.
    pub fn labels(self) -> Vec<String> {
        let format = match self.step {
            PeriodLength::Hour => "%a %H:%M",
            PeriodLength::Day => "%-d %b",
            PeriodLength::Week => "%-d %b %y",
        };
        self.starts().map(|start| start.strftime(format).to_string()).collect()
    }
}

fn floor(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(time.as_second().div_euclid(seconds) * seconds).unwrap_or(time)
}

fn earlier(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN)
}

fn day_start(text: &str) -> Option<Timestamp> {
    text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> (DateRange, Option<&'static str>) {
        DateRange::read(&Fields::parse(query.as_bytes()), "2026-11-26T05:30:00Z".parse().unwrap())
    }

    fn bounds(query: &str) -> (String, String, PeriodLength, usize) {
        let (range, wrong) = read(query);
        assert_eq!(wrong, None, "{query}");
        (range.from.to_string(), range.to.to_string(), range.step, range.len())
    }

    #[test]
    fn ranges_have_whole_periods() {
        let midnight = |day: &str| format!("{day}T00:00:00Z");
        assert_eq!(bounds(""), (midnight("2026-10-28"), midnight("2026-11-27"), PeriodLength::Day, 30));
        assert_eq!(bounds("range=x"), bounds(""));
        assert_eq!(
            bounds("range=1"),
            ("2026-11-25T06:00:00Z".into(), "2026-11-26T06:00:00Z".into(), PeriodLength::Hour, 24)
        );
        assert_eq!(bounds("range=365"), (midnight("2025-11-27"), midnight("2026-11-27"), PeriodLength::Week, 53));
        assert_eq!(
            bounds("from=2026-11-01&to=2026-11-03"),
            (midnight("2026-11-01"), midnight("2026-11-04"), PeriodLength::Day, 3)
        );
        let previous = read("from=2026-11-01&to=2026-11-03").0.previous();
        assert_eq!(
            (previous.from.to_string(), previous.to.to_string()),
            (midnight("2026-10-29"), midnight("2026-11-01"))
        );
        assert_eq!(previous.words(), "29 Oct 2026 to 31 Oct 2026");
    }

    #[test]
    fn wrong_days_are_explained() {
        for query in ["from=2026-11-03&to=2026-11-01", "from=soon", "to=never", "from=2001-01-01&to=2026-01-01"] {
            let (range, wrong) = read(query);
            assert!(wrong.is_some() && range.len() == 30, "{query}");
        }
    }

    #[test]
    fn times_have_their_period() {
        let (range, _) = read("from=2026-11-01&to=2026-11-03");
        assert_eq!(range.period_of("2026-11-02T23:59:59.999Z"), Some(1));
        assert_eq!((range.period_of("2026-11-04T00:00:00Z"), range.period_of("x")), (None, None));
        assert_eq!(range.labels(), ["1 Nov", "2 Nov", "3 Nov"]);
        assert_eq!(range.last_days_by_hour(1).len(), 24);
    }
}
