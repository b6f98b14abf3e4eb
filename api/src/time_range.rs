//! Time ranges of metrics requests (`from`, `to`, `granularity`), cut into hours or days of UTC.

use std::ops::Range;

use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::metric::Hour;

use crate::prelude::*;

/// The longest range in days, by granularity.
const DAYS_BY_HOUR_MAX: i64 = 92;
const DAYS_BY_DAY_MAX: i64 = 3 * 366;
/// The default range in days, by granularity.
const DAYS_BY_HOUR: i64 = 1;
const DAYS_BY_DAY: i64 = 30;

/// The length of one period of a metrics response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    Hour,
    Day,
}

impl Granularity {
    pub fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
        }
    }

    /// The first hour of the period that contains `hour`.
    pub fn period_start(self, hour: Hour) -> Hour {
        match self {
            Self::Hour => hour,
            Self::Day => hour.day(),
        }
    }

    /// The longest range and the default range, in days.
    fn days(self) -> (i64, i64) {
        match self {
            Self::Hour => (DAYS_BY_HOUR_MAX, DAYS_BY_HOUR),
            Self::Day => (DAYS_BY_DAY_MAX, DAYS_BY_DAY),
        }
    }
}

/// The time range of a metrics request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    pub granularity: Granularity,
}

/// A timestamp, or a date, which means its midnight in UTC.
///
/// # Errors
/// The text is neither, or the parameter is given twice.
pub fn time_or_date(query: &mut Query, name: &str, description: &str) -> Result<Option<Timestamp>> {
    let text = query.text(name, description)?.unwrap_or_default();
    match text.len() {
        10 => match text.parse::<Date>().ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok()) {
            Some(day_start) => Ok(Some(day_start.timestamp())),
            None => Err(Problem::field(name, "must be a time like `2026-01-01T10:00:00Z` or a date like `2026-01-01`")),
        },
        _ => paging::parse_time(query.given(), name),
    }
}

impl TimeRange {
    /// A range by days, whose parameters have these descriptions.
    ///
    /// # Errors
    /// A parameter is malformed or given twice.
    pub fn of_days(query: &mut Query, from: &str, to: &str) -> Result<Self> {
        let (from, to) = (time_or_date(query, "from", from)?, time_or_date(query, "to", to)?);
        Ok(Self { from, to, granularity: Granularity::Day })
    }

    /// A range by hours or days.
    ///
    /// # Errors
    /// A parameter is malformed or given twice.
    pub fn from_query(query: &mut Query) -> Result<Self> {
        let range = Self::of_days(
            query,
            "Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days \
             before `to` (with `hour`: one day)",
            "End, exclusive. Default: now, including the current period",
        )?;
        let word = query.parameter(
            "granularity",
            "Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC; \
             counts are stored for two years",
            || json!({"type": "string", "enum": ["hour", "day"], "default": "day"}),
        )?;
        let granularity = match word {
            None | Some("day") => Granularity::Day,
            Some("hour") => Granularity::Hour,
            Some(_) => return Err(Problem::field("granularity", "must be `hour` or `day`")),
        };
        Ok(Self { granularity, ..range })
    }

    /// The hours of the range, extended to whole periods.
    ///
    /// # Errors
    /// `from` is not before `to`, or the range is longer than the limit of its granularity.
    pub fn hour_range(&self, now: Timestamp) -> Result<Range<Hour>> {
        let (days_max, days) = self.granularity.days();
        let to = self.to.unwrap_or(now);
        let from = self
            .from
            .unwrap_or_else(|| to.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MIN));
        if from >= to {
            return Err(Problem::field("from", "must be before `to`"));
        }
        let start = self.granularity.period_start(Hour::containing(from));
        // `to` is exclusive: take the instant before it.
        let last = to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(to);
        let end = Hour(self.granularity.period_start(Hour::containing(last)).0 + self.granularity.hours());
        // The extension to whole periods may add one period.
        if end.0 - start.0 > days_max * 24 + self.granularity.hours() {
            let word = if self.granularity == Granularity::Hour { "hour" } else { "day" };
            return Err(Problem::field(
                "from",
                format!("is more than {days_max} days before `to`, the maximum by {word}"),
            ));
        }
        Ok(start..end)
    }
}
