//! What can go wrong, by what the caller does next.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::{Key, TooLarge};

/// A batch was not applied. Except after [`CommitError::Fenced`] and [`CommitError::Unknown`], nothing of
/// it is stored.
#[derive(Debug, Clone, Error)]
pub enum CommitError {
    /// A check did not hold: read again and decide anew.
    #[error("another commit changed the row {key:02x?} first")]
    Conflict {
        /// The first key whose check failed.
        key: Key,
    },
    /// The disk is full: answer 452 or 503; it comes back by itself. Progress batches meet it only
    /// when the reserve is used up too.
    #[error("the disk is full")]
    Full,
    /// The disk failed: nothing is acknowledged any more until the process is started anew. Whether
    /// this batch survives the restart is unknown.
    #[error("the store has stopped taking writes: {0}")]
    Fenced(Arc<str>),
    /// The database cannot be reached, or takes no writes: answer 452 or 503; it comes back by itself.
    #[error("the database is away: {0}")]
    Away(Arc<str>),
    /// The connection to the database was lost while it committed, and for a good while nobody could be
    /// asked whether it did: the batch is stored, or it is not.
    #[error("the database went away in the middle of a commit: {0}")]
    Unknown(Arc<str>),
    /// The batch is beyond the limits: the caller's mistake.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The store was closed before the batch was taken.
    #[error("the store is closed")]
    Closed,
}

/// Rows or a body could not be read.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// The disk or the index failed.
    #[error("reading the store failed: {0}")]
    Io(Arc<str>),
    /// The database cannot be reached: it comes back by itself.
    #[error("the database is away: {0}")]
    Away(Arc<str>),
    /// What was read is not what was written.
    #[error("the store is damaged: {0}")]
    Corrupt(Arc<str>),
}

impl CommitError {
    /// Whether the database does not answer: the store logs that itself.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Unknown(_))
    }
}

impl ReadError {
    /// Whether the database does not answer: the store logs that itself.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    pub(crate) fn io(error: impl std::fmt::Display) -> Self {
        Self::Io(error.to_string().into())
    }
}

/// The store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// What `[store] url` says cannot be used.
    #[error("[store] url: {0}")]
    Url(String),
    /// The database does not let us in, or is not there.
    #[error("[store] url: {database}: {what}")]
    Database {
        /// Host, port and name, without the password.
        database: String,
        /// What it said, and what to do.
        what: String,
    },
    /// The database belongs to another installation.
    #[error(
        "[store] cluster: {database} belongs to the cluster `{found}`, and this node is of `{wanted}`: \
         name the same cluster on every node, or take a database of its own for each"
    )]
    OtherCluster {
        /// Host, port and name, without the password.
        database: String,
        /// Whose it is.
        found: String,
        /// What this node says.
        wanted: String,
    },
    /// The database was made by another version.
    #[error("{database} has format {found}, this program knows {known}: run the newer version on every node")]
    NewerDatabase {
        /// Host, port and name, without the password.
        database: String,
        /// The format in it.
        found: String,
        /// The newest that this program reads.
        known: u32,
    },
    /// A copy into it did not come to its end.
    #[error("{0}: a copy into it did not finish: run `postrider admin store copy` again, or empty it")]
    HalfCopied(String),
    /// Another process has it open.
    #[error("{} is in use by another process; one directory belongs to one running server", directory.display())]
    InUse {
        /// Whose.
        directory: PathBuf,
    },
    /// Data that was acknowledged is missing or changed. Never repaired by guessing.
    #[error(
        "{}: {what}; acknowledged data is damaged, so the store stays closed: \
         keep the directory as it is and restore a backup into an empty one", file.display()
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where in it.
        what: String,
    },
    /// Written by a newer version.
    #[error("{} has format {found}, this program knows {known}: run the newer version", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// The format in it.
        found: u32,
        /// The newest that this program reads.
        known: u32,
    },
    /// A restore into this directory did not come to its end.
    #[error("{}: a restore into it did not finish; empty it and restore again", directory.display())]
    HalfRestored {
        /// Where.
        directory: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What it said.
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(file: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { file: file.into(), error: error.into() }
    }

    pub(crate) fn corrupt(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Corrupt { file: file.into(), what: what.into() }
    }
}

/// A backup was not made, or not taken in.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The backup file is not whole, or not one.
    #[error("{}: {what}", file.display())]
    Damaged {
        /// The backup file.
        file: PathBuf,
        /// What is wrong, and where in it.
        what: String,
    },
    /// The backup was written by a newer version.
    #[error("{} has format {found}, this program knows {known}: run the newer version", file.display())]
    Newer {
        /// The backup file.
        file: PathBuf,
        /// The format in it.
        found: u32,
        /// The newest that this program reads.
        known: u32,
    },
    /// A restore goes only into an empty or absent directory.
    #[error("{} is not empty; a restore goes into an empty directory", directory.display())]
    NotEmpty {
        /// Where.
        directory: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store could not be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The directory could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl BackupError {
    pub(crate) fn io(file: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { file: file.into(), error: error.into() }
    }
}
