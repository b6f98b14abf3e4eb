//! What a send request asks beyond the message: a time, a deadline, what to do about suppressed
//! recipients, managed unsubscribe.

use std::time::Duration;

use jiff::Timestamp;
use mail::draft::{OnSuppressed, SendOptions};
use mail::moment;
use serde_json::value::RawValue;

use crate::fields::{self, FieldDiagnostics, JsonKind, ObjectFields};

/// The longest `expires_in`, in seconds: a week. Delivery is given up earlier where the operator says so.
pub const EXPIRES_IN_S_MAX: u64 = 7 * 24 * 3600;

/// Reads the wishes.
pub fn read_send_options(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> SendOptions {
    let wishes = SendOptions {
        scheduled_at: read_field(given, notes, "scheduled_at", parse_time),
        expires_in: read_field(given, notes, "expires_in", parse_seconds),
        priority: None,
        on_suppressed: read_field(given, notes, "on_suppressed", parse_on_suppressed).unwrap_or_default(),
        unsubscribe: read_field(given, notes, "unsubscribe", fields::parse_bool),
        resent_from: None,
        template: None,
        run: None,
        metered: false,
    };
    if wishes.scheduled_at.is_some() && given.value("attachments").is_some_and(|files| !is_empty_list(files)) {
        notes.errors.add("attachments", "are not supported on scheduled emails");
    }
    wishes
}

fn read_field<T>(
    given: &ObjectFields<'_>,
    notes: &mut FieldDiagnostics,
    name: &str,
    read: impl Fn(&RawValue) -> Result<T, String>,
) -> Option<T> {
    read(given.value(name)?).map_err(|text| notes.errors.add(name, text)).ok()
}

/// A point in time.
///
/// # Errors
/// It is none.
pub fn parse_time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::parse_text(value)?;
    moment::parse(&text).map_err(str::to_owned)
}

fn parse_seconds(value: &RawValue) -> Result<Duration, String> {
    let number = value.get().parse().ok().filter(|s| (1..=EXPIRES_IN_S_MAX).contains(s));
    number.map(Duration::from_secs).ok_or_else(|| format!("must be a number of seconds from 1 to {EXPIRES_IN_S_MAX}"))
}

fn parse_on_suppressed(value: &RawValue) -> Result<OnSuppressed, String> {
    match fields::parse_text(value).as_deref() {
        Ok("fail") => Ok(OnSuppressed::Fail),
        Ok("skip") => Ok(OnSuppressed::Skip),
        _ => Err("must be one of fail, skip".to_owned()),
    }
}

fn is_empty_list(list: &RawValue) -> bool {
    JsonKind::of_value(list) == JsonKind::List && list.get()[1..].trim_start().starts_with(']')
}
