//! Opens a URL in the user's browser.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A program that fails does so within this time. One that runs longer may be the browser itself.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Opens a URL with `BROWSER`, or the program of the system. Returns whether that program succeeded or still runs.
pub(crate) fn open(url: &str) -> bool {
    let browser = std::env::var_os("BROWSER").filter(|program| !program.is_empty());
    let program = browser.unwrap_or_else(|| if cfg!(target_os = "macos") { "open" } else { "xdg-open" }.into());
    let started =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut program) = started else { return false };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(program.wait().is_ok_and(|status| status.success())));
    told.recv_timeout(WAIT_MAX).unwrap_or(true)
}
