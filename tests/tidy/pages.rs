//! Contents of files: docs at the top, only modules in `lib.rs`, no leftovers.

use super::tree::{Finding, Tree, code, has_word_start};

/// Reports Rust files that do not begin with `//!`.
pub(crate) fn missing_file_docs(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| {
            let problem = "has no file docs: begin with //! and state its purpose, flow, limits and standards";
            Finding::new(&source.path, 1, problem)
        })
        .collect()
}

/// Reports a `lib.rs` with anything but docs, attributes, modules and re-exports.
pub(crate) fn lib_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A procedural macro must stand at the root of its crate.
    let is_macro = |path: &str| path == "schema-derive/src/lib.rs";
    for source in tree.rust().filter(|source| source.name() == "lib.rs" && !is_macro(&source.path)) {
        let mut is_continued = false;
        for (number, line) in source.lines() {
            let line = code(line).trim();
            if is_continued || line.is_empty() {
                is_continued = is_continued && !line.ends_with(';') && !line.ends_with(']');
                continue;
            }
            let starts = ["#", "pub mod ", "pub(crate) mod ", "mod ", "pub use ", "pub(crate) use "];
            if !starts.iter().any(|start| line.starts_with(start)) || line.ends_with('{') && line.contains("mod ") {
                findings.push(Finding::new(&source.path, number, "lib.rs holds no code: move it to a file of its own"));
            }
            is_continued = !line.ends_with(';') && !line.ends_with(']');
        }
    }
    findings
}

/// Reports marks of unfinished work, and absolute paths of one machine.
pub(crate) fn leftovers(tree: &Tree) -> Vec<Finding> {
    // Split, so that this file is not reported itself.
    let markers = [concat!("to", "do!("), concat!("db", "g!("), concat!("unimplement", "ed!("), concat!("FIX", "ME")];
    let prefixes = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (number, line) in source.lines() {
            if let Some(marker) = markers.iter().find(|marker| has_word_start(line, marker)) {
                findings.push(Finding::new(&source.path, number, format!("{marker} is left over: finish it")));
            }
            if let Some(prefix) = prefixes.iter().find(|prefix| has_path(line, prefix)) {
                let problem = format!("{prefix}… is an absolute path of one machine: make it relative");
                findings.push(Finding::new(&source.path, number, problem));
            }
        }
    }
    findings
}

/// Returns whether an absolute path starts in the line (and not `a/path/in/the/middle`).
fn has_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '/' | '~'))
    })
}
