//! `etc/postrider.toml` documents the configuration: a line that shows a default must show the real default, and every
//! line must be valid once its leading `#` is removed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use postrider::config;

const DOCUMENTED: &str = include_str!("../etc/postrider.toml");

/// Keys without a default; their lines show examples.
const EXAMPLES: &[&str] = &[
    "url",
    "token",
    "certificate",
    "private_key",
    "directory",
    "contact",
    "names",
    "http_listen",
    "roots",
    "rspamd_mark_score",
    "rspamd_reject_score",
    "postmaster",
    "base_url",
    "tls_report_contact",
    "smarthost",
    "smarthost_username",
    "smarthost_password",
    "sandbox_sender",
    "token",
    "from",
    "return_path_host",
    "spf_include_host",
    "domain_connect_template",
    "domain_connect_key",
    "domain_connect_key_name",
    "clock_offset",
    "mta_sts_port",
    "trust_anchors",
    "upgrade_url",
    "console_url",
];

/// All documented keys: section, key, and the line that sets it.
fn documented_keys() -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in DOCUMENTED.lines() {
        let bare = line.strip_prefix('#').unwrap_or(line);
        if bare.starts_with('[') {
            section = bare.to_owned();
        } else if let Some((key, _)) = bare.split_once(" = ")
            && key.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        {
            keys.push((section.clone(), key.to_owned(), bare.to_owned()));
        }
    }
    keys
}

fn read(extra: &str) -> String {
    let text = format!("hostname = \"mx1.example.net\"\n{extra}");
    match config::from_text(&text, [("POSTRIDER_OPS_LISTEN".to_owned(), "127.0.0.1:9025".to_owned())]) {
        Ok(config) => format!("{config:#?}"),
        Err(problems) => panic!("{text}\n{problems:?}"),
    }
}

#[test]
fn every_documented_key_can_be_set_by_an_environment_variable() {
    for (section, key, line) in documented_keys() {
        if section.starts_with("[[") {
            continue;
        }
        let section = section.trim_matches(['[', ']']).replace('.', "_");
        let name = [section.as_str(), &key].join("_").trim_start_matches('_').to_ascii_uppercase();
        let value = line.split_once(" = ").unwrap().1.trim_matches('"').to_owned();
        let environment = [(format!("POSTRIDER_{name}"), value)];
        let read = config::from_text("hostname = \"mx1.example.net\"\n", environment);
        if let Ok(config) = &read {
            assert!(config.ignored_variables.is_empty(), "{name}");
        }
        if let Err(problems) = read {
            // A setting may require another one. The key itself must be known and its value accepted.
            let is_unread = |problem: &config::ConfigProblem| {
                [" is not a key of ", ", but must be "].iter().any(|part| problem.text.contains(part))
            };
            assert!(!problems.iter().any(is_unread), "{name}: {problems:?}");
        }
    }
}

#[test]
fn an_environment_variable_can_hold_a_list_of_secrets() {
    let secrets_from = |text: &str| {
        let environment = [("POSTRIDER_BILLING_STRIPE_WEBHOOK_SECRETS".to_owned(), text.to_owned())];
        let config = config::from_text("hostname = \"mx1.example.net\"\n[api]\nlisten = \"[::1]:1\"\n", environment);
        config.unwrap().billing.stripe_webhook_secrets.into_iter().map(|secret| secret.0).collect::<Vec<_>>()
    };
    assert_eq!(secrets_from("[]"), [""; 0]);
    assert_eq!(secrets_from("whsec_a"), ["whsec_a"]);
    assert_eq!(secrets_from(r#"["whsec_a", "whsec_b"]"#), ["whsec_a", "whsec_b"]);
}

#[test]
fn dns_servers_accepts_a_string_or_a_list() {
    let one = read("[dns]\nservers = \"127.0.0.1:5300\"\n");
    assert_eq!(one, read("[dns]\nservers = [\"127.0.0.1:5300\"]\n"));
}

#[test]
fn documented_defaults_equal_the_real_defaults() {
    let keys = documented_keys();
    assert!(keys.len() > 30, "the scan finds the keys: {keys:?}");
    let default = read("");
    for (section, key, line) in keys {
        let single = section.starts_with("[[");
        if key == "hostname"
            || key == "listen" && ["[ops]", "[api]"].contains(&section.as_str())
            || single
            || EXAMPLES.contains(&key.as_str())
        {
            continue;
        }
        assert_eq!(read(&format!("{section}\n{line}\n")), default, "{section} {line}");
    }
}

#[test]
fn the_sample_is_valid_once_the_hostname_is_set() {
    let text = DOCUMENTED.replace("\"mx1.example.net\"", "\"mx.acme.example\"");
    let config = config::from_text(&text, []).unwrap();
    assert_eq!(config.hostname.as_str(), "mx.acme.example");
    assert_eq!(config.api.listen, ["127.0.0.1:8080".parse().unwrap()]);
}

#[test]
fn every_line_of_the_sample_is_valid() {
    let mut text = String::new();
    for line in DOCUMENTED.lines() {
        let bare = line.strip_prefix('#').unwrap_or(line);
        let is_key = documented_keys().iter().any(|(_, _, known)| known == bare);
        text.push_str(if bare.starts_with('[') || is_key { bare } else { "" });
        text.push('\n');
    }
    let problems = config::from_text(&text, []).err().unwrap_or_default();
    // The files named in the sample do not exist, and the console's URL needs a listener.
    assert!(
        problems.iter().all(|p| ["No such file", "certificate", "challenge", "`console_url`"]
            .iter()
            .any(|one| p.text.contains(one))),
        "{problems:#?}"
    );
}

#[test]
fn reload_handles_every_documented_key() {
    let names = |(section, key, _): &(String, String, String)| match section.trim_matches(['[', ']']) {
        "" => key.clone(),
        section @ ("delivery.pace" | "delivery.replies" | "delivery.smarthosts" | "delivery.pools") => {
            section.to_owned()
        }
        section if section.ends_with(".storage") => section.to_owned(),
        section => format!("{section}.{key}"),
    };
    let documented: std::collections::BTreeSet<_> = documented_keys().iter().map(names).collect();
    assert_eq!(postrider::reload::keys().map(str::to_owned).collect::<std::collections::BTreeSet<_>>(), documented);
}

#[test]
fn an_unoptimised_build_logs_one_warning() {
    // The log starts after the configuration is read. The server then exits because the port is in use.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (directory, config) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let text = format!(
        "hostname = \"mx.example.net\"\ndata_dir = {:?}\n[api]\nlisten = \"{}\"\n",
        directory.path(),
        listener.local_addr().unwrap()
    );
    std::fs::write(config.path(), text).unwrap();
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
    let done = serve.arg("serve").arg("--config").arg(config.path()).env_remove("RUST_LOG").output().unwrap();
    let warnings = String::from_utf8_lossy(&done.stderr).matches("this is a debug build").count();
    assert_eq!(warnings, usize::from(cfg!(debug_assertions)), "{done:?}");
}
