//! Names of files, directories, modules and types, and the first words of comments. Words that say nothing, metaphors,
//! participles and pronouns are refused, and so is a type name that occurs twice in a crate. A name is the trade's term
//! for the thing (docs/GLOSSARY.md); a comment begins with its subject.

use std::collections::BTreeMap;

use super::tree::{Finding, Tree};

/// Words without meaning.
const EMPTY_WORDS: &[&str] = &["manager", "helper", "util", "common", "misc", "info", "thing"];
/// Metaphors: a mail server has no furniture and no staff.
const METAPHORS: &[&str] = &[
    "hall", "kitchen", "cellar", "room", "door", "office", "desk", "porter", "postman", "ears", "purse", "shelf",
    "letter", "guest", "crowd", "seat",
];
/// Participles and pronouns that are refused as the whole name of a type or alias.
const VAGUE_TYPES: &[&str] = &[
    "Also",
    "Answer",
    "Answered",
    "Asked",
    "Beaten",
    "Beside",
    "Bounded",
    "By",
    "Carried",
    "Contended",
    "Counted",
    "Decided",
    "Deferred",
    "Described",
    "Each",
    "Ended",
    "Ending",
    "Failed",
    "Found",
    "Given",
    "Heard",
    "Held",
    "Judged",
    "Kept",
    "Known",
    "Left",
    "Loaded",
    "Made",
    "Nothing",
    "Of",
    "One",
    "Place",
    "Placed",
    "Refused",
    "Reversed",
    "Said",
    "Seen",
    "Settling",
    "Standing",
    "Stands",
    "Started",
    "Step",
    "Taken",
    "Told",
    "Unanswered",
    "Used",
    "Waiting",
    "Waits",
    "Wanted",
    "Way",
    "Went",
    "What",
    "Which",
    "Who",
    "Wrong",
];

/// Reports files and types with refused names.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for part in source.path.split('/') {
            let stem = part.split('.').find(|s| !s.is_empty()).unwrap_or(part);
            if let Some(word) = refused_word(stem.split(['_', '-'])) {
                findings.push(Finding::new(&source.path, 0, format!("a file or directory named \"{word}\": {ADVICE}")));
            }
        }
    }
    for source in tree.rust() {
        for (number, line) in source.lines() {
            let Some(name) = declared_name(line) else { continue };
            let words = split_words(name);
            if let Some(word) = refused_word(words.iter().map(String::as_str)) {
                let problem = format!("{name} has \"{word}\" in its name: {ADVICE}");
                findings.push(Finding::new(&source.path, number, problem));
            }
            if VAGUE_TYPES.contains(&name) {
                findings.push(Finding::new(&source.path, number, format!("{name} is not a noun: {ADVICE}")));
            }
        }
        for (number, line) in source.lines() {
            for name in aliases(line).filter(|name| VAGUE_TYPES.contains(name)) {
                findings.push(Finding::new(&source.path, number, format!("the alias {name} is not a noun: {ADVICE}")));
            }
        }
    }
    findings
}

/// Reports paragraphs of comments that open with a pronoun or a preposition, which hides the subject of the sentence.
pub(crate) fn check_comments(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let marker = match source.path.rsplit('.').next() {
            Some("rs") => "//",
            Some("toml") => "#",
            _ => continue,
        };
        for (number, opening) in comment_openings(&source.text, marker) {
            let what = format!("the comment opens with \"{opening}\": begin with its subject");
            findings.push(Finding::new(&source.path, number, what));
        }
    }
    findings
}

/// Lines that begin a paragraph of a comment with a refused word.
fn comment_openings<'a>(text: &'a str, marker: &str) -> Vec<(usize, &'a str)> {
    const REFUSED: &[&str] = &["What", "Who", "Whose", "Of", "Which"];
    let mut openings = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix(marker);
        let comment = comment.map_or("", |comment| comment.trim_start_matches(['/', '!']).trim());
        let opening = comment.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if !is_inside && REFUSED.contains(&opening) {
            openings.push((index + 1, opening));
        }
        is_inside = !comment.is_empty();
    }
    openings
}

#[test]
fn comments_that_hide_their_subject_are_found() {
    let text =
        "/// Result.\n///\n/// Of two, the newer.\nfn f() {\n    // What follows\n    // Which is part of it\n}\n";
    assert_eq!(comment_openings(text, "//"), [(3, "Of"), (5, "What")]);
}

/// Reports types that are declared twice in one crate, not counting tests.
pub(crate) fn check_unique(tree: &Tree) -> Vec<Finding> {
    let mut declared_at: BTreeMap<(String, String), (String, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in tree.rust() {
        let Some((before, _)) = source.path.split_once("src/") else { continue };
        if source.path.ends_with("tests.rs") || source.path.contains("/tests/") {
            continue;
        }
        for (number, line) in source.lines() {
            if line.starts_with("#[cfg(test)]")
                && source.lines().any(|(n, next)| n == number + 1 && next.contains("mod tests {"))
            {
                break;
            }
            // An associated type is indented in its trait or implementation.
            let is_associated = line.starts_with(' ') && line.trim_start().starts_with("type ");
            let Some(name) = declared_name(line).filter(|_| !is_associated) else { continue };
            if !name.starts_with(char::is_uppercase) {
                continue;
            }
            let location = (source.path.clone(), number);
            if let Some((path, line)) = declared_at.insert((before.to_owned(), name.to_owned()), location) {
                let problem = format!("{name} is also declared in {path}:{line}: rename one of them");
                findings.push(Finding::new(&source.path, number, problem));
            }
        }
    }
    findings
}

const ADVICE: &str = "name it after what it is, in the trade's term (docs/GLOSSARY.md)";

fn refused_word<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let refused = EMPTY_WORDS.iter().chain(METAPHORS).copied();
    refused.into_iter().find(|refused| words.iter().any(|w| w == refused || w.strip_suffix('s') == Some(refused)))
}

/// The name that a line declares as a type, trait or module.
fn declared_name(line: &str) -> Option<&str> {
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

/// Names that a line of an import gives to types: `Name` of `use path::Type as Name`.
fn aliases(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let is_import = line.trim_start().starts_with("use ") || line.trim_start().starts_with("pub use ");
    let after = words.clone().skip(1);
    words.zip(after).filter(move |(word, _)| is_import && *word == "as").map(|(_, name)| name)
}

#[test]
fn aliases_of_imports_are_found() {
    let found: Vec<&str> = aliases("use a::{B as Heard, c as d, E as _};").collect();
    assert_eq!(found, ["Heard", "d", "_"]);
    assert_eq!(aliases("let a = b as Heard;").count(), 0);
}

/// The words of a name: `EventHandler` and `event_handler` are both `event`, `handler`.
fn split_words(name: &str) -> Vec<String> {
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
fn refused_words_are_found() {
    for (line, is_refused) in [
        ("pub(crate) struct QueueManager<T> {", true),
        ("mod utils;", true),
        ("enum Score {", false),
        ("struct PortalDoor;", true),
        ("type Handler = fn();", false),
        ("struct Commonplace;", false),
        ("let helper = 1;", false),
    ] {
        let found = declared_name(line).and_then(|name| refused_word(split_words(name).iter().map(String::as_str)));
        assert_eq!(found.is_some(), is_refused, "{line}");
    }
}
