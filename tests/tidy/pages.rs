//! What stands in files: the page at the top, nothing but modules in `lib.rs`, nothing left over.

use super::tree::{Finding, Tree, code, has_word_start};

/// Rust files that do not open with `//!`.
pub(crate) fn opening(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| {
            let what = "opens without a page: begin with //! and say what it is, its flow, limits and standards";
            Finding::new(&source.path, 1, what)
        })
        .collect()
}

/// `lib.rs` with anything but docs, attributes, modules and re-exports.
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

/// Marks of unfinished work, and paths of one machine.
pub(crate) fn leftovers(tree: &Tree) -> Vec<Finding> {
    // In two pieces, so that this file does not find itself.
    let marks = [concat!("to", "do!("), concat!("db", "g!("), concat!("unimplement", "ed!("), concat!("FIX", "ME")];
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (number, line) in source.lines() {
            if let Some(mark) = marks.iter().find(|mark| has_word_start(line, mark)) {
                findings.push(Finding::new(&source.path, number, format!("{mark} is left over: finish it")));
            }
            if let Some(place) = places.iter().find(|place| has_path(line, place)) {
                let what = format!("{place}… is a path of one machine: make it relative");
                findings.push(Finding::new(&source.path, number, what));
            }
        }
    }
    findings
}

/// Whether an absolute path starts here (and not `a/path/in/the/middle`).
fn has_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '/' | '~'))
    })
}
