//! Sizes of files and functions.
//!
//! A function starts at its `fn` and ends at the `}` with the same indentation, where rustfmt puts it. Blank lines and
//! comments count. The number of parameters is for clippy (`too_many_arguments`).

use super::tree::{Finding, Source, Tree};

/// A hard limit; consider splitting a file at 400 lines.
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 80;

/// Exceptions with their reasons: tables and generated files, never logic.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "api/tests/http/emails.rs",
        function: "bad_requests_name_their_fields",
        lines_max: 120,
        why: "a table of bad requests, one a line",
    },
    Exception {
        file: "model/src/public_ip.rs",
        function: "special_purpose_addresses_are_not_public",
        lines_max: 120,
        why: "a table of addresses, one a line",
    },
];

/// An exception; an empty `function` means the whole file.
struct Exception {
    file: &'static str,
    function: &'static str,
    lines_max: usize,
    #[expect(dead_code, reason = "documentation")]
    why: &'static str,
}

/// Reports files and functions that are too large.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust() {
        let lines = source.text.lines().count();
        if lines > limit(&source.path, "", FILE_LINES_MAX) {
            findings.push(Finding::new(
                &source.path,
                0,
                format!("{lines} lines (at most {FILE_LINES_MAX}): split it by topic"),
            ));
        }
        for function in functions(source) {
            let Function { name, line, lines } = function;
            if lines > limit(&source.path, &name, FUNCTION_LINES_MAX) {
                let problem = format!("fn {name} has {lines} lines (at most {FUNCTION_LINES_MAX}): extract functions");
                findings.push(Finding::new(&source.path, line, problem));
            }
        }
    }
    for Exception { file, .. } in EXCEPTIONS.iter().filter(|e| !tree.has(e.file)) {
        findings.push(Finding::new(file, 0, "does not exist: remove it from the exceptions"));
    }
    findings
}

fn limit(file: &str, function: &str, usual: usize) -> usize {
    let exception = EXCEPTIONS.iter().find(|e| e.file == file && e.function == function);
    exception.map_or(usual, |e| e.lines_max)
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn functions(source: &Source) -> Vec<Function> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let rest = &lines[index..];
        let signature_lines = 1 + rest.iter().position(|l| ends_signature(l)).unwrap_or(0);
        let opened = rest[signature_lines - 1].trim_end().ends_with('{');
        let close = format!("{indent}}}");
        let length = if opened {
            let body = rest.iter().skip(signature_lines).position(|l| l.trim_end_matches([',', ';', ')']) == close);
            signature_lines + body.map_or(0, |at| at + 1)
        } else {
            signature_lines
        };
        found.push(Function { name, line: index + 1, lines: length });
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            "fn" => {
                let name: String = words.next()?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                return Some(name).filter(|n| !n.is_empty());
            }
            "pub" | "const" | "async" | "unsafe" | "extern" | "default" | "\"C\"" => {}
            word if word.starts_with("pub(") || word.ends_with("super)") || word.ends_with("crate)") => {}
            _ => return None,
        }
    }
    None
}

fn ends_signature(line: &str) -> bool {
    let line = line.split(" // ").next().unwrap_or(line).trim_end();
    line.ends_with('{') || line.ends_with(';') || line.ends_with('}')
}

#[test]
fn functions_are_measured() {
    let text = "impl X {\n    pub(crate) async fn long<F: Fn(u8, u8) -> u8>(\n        &'a mut self,\n        a: \
                HashMap<u8, (u8, u8)>,\n        f: F,\n    ) -> Result<(), E>\n    where\n        F: Send,\n    {\n        \
                if a {\n        }\n    }\n}\nfn short() {}\nfn none(a: [u8; 2], b: impl Fn(A, B) -> C, c: T);\n";
    let source = Source { path: "x.rs".into(), text: text.into() };
    let found: Vec<_> = functions(&source).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    let expected = [("long", 2, 11), ("short", 14, 1), ("none", 15, 1)];
    assert_eq!(found, expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
}
