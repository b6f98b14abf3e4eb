//! Contents of files: docs at the top, only modules in `lib.rs`, no leftovers.

use super::tree::{Finding, Tree, code, has_word_start};

/// Reports Rust files that do not begin with `//!`.
pub(crate) fn opening(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| {
            let what = "has no file docs: begin with //! and state its purpose, flow, limits and standards";
            Finding::new(&source.path, 1, what)
        })
        .collect()
}

/// Reports a `lib.rs` with anything but docs, attributes, modules and re-exports.
pub(crate) fn lib_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| source.name() == "lib.rs") {
        let mut inside = false;
        for (number, line) in source.lines() {
            let line = code(line).trim();
            if inside || line.is_empty() {
                inside = inside && !line.ends_with(';') && !line.ends_with(']');
                continue;
            }
            let starts = ["#", "pub mod ", "pub(crate) mod ", "mod ", "pub use ", "pub(crate) use "];
            if !starts.iter().any(|start| line.starts_with(start)) || line.ends_with('{') && line.contains("mod ") {
                findings.push(Finding::new(&source.path, number, "lib.rs holds no code: move it to a file of its own"));
            }
            inside = !line.ends_with(';') && !line.ends_with(']');
        }
    }
    findings
}

/// Reports marks of unfinished work, and absolute paths of one machine.
pub(crate) fn leftovers(tree: &Tree) -> Vec<Finding> {
    // Split, so that this file is not reported itself.
    let marks = [concat!("to", "do!("), concat!("db", "g!("), concat!("unimplement", "ed!("), concat!("FIX", "ME")];
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (number, line) in source.lines() {
            if let Some(mark) = marks.iter().find(|mark| has_word_start(line, mark)) {
                findings.push(Finding::new(&source.path, number, format!("{mark} is left over: finish it")));
            }
            if let Some(place) = places.iter().find(|place| has_path(line, place)) {
                let what = format!("{place}… is an absolute path of one machine: make it relative");
                findings.push(Finding::new(&source.path, number, what));
            }
        }
    }
    findings
}

/// Returns whether an absolute path starts in the line (and not `a/path/in/the/middle`).
fn has_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '/' | '~'))
    })
}
