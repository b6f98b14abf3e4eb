//! Time windows: the days and hours in which a delay can end, in a time zone.
//!
//! `{"tz": "Europe/Berlin", "days": ["mon", …, "fri"], "hours": "09:00-17:00"}`. Without `days` the window is open
//! every day, without `hours` all day. Hours that end before they begin extend past midnight and belong to the day on
//! which they begin.
//!
//! Time zones come from the IANA database that is compiled in; the system's database is not read. At daylight saving
//! changes, a local time in the gap is moved one hour later, and for an ambiguous time the first one is used.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

/// The words for weekdays in the API.
pub const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];
const DAY_MINUTES: u16 = 24 * 60;

/// The time window of a delay.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeWindow {
    /// The time zone's name as configured.
    pub tz: String,
    zone: TimeZone,
    /// Open weekdays; all if empty.
    pub days: Vec<Weekday>,
    /// Start (inclusive) and end (exclusive) in minutes of the day; all day if `None`.
    pub hours: Option<(u16, u16)>,
}

/// The time zone with this IANA name.
///
/// # Errors
/// The name is not in the compiled-in database.
pub fn parse_zone(name: &str) -> Result<TimeZone, String> {
    let short = name.len() <= 64;
    short
        .then(|| TimeZoneDatabase::bundled().get(name).ok())
        .flatten()
        .ok_or_else(|| "must be an IANA time zone such as `Europe/Berlin` or `UTC`".to_owned())
}

/// Parses `09:00-17:00` to minutes of the day.
///
/// # Errors
/// The text has another format, or the range is empty.
pub fn parse_hours(text: &str) -> Result<(u16, u16), String> {
    let minutes = |text: &str| -> Option<u16> {
        let (hour, minute) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
        let digits = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        let (hour, minute): (u16, u16) =
            (digits(hour) && digits(minute)).then(|| Some((hour.parse().ok()?, minute.parse().ok()?)))??;
        let all = hour * 60 + minute;
        (minute < 60 && all <= DAY_MINUTES).then_some(all)
    };
    let read = text.split_once('-').and_then(|(from, until)| Some((minutes(from)?, minutes(until)?)));
    read.filter(|(from, until)| from != until && *from < DAY_MINUTES)
        .ok_or_else(|| "must be hours such as `09:00-17:00`".to_owned())
}

impl TimeWindow {
    /// Creates a window in the time zone with this name.
    pub fn new(tz: &str, days: Vec<Weekday>, hours: Option<(u16, u16)>) -> Result<Self, String> {
        Ok(Self { tz: tz.to_owned(), zone: parse_zone(tz)?, days, hours })
    }

    /// The first time at or after `at` that is within the window.
    pub fn first_at_or_after(&self, at: Timestamp) -> Timestamp {
        let today = at.to_zoned(self.zone.clone()).date();
        // Yesterday's hours may extend past midnight. The next eight days include every weekday.
        let days = (-1..=8).filter_map(|n| today.checked_add(n.days()).ok());
        let days = days.filter(|day| self.days.is_empty() || self.days.contains(&day.weekday()));
        let mut spans = days.filter_map(|day| self.bounds_on(day));
        spans.find(|(_, until)| *until > at).map_or(at, |(from, _)| from.max(at))
    }

    fn bounds_on(&self, day: Date) -> Option<(Timestamp, Timestamp)> {
        let (from, until) = self.hours.unwrap_or((0, DAY_MINUTES));
        let until = if until <= from { until + DAY_MINUTES } else { until };
        Some((self.time_on(day, from)?, self.time_on(day, until)?))
    }

    fn time_on(&self, day: Date, minute: u16) -> Option<Timestamp> {
        let day = day.checked_add(i64::from(minute / DAY_MINUTES).days()).ok()?;
        let minute = minute % DAY_MINUTES;
        let time = Time::new(i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?, 0, 0).ok()?;
        self.zone.to_timestamp(day.to_datetime(time)).ok()
    }

    /// The canonical JSON form.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"tz": self.tz});
        if !self.days.is_empty() {
            let words = DAYS.iter().filter(|(_, day)| self.days.contains(day)).map(|(word, _)| *word);
            json["days"] = words.collect();
        }
        if let Some((from, until)) = self.hours {
            let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
            json["hours"] = json!(format!("{}-{}", clock(from), clock(until)));
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn times_are_moved_into_the_window() {
        let work = TimeWindow::new(
            "Europe/Berlin",
            DAYS[..5].iter().map(|(_, day)| *day).collect(),
            Some(parse_hours("09:00-17:00").unwrap()),
        )
        .unwrap();
        let night = TimeWindow::new("UTC", vec![Weekday::Friday], Some(parse_hours("22-6").unwrap())).unwrap();
        let any = TimeWindow::new("America/New_York", Vec::new(), None).unwrap();
        let weekend = TimeWindow::new("Asia/Tokyo", vec![Weekday::Sunday], None).unwrap();
        for (window, given, expected) in [
            // Winter time: one hour ahead of UTC. A Wednesday.
            (&work, "2026-01-07T07:59:59Z", "2026-01-07T08:00:00Z"),
            (&work, "2026-01-07T08:00:00Z", "2026-01-07T08:00:00Z"),
            (&work, "2026-01-07T15:59:59Z", "2026-01-07T15:59:59Z"),
            (&work, "2026-01-07T16:00:00Z", "2026-01-08T08:00:00Z"),
            // A Friday evening, and a weekend with a daylight saving change.
            (&work, "2026-01-09T16:00:00Z", "2026-01-12T08:00:00Z"),
            (&work, "2026-03-27T16:00:00Z", "2026-03-30T07:00:00Z"),
            (&night, "2026-01-09T21:00:00Z", "2026-01-09T22:00:00Z"),
            (&night, "2026-01-10T05:59:00Z", "2026-01-10T05:59:00Z"),
            (&night, "2026-01-10T06:00:00Z", "2026-01-16T22:00:00Z"),
            (&any, "2026-01-10T06:00:00Z", "2026-01-10T06:00:00Z"),
            (&weekend, "2026-01-10T14:59:59Z", "2026-01-10T15:00:00Z"),
        ] {
            assert_eq!(window.first_at_or_after(at(given)), at(expected), "{given}");
        }
    }

    #[test]
    fn a_time_in_the_dst_gap_is_an_hour_later() {
        let window = TimeWindow::new("Europe/Berlin", Vec::new(), Some(parse_hours("02:30-02:45").unwrap())).unwrap();
        assert_eq!(window.first_at_or_after(at("2026-03-29T00:00:00Z")), at("2026-03-29T01:30:00Z"));
    }

    #[test]
    fn invalid_windows_are_refused() {
        for bad in ["9", "9-9", "25:00-26:00", "09:60-10:00", "24:00-01:00", "a-b", "-", "09:00-17:00-18:00"] {
            assert!(parse_hours(bad).is_err(), "{bad}");
        }
        assert!(parse_hours("22:00-24:00").is_ok());
        for bad in ["", "Mars/Olympus", "../../etc/passwd", &"x".repeat(100)] {
            assert!(parse_zone(bad).is_err(), "{bad}");
        }
    }
}
