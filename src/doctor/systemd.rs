//! `service`: checks the systemd unit, if there is one. Also reads the state of time synchronisation.
//!
//! Uses `systemctl` and `timedatectl`, which need no privileges; without them, nothing is reported.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};

const NAME: &str = "service";
pub(crate) const UNIT: &str = "postrider.service";
const DEADLINE: Duration = Duration::from_secs(3);
/// More automatic restarts than this indicate a problem.
const RESTARTS_MAX: u64 = 3;

/// Runs a program and returns its output; none if it does not exist, fails, or times out.
async fn command_output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await.ok()?.ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

/// Returns whether the kernel's clock is synchronized.
pub(super) async fn is_clock_synchronized() -> Option<bool> {
    match command_output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]).await?.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Properties of the systemd unit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemdUnit {
    /// `active`, `inactive`, `failed`, …
    active: String,
    /// `enabled`, `disabled`, `static`, …
    file: String,
    restarts: u64,
    /// Limit on open files.
    pub(super) files_max: Option<u64>,
    /// True: systemd allocates the user at start, so the user owns no files before.
    pub(crate) has_dynamic_user: bool,
}

/// Loads the unit; none if it is not installed.
pub(crate) async fn load_unit() -> Option<SystemdUnit> {
    const PROPERTIES: &str = "--property=LoadState,ActiveState,UnitFileState,NRestarts,LimitNOFILE,DynamicUser";
    parse_unit(&command_output("systemctl", &["show", UNIT, PROPERTIES]).await?)
}

fn parse_unit(text: &str) -> Option<SystemdUnit> {
    let property = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    (property("LoadState")? == "loaded").then(|| SystemdUnit {
        active: property("ActiveState").unwrap_or_default().to_owned(),
        file: property("UnitFileState").unwrap_or_default().to_owned(),
        restarts: property("NRestarts").and_then(|text| text.parse().ok()).unwrap_or(0),
        files_max: property("LimitNOFILE").and_then(|text| text.parse().ok()),
        has_dynamic_user: property("DynamicUser") == Some("yes"),
    })
}

/// Checks that the unit runs, does not restart repeatedly, and starts at boot.
pub(super) async fn check_service(_: &CheckContext) -> DoctorFinding {
    match load_unit().await {
        None => DoctorFinding::skipped(NAME, "systemd has no postrider.service (etc/postrider.service is an example)"),
        Some(unit) => evaluate(&unit),
    }
}

fn evaluate(unit: &SystemdUnit) -> DoctorFinding {
    let mut notes = Observations::default();
    match unit.active.as_str() {
        "active" | "reloading" => notes.good(format!("{UNIT} is {}", unit.active)),
        "failed" => {
            notes.fail(format!("{UNIT} has failed"), "journalctl -u postrider -n 50; then: systemctl restart postrider")
        }
        other => notes.warn(format!("{UNIT} is {other}"), "systemctl start postrider"),
    }
    if unit.file == "disabled" {
        notes.warn(format!("{UNIT} does not start at boot"), "systemctl enable postrider");
    }
    if unit.restarts > RESTARTS_MAX {
        notes.warn(
            format!("it was restarted {} times after crashes", unit.restarts),
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
    async fn a_missing_or_failing_program_yields_none() {
        assert_eq!(command_output("a-program-that-nobody-has", &[]).await, None);
        assert_eq!(command_output("false", &[]).await, None);
    }

    #[test]
    fn a_unit_is_parsed_and_evaluated() {
        let output = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNRestarts=0\nLimitNOFILE=65536\n";
        let unit = parse_unit(output).unwrap();
        assert_eq!((unit.files_max, evaluate(&unit).status), (Some(65536), CheckStatus::Ok));
        assert!(!unit.has_dynamic_user);
        assert!(parse_unit(&format!("{output}DynamicUser=yes\n")).unwrap().has_dynamic_user);
        assert_eq!(
            evaluate(&parse_unit(&output.replace("=enabled", "=disabled")).unwrap()).status,
            CheckStatus::Warning
        );
        assert_eq!(evaluate(&parse_unit(&output.replace("=active", "=failed")).unwrap()).status, CheckStatus::Failed);
        assert_eq!(evaluate(&parse_unit(&output.replace("ts=0", "ts=9")).unwrap()).status, CheckStatus::Warning);
        assert_eq!(parse_unit("LoadState=not-found\nActiveState=inactive\n"), None);
    }
}
