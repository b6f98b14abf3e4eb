//! What a send request asks beyond the message: a time, a deadline, what to do about suppressed
//! recipients, managed unsubscribe.

use std::time::Duration;

use jiff::Timestamp;
use mail::draft::{OnSuppressed, Wishes};
use mail::moment;
use serde_json::value::RawValue;

use crate::fields::{self, Given, Kind, Notes};

/// The longest `expires_in`, in seconds: a week. Delivery is given up earlier where the operator says so.
pub const EXPIRES_IN_S_MAX: u64 = 7 * 24 * 3600;

/// Reads the wishes.
pub fn wishes(given: &Given<'_>, notes: &mut Notes) -> Wishes {
    let wishes = Wishes {
        scheduled_at: read(given, notes, "scheduled_at", time),
        expires_in: read(given, notes, "expires_in", seconds),
        priority: None,
        on_suppressed: read(given, notes, "on_suppressed", on_suppressed).unwrap_or_default(),
        unsubscribe: read(given, notes, "unsubscribe", fields::boolean),
        resent_from: None,
        template: None,
        run: None,
        metered: false,
    };
    if wishes.scheduled_at.is_some() && given.value("attachments").is_some_and(|files| !is_empty(files)) {
        notes.errors.add("attachments", "are not supported on scheduled emails");
    }
    wishes
}

fn read<T>(
    given: &Given<'_>,
    notes: &mut Notes,
    name: &str,
    read: impl Fn(&RawValue) -> Result<T, String>,
) -> Option<T> {
    read(given.value(name)?).map_err(|text| notes.errors.add(name, text)).ok()
}

/// A point in time.
///
/// # Errors
/// It is none.
pub fn time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::text(value)?;
    moment::read(&text).map_err(str::to_owned)
}

fn seconds(value: &RawValue) -> Result<Duration, String> {
    let number = value.get().parse().ok().filter(|s| (1..=EXPIRES_IN_S_MAX).contains(s));
    number
        .map(Duration::from_secs)
        .ok_or_else(|| format!("must be a number of seconds from 1 to {EXPIRES_IN_S_MAX}"))
}

fn on_suppressed(value: &RawValue) -> Result<OnSuppressed, String> {
    match fields::text(value).as_deref() {
        Ok("fail") => Ok(OnSuppressed::Fail),
        Ok("skip") => Ok(OnSuppressed::Skip),
        _ => Err("must be one of fail, skip".to_owned()),
    }
}

fn is_empty(list: &RawValue) -> bool {
    Kind::of(list) == Kind::List && list.get()[1..].trim_start().starts_with(']')
}
