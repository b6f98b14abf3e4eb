//! The one-way order of rooms and the rooms of crates, read from the manifests and the sources.
//!
//! `mail ← store, dns ← provider ← queue ← affiliate ← smtp, api ← src`: left knows nothing of right; smtp and api
//! do not know each other, store and dns do not know each other; proxy stands between mail and the doors.

use toml::Table;

use super::tree::{Finding, Tree, code, has_word_start};

/// Each room and the rooms that it may know. The root package may know all.
const ROOMS: &[(&str, &[&str])] = &[
    ("mail", &[]),
    ("proxy", &["mail"]),
    ("store", &["mail"]),
    ("dns", &["mail"]),
    ("provider", &["mail", "dns"]),
    ("queue", &["mail", "store", "dns", "provider"]),
    ("affiliate", &["mail", "store", "dns", "queue"]),
    ("smtp", &["mail", "proxy", "store", "dns", "provider", "queue", "affiliate"]),
    ("api", &["mail", "proxy", "store", "dns", "provider", "queue", "affiliate"]),
];

/// Crates (as named in code) and the only places that may use them. Tests and the benchmark may use any.
const PLACES: &[(&str, &[&str])] = &[
    ("redb", &["store/"]),
    ("tokio_postgres", &["store/"]),
    ("deadpool_postgres", &["store/"]),
    // src: the inbox of `postrider dev`.
    ("hyper", &["api/", "queue/src/courier/http", "src/"]),
    ("hyper_util", &["api/", "queue/src/courier/http", "src/"]),
    ("rustls", TLS),
    ("tokio_rustls", TLS),
];
const TLS: &[&str] = &["smtp/src/listener", "queue/src/courier", "api/src/serve", "store/src/engine", "src/"];

/// Crates that a room's manifest may not name.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("mail", &["tokio", "hyper", "redb", "rustls", "hickory-resolver", "mail-auth"]),
    ("proxy", &["hyper", "rustls"]),
    ("store", &["hyper", "mail-auth", "hickory-resolver"]),
    ("dns", &["hyper", "redb", "rustls"]),
    ("provider", &["hyper", "redb", "rustls"]),
    ("queue", &["redb"]),
    ("affiliate", &["hyper", "redb", "rustls"]),
    ("smtp", &["hyper", "redb"]),
    ("api", &["redb"]),
];
/// Rooms that know a room they must not know, and manifests that name a forbidden crate.
pub(crate) fn rooms(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members(tree) {
        let path = format!("{member}/Cargo.toml");
        let Some(manifest) = manifest(tree, &path) else {
            findings.push(Finding::new(&path, 0, "is a member of the workspace but cannot be read as TOML"));
            continue;
        };
        let Some((_, known)) = ROOMS.iter().find(|(room, _)| *room == member) else {
            let what = format!("{member} has no place in the order of rooms: give it one in tests/tidy/order.rs");
            findings.push(Finding::new(&path, 0, what));
            continue;
        };
        for dependency in dependencies(&manifest) {
            let is_room = dependency == "postrider" || ROOMS.iter().any(|(room, _)| *room == dependency);
            if is_room && !known.contains(&dependency.as_str()) && dependency != member {
                let what = format!("{member} must not know {dependency}: what both need belongs further left");
                findings.push(Finding::new(&path, line_of(tree, &path, &dependency), what));
            }
            if forbidden(&member, &dependency) {
                let what = format!("{dependency} does not belong in {member}");
                findings.push(Finding::new(&path, line_of(tree, &path, &dependency), what));
            }
        }
    }
    findings
}

/// Uses of a crate outside its places.
pub(crate) fn crates(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust() {
        let free = ["tests/", "bench/"].iter().any(|start| source.path.starts_with(start))
            || source.path.contains("/tests/")
            || source.path.contains("/benches/");
        if free {
            continue;
        }
        for (name, places) in PLACES {
            if places.iter().any(|place| source.path.starts_with(place)) {
                continue;
            }
            let used = format!("{name}::");
            if let Some((number, _)) = source.lines().find(|(_, line)| has_word_start(code(line), &used)) {
                let what = format!("{name} is used only in {}: go through one of them", places.join(", "));
                findings.push(Finding::new(&source.path, number, what));
            }
        }
    }
    findings
}

/// The members that the root manifest names.
pub(crate) fn members(tree: &Tree) -> Vec<String> {
    let root = manifest(tree, "Cargo.toml").expect("Cargo.toml at the root");
    let members = root.get("workspace").and_then(|w| w.get("members")).and_then(|m| m.as_array());
    members.into_iter().flatten().filter_map(|m| m.as_str()).map(str::to_owned).collect()
}

fn manifest(tree: &Tree, path: &str) -> Option<Table> {
    tree.find(path)?.text.parse().ok()
}

/// Normal, build and test dependencies alike: a test that needs the other side is an end-to-end test.
fn dependencies(manifest: &Table) -> Vec<String> {
    ["dependencies", "build-dependencies", "dev-dependencies"]
        .iter()
        .filter_map(|section| manifest.get(*section).and_then(|table| table.as_table()))
        .flat_map(|table| table.keys().cloned())
        .collect()
}

fn forbidden(room: &str, dependency: &str) -> bool {
    FORBIDDEN.iter().any(|(r, crates)| *r == room && crates.contains(&dependency))
}

fn line_of(tree: &Tree, path: &str, dependency: &str) -> usize {
    let source = tree.find(path).into_iter().flat_map(|source| source.lines());
    let mut lines = source.filter(|(_, line)| line.starts_with(dependency));
    lines.next().map_or(0, |(number, _)| number)
}
