//! Input and output of a setup, so that tests can answer the questions.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::doctor::render::OutputStyle;

/// Maximum length of an answer in bytes.
const ANSWER_BYTES_MAX: u64 = 1_024;
/// Width of a live line. A longer one would wrap, and could not be replaced.
const LIVE_COLUMNS: usize = 79;

/// The operator's terminal, or what stands in for it.
pub trait Dialog {
    /// Prints a text and ends the line. Removes live lines first.
    fn print(&mut self, text: &str);

    /// Asks for one line. Returns none at the end of the input.
    fn ask(&mut self, prompt: &str) -> std::io::Result<Option<String>>;

    /// Returns whether somebody is there to answer.
    fn can_ask(&self) -> bool;

    /// Style of check results.
    fn style(&self) -> OutputStyle;

    /// Returns whether live lines are shown.
    fn is_live(&self) -> bool;

    /// Shows lines that the next call, or the next printed text, replaces.
    fn show_live(&mut self, lines: &[String]);
}

/// Standard input and output of the process.
#[derive(Debug)]
pub struct StandardDialog {
    style: OutputStyle,
    can_ask: bool,
    is_live: bool,
    live_lines: usize,
}

impl Default for StandardDialog {
    fn default() -> Self {
        let is_live = std::io::stdout().is_terminal();
        Self {
            style: OutputStyle::for_stdout(),
            can_ask: is_live && std::io::stdin().is_terminal(),
            is_live,
            live_lines: 0,
        }
    }
}

impl StandardDialog {
    fn clear_live(&mut self, out: &mut impl std::io::Write) {
        if self.live_lines > 0 {
            // The output may be closed.
            let _ = write!(out, "\x1b[{}A\x1b[J", self.live_lines);
            self.live_lines = 0;
        }
    }
}

impl Dialog for StandardDialog {
    fn print(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        self.clear_live(&mut out);
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    fn ask(&mut self, prompt: &str) -> std::io::Result<Option<String>> {
        let mut out = std::io::stdout().lock();
        self.clear_live(&mut out);
        write!(out, "{prompt} ")?;
        out.flush()?;
        let mut answer = String::new();
        let input = std::io::stdin().lock();
        let read_bytes = std::io::Read::take(input, ANSWER_BYTES_MAX).read_line(&mut answer)?;
        Ok((read_bytes > 0).then_some(answer))
    }

    fn can_ask(&self) -> bool {
        self.can_ask
    }

    fn style(&self) -> OutputStyle {
        self.style
    }

    fn is_live(&self) -> bool {
        self.is_live
    }

    fn show_live(&mut self, lines: &[String]) {
        if !self.is_live {
            return;
        }
        let mut out = std::io::stdout().lock();
        self.clear_live(&mut out);
        for line in lines {
            let _ = writeln!(out, "{}", truncate(line, LIVE_COLUMNS));
        }
        let _ = out.flush();
        self.live_lines = lines.len();
    }
}

/// Cuts a line to a number of columns.
fn truncate(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let cut: String = line.chars().take(columns.saturating_sub(1)).collect();
    cut + "…"
}

/// Removes control characters of texts that other hosts wrote.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_lines_never_wrap() {
        assert_eq!(truncate("short", 10), "short");
        assert_eq!(truncate("a longer line", 6), "a lon…");
        assert_eq!(printable("550 no\x1b[31m\r\n"), "550 no [31m  ");
    }
}
