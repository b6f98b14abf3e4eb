//! `postrider admin store check`: on a running and a stopped server, and on a damaged store.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::private_files::start;

fn check(data_dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["admin", "--data-dir"]).arg(data_dir).args(["store", "check"]).args(arguments);
    command.output().unwrap()
}

#[test]
fn store_check_works_with_and_without_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let mut child = start(&data_dir);
    let running = check(&data_dir, &["--json"]);
    let report: Value = serde_json::from_slice(&running.stdout).unwrap();
    assert!(running.status.success() && report["sound"] == true && report["rows"].as_u64() > Some(5), "{running:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The socket of the killed server is left behind and must not be used.
    let stopped = check(&data_dir, &["--json"]);
    let report: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    assert!(stopped.status.success() && report["sound"] == true, "{stopped:?}");

    let index = data_dir.join("store/index.redb");
    let mut bytes = std::fs::read(&index).unwrap();
    // Behind the file header: pages of rows.
    bytes[8_192..].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&index, &bytes).unwrap();
    let damaged = check(&data_dir, &[]);
    let table = String::from_utf8(damaged.stdout.clone()).unwrap();
    let mut lines = table.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert!(!damaged.status.success(), "{damaged:?}");
    assert_eq!(heading, ["object", "id", "fault"], "{damaged:?}");
    assert!(lines.next().unwrap_or_default().starts_with("index   index.redb"), "{damaged:?}");
    let stderr = String::from_utf8_lossy(&damaged.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    let damaged = check(&data_dir, &["--json"]);
    let report: Value = serde_json::from_slice(&damaged.stdout).unwrap();
    assert!(!damaged.status.success() && report["sound"] == false, "{damaged:?}");
    assert_eq!(report["faults"][0]["object"], "index", "{report}");
    assert_eq!(report["faults"][0]["id"], "index.redb", "{report}");
    assert!(damaged.stderr.is_empty(), "{damaged:?}");
}
