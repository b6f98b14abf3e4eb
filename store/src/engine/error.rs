//! Errors of the store, classified by what the caller can do next.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::{Key, TooLarge};

/// A batch was not applied. Nothing of it is stored, except possibly after [`CommitError::Fenced`] and
/// [`CommitError::Unknown`].
#[derive(Debug, Clone, Error)]
pub enum CommitError {
    /// A check failed: read again and decide again.
    #[error("another commit changed the row {key:02x?} first")]
    Conflict {
        /// The first key whose check failed.
        key: Key,
    },
    /// The disk is full: answer 452 or 503. The store recovers by itself when space is freed. Batches of
    /// [`BatchPurpose::Progress`](super::BatchPurpose::Progress) get this only if the reserve is used up too.
    #[error("the disk is full")]
    Full,
    /// The disk failed, so nothing is acknowledged until the process is restarted. It is unknown whether this batch
    /// survives the restart.
    #[error("the store refuses writes until the process is restarted: {0}")]
    Fenced(Arc<str>),
    /// The database is unreachable or refuses writes: answer 452 or 503. The store reconnects by itself.
    #[error("the database is not available: {0}")]
    Away(Arc<str>),
    /// The connection was lost during the commit, and the result could not be determined in time: the batch is stored
    /// or it is not.
    #[error("lost the database connection during a commit, its result is unknown: {0}")]
    Unknown(Arc<str>),
    /// The batch exceeds a limit: an error of the caller.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The store was closed before the batch was accepted.
    #[error("the store is closed")]
    Closed,
}

/// Rows or a body could not be read.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// The disk or the index failed.
    #[error("reading the store failed: {0}")]
    Io(Arc<str>),
    /// The database is unreachable. The store reconnects by itself.
    #[error("the database is not available: {0}")]
    Away(Arc<str>),
    /// The data read is not what was written.
    #[error("the store is damaged: {0}")]
    Corrupt(Arc<str>),
}

/// The store could not be read or written.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Result of a read: the only error of most functions of the store is that it cannot be read.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;

impl CommitError {
    /// Returns whether the database is unavailable. The store logs that itself.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Unknown(_))
    }
}

impl StoreError {
    /// Returns whether the database is unavailable. The store logs that itself.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Read(error) => error.is_away(),
            Self::Commit(error) => error.is_away(),
        }
    }
}

impl ReadError {
    /// Returns whether the database is unavailable. The store logs that itself.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    pub(crate) fn io(error: impl std::fmt::Display) -> Self {
        Self::Io(error.to_string().into())
    }
}

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// `[store] url` is not usable.
    #[error("[store] url: {0}")]
    Url(String),
    /// The database does not answer, starts, or accepts no writes now: a later try may succeed.
    #[error("[store] url: {database}: {reason}")]
    Away {
        /// Host, port and name, without the password.
        database: String,
        /// The database's error, and what to do.
        reason: String,
    },
    /// The database refuses the login, or cannot be used.
    #[error("[store] url: {database}: {reason}")]
    Database {
        /// Host, port and name, without the password.
        database: String,
        /// The database's error, and what to do.
        reason: String,
    },
    /// The database belongs to another cluster.
    #[error(
        "[store] cluster: {database} belongs to the cluster `{found}`, but this node is configured for `{wanted}`: \
         use one cluster name on all nodes, or a separate database for each cluster"
    )]
    OtherCluster {
        /// Host, port and name, without the password.
        database: String,
        /// The database's cluster name.
        found: String,
        /// This node's cluster name.
        wanted: String,
    },
    /// The database has a newer format.
    #[error("{database} has format {found}, but this version reads up to {known}: run the newer version on every node")]
    NewerDatabase {
        /// Host, port and name, without the password.
        database: String,
        found: String,
        /// The newest format that this version reads.
        known: u32,
    },
    /// An earlier copy into this target was interrupted.
    #[error("{0}: a copy into it did not finish: run `postrider admin store copy` again, or empty it")]
    HalfCopied(String),
    /// Another process has it open.
    #[error("{} is in use by another process; one directory belongs to one running server", directory.display())]
    InUse { directory: PathBuf },
    /// Acknowledged data is missing or changed. It is never repaired by guessing.
    #[error(
        "{}: {reason}; acknowledged data is damaged, so the store stays closed: \
         keep the directory as it is and restore a backup into an empty one", file.display()
    )]
    Corrupt {
        file: PathBuf,
        /// Description of the damage, with its position.
        reason: String,
    },
    /// The file has a newer format.
    #[error("{} has format {found}, but this version reads up to {known}: run the newer version", file.display())]
    Newer {
        file: PathBuf,
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// Not even the disk reserve has space for the first commit.
    #[error("{}: the disk is full: {free_bytes} bytes are free, and a start needs {needed_bytes}", directory.display())]
    DiskFull { directory: PathBuf, free_bytes: u64, needed_bytes: u64 },
    /// An earlier restore into this directory was interrupted.
    #[error("{}: a restore into it did not finish; empty it and restore again", directory.display())]
    HalfRestored { directory: PathBuf },
    #[error("{}: {error}", file.display())]
    Io { file: PathBuf, error: io::Error },
}

impl OpenError {
    /// Returns whether the database is unavailable now, so that a later try may succeed.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    pub(crate) fn io(file: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { file: file.into(), error: error.into() }
    }

    pub(crate) fn corrupt(file: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Corrupt { file: file.into(), reason: reason.into() }
    }
}

/// Why a backup or a restore failed.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The file is incomplete or no backup.
    #[error("{}: {reason}", file.display())]
    Damaged {
        file: PathBuf,
        /// Description of the damage, with its position.
        reason: String,
    },
    /// A backup never replaces a file.
    #[error("{} exists already; choose another name", file.display())]
    Exists { file: PathBuf },
    /// The target directory of a restore is not empty.
    #[error("{} is not empty; restore into an empty directory", directory.display())]
    NotEmpty { directory: PathBuf },
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store could not be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The directory could not be opened, or the backup could not be read or has a newer format.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl BackupError {
    pub(crate) fn io(file: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Open(OpenError::io(file, error))
    }
}
