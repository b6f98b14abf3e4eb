//! Periods: hours or days of a range of time, as counts are asked for.

use std::ops::Range;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use mail::metric::Hour;
use serde_json::{Value, json};

use crate::page;
use crate::problem::Problem;
use crate::schema;

/// The longest range, by the hour and by the day.
const DAYS_BY_HOUR_MAX: i64 = 92;
const DAYS_BY_DAY_MAX: i64 = 3 * 366;
/// The range where none is asked for, by the hour and by the day.
const DAYS_BY_HOUR: i64 = 1;
const DAYS_BY_DAY: i64 = 30;

/// How long a period is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl Granularity {
    fn from_word(word: &str) -> Option<Self> {
        match word {
            "hour" => Some(Self::Hour),
            "day" => Some(Self::Day),
            _ => None,
        }
    }

    /// How many hours.
    #[must_use]
    pub fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
        }
    }

    /// The first hour of the period that an hour lies in.
    #[must_use]
    pub fn period_start(self, hour: Hour) -> Hour {
        match self {
            Self::Hour => hour,
            Self::Day => hour.day(),
        }
    }

    /// The days of the longest range, and of the range where none is asked for.
    fn days(self) -> (i64, i64) {
        match self {
            Self::Hour => (DAYS_BY_HOUR_MAX, DAYS_BY_HOUR),
            Self::Day => (DAYS_BY_DAY_MAX, DAYS_BY_DAY),
        }
    }
}

/// A range of time, cut into hours or days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// How it is cut.
    pub granularity: Granularity,
}

/// A parameter that [`time`] reads.
#[must_use]
pub fn time_parameter(name: &str, description: &str) -> Value {
    schema::query_parameter(name, description, json!({"type": "string"}))
}

/// A parameter that is a time, or a date: its midnight in UTC.
///
/// # Errors
/// It is neither, or given more than once.
pub fn parse_time_or_date(given: &[(String, String)], name: &str) -> Result<Option<Timestamp>, Problem> {
    let text = page::single_value(given, name)?.unwrap_or_default();
    match text.len() {
        10 => match text.parse::<Date>().ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok()) {
            Some(midnight) => Ok(Some(midnight.timestamp())),
            None => Err(Problem::field(name, "must be a time like `2026-01-01T10:00:00Z` or a date like `2026-01-01`")),
        },
        _ => page::parse_time(given, name),
    }
}

impl TimeRange {
    /// The parameters, for the document.
    #[must_use]
    pub fn parameters() -> Vec<Value> {
        let granularity = json!({"type": "string", "enum": ["hour", "day"], "default": "day"});
        vec![
            time_parameter(
                "from",
                "The period that this time lies in is the first: a time, or a date of UTC. Left out: 30 days \
                 before `to` (by the hour: one day)",
            ),
            time_parameter("to", "The range ends before this time; left out: now, with the period that is going on"),
            schema::query_parameter(
                "granularity",
                "How long a period is; by the hour 92 days may be asked for, by the day three years. Hours and \
                 days are those of UTC; two years are kept",
                granularity,
            ),
        ]
    }

    /// Reads a query.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_query(query: &str) -> Result<Self, Problem> {
        let given = page::parse_query(query)?;
        let granularity = match page::single_value(&given, "granularity")? {
            None => Granularity::Day,
            Some(word) => {
                Granularity::from_word(word).ok_or_else(|| Problem::field("granularity", "must be `hour` or `day`"))?
            }
        };
        Ok(Self { from: parse_time_or_date(&given, "from")?, to: parse_time_or_date(&given, "to")?, granularity })
    }

    /// The same range, cut into days.
    #[must_use]
    pub fn by_day(self) -> Self {
        Self { granularity: Granularity::Day, ..self }
    }

    /// The hours that are asked for: whole periods.
    ///
    /// # Errors
    /// It ends before it begins, or is longer than may be asked for.
    pub fn hour_range(&self, now: Timestamp) -> Result<Range<Hour>, Problem> {
        let (days_max, days) = self.granularity.days();
        let to = self.to.unwrap_or(now);
        let from = self
            .from
            .unwrap_or_else(|| to.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MIN));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        let start = self.granularity.period_start(Hour::containing(from));
        // The last moment of the range is the one before `to`.
        let last = to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(to);
        let end = Hour(self.granularity.period_start(Hour::containing(last)).0 + self.granularity.hours());
        // One period more, of which the range has begun a part.
        if end.0 - start.0 > days_max * 24 + self.granularity.hours() {
            let word = if self.granularity == Granularity::Hour { "hour" } else { "day" };
            return Err(Problem::field(
                "from",
                format!("is more than {days_max} days before `to`, the most by the {word}"),
            ));
        }
        Ok(start..end)
    }
}
