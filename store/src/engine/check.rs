//! Integrity check: reads every row and body of any engine, and collects what is damaged.
//!
//! ```text
//! rows ─► is a task row decodable?      ─┐
//! bodies ─► can it be read, whole?       ├─► IntegrityReport, with progress
//! index, segments (redb, offline)       ─┘
//! ```
//!
//! Limits: one body is in memory at a time; at most [`PROBLEMS_MAX`] problems are reported.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use message::hexadecimal;
use serde::Serialize;
use thiserror::Error;

use super::redb::backup::RowIterator;
use super::redb::{INDEX_FILE, is_damaged};
use super::{BackupProgress, CommitError, Key, ReadError};
use crate::key::{KeyReader, Space};

/// Maximum number of problems in a report. A damaged disk could cause millions; these are enough to act on.
pub const PROBLEMS_MAX: usize = 100;
/// Number of rows between two calls of `progress`.
const ROWS_BETWEEN_PROGRESS: u64 = 4_096;

/// Type of the damaged object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// The index file.
    Index,
    /// A segment of the commit log.
    Segment,
    /// A delivery task.
    Task,
    /// The message of an email.
    Email,
    /// The message of a received email.
    ReceivedEmail,
    /// Any other body.
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

/// A problem found by the check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    pub object: Object,
    /// An id, a file name, or a key.
    pub id: String,
    /// Description of the problem.
    pub fault: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.object, self.id, self.fault)
    }
}

/// Result of an integrity check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub rows: u64,
    /// Bodies read. Where a checksum exists, it was verified.
    pub bodies: u64,
    /// Total size of these bodies.
    pub body_bytes: u64,
    /// Log groups read.
    pub groups: u64,
    /// Problems found, at most [`PROBLEMS_MAX`]; empty if the store is sound.
    pub problems: Vec<Damage>,
}

impl Report {
    /// Returns whether no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Report for a directory that cannot be opened because this file is damaged
    /// ([`OpenError::Corrupt`](super::OpenError::Corrupt)).
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

/// Why a check was not completed.
#[derive(Debug, Error)]
pub enum CheckError {
    /// The flush before the check failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// `progress` cancelled the check.
    #[error("the integrity check was cancelled")]
    Stopped,
}

/// A check in progress. It calls `progress` regularly and ends if that returns [`ControlFlow::Break`].
pub(crate) struct Check<F> {
    pub(crate) report: Report,
    progress: F,
}

impl<F: FnMut(BackupProgress) -> ControlFlow<()>> Check<F> {
    pub(crate) fn new(progress: F) -> Self {
        Self { report: Report::default(), progress }
    }

    pub(crate) fn report_progress(&mut self) -> Result<(), CheckError> {
        let Report { rows, bodies, body_bytes, .. } = self.report;
        match (self.progress)(BackupProgress { rows, bodies, bytes: body_bytes }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(CheckError::Stopped),
        }
    }

    /// Checks a row. Only tasks are decoded, because readers of the queue silently skip a row that is not a task.
    pub(crate) fn row(&mut self, at: &Key, row: &Bytes) -> Result<(), CheckError> {
        self.report.rows += 1;
        if let Some((id, fault)) = crate::task::describe_damage(at, row) {
            self.report.problem(Object::Task, id, fault);
        } else if is_damaged(at, row) {
            self.report.problem(Object::Index, hexadecimal::encode(at), "the row with this key cannot be decompressed");
        }
        if self.report.rows.is_multiple_of(ROWS_BETWEEN_PROGRESS) { self.report_progress() } else { Ok(()) }
    }

    /// Counts a body that was read, or records why it could not be.
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
        self.report_progress()
    }

    /// Checks all rows and bodies of a database or of memory.
    pub(crate) fn all(mut self, rows: RowIterator, bodies: RowIterator) -> Result<Report, CheckError> {
        for row in rows {
            let (at, row) = row?;
            self.row(&at, &row)?;
        }
        for body in bodies {
            let (at, body) = body?;
            self.body(&at, Ok(body))?;
        }
        self.report_progress()?;
        Ok(self.report)
    }
}

/// Type and id of a body's owner, as operators see it.
fn name_of(at: &Key) -> (Object, String) {
    let id_in = |space: Space| {
        let mut reader = KeyReader::new(space, at).ok()?;
        reader.account().ok()?;
        reader.id().ok()
    };
    if let Some(id) = id_in(Space::Body) {
        return (Object::Email, model::id::EmailId::from_bytes(id).to_string());
    }
    if let Some(id) = id_in(Space::ReceivedBody) {
        return (Object::ReceivedEmail, model::id::ReceivedId::from_bytes(id).to_string());
    }
    (Object::Body, hexadecimal::encode(at))
}
