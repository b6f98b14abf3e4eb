//! What a check found: its status, what was seen, and what to do about it.
//!
//! A check looks at several things (each source address, each file): it writes a [`Notes`] of them, a line
//! each, and the worst of them is the status of the [`Finding`].

use std::fmt;

use serde::Serialize;

/// How it stands, from nothing to say to what has to be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not looked at: it does not concern this installation, or could not be seen from here.
    Skipped,
    /// As it should be.
    Ok,
    /// Mail flows, but worse than it could, or not for ever.
    Warning,
    /// Mail is lost, refused or filtered until this is mended.
    Failed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        })
    }
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, which scripts may rely on.
    pub name: &'static str,
    /// The worst of what it saw.
    pub status: Status,
    /// What it saw, a line each, the worst first.
    pub found: String,
    /// What to do, a line each: sentences, and lines to copy.
    pub fix: Option<String>,
    /// The lines of `found`, each with how it stands.
    #[serde(skip)]
    pub notes: Vec<(Status, String)>,
}

/// What a check saw so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    seen: Vec<(Status, String)>,
    fixes: Vec<String>,
}

impl Notes {
    /// Something as it should be.
    pub(super) fn good(&mut self, found: impl Into<String>) {
        self.seen.push((Status::Ok, found.into()));
    }

    /// Something that was not looked at, and why.
    pub(super) fn skip(&mut self, found: impl Into<String>) {
        self.seen.push((Status::Skipped, found.into()));
    }

    /// Something that could be better, and how.
    pub(super) fn warn(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.note(Status::Warning, found.into(), fix.into());
    }

    /// Something wrong, and what to do.
    pub(super) fn fail(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.note(Status::Failed, found.into(), fix.into());
    }

    fn note(&mut self, status: Status, found: String, fix: String) {
        self.seen.push((status, found));
        // Two addresses may ask for the same.
        if !self.fixes.contains(&fix) {
            self.fixes.push(fix);
        }
    }

    /// The finding; what is wrong is told first.
    pub(super) fn settle(self, name: &'static str) -> Finding {
        let Self { mut seen, fixes } = self;
        seen.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        let status = seen.first().map_or(Status::Skipped, |(status, _)| *status);
        let found = seen.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        let fix = (!fixes.is_empty()).then(|| fixes.join("\n"));
        Finding { name, status, found, fix, notes: seen }
    }
}

impl Finding {
    /// Of one thing, which is as it should be.
    #[must_use]
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        let mut notes = Notes::default();
        notes.good(found);
        notes.settle(name)
    }

    /// Of one thing, which was not looked at.
    #[must_use]
    pub fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let mut notes = Notes::default();
        notes.skip(why);
        notes.settle(name)
    }

    /// Of one thing that could be better.
    #[must_use]
    pub fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut notes = Notes::default();
        notes.warn(found, fix);
        notes.settle(name)
    }

    /// Of one thing that is wrong.
    #[must_use]
    pub fn failed(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut notes = Notes::default();
        notes.fail(found, fix);
        notes.settle(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_status_and_comes_first() {
        let mut notes = Notes::default();
        notes.good("one");
        notes.skip("two");
        notes.fail("three", "mend it");
        notes.warn("four", "mend it");
        let found = notes.settle("x");
        assert_eq!((found.status, found.found.as_str()), (Status::Failed, "three\nfour\none\ntwo"));
        assert_eq!(found.fix.as_deref(), Some("mend it"));
        assert_eq!(Notes::default().settle("x").status, Status::Skipped);
        assert_eq!(
            serde_json::to_string(&Finding::skipped("dns", "no")).unwrap(),
            "{\"name\":\"dns\",\"status\":\"skipped\",\"found\":\"no\",\"fix\":null}"
        );
    }
}
