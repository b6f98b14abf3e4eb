//! How long a commit is retried while the store is full or away.

/// Commits of an operator's command on one task while the store is full or away.
const COMMAND_TRIES: u32 = 3;

/// How long to retry a commit while the store is full or away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitRetries {
    /// Until it is stored: an attempt was made, and its outcome must not be lost.
    Unlimited,
    /// [`COMMAND_TRIES`] times: nothing was sent, so the task can stay as it is, and the command can be given again. If
    /// the result of a try is unknown ([`store::engine::CommitError::Unknown`]), the task may be changed.
    Command,
}

impl CommitRetries {
    /// Returns whether another try may follow this number of tries.
    pub(crate) fn may_follow(self, tries: u32) -> bool {
        self == Self::Unlimited || tries < COMMAND_TRIES
    }
}
