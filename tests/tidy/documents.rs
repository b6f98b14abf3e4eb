//! Documents: README's map against the tree, file paths in the prose, test names in the security model, and names of
//! the code in the glossary.
//!
//! The map is the fenced block of README.md in which most lines begin with a path (`queue/   description`). A path in
//! the prose is a word in backticks that begins with a directory of the repository or has a source file's extension.

use std::collections::HashSet;

use super::order;
use super::tree::{Finding, Tree};

const GLOSSARY: &str = "docs/GLOSSARY.md";
/// Below this line the glossary lists names that are gone.
const OLD_NAMES: &str = "## Old and new names";

const MAPPED: &[&str] = &["src", "tests", "bench", "etc", "docs", "sdk", "web"];
const DOCUMENTS: &[&str] =
    &["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/ARCHITECTURE.md", "docs/FLOW.md", SECURITY_MODEL];
/// The last column of its tables names the test that checks a bound.
const SECURITY_MODEL: &str = "docs/SECURITY-MODEL.md";
/// Paths that a build or a run creates; they may be named without existing.
const MADE: &[&str] = &["target/", "data/", "bench/out"];
const ENDINGS: &[&str] = &[".rs", ".toml", ".md", ".smtp", ".service", ".py"];

/// Reports differences between README's map and the tree.
pub(crate) fn map(tree: &Tree) -> Vec<Finding> {
    let Some(readme) = tree.find("README.md") else {
        return vec![Finding::new("README.md", 0, "is missing: write it, with a map of the crates in a fenced block")];
    };
    let lines = map_lines(&readme.text);
    if lines.is_empty() {
        let problem =
            "has no map: a fenced block with one line per crate, beginning with its path (`mail/  description`)";
        return vec![Finding::new("README.md", 0, problem)];
    }
    let mut findings = Vec::new();
    for (number, path) in &lines {
        if !tree.has(path) {
            findings.push(Finding::new("README.md", *number, format!("the map shows {path}, which does not exist")));
        }
    }
    let top = MAPPED.iter().map(|name| (*name).to_owned()).filter(|name| tree.has(name));
    for directory in order::members(tree).into_iter().chain(top) {
        if !lines.iter().any(|(_, path)| path.trim_end_matches('/') == directory) {
            findings.push(Finding::new("README.md", 0, format!("the map does not show {directory}/")));
        }
    }
    findings
}

/// Reports tests that the security model names and that do not exist.
pub(crate) fn tests(tree: &Tree) -> Vec<Finding> {
    let Some(model) = tree.find(SECURITY_MODEL) else {
        return vec![Finding::new(SECURITY_MODEL, 0, "is missing")];
    };
    let mut findings = Vec::new();
    for (number, line) in model.lines().filter(|(_, line)| line.starts_with("| ")) {
        let tests = line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for name in tests.split('`').skip(1).step_by(2) {
            let declared = format!("fn {name}(");
            if !tree.rust().any(|source| source.text.contains(&declared)) {
                findings.push(Finding::new(SECURITY_MODEL, number, format!("there is no test {name}")));
            }
        }
    }
    findings
}

/// Reports names in the glossary that do not occur in the code: those in backticks in the term and its meaning, and
/// terms in `CamelCase`. The last column names other programs and standards.
pub(crate) fn glossary(tree: &Tree) -> Vec<Finding> {
    let Some(glossary) = tree.find(GLOSSARY) else {
        return vec![Finding::new(GLOSSARY, 0, "is missing")];
    };
    let code = tree.rust().filter(|source| !source.path.starts_with("tests/tidy/"));
    let declared: HashSet<&str> = code.flat_map(|source| source.text.split(|c: char| !is_name_char(c))).collect();
    let mut findings = Vec::new();
    for (number, line) in glossary.lines().take_while(|(_, line)| *line != OLD_NAMES) {
        let Some((cells, _reference)) = line.trim_end_matches(" |").rsplit_once(" | ") else { continue };
        let quoted =
            cells.split('`').skip(1).step_by(2).filter(|name| name.chars().all(|c| is_name_char(c) || c == ':'));
        let term = cells.split(" | ").next().unwrap_or_default();
        let terms = term.split(|c: char| !is_name_char(c)).filter(|word| is_camel_case(word));
        for name in quoted.flat_map(|name| name.split("::")).chain(terms) {
            if !name.is_empty() && !declared.contains(name) {
                findings.push(Finding::new(GLOSSARY, number, format!("`{name}` is not in the code: correct the name")));
            }
        }
    }
    findings
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// True for `PlanQuotas`, false for `Quota`, `PROXY` and `OAuth`.
fn is_camel_case(word: &str) -> bool {
    let mut chars = word.chars();
    let starts =
        chars.next().is_some_and(|c| c.is_ascii_uppercase()) && chars.next().is_some_and(|c| c.is_ascii_lowercase());
    starts && word.chars().skip(1).any(|c| c.is_ascii_uppercase())
}

/// Lines of the first fenced block that is a map: (line number, path).
fn map_lines(text: &str) -> Vec<(usize, String)> {
    let mut block: Option<(usize, Vec<(usize, String)>)> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            match block.take() {
                Some((lines, paths)) if paths.len() >= 3 && paths.len() * 2 > lines => return paths,
                Some(_) => {}
                None => block = Some((0, Vec::new())),
            }
        } else if let Some((lines, paths)) = &mut block {
            *lines += 1;
            let word = line.split_whitespace().next().unwrap_or_default();
            // Indented lines continue the line above.
            if line.starts_with(word) && word.contains('/') && is_path(word) {
                paths.push((index + 1, word.to_owned()));
            }
        }
    }
    Vec::new()
}

/// Reports paths in the documents that do not exist.
pub(crate) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in DOCUMENTS {
        let Some(source) = tree.find(document) else {
            findings.push(Finding::new(document, 0, "is missing: write it"));
            continue;
        };
        let mut fenced = false;
        for (number, line) in source.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            let words = line.split('`').skip(1).step_by(2).filter(|_| !fenced);
            for word in words.filter(|word| is_repository_path(tree, word) && !tree.has(word)) {
                findings.push(Finding::new(document, number, format!("`{word}` does not exist: correct the path")));
            }
        }
    }
    findings
}

fn is_repository_path(tree: &Tree, word: &str) -> bool {
    if !is_path(word) || word.starts_with('/') || MADE.iter().any(|created_path| word.starts_with(created_path)) {
        return false;
    }
    let first = word.split('/').next().unwrap_or_default();
    let in_tree = word.contains('/') && !first.is_empty() && tree.root.join(first).is_dir();
    in_tree || word.contains('/') && ENDINGS.iter().any(|ending| word.ends_with(ending))
}

fn is_path(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
}

#[test]
fn a_map_is_found() {
    let text =
        "# X\n```sh\ncargo run\n```\n```\nmail/    nouns\n         and rules\nsrc/     wiring\n.ci/run  test\n```\n";
    let expected = [(6, "mail/"), (8, "src/"), (9, ".ci/run")].map(|(n, path)| (n, path.to_owned()));
    assert_eq!(map_lines(text), expected);
}
