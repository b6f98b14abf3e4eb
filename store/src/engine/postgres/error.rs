//! Database errors, classified by what is done next.

use std::sync::Arc;

use tokio_postgres::error::SqlState;

use super::url::reason;
use crate::engine::ReadError;

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// Serialization failure or deadlock: retry the transaction.
    Retry(Arc<str>),
    /// The server does not answer or refuses writes: reconnect later.
    Unavailable(Arc<str>),
    Full,
}

impl DatabaseError {
    pub(crate) fn unavailable(reason: impl Into<Arc<str>>) -> Self {
        Self::Unavailable(reason.into())
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                Self::Retry(reason(&error).into())
            }
            Some(&SqlState::DISK_FULL) => Self::Full,
            // A restart, a failover (now read-only), too many clients, no connection, or an unknown error: reconnecting
            // with backoff is right for all of them.
            _ => Self::Unavailable(reason(&error).into()),
        }
    }
}

impl From<DatabaseError> for ReadError {
    fn from(fault: DatabaseError) -> Self {
        match fault {
            DatabaseError::Retry(reason) | DatabaseError::Unavailable(reason) => Self::Away(reason),
            DatabaseError::Full => Self::Away("its disk is full".into()),
        }
    }
}
