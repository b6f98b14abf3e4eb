//! Progress on standard error: one updated line on a terminal, otherwise a line from time to time.

use std::io::IsTerminal as _;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A progress line. Dropping it clears the line on a terminal, and otherwise prints the last step.
pub(super) struct ProgressLine {
    on_terminal: bool,
    last_printed: Option<Instant>,
    /// The last step, if it was too early for a line.
    unprinted: Option<String>,
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), last_printed: None, unprinted: None }
    }
}

impl ProgressLine {
    /// Prints the current progress.
    pub(super) fn print(&mut self, step: &str) {
        if !self.is_due(step, Instant::now()) {
            return;
        }
        if self.on_terminal {
            eprint!("\r{step}\x1b[K");
        } else {
            eprintln!("{step}");
        }
    }

    /// Returns whether a step is to be printed now.
    fn is_due(&mut self, step: &str, now: Instant) -> bool {
        let is_early = |last_printed: Instant| now.duration_since(last_printed) < LINE_INTERVAL;
        if !self.on_terminal && self.last_printed.is_some_and(is_early) {
            self.unprinted = Some(step.to_owned());
            return false;
        }
        (self.last_printed, self.unprinted) = (Some(now), None);
        true
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.on_terminal && self.last_printed.is_some() {
            eprint!("\r\x1b[K");
        }
        if let Some(step) = &self.unprinted {
            eprintln!("{step}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_printed_at_the_end_if_it_was_too_early() {
        let mut line = ProgressLine { on_terminal: false, last_printed: None, unprinted: None };
        let start = Instant::now();
        assert!(line.is_due("1 row", start));
        assert!(!line.is_due("2 rows", start));
        assert_eq!(line.unprinted.as_deref(), Some("2 rows"));
        assert!(line.is_due("3 rows", start + LINE_INTERVAL));
        assert_eq!(line.unprinted, None);
    }
}
