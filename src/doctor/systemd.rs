//! `service`: the systemd unit, where there is one; and what its tools know of the clock.
//!
//! Asked of `systemctl` and `timedatectl`, which anybody may run; where they are missing, nothing is known.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::finding::{DoctorFinding, Observations};
use super::place::CheckContext;

const NAME: &str = "service";
pub(super) const UNIT: &str = "postrider.service";
const DEADLINE: Duration = Duration::from_secs(3);
/// A service that was started anew more often has something the matter.
const RESTARTS_MAX: u64 = 3;

/// What a program prints; none when it is not there, fails, or takes too long.
async fn command_output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await.ok()?.ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

/// Whether the kernel holds the clock to be kept in time.
pub(super) async fn is_clock_synchronized() -> Option<bool> {
    match command_output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]).await?.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// What systemd knows of our unit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemdUnit {
    /// `active`, `inactive`, `failed`, …
    active: String,
    /// `enabled`, `disabled`, `static`, …
    file: String,
    restarts: u64,
    /// Files that it may have open.
    pub(super) files_max: Option<u64>,
    /// Its user is made at its start, and owns nothing before.
    pub(super) has_dynamic_user: bool,
}

/// The unit; none where there is none.
pub(super) async fn load_unit() -> Option<SystemdUnit> {
    const PROPERTIES: &str = "--property=LoadState,ActiveState,UnitFileState,NRestarts,LimitNOFILE,DynamicUser";
    parse_unit(&command_output("systemctl", &["show", UNIT, PROPERTIES]).await?)
}

fn parse_unit(text: &str) -> Option<SystemdUnit> {
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    (of("LoadState")? == "loaded").then(|| SystemdUnit {
        active: of("ActiveState").unwrap_or_default().to_owned(),
        file: of("UnitFileState").unwrap_or_default().to_owned(),
        restarts: of("NRestarts").and_then(|text| text.parse().ok()).unwrap_or(0),
        files_max: of("LimitNOFILE").and_then(|text| text.parse().ok()),
        has_dynamic_user: of("DynamicUser") == Some("yes"),
    })
}

/// Whether the unit runs, stays up and comes back after a reboot.
pub(super) async fn check_service(_: &CheckContext) -> DoctorFinding {
    match load_unit().await {
        None => DoctorFinding::skipped(NAME, "systemd has no postrider.service (etc/postrider.service is one)"),
        Some(unit) => judge(&unit),
    }
}

fn judge(unit: &SystemdUnit) -> DoctorFinding {
    let mut notes = Observations::default();
    match unit.active.as_str() {
        "active" | "reloading" => notes.good(format!("{UNIT} is {}", unit.active)),
        "failed" => {
            notes.fail(format!("{UNIT} has failed"), "journalctl -u postrider -n 50; then: systemctl restart postrider")
        }
        other => notes.warn(format!("{UNIT} is {other}"), "systemctl start postrider"),
    }
    if unit.file == "disabled" {
        notes.warn(format!("{UNIT} is not started when the machine starts"), "systemctl enable postrider");
    }
    if unit.restarts > RESTARTS_MAX {
        notes.warn(
            format!("it was started anew {} times after it had ended by itself", unit.restarts),
            "journalctl -u postrider -p warning",
        );
    }
    notes.into_finding(NAME)
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_says_nothing() {
        assert_eq!(command_output("a-program-that-nobody-has", &[]).await, None);
        assert_eq!(command_output("false", &[]).await, None);
    }

    #[test]
    fn a_unit_is_read_and_judged() {
        let shown = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNRestarts=0\nLimitNOFILE=65536\n";
        let unit = parse_unit(shown).unwrap();
        assert_eq!((unit.files_max, judge(&unit).status), (Some(65536), CheckStatus::Ok));
        assert!(!unit.has_dynamic_user);
        assert!(parse_unit(&format!("{shown}DynamicUser=yes\n")).unwrap().has_dynamic_user);
        assert_eq!(judge(&parse_unit(&shown.replace("=enabled", "=disabled")).unwrap()).status, CheckStatus::Warning);
        assert_eq!(judge(&parse_unit(&shown.replace("=active", "=failed")).unwrap()).status, CheckStatus::Failed);
        assert_eq!(judge(&parse_unit(&shown.replace("ts=0", "ts=9")).unwrap()).status, CheckStatus::Warning);
        assert_eq!(parse_unit("LoadState=not-found\nActiveState=inactive\n"), None);
    }
}
