//! Opens a URL in the user's browser.

use std::process::{Command, Stdio};

/// Opens a URL with `BROWSER`, or the program of the system. Returns whether that program succeeded.
pub(crate) fn open(url: &str) -> bool {
    let browser = std::env::var_os("BROWSER").filter(|program| !program.is_empty());
    let program = browser.unwrap_or_else(|| if cfg!(target_os = "macos") { "open" } else { "xdg-open" }.into());
    let opened =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    opened.is_ok_and(|status| status.success())
}
