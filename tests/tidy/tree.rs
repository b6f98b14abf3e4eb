//! The files of the repository as text, and findings about them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that a build or a run creates.
const MADE: &[&str] = &["target", "data", "bench/out", "node_modules", "__pycache__"];
/// Extensions of files that are read as text.
const TEXT: &[&str] = &["rs", "md", "toml", "py", "sh", "service", "html", "css", "js", "smtp", "zone", "txt", ""];
/// Larger files are data and are not read.
const TEXT_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// A violation of a rule.
pub(crate) struct Finding {
    /// Path from the root of the repository.
    pub(crate) file: String,
    /// Line number from 1; 0 means the whole file.
    pub(crate) line: usize,
    /// The problem and what to do.
    pub(crate) problem: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, problem: problem.into() }
    }
}

/// Panics with all findings, one per line.
#[track_caller]
pub(crate) fn assert_none(findings: Vec<Finding>) {
    let mut text = String::new();
    for Finding { file, line, problem } in &findings {
        let _ =
            if *line == 0 { writeln!(text, "{file}: {problem}") } else { writeln!(text, "{file}:{line}: {problem}") };
    }
    assert!(findings.is_empty(), "{} problems:\n{text}", findings.len());
}

/// A file and its text.
pub(crate) struct Source {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Lines with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// File name without directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// All source files of the repository.
pub(crate) struct Tree {
    /// Root directory of the repository.
    pub(crate) root: PathBuf,
    /// Text files, sorted by path.
    pub(crate) sources: Vec<Source>,
}

impl Tree {
    /// Reads the repository that this test was built from.
    pub(crate) fn read() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut tree = Self { root: root.clone(), sources: Vec::new() };
        tree.walk(&root, "");
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        tree
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| source.path.ends_with(".rs"))
    }

    pub(crate) fn find(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }

    /// Returns whether a path below the root exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn walk(&mut self, directory: &Path, prefix: &str) {
        for entry in fs::read_dir(directory).expect("a directory of the repository").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let kind = entry.file_type().expect("a file's type");
            let is_included =
                !MADE.iter().any(|created_path| path == *created_path || name == *created_path) && name != ".git";
            if kind.is_dir() && is_included {
                self.walk(&entry.path(), &path);
            } else if kind.is_file()
                && is_included
                && is_text(&entry.path())
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                self.sources.push(Source { path, text });
            }
        }
    }
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    TEXT.contains(&extension.as_str()) && path.metadata().is_ok_and(|m| m.len() <= TEXT_BYTES_MAX)
}

/// Returns whether `word` occurs in `line` without a letter, digit or underscore right before it.
pub(crate) fn has_word_start(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// The line without its `//` comment; sufficient for rustfmt's layout.
pub(crate) fn code(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with("//") {
        return "";
    }
    line.split(" // ").next().unwrap_or(line)
}
