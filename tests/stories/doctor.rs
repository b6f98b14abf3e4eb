//! `postrider doctor` for scripts: one JSON value, and an exit status that reports failures.

use std::path::Path;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::world::zone::NameServer;

const GOOD: &str = "
mx1.example.net. A 203.0.113.5
spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 -all\"
rp.mx1.example.net. MX 10 mx1.example.net.
gmail.com. TXT x
";

/// Runs the doctor with a NAT address and a smarthost, so that all DNS queries are in the zone. Returns the exit status
/// and the JSON.
async fn doctor(names: &NameServer, smarthost: &str, extra: &[&str]) -> (Option<i32>, Value) {
    // Not in the temporary directory: if that is a tmpfs, the doctor reports it.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("postrider.toml");
    let text = format!(
        "hostname = \"mx1.example.net\"\ndata_dir = {:?}\n[api]\nlisten = \"127.0.0.1:1\"\n\
         [submission]\nsessions_max = 100\n[dns]\nservers = [\"{}\"]\n[delivery]\nsmarthost = \"{smarthost}\"\n",
        directory.path().join("data"),
        names.address
    );
    std::fs::write(&file, text).unwrap();
    run(&file, extra).await
}

async fn run(file: &Path, extra: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    // Ignore the configuration of the environment that runs the tests.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POSTRIDER_")) {
        command.env_remove(name);
    }
    let output = command
        .args(["doctor", "--json", "--address", "203.0.113.5", "--ntp", "127.0.0.1:1", "--config"])
        .arg(file)
        .args(extra)
        .output()
        .await
        .unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

fn status<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()["status"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_status_reports_failed_checks() {
    let host = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = host.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = host.accept().await {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let _ = stream.write_all(b"220 relay.example.org ESMTP\r\n").await;
            let _ = stream.read(&mut [0; 64]).await;
        }
    });
    let names = NameServer::start(GOOD).await;
    let (code, report) = doctor(&names, &at, &[]).await;
    let failed: Vec<_> =
        report["checks"].as_array().unwrap().iter().filter(|check| check["status"] == "failed").collect();
    // These checks depend on the machine that runs the tests.
    let machine_checks = ["service", "disk", "disk_sync", "file_limit", "clock"];
    assert!(failed.iter().all(|check| machine_checks.contains(&check["name"].as_str().unwrap())), "{report:#}");
    assert_eq!(code, Some(i32::from(!failed.is_empty())), "{report:#}");
    for name in ["configuration", "dns", "hostname", "spf", "return_path", "port_25_out"] {
        assert_eq!(status(&report, name), "ok", "{report:#}");
    }
    assert_eq!((status(&report, "ptr"), status(&report, "blocklists")), ("skipped", "skipped"));

    let empty = NameServer::start("mx1.example.net. A 203.0.113.5").await;
    let (code, report) = doctor(&empty, &at, &[]).await;
    assert_eq!((code, status(&report, "spf")), (Some(1), "failed"), "{report:#}");
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_as_json_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("postrider.toml");
    std::fs::write(&file, "hostname = \"mx1.example.net\"\n[api]\ncolour = 1\n").unwrap();
    let (code, report) = run(&file, &[]).await;
    assert_eq!((code, status(&report, "configuration")), (Some(2), "failed"));
    assert!(report["checks"][0]["found"].as_str().unwrap().contains("line 3: "), "{report:#}");
    std::fs::write(&file, "hostname = \"mx1.example.net\"\n[service]\nsandbox_sender = \"ann@@example.org\"\n")
        .unwrap();
    let (_, report) = run(&file, &[]).await;
    let found = report["checks"][0]["found"].as_str().unwrap();
    assert!(found.contains("line 3: ") && !found.contains("ann@"), "{report:#}");
    let (code, _) = run(&directory.path().join("none.toml"), &["--strict"]).await;
    assert_eq!(code, Some(2));
}
