//! Output of findings: marks and colours on a terminal, words in a pipe, or one JSON value.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde_json::{Value, json};

use super::finding::{CheckStatus, DoctorFinding};

/// Width at which text is wrapped; lines to copy are never wrapped.
const COLUMNS: usize = 100;
const NAME_COLUMNS: usize = 13;

/// Style of the status at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStyle {
    /// `✓ ! ✗ -`, coloured.
    Coloured,
    /// `✓ ! ✗ -`.
    Plain,
    /// `ok`, `warning`, `failed`, `skipped`.
    Words,
}

impl OutputStyle {
    /// Style for standard output: colours on a terminal, unless `NO_COLOR` is set.
    pub fn for_stdout() -> Self {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match (std::io::stdout().is_terminal(), colours) {
            (true, true) => Self::Coloured,
            (true, false) => Self::Plain,
            (false, _) => Self::Words,
        }
    }

    /// Formats a status.
    pub fn mark(self, status: CheckStatus) -> String {
        let (mark, colour) = match status {
            CheckStatus::Ok => ("✓", 32),
            CheckStatus::Warning => ("!", 33),
            CheckStatus::Failed => ("✗", 31),
            CheckStatus::Skipped => ("-", 2),
        };
        match self {
            Self::Coloured => format!("\x1b[{colour}m{mark}\x1b[0m"),
            Self::Plain => mark.to_owned(),
            Self::Words => format!("{status:<8}"),
        }
    }

    fn indent(self) -> usize {
        NAME_COLUMNS + 1 + if self == Self::Words { 9 } else { 2 }
    }
}

/// Formats a finding: a line with a status for each observation, then the fix.
pub fn render_finding(finding: &DoctorFinding, style: OutputStyle) -> String {
    let (indent, mut out) = (style.indent(), String::new());
    // Writing to a String does not fail.
    for (index, (status, text)) in finding.notes.iter().enumerate() {
        let name = if index == 0 { finding.name } else { "" };
        let _ = write!(out, "{} {name:<NAME_COLUMNS$} ", style.mark(*status));
        for (index, line) in text.lines().flat_map(|line| wrap_text(line, COLUMNS.saturating_sub(indent))).enumerate() {
            let _ = if index == 0 { writeln!(out, "{line}") } else { writeln!(out, "{:indent$}{line}", "") };
        }
    }
    for (index, line) in finding.fix.iter().flat_map(|fix| fix.lines()).enumerate() {
        let label = if index == 0 { "fix:" } else { "" };
        let _ = writeln!(out, "{:indent$}{label:<4} {line}", "");
    }
    out
}

/// Wraps text at word boundaries.
fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Counts findings by status.
pub fn render_summary(findings: &[DoctorFinding]) -> String {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let warnings = count(CheckStatus::Warning);
    format!(
        "{} failed, {warnings} {}, {} ok, {} skipped",
        count(CheckStatus::Failed),
        if warnings == 1 { "warning" } else { "warnings" },
        count(CheckStatus::Ok),
        count(CheckStatus::Skipped)
    )
}

/// All findings as one JSON value.
pub fn to_json(findings: &[DoctorFinding]) -> Value {
    json!({ "checks": findings })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Observations;
    use super::*;

    fn finding() -> DoctorFinding {
        let mut notes = Observations::default();
        let fix = "one line to copy, however long it is, stays one line: it is for the clipboard, not for the eye\ntwo";
        notes.fail(format!("203.0.113.5 has no name{}", " and so on".repeat(12)), fix);
        notes.good("203.0.113.6 has one");
        notes.into_finding("ptr")
    }

    #[test]
    fn prose_is_wrapped_and_fixes_are_not() {
        let text = render_finding(&finding(), OutputStyle::Words);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("failed   ptr           203.0.113.5 has no name and so on"), "{text}");
        assert!(
            lines[1].starts_with("                       and so on") || lines[1].trim_start().starts_with("so on"),
            "{text}"
        );
        assert!(lines.contains(&"ok                     203.0.113.6 has one"), "{text}");
        assert_eq!(lines.last().unwrap().trim_start(), "two");
        assert!(text.contains(
            "fix: one line to copy, however long it is, stays one line: it is for the clipboard, not for the eye\n"
        ));
        assert!(lines.iter().take(2).all(|line| line.len() <= COLUMNS));
        assert!(render_finding(&finding(), OutputStyle::Coloured).starts_with("\x1b[31m✗\x1b[0m ptr"));
    }

    #[test]
    fn findings_are_one_json_value() {
        let value = to_json(&[finding()]);
        assert_eq!(value["checks"][0]["status"], "failed");
        assert_eq!(value["checks"][0]["name"], "ptr");
        assert_eq!(render_summary(&[finding()]), "1 failed, 0 warnings, 0 ok, 0 skipped");
    }
}
