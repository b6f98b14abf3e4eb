//! Parsers of send options: lifetime, handling of suppressed recipients.

use model::draft::OnSuppressed;
use model::raw_number;

use crate::prelude::*;

/// Maximum of `expires_in`: a week. The operator's retry limit may end delivery earlier.
pub const EXPIRES_IN_S_MAX: u64 = 7 * 24 * 3600;

/// Parses `expires_in`.
pub(super) fn parse_lifetime(value: &RawValue) -> Result<Duration, String> {
    let number = raw_number::parse_integer::<u64>(value.get()).filter(|s| (1..=EXPIRES_IN_S_MAX).contains(s));
    number.map(Duration::from_secs).ok_or_else(|| format!("must be a number of seconds from 1 to {EXPIRES_IN_S_MAX}"))
}

/// Parses `on_suppressed`.
pub(super) fn parse_on_suppressed(value: &RawValue) -> Result<OnSuppressed, String> {
    match fields::parse_text(value).as_deref() {
        Ok("fail") => Ok(OnSuppressed::Fail),
        Ok("skip") => Ok(OnSuppressed::Skip),
        _ => Err("must be one of fail, skip".to_owned()),
    }
}
