//! Names: those that say nothing are refused, in files, directories, modules and types.

use super::tree::{Finding, Tree};

/// Words for "I did not know where to put it".
const EMPTY_WORDS: &[&str] = &["manager", "handler", "helper", "util", "common", "core", "misc"];

/// All files and types with an empty word in their name.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for part in source.path.split('/') {
            let stem = part.split('.').find(|s| !s.is_empty()).unwrap_or(part);
            if let Some(word) = empty_word(stem.split(['_', '-'])) {
                findings.push(Finding::new(
                    &source.path,
                    0,
                    format!("a file or directory named \"{word}\": {ADVICE}"),
                ));
            }
        }
    }
    for source in tree.rust() {
        for (number, line) in source.lines() {
            let Some(name) = declared(line) else { continue };
            let words = words_of(name);
            if let Some(word) = empty_word(words.iter().map(String::as_str)) {
                let what = format!("{name} has \"{word}\" in its name: {ADVICE}");
                findings.push(Finding::new(&source.path, number, what));
            }
        }
    }
    findings
}

const ADVICE: &str = "name it after the noun that it is or the flow that it does";

fn empty_word<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    EMPTY_WORDS
        .iter()
        .copied()
        .find(|empty| words.iter().any(|w| w == empty || w.strip_suffix('s') == Some(empty)))
}

/// The name that a line declares: a type, a trait or a module.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    while word == "pub" || word.starts_with("pub(") {
        word = words.next()?;
    }
    if !matches!(word, "struct" | "enum" | "trait" | "type" | "mod") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    name.get(..end).filter(|n| !n.is_empty())
}

/// `EventHandler` and `event_handler` both are `Event`, `Handler`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.push(c);
        }
    }
    words
}

#[test]
fn empty_words_are_seen() {
    for (line, empty) in [
        ("pub(crate) struct QueueManager<T> {", true),
        ("mod utils;", true),
        ("enum Score {", false),
        ("type Handler = fn();", true),
        ("struct Commonplace;", false),
        ("let handler = 1;", false),
    ] {
        let found = declared(line).and_then(|name| empty_word(words_of(name).iter().map(String::as_str)));
        assert_eq!(found.is_some(), empty, "{line}");
    }
}
