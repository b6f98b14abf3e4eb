//! Words in texts that users read: messages, pages, help and errors. A text names what happens in plain words, so old
//! words, metaphors and inverted sentences are refused.
//!
//! Limits: every string literal of the listed directories counts as such a text, except in tests. Help texts of the
//! command line are doc comments, so these count in its directory.

use super::tree::{Finding, Source, Tree};

/// Directories whose string literals are mostly texts for users.
const DIRECTORIES: &[&str] = &["src/", "cli/src/", "pages/src/", "api/src/", "smtp/src/", "explain/src/", "mjml/src/"];
/// Directory whose doc comments are the help of the command line.
const HELP: &str = "src/cli/";

/// Refused words, in lower case, and plain ones.
const REFUSED: &[(&str, &str)] = &[
    ("stand", "be, come or be allowed"),
    ("stands", "is, comes or is allowed"),
    ("told", "notified"),
    ("lies", "is"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("anew", "again"),
    ("goes on", "continues"),
    ("put off", "deferred"),
    ("will not do", "is invalid"),
    ("is over", "has ended or has expired"),
    ("by which", "with which, or a sentence of its own"),
    ("by whom", "who, or a sentence of its own"),
    ("of whom", "whose, or a sentence of its own"),
    ("what binds", "blocked by"),
    ("skip to the", "skip to"),
];

/// Texts that contain a refused word for a reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    // The published OpenAPI document has this description.
    ("api/src/automations/view.rs", "Key by which other steps refer to this step"),
];

/// Reports refused words in texts that users read.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| has_texts(source)) {
        for (line, text) in literals(&source.text).into_iter().chain(help(source)) {
            let is_exempt = EXCEPTIONS.iter().any(|(path, part)| source.path == *path && text.contains(part));
            if let Some((word, plain)) = refused(&text).filter(|_| !is_exempt) {
                findings.push(Finding::new(&source.path, line, format!("a text with \"{word}\": write {plain}")));
            }
        }
    }
    findings
}

fn has_texts(source: &Source) -> bool {
    let is_test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
    !is_test && DIRECTORIES.iter().any(|directory| source.path.starts_with(directory))
}

fn refused(text: &str) -> Option<(&'static str, &'static str)> {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let text = format!(" {} ", words.join(" "));
    REFUSED.iter().copied().find(|(word, _)| text.contains(&format!(" {word} ")))
}

/// Doc comments of a file that declares commands.
fn help(source: &Source) -> Vec<(usize, String)> {
    let is_help = source.path.starts_with(HELP);
    let comments = source.lines().filter_map(|(line, text)| Some((line, text.trim_start().strip_prefix("///")?)));
    comments.filter(|_| is_help).map(|(line, text)| (line, text.to_owned())).collect()
}

/// String literals with the lines that they begin in, up to the unit tests.
fn literals(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut literals = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(start) = rest.find(['"', '/', '\'']) {
        line += rest.get(..start).unwrap_or_default().matches('\n').count();
        let before = rest.get(..start).unwrap_or_default();
        rest = rest.get(start..).unwrap_or_default();
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            3
        } else if rest.starts_with('"') {
            let length = literal_length(before, rest);
            literals.push((line, rest.get(..length).unwrap_or_default().to_owned()));
            length
        } else {
            1
        };
        line += rest.get(..length).unwrap_or_default().matches('\n').count();
        rest = rest.get(length..).unwrap_or_default();
    }
    literals
}

/// Length of the literal that `text` begins with. `before` shows whether it is raw (`r#"…"#`).
fn literal_length(before: &str, text: &str) -> usize {
    let hashes = before.len() - before.trim_end_matches('#').len();
    if before.trim_end_matches('#').ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return text.get(1..).and_then(|inner| inner.find(&end)).map_or(text.len(), |at| at + 1 + end.len());
    }
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

#[test]
fn literals_are_read() {
    let text = "let a = \"x\\\"y\"; // \"no\"\nlet b = '\"';\nf(r#\"raw \"it\" \"#, \"mails: told\");\n";
    let expected = [(1, "\"x\\\"y\""), (3, "\"raw \"it\" \"#"), (3, "\"mails: told\"")];
    assert_eq!(literals(text), expected.map(|(line, text)| (line, text.to_owned())));
    assert!(refused("The owner was Told.").is_some() && refused("standard, untold").is_none());
}
