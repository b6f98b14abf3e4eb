//! The time of this machine and of the server.

use http::HeaderMap;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};

use crate::error::CliError;

/// The part of a second that `Date` leaves out, and the way of the answer.
const ROUNDING: SignedDuration = SignedDuration::from_millis(1_500);

/// The time now, to the millisecond.
pub(crate) fn now() -> Result<Timestamp, CliError> {
    let wrong = || CliError::usage("this machine's clock is wrong");
    let since_epoch = std::time::UNIX_EPOCH.elapsed().map_err(|_| wrong())?;
    let milliseconds = i64::try_from(since_epoch.as_millis()).map_err(|_| wrong())?;
    Timestamp::from_millisecond(milliseconds).map_err(|_| wrong())
}

/// How much the server's clock is ahead of this machine's, from an answer that came now. `Date` (RFC 9110 6.6.1) has
/// whole seconds, so a smaller difference is none.
pub(crate) fn server_ahead(headers: &HeaderMap) -> Result<Option<SignedDuration>, CliError> {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else { return Ok(None) };
    let ahead = date.timestamp().duration_since(now()?);
    Ok(Some(if ahead.abs() <= ROUNDING { SignedDuration::ZERO } else { ahead }))
}
