//! Precondition of a change: the version of the object that the caller has seen (RFC 9110 13.1.1).

use jiff::Timestamp;

use crate::error::ConflictReason;

/// Version of a row that the caller has seen, from `If-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Version number (`rev`).
    Rev(u64),
    /// Time of the last change (`updated_at`).
    At(Timestamp),
    /// Any of several versions.
    OneOf(Vec<Self>),
}

impl IfMatch {
    /// Parses the header's value: a list of numbers or times, with or without quotation marks (RFC 9110 13.1.1).
    pub fn read(text: &str) -> Option<Self> {
        let mut versions = text.split(',').map(Self::read_one).collect::<Option<Vec<_>>>()?;
        if versions.len() == 1 { versions.pop() } else { Some(Self::OneOf(versions)) }
    }

    fn read_one(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("W/").trim_matches('"');
        text.parse().map(Self::Rev).ok().or_else(|| text.parse().map(Self::At).ok())
    }

    /// Checks that a row still has the version that was seen.
    ///
    /// # Errors
    /// `Changed` if it does not.
    pub fn check(if_match: Option<&Self>, rev: u64, updated_at: Timestamp) -> Result<(), ConflictReason> {
        Self::check_version(if_match, rev, Some(updated_at))
    }

    /// As [`Self::check`], for a row without `updated_at`: a time matches no version of it.
    ///
    /// # Errors
    /// `Changed` if it does not.
    pub fn check_rev(if_match: Option<&Self>, rev: u64) -> Result<(), ConflictReason> {
        Self::check_version(if_match, rev, None)
    }

    fn check_version(if_match: Option<&Self>, rev: u64, updated_at: Option<Timestamp>) -> Result<(), ConflictReason> {
        let is_current = if_match.is_none_or(|if_match| if_match.matches(rev, updated_at));
        if is_current { Ok(()) } else { Err(ConflictReason::Changed) }
    }

    fn matches(&self, rev: u64, updated_at: Option<Timestamp>) -> bool {
        match self {
            Self::Rev(number) => *number == rev,
            // The API shows times in milliseconds.
            Self::At(time) => updated_at.is_some_and(|at| time.as_millisecond() == at.as_millisecond()),
            Self::OneOf(versions) => versions.iter().any(|version| version.matches(rev, updated_at)),
        }
    }
}
