//! The time of this machine.

use jiff::Timestamp;

use crate::error::CliError;

/// The time now, to the millisecond.
///
/// # Errors
/// The clock is set to a time that does not exist.
pub(crate) fn now() -> Result<Timestamp, CliError> {
    let wrong = || CliError::usage("the clock of this machine is wrong");
    let since_epoch = std::time::UNIX_EPOCH.elapsed().map_err(|_| wrong())?;
    let milliseconds = i64::try_from(since_epoch.as_millis()).map_err(|_| wrong())?;
    Timestamp::from_millisecond(milliseconds).map_err(|_| wrong())
}
