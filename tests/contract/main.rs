//! Names that users rely on: error codes, event names, metrics, configuration keys, the command line.
//!
//! Each list is a golden file in this directory; `UPDATE_GOLDEN=1` rewrites them. A name that is removed or changed
//! breaks users' programs, dashboards or stored data, so names may only be added.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

fn expect(file: &str, names: impl IntoIterator<Item = String>) {
    let names: Vec<String> = names.into_iter().collect();
    let text = names.join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let removed: Vec<_> = golden.lines().filter(|line| !names.iter().any(|name| extends(name, line))).collect();
    assert!(removed.is_empty(), "{file}: names were removed or changed: {removed:#?}");
    assert!(text == golden, "{file}: names were added; run again with UPDATE_GOLDEN=1");
}

/// Returns whether the names are equal, or the commands are equal and the new one has all flags of the old one.
fn extends(new: &str, old: &str) -> bool {
    let (mut new, mut old) = (new.split(" --"), old.split(" --"));
    let is_same = new.next() == old.next();
    let flags: Vec<&str> = new.collect();
    is_same && old.all(|flag| flags.contains(&flag))
}

#[test]
fn a_command_may_gain_a_flag() {
    assert!(extends("a list --x --y <Y>", "a list --y <Y>"));
    assert!(!extends("a list --x", "a list --y <Y>") && !extends("a list --x", "a show --x"));
    assert!(extends("a list --x", "a list") && !extends("a list", "a list --x") && !extends("a list --x", "a"));
}

#[test]
fn error_codes() {
    expect(
        "error-codes.txt",
        httpd::problem::ErrorCode::ALL.iter().map(|code| format!("{} {}", code.status, code.word)),
    );
}

#[test]
fn event_names() {
    let names: BTreeSet<String> =
        model::event::EventKind::ALL.iter().map(|kind| serde_json::to_value(kind).unwrap().to_string()).collect();
    expect("events.txt", names.into_iter().map(|name| name.trim_matches('"').to_owned()));
}

#[test]
fn metrics() {
    expect("metrics.txt", postrider::metric_help::names().map(|(name, kind)| format!("{name} {kind}")));
}

/// Keys of the sample configuration. tests/configuration.rs checks that the sample documents every key.
#[test]
fn configuration_keys() {
    let sample = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("etc/postrider.toml")).unwrap();
    let (mut section, mut keys) = (String::new(), BTreeSet::new());
    for line in sample.lines() {
        let line = line.trim_start_matches('#').trim();
        if line.starts_with('[') && line.ends_with(']') {
            section = line.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, _)) = line.split_once('=') {
            let key = key.trim();
            if !key.is_empty()
                && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            {
                keys.insert(format!("{section}.{key}").trim_start_matches('.').to_owned());
            }
        }
    }
    expect("configuration-keys.txt", keys);
}

/// Every command with its arguments and flags. Help texts are not part of the contract.
#[test]
fn command_line() {
    let mut lines = Vec::new();
    describe(&postrider::cli::CliArguments::command(), "", &mut lines);
    expect("command-line.txt", lines);
}

fn describe(command: &clap::Command, parents: &str, lines: &mut Vec<String>) {
    let path = format!("{parents}{}", command.get_name());
    let mut line = path.clone();
    for argument in
        command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    {
        let value = argument.get_action().takes_values().then(|| {
            argument
                .get_value_names()
                .map_or_else(String::new, |names| names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(" "))
        });
        let _ = match (argument.get_long(), value) {
            (Some(long), Some(value)) => write!(line, " --{long} <{value}>"),
            (Some(long), None) => write!(line, " --{long}"),
            (None, value) => write!(line, " <{}>", value.unwrap_or_default()),
        };
        for alias in argument.get_visible_aliases().unwrap_or_default() {
            let _ = write!(line, " (--{alias})");
        }
    }
    lines.push(line);
    command.get_subcommands().for_each(|command| describe(command, &format!("{path} "), lines));
}
