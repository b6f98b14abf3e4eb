//! `ProgressBar`: how far a long command is, on standard error if it is a terminal.

use std::io::IsTerminal as _;

const BAR_CHARS: usize = 30;

/// A bar of one line.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    total: u64,
    is_shown: bool,
}

impl ProgressBar {
    pub(crate) fn new(total: u64) -> Self {
        Self { total, is_shown: total > 0 && std::io::stderr().is_terminal() }
    }

    /// Draws the bar.
    pub(crate) fn show(&self, done: u64) {
        if self.is_shown {
            eprint!("\r{}", self.line(done));
        }
    }

    fn line(&self, done: u64) -> String {
        let done = done.min(self.total);
        let filled = usize::try_from(done * BAR_CHARS as u64 / self.total.max(1)).unwrap_or(BAR_CHARS);
        format!("[{}{}] {done}/{}", "#".repeat(filled), ".".repeat(BAR_CHARS - filled), self.total)
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.is_shown {
            eprintln!();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_filled_in_proportion() {
        let bar = ProgressBar { total: 10, is_shown: false };
        assert_eq!(bar.line(5), format!("[{}{}] 5/10", "#".repeat(15), ".".repeat(15)));
        assert_eq!(bar.line(99), format!("[{}] 10/10", "#".repeat(30)));
    }
}
