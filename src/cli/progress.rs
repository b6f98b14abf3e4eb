//! How far something is, on standard error: one line that is updated on a terminal, elsewhere a line now and then.

use std::io::IsTerminal as _;
use std::time::Duration;

use tokio::time::Instant;

/// Where there is no terminal, one line in this time.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A line of progress. On a terminal it goes when this is dropped.
pub(super) struct ProgressLine {
    on_terminal: bool,
    last: Option<Instant>,
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), last: None }
    }
}

impl ProgressLine {
    /// Tells how far it is.
    pub(super) fn tell(&mut self, step: &str) {
        let now = Instant::now();
        if self.on_terminal {
            eprint!("\r{step}\x1b[K");
        } else if self.last.is_none_or(|last| now.duration_since(last) >= LINE_EVERY) {
            eprintln!("{step}");
        } else {
            return;
        }
        self.last = Some(now);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.on_terminal && self.last.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
