//! What the database said, by what is done next.

use std::sync::Arc;

use tokio_postgres::error::SqlState;

use super::url::reason;
use crate::engine::ReadError;

/// Why a statement did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// Another transaction stood in the way: do it again.
    Retry(Arc<str>),
    /// Nobody answers, or whoever answers takes no writes: connect again, later.
    Unavailable(Arc<str>),
    /// The database's disk is full.
    Full,
}

impl DatabaseError {
    pub(crate) fn unavailable(what: impl Into<Arc<str>>) -> Self {
        Self::Unavailable(what.into())
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                Self::Retry(reason(&error).into())
            }
            Some(&SqlState::DISK_FULL) => Self::Full,
            // A restart, a failover (read-only now), too many clients, no connection at all; and what we
            // do not know of: a new connection at a measured pace is right for all of them.
            _ => Self::Unavailable(reason(&error).into()),
        }
    }
}

impl From<DatabaseError> for ReadError {
    fn from(fault: DatabaseError) -> Self {
        match fault {
            DatabaseError::Retry(what) | DatabaseError::Unavailable(what) => Self::Away(what),
            DatabaseError::Full => Self::Away("its disk is full".into()),
        }
    }
}
