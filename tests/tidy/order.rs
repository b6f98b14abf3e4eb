//! Allowed dependencies between the workspace's crates, and which crates may use which external crates.
//!
//! `message ← model ← schema, store, dns ← provider ← net ← queue ← events, inbound ← accounts ← affiliate
//! ← smtp, httpd ← api ← src`: a crate depends only on crates to its left. smtp and api are independent of each other, and
//! so are store and dns, and events and inbound.

use toml::Table;

use super::tree::{Finding, Tree, code, has_word_start};

/// Each crate, by its path, and the crates that it may depend on, by name. The root package may depend on all.
const CRATES: &[(&str, &[&str])] = &[
    ("schema-derive", &[]),
    ("model/message", &["schema-derive"]),
    ("model", &["message"]),
    ("schema", &["message", "model", "schema-derive"]),
    ("store", &["message", "model"]),
    ("dns", &["message", "model"]),
    ("provider", &["message", "model", "dns"]),
    ("net", &["message", "model", "dns"]),
    ("queue", &["message", "model", "store", "dns", "provider", "net"]),
    ("events", &["message", "model", "store", "dns", "provider", "net", "queue"]),
    ("inbound", &["message", "model", "store", "dns", "provider", "net", "queue"]),
    ("accounts", &["message", "model", "store", "dns", "provider", "net", "queue", "events", "inbound"]),
    ("affiliate", &["message", "model", "store", "dns", "net", "queue", "events", "accounts", "schema", "html"]),
    (
        "smtp",
        &["message", "model", "store", "dns", "provider", "net", "queue", "events", "inbound", "accounts", "affiliate"],
    ),
    ("html", &[]),
    ("mjml", &["model"]),
    ("api/httpd", &["message", "model", "store", "net", "schema-derive", "schema"]),
    (
        "api",
        &[
            "message",
            "model",
            "store",
            "dns",
            "provider",
            "net",
            "queue",
            "events",
            "inbound",
            "accounts",
            "affiliate",
            "httpd",
            "schema",
            "html",
            "mjml",
        ],
    ),
    ("explain", &[]),
    ("mcp", &["explain"]),
    ("cli", &["explain", "mcp"]),
    ("pages", &["explain", "html", "mcp", "schema-derive"]),
    ("sdk/generate", &[]),
    ("bench/load", &["message", "model", "store", "dns"]),
];

/// External crates (as named in code) and the only paths that may use them. Tests and benchmarks may use any.
const ALLOWED_PATHS: &[(&str, &[&str])] = &[
    ("redb", &["store/"]),
    ("tokio_postgres", &["store/"]),
    ("deadpool_postgres", &["store/"]),
    // Sources are checked before it gets them.
    ("mrml", &["mjml/"]),
    // src: the inbox of `postrider dev`.
    ("hyper", &["api/", "net/src/http_client", "cli/", "pages/examples/", "mcp/examples/", "src/"]),
    ("hyper_util", &["api/httpd/", "net/src/http_client", "cli/", "pages/examples/", "mcp/examples/", "src/"]),
    ("rustls", TLS),
    ("tokio_rustls", TLS),
];
const TLS: &[&str] = &[
    "smtp/src/listener",
    "net/src/http_client",
    "queue/src/delivery/client",
    "dns/src/resolver.rs",
    "api/httpd/src/listener.rs",
    "store/src/engine",
    "cli/",
    "src/",
];

/// External crates that a crate's manifest must not name.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("model/message", &["tokio", "hyper", "redb", "rustls", "hickory-resolver", "mail-auth"]),
    ("model", &["tokio", "hyper", "redb", "rustls", "hickory-resolver", "mail-auth"]),
    ("net", &["redb", "mail-auth", "mail-parser", "mail-send"]),
    ("store", &["hyper", "mail-auth", "hickory-resolver"]),
    ("dns", &["hyper", "redb"]),
    ("provider", &["hyper", "redb", "rustls"]),
    ("queue", &["hyper", "redb"]),
    ("events", &["hyper", "redb", "rustls"]),
    ("inbound", &["hyper", "redb", "rustls"]),
    ("accounts", &["hyper", "redb", "rustls"]),
    ("affiliate", &["hyper", "redb", "rustls"]),
    ("smtp", &["hyper", "redb"]),
    ("api/httpd", &["redb", "mail-auth"]),
    ("api", &["redb"]),
];
/// Reports forbidden dependencies in the manifests.
pub(crate) fn dependencies_between_crates(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members(tree) {
        let path = format!("{member}/Cargo.toml");
        let Some(manifest) = manifest(tree, &path) else {
            findings.push(Finding::new(&path, 0, "is a member of the workspace but cannot be read as TOML"));
            continue;
        };
        let Some((_, allowed)) = CRATES.iter().find(|(path, _)| *path == member) else {
            let problem = format!("{member} is not in the dependency table: add it in tests/tidy/order.rs");
            findings.push(Finding::new(&path, 0, problem));
            continue;
        };
        for dependency in dependencies(&manifest) {
            let is_own_crate = dependency == "postrider" || CRATES.iter().any(|(path, _)| package(path) == dependency);
            if is_own_crate && !allowed.contains(&dependency.as_str()) && dependency != package(&member) {
                let problem = format!("{member} must not depend on {dependency}: move shared code further left");
                findings.push(Finding::new(&path, find_line(tree, &path, &dependency), problem));
            }
            if is_forbidden(&member, &dependency) {
                let problem = format!("{member} must not depend on {dependency}");
                findings.push(Finding::new(&path, find_line(tree, &path, &dependency), problem));
            }
        }
    }
    findings
}

/// Reports uses of an external crate outside its allowed paths.
pub(crate) fn crates(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust() {
        let is_exempt = ["tests/", "bench/"].iter().any(|start| source.path.starts_with(start))
            || source.path.contains("/tests/")
            || source.path.contains("/benches/");
        if is_exempt {
            continue;
        }
        for (name, paths) in ALLOWED_PATHS {
            if paths.iter().any(|path| source.path.starts_with(path)) {
                continue;
            }
            let prefix = format!("{name}::");
            if let Some((number, _)) = source.lines().find(|(_, line)| has_word_start(code(line), &prefix)) {
                let problem = format!("{name} may only be used in {}", paths.join(", "));
                findings.push(Finding::new(&source.path, number, problem));
            }
        }
    }
    findings
}

/// Members of the workspace.
pub(crate) fn members(tree: &Tree) -> Vec<String> {
    let root = manifest(tree, "Cargo.toml").expect("Cargo.toml at the root");
    let members = root.get("workspace").and_then(|w| w.get("members")).and_then(|m| m.as_array());
    members.into_iter().flatten().filter_map(|m| m.as_str()).map(str::to_owned).collect()
}

/// Name of the package at a path: the last part, because crates may be nested.
fn package(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn manifest(tree: &Tree, path: &str) -> Option<Table> {
    tree.find(path)?.text.parse().ok()
}

/// Normal, build and test dependencies: a test that needs a crate further right belongs to the end-to-end tests.
fn dependencies(manifest: &Table) -> Vec<String> {
    ["dependencies", "build-dependencies", "dev-dependencies"]
        .iter()
        .filter_map(|section| manifest.get(*section).and_then(|table| table.as_table()))
        .flat_map(|table| table.keys().cloned())
        .collect()
}

fn is_forbidden(name: &str, dependency: &str) -> bool {
    FORBIDDEN.iter().any(|(r, crates)| *r == name && crates.contains(&dependency))
}

fn find_line(tree: &Tree, path: &str, dependency: &str) -> usize {
    let source = tree.find(path).into_iter().flat_map(|source| source.lines());
    let mut lines = source.filter(|(_, line)| line.starts_with(dependency));
    lines.next().map_or(0, |(number, _)| number)
}
