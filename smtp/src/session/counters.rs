//! Counters for the limits of a session. Each returns whether the limit is exceeded, so that the session ends.

use crate::limits::SessionLimits;

/// Commands, messages and errors of a session.
#[derive(Debug, Default)]
pub(super) struct SessionCounters {
    commands: u64,
    mails: u64,
    /// Junk commands since the last message.
    junk: u32,
    /// Refused commands since the last message.
    errors: u32,
    auth_failures: u32,
}

impl SessionCounters {
    pub(super) fn count_command(&mut self, limits: &SessionLimits) -> bool {
        self.commands += 1;
        self.commands > limits.commands_max
    }

    pub(super) fn count_junk(&mut self, limits: &SessionLimits) -> bool {
        self.junk += 1;
        self.junk > limits.junk_max
    }

    pub(super) fn count_error(&mut self, limits: &SessionLimits) -> bool {
        self.errors += 1;
        self.errors >= limits.errors_max
    }

    pub(super) fn count_auth_failure(&mut self, is_permanent: bool, limits: &SessionLimits) -> bool {
        self.auth_failures += u32::from(is_permanent);
        self.auth_failures >= limits.auth_failures_max
    }

    /// Counts an accepted message. Junk commands and errors count anew.
    pub(super) fn count_mail(&mut self) {
        self.mails += 1;
        (self.errors, self.junk) = (0, 0);
    }

    /// True if no further message is allowed.
    pub(super) fn has_reached_mails_max(&self, limits: &SessionLimits) -> bool {
        self.mails >= limits.mails_max
    }
}
