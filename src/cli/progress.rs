//! Progress on standard error: one updated line on a terminal, otherwise a line from time to time.

use std::io::IsTerminal as _;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A progress line. On a terminal, dropping it clears the line.
pub(super) struct ProgressLine {
    on_terminal: bool,
    last_printed: Option<Instant>,
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), last_printed: None }
    }
}

impl ProgressLine {
    /// Prints the current progress.
    pub(super) fn print(&mut self, step: &str) {
        let now = Instant::now();
        if self.on_terminal {
            eprint!("\r{step}\x1b[K");
        } else if self.last_printed.is_none_or(|last_printed| now.duration_since(last_printed) >= LINE_INTERVAL) {
            eprintln!("{step}");
        } else {
            return;
        }
        self.last_printed = Some(now);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.on_terminal && self.last_printed.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
