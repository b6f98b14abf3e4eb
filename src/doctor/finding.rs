//! Result of a check: status, observations and fixes.
//!
//! A check observes several things (each source address, each file) and adds an [`Observations`] line for each. The
//! worst of them is the status of the [`DoctorFinding`].

use std::fmt;

use serde::Serialize;

/// Status of a check, in ascending order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Not checked: not applicable to this installation, or not observable.
    Skipped,
    /// Correct.
    Ok,
    /// Mail flows, but less well than it could, or not for much longer.
    Warning,
    /// Mail is lost, refused or filtered until this is fixed.
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

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// Name of the check; stable for scripts.
    pub name: &'static str,
    /// The worst status of its observations.
    pub status: CheckStatus,
    /// Observations, one line each, the worst first.
    pub found: String,
    /// Fixes, one line each: sentences, and lines to copy.
    pub fix: Option<String>,
    /// The lines of `found` with their status.
    #[serde(skip)]
    pub notes: Vec<(CheckStatus, String)>,
}

/// Observations and fixes that a check collects.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    observations: Vec<(CheckStatus, String)>,
    fixes: Vec<String>,
}

impl Observations {
    /// Adds a correct observation.
    pub(crate) fn good(&mut self, found: impl Into<String>) {
        self.observations.push((CheckStatus::Ok, found.into()));
    }

    /// Adds something that was not checked, with the reason.
    pub(crate) fn skip(&mut self, found: impl Into<String>) {
        self.observations.push((CheckStatus::Skipped, found.into()));
    }

    /// Adds a warning with its fix.
    pub(crate) fn warn(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.add(CheckStatus::Warning, found.into(), fix.into());
    }

    /// Adds a failure with its fix.
    pub(crate) fn fail(&mut self, found: impl Into<String>, fix: impl Into<String>) {
        self.add(CheckStatus::Failed, found.into(), fix.into());
    }

    fn add(&mut self, status: CheckStatus, found: String, fix: String) {
        self.observations.push((status, found));
        // Several observations may have the same fix.
        if !self.fixes.contains(&fix) {
            self.fixes.push(fix);
        }
    }

    /// Builds the finding, with the worst observations first.
    pub(crate) fn into_finding(self, name: &'static str) -> DoctorFinding {
        let Self { mut observations, fixes } = self;
        observations.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        let status = observations.first().map_or(CheckStatus::Skipped, |(status, _)| *status);
        let found = observations.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        let fix = (!fixes.is_empty()).then(|| fixes.join("\n"));
        DoctorFinding { name, status, found, fix, notes: observations }
    }
}

impl DoctorFinding {
    /// The same finding with failures as warnings.
    pub fn without_failures(mut self) -> Self {
        self.status = self.status.min(CheckStatus::Warning);
        for (status, _) in &mut self.notes {
            *status = (*status).min(CheckStatus::Warning);
        }
        self
    }

    /// A finding with one correct observation.
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.good(found);
        notes.into_finding(name)
    }

    /// A finding that was not checked.
    pub fn skipped(name: &'static str, reason: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.skip(reason);
        notes.into_finding(name)
    }

    pub fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let mut notes = Observations::default();
        notes.warn(found, fix);
        notes.into_finding(name)
    }

    /// A finding with one failure.
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
        notes.fail("three", "fix it");
        notes.warn("four", "fix it");
        let found = notes.into_finding("x");
        assert_eq!((found.status, found.found.as_str()), (CheckStatus::Failed, "three\nfour\none\ntwo"));
        assert_eq!(found.fix.as_deref(), Some("fix it"));
        assert_eq!(Observations::default().into_finding("x").status, CheckStatus::Skipped);
        assert_eq!(
            serde_json::to_string(&DoctorFinding::skipped("dns", "no")).unwrap(),
            "{\"name\":\"dns\",\"status\":\"skipped\",\"found\":\"no\",\"fix\":null}"
        );
    }
}
