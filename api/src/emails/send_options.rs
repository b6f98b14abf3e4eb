//! Send options besides the message: scheduled time, lifetime, handling of suppressed recipients, managed unsubscribe.

use std::time::Duration;

use jiff::Timestamp;
use mail::draft::{OnSuppressed, SendOptions};
use mail::timestamp;
use serde_json::value::RawValue;

use crate::fields::{self, FieldDiagnostics, JsonKind, ObjectFields};

/// Maximum of `expires_in`: a week. The operator's retry limit may end delivery earlier.
pub const EXPIRES_IN_S_MAX: u64 = 7 * 24 * 3600;

/// Parses the send options.
pub fn read_send_options(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> SendOptions {
    let options = SendOptions {
        scheduled_at: read_field(fields, notes, "scheduled_at", parse_time),
        expires_in: read_field(fields, notes, "expires_in", parse_seconds),
        priority: None,
        on_suppressed: read_field(fields, notes, "on_suppressed", parse_on_suppressed).unwrap_or_default(),
        unsubscribe: read_field(fields, notes, "unsubscribe", fields::parse_bool),
        resent_from: None,
        template: None,
        run: None,
        metered: false,
    };
    if options.scheduled_at.is_some() && fields.value("attachments").is_some_and(|files| !is_empty_list(files)) {
        notes.errors.add("attachments", "are not supported on scheduled emails");
    }
    options
}

fn read_field<T>(
    fields: &ObjectFields<'_>,
    notes: &mut FieldDiagnostics,
    name: &str,
    parse: impl Fn(&RawValue) -> Result<T, String>,
) -> Option<T> {
    parse(fields.value(name)?).map_err(|text| notes.errors.add(name, text)).ok()
}

/// Parses a timestamp.
///
/// # Errors
/// The value is not a valid timestamp.
pub fn parse_time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::parse_text(value)?;
    timestamp::parse(&text).map_err(str::to_owned)
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
