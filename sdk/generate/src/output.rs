//! Writing generated files, and comparing them with those that are there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::GenerateError;
use crate::render::{Files, NOTICE};

/// Directories that hold other people's files or build results.
const SKIPPED: &[&str] = &["node_modules", "vendor", "target", "dist", "build", "__pycache__"];
/// Bytes at the start of a file that can hold the notice.
const NOTICE_WITHIN: usize = 400;

/// A file that is not as the templates would write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    Missing(PathBuf),
    Differs(PathBuf),
    LeftOver(PathBuf),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "missing: {}", path.display()),
            Self::Differs(path) => write!(f, "differs: {}", path.display()),
            Self::LeftOver(path) => write!(f, "left over: {}", path.display()),
        }
    }
}

/// Compares `files` with the repository. `folder` is searched for generated files that no template writes any more.
pub fn differences(root: &Path, files: &Files, folder: Option<&Path>) -> Result<Vec<Difference>, GenerateError> {
    let mut found = Vec::new();
    for (path, content) in files {
        match fs::read_to_string(root.join(path)) {
            Ok(present) if present == *content => {}
            Ok(_) => found.push(Difference::Differs(path.clone())),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                found.push(Difference::Missing(path.clone()));
            }
            Err(cause) => return Err(GenerateError::File { path: path.clone(), cause }),
        }
    }
    if let Some(folder) = folder {
        let mut generated = Vec::new();
        find_generated(&root.join(folder), &mut generated)?;
        generated.sort();
        for path in generated {
            let path = path.strip_prefix(root).map(Path::to_owned).unwrap_or(path);
            if !files.contains_key(&path) {
                found.push(Difference::LeftOver(path));
            }
        }
    }
    Ok(found)
}

/// Writes what differs, and deletes what is left over.
pub fn write(root: &Path, files: &Files, differences: &[Difference]) -> Result<(), GenerateError> {
    for difference in differences {
        let (Difference::Missing(path) | Difference::Differs(path) | Difference::LeftOver(path)) = difference;
        let target = root.join(path);
        let result = match (difference, files.get(path)) {
            (Difference::LeftOver(_), _) | (_, None) => fs::remove_file(&target),
            (_, Some(content)) => {
                let parent = target.parent().unwrap_or(root);
                fs::create_dir_all(parent).and_then(|()| fs::write(&target, content))
            }
        };
        result.map_err(|cause| GenerateError::File { path: target, cause })?;
    }
    Ok(())
}

/// Files below `folder` whose start has the notice.
fn find_generated(folder: &Path, generated: &mut Vec<PathBuf>) -> Result<(), GenerateError> {
    let file_error = |cause| GenerateError::File { path: folder.to_owned(), cause };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(file_error(cause)),
    };
    for entry in entries {
        let entry = entry.map_err(file_error)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || SKIPPED.contains(&&*name) {
            continue;
        }
        let kind = entry.file_type().map_err(file_error)?;
        if kind.is_dir() {
            find_generated(&entry.path(), generated)?;
        } else if kind.is_file() {
            let content = fs::read(entry.path()).map_err(file_error)?;
            let start = &content[..content.len().min(NOTICE_WITHIN)];
            if String::from_utf8_lossy(start).contains(NOTICE) {
                generated.push(entry.path());
            }
        }
    }
    Ok(())
}
