//! Starts the server, by systemd where its unit is installed, and waits until it responds.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::dialog::{Dialog, printable};
use super::error::SetupError;
use super::installation::Installation;
use super::options::{DEFAULT_CONFIG, SetupOptions};
use crate::doctor::systemd;

/// Directory that exists while systemd runs the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// Timeout of `systemctl`, which waits until the server is ready.
const SYSTEMCTL_MAX: Duration = Duration::from_secs(90);
/// Timeout of the start after `systemctl` has returned.
const START_MAX: Duration = Duration::from_secs(30);
/// Time in which the operator starts the server.
const MANUAL_START_MAX: Duration = Duration::from_secs(10 * 60);
/// Interval of looking for the server.
const POLL: Duration = Duration::from_millis(500);
/// Lines of the journal that are shown after a failed start.
const JOURNAL_LINES: &str = "15";
const JOURNAL_MAX: Duration = Duration::from_secs(5);

/// Starts the server, unless it runs.
pub(super) async fn start(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    if installation.admin().is_running().await {
        dialog.print("The server is running.");
        return Ok(());
    }
    // The unit reads this file only.
    let uses_systemd = options.config == Path::new(DEFAULT_CONFIG)
        && Path::new(SYSTEMD).is_dir()
        && systemd::load_unit().await.is_some();
    let deadline = if uses_systemd {
        dialog.print(&format!("Starting {} now, and at every boot.", systemd::UNIT));
        if let Err(reason) = systemctl().await {
            print_journal(dialog).await;
            return Err(SetupError::NotStarted { reason });
        }
        START_MAX
    } else {
        let data_dir = installation.config.data_dir.display();
        dialog.print("systemd does not manage this configuration. Start the server yourself, in another terminal:");
        dialog.print(&format!("\n  {}\n", options.command("serve")));
        if options.no_wait {
            return Err(SetupError::ServerPending { again: options.command_again() });
        }
        dialog.show_live(&[format!("  waiting for it in {data_dir}")]);
        MANUAL_START_MAX
    };
    let until = Instant::now() + deadline;
    while !installation.admin().is_running().await {
        if Instant::now() >= until {
            if uses_systemd {
                print_journal(dialog).await;
            }
            let socket = installation.config.data_dir.join(crate::admin::SOCKET);
            let reason = format!("nothing answers at {}; see its log for the reason", socket.display());
            return Err(SetupError::NotStarted { reason });
        }
        sleep(POLL).await;
    }
    dialog.print("The server is running.");
    Ok(())
}

/// Enables and starts the unit.
async fn systemctl() -> Result<(), String> {
    let mut command = Command::new("systemctl");
    command.args(["enable", "--now", systemd::UNIT]).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(SYSTEMCTL_MAX, command.output()).await;
    let output = output.map_err(|_| format!("systemctl did not return within {} s", SYSTEMCTL_MAX.as_secs()))?;
    let output = output.map_err(|error| format!("systemctl: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = printable(&String::from_utf8_lossy(&output.stderr));
    Err(format!("systemctl enable --now {}: {}", systemd::UNIT, text.trim().trim_end_matches('.')))
}

/// Prints the last lines of the server's log.
async fn print_journal(dialog: &mut dyn Dialog) {
    let mut command = Command::new("journalctl");
    command
        .args(["--unit", systemd::UNIT, "--lines", JOURNAL_LINES, "--no-pager", "--output", "cat"])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let Ok(Ok(output)) = timeout(JOURNAL_MAX, command.output()).await else { return };
    dialog.print("The end of its log (journalctl -u postrider):");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        dialog.print(&format!("  {}", printable(line)));
    }
}
