//! What an integrity check found, and how it is gone through: each row and each body, whatever the engine.
//!
//! ```text
//! rows ─► is it what its noun writes? ─┐
//! bodies ─► can it be read, whole?     ├─► Report, and progress on the way
//! index, segments (redb, offline)     ─┘
//! ```
//!
//! Limits: one body is in memory at a time; [`PROBLEMS_MAX`] problems are kept.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use serde::Serialize;
use thiserror::Error;

use super::redb::INDEX_FILE;
use super::redb::backup::RowIterator;
use super::{BackupProgress, CommitError, Key, ReadError};
use crate::key::{KeyReader, Space};

/// A damaged disk could name a million problems; these are enough to act on.
pub const PROBLEMS_MAX: usize = 100;
/// Progress is told after so many rows.
const ROWS_BETWEEN_PROGRESS: u64 = 4_096;

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// The index file.
    Index,
    /// A segment of the commit log.
    Segment,
    /// A delivery task.
    Task,
    /// An email's message.
    Email,
    /// A received email's message.
    ReceivedEmail,
    /// Other bytes that are kept apart from their row.
    Body,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "index",
            Self::Segment => "segment",
            Self::Task => "task",
            Self::Email => "email",
            Self::ReceivedEmail => "received email",
            Self::Body => "body",
        })
    }
}

/// Something that an integrity check found wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// What is damaged.
    pub object: Object,
    /// Which: an id, a file, or a key.
    pub id: String,
    /// What is wrong with it.
    pub fault: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.object, self.id, self.fault)
    }
}

/// What an integrity check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Rows counted.
    pub rows: u64,
    /// Bodies counted, each one read and, where there is one, its checksum compared.
    pub bodies: u64,
    /// Their bytes.
    pub body_bytes: u64,
    /// Groups of the log read.
    pub groups: u64,
    /// What is wrong; empty means sound. At most [`PROBLEMS_MAX`] are kept.
    pub problems: Vec<Damage>,
}

impl Report {
    /// Is nothing wrong?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// What a check would find in a directory that cannot be opened, because this file of it is damaged
    /// ([`OpenError::Corrupt`](super::OpenError::Corrupt)).
    #[must_use]
    pub fn of_damaged_file(file: &Path, fault: &str) -> Self {
        let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.display().to_string());
        let object = if name == INDEX_FILE { Object::Index } else { Object::Segment };
        let mut report = Self::default();
        report.problem(object, name, fault);
        report
    }

    pub(crate) fn problem(&mut self, object: Object, id: impl Into<String>, fault: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Damage { object, id: id.into(), fault: fault.into() });
        }
    }
}

/// A check did not come to its end.
#[derive(Debug, Error)]
pub enum CheckError {
    /// What was committed before could not be brought to its place.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Whoever watched it ended it.
    #[error("the check was ended before it was done")]
    Stopped,
}

/// A check under way. `progress` is told how far it is, and ends it by [`ControlFlow::Break`].
pub(crate) struct Check<F> {
    pub(crate) report: Report,
    progress: F,
}

impl<F: FnMut(BackupProgress) -> ControlFlow<()>> Check<F> {
    pub(crate) fn new(progress: F) -> Self {
        Self { report: Report::default(), progress }
    }

    fn tell(&mut self) -> Result<(), CheckError> {
        let Report { rows, bodies, body_bytes, .. } = self.report;
        match (self.progress)(BackupProgress { rows, bodies, bytes: body_bytes }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(CheckError::Stopped),
        }
    }

    /// Looks at a row. What stands in it is its noun's business; but who reads the queue passes over what is no task.
    pub(crate) fn row(&mut self, at: &Key, row: &Bytes) -> Result<(), CheckError> {
        self.report.rows += 1;
        if let Some((id, fault)) = crate::task::describe_damage(at, row) {
            self.report.problem(Object::Task, id, fault);
        }
        if self.report.rows.is_multiple_of(ROWS_BETWEEN_PROGRESS) { self.tell() } else { Ok(()) }
    }

    /// Counts a body that was read, or tells why it was not.
    pub(crate) fn body(&mut self, at: &Key, read: Result<Bytes, ReadError>) -> Result<(), CheckError> {
        match read {
            Ok(bytes) => {
                self.report.bodies += 1;
                self.report.body_bytes += bytes.len() as u64;
            }
            Err(error) => {
                let (object, id) = name_of(at);
                self.report.problem(object, id, error.to_string());
            }
        }
        self.tell()
    }

    /// Looks at all rows and bodies of a database or of memory.
    pub(crate) fn all(mut self, rows: RowIterator, bodies: RowIterator) -> Result<Report, CheckError> {
        for row in rows {
            let (at, row) = row?;
            self.row(&at, &row)?;
        }
        for body in bodies {
            let (at, body) = body?;
            self.body(&at, Ok(body))?;
        }
        Ok(self.report)
    }
}

/// What a body belongs to, as an operator knows it.
fn name_of(at: &Key) -> (Object, String) {
    let id_in = |space: Space| {
        let mut reader = KeyReader::new(space, at).ok()?;
        reader.account().ok()?;
        reader.id().ok()
    };
    if let Some(id) = id_in(Space::Body) {
        return (Object::Email, mail::id::EmailId::from_bytes(id).to_string());
    }
    if let Some(id) = id_in(Space::ReceivedBody) {
        return (Object::ReceivedEmail, mail::id::ReceivedId::from_bytes(id).to_string());
    }
    (Object::Body, at.iter().map(|byte| format!("{byte:02x}")).collect())
}
