//! What a check found: its status, what was seen, and what to do about it.
//!
//! A check looks at several things (each source address, each file): it writes a [`Notes`] of them, a line
//! each, and the worst of them is the status of the [`Finding`].

use std::fmt;

use serde::Serialize;

/// How it stands, from nothing to say to what has to be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Not looked at: it does not concern this installation, or could not be seen from here.
    Skipped,
    /// As it should be.
    Ok,
    /// Mail flows, but worse than it could, or not for ever.
    Warning,
    /// Mail is lost, refused or filtered until this is mended.
    Failed,
}

impl fmt::Display for CheckStatus {
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
pub struct DoctorFinding {
    /// The check's name, which scripts may rely on.
    pub name: &'static str,
    /// The worst of what it saw.
    pub status: CheckStatus,
    /// What it saw, a line each, the worst first.
    pub found: String,
    /// What to do, a line each: sentences, and lines to copy.
    pub fix: Option<String>,
    /// The lines of `found`, each with how it stands.
    #[serde(skip)]
    pub notes: Vec<(CheckStatus, String)>,
}

/// What a check saw so far.
#[derive(Debug, Default)]
pub(super) struct Observations {
    observations: Vec<(CheckStatus, String)>,
    fixes: Vec<String>,
}

impl Observations {
    /// Something as it should be.
    pub(super) fn good(&mut self, found: impl Into<String>) {
        self.observations.push((CheckStatus::Ok, found.into()));
    }

    /// Something that was not looked at, and why.
    pub(super) fn skip(&mut self, found: impl Into<String>) {
        self.observations.push((CheckStatus::Skipped, found.into()));
    }

    /// Something that could be better, and how.
    pub(super) fn warn(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.add(CheckStatus::Warning, found.into(), fix.into());
    }

    /// Something wrong, and what to do.
    pub(super) fn fail(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.add(CheckStatus::Failed, found.into(), fix.into());
    }

    fn add(&mut self, status: CheckStatus, found: String, fix: String) {
        self.observations.push((status, found));
        // Two addresses may ask for the same.
        if !self.fixes.contains(&fix) {
            self.fixes.push(fix);
        }
    }

    /// The finding; what is wrong is told first.
    pub(super) fn into_finding(self, name: &'static str) -> DoctorFinding {
        let Self { observations: mut seen, fixes } = self;
        seen.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        let status = seen.first().map_or(CheckStatus::Skipped, |(status, _)| *status);
        let found = seen.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        let fix = (!fixes.is_empty()).then(|| fixes.join("\n"));
        DoctorFinding { name, status, found, fix, notes: seen }
    }
}

impl DoctorFinding {
    /// Of one thing, which is as it should be.
    #[must_use]
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.good(found);
        notes.into_finding(name)
    }

    /// Of one thing, which was not looked at.
    #[must_use]
    pub fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.skip(why);
        notes.into_finding(name)
    }

    /// Of one thing that could be better.
    #[must_use]
    pub fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.warn(found, fix);
        notes.into_finding(name)
    }

    /// Of one thing that is wrong.
    #[must_use]
    pub fn failed(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.fail(found, fix);
        notes.into_finding(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_status_and_comes_first() {
        let mut notes = Observations::default();
        notes.good("one");
        notes.skip("two");
        notes.fail("three", "mend it");
        notes.warn("four", "mend it");
        let found = notes.into_finding("x");
        assert_eq!((found.status, found.found.as_str()), (CheckStatus::Failed, "three\nfour\none\ntwo"));
        assert_eq!(found.fix.as_deref(), Some("mend it"));
        assert_eq!(Observations::default().into_finding("x").status, CheckStatus::Skipped);
        assert_eq!(
            serde_json::to_string(&DoctorFinding::skipped("dns", "no")).unwrap(),
            "{\"name\":\"dns\",\"status\":\"skipped\",\"found\":\"no\",\"fix\":null}"
        );
    }
}
