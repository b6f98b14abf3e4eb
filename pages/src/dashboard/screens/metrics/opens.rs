//! When emails are opened: opens by hour and weekday.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::counts::Metrics;
use super::selection::CountedEmails;
use crate::dashboard::kit::chart::HeatMap;
use crate::dashboard::prelude::*;

/// The days that are read by the hour: the most that the API gives, and fewer with a dimension, which has a row for
/// each value and hour.
const DAYS_MAX: i64 = 91;
const DAYS_BY_VALUE_MAX: i64 = 28;

/// The opens of a range as a picture.
pub(super) async fn read(context: &Context<'_>, range: DateRange, emails: &CountedEmails) -> Result<Fragment, Failure> {
    let hours = range.last_days_by_hour(if emails.has_total_rows() { DAYS_MAX } else { DAYS_BY_VALUE_MAX });
    let call = emails.call(hours).query("metrics", "opened");
    let metrics: Metrics = match context.read_field("metrics", &call).await {
        Ok(metrics) => metrics,
        // There are more values than an answer has rows.
        Err(failure) if failure.status == 400 => {
            let text = "There are too many values to show opens by hour; choose a shorter range.";
            return Ok(Fragment::new(maud! { p.soft { (text) } }));
        }
        Err(failure) => return Err(failure),
    };
    let mut map = HeatMap::new(format!("When emails are opened, {}", hours.words()), "opens");
    for row in metrics.rows.iter().filter(|row| emails.value().is_none_or(|value| value == row.value)) {
        if let Ok(start) = row.period_start.parse::<Timestamp>() {
            let start = start.to_zoned(TimeZone::UTC);
            let weekday = usize::try_from(start.weekday().to_monday_zero_offset()).unwrap_or_default();
            map.add(weekday, usize::try_from(start.hour()).unwrap_or_default(), row.counts.opened);
        }
    }
    Ok(Fragment::new(map))
}
