//! `TemplateFolder`: the files of one template.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::content::{HTML_FILE, MJML_FILE, SETTINGS_FILE, TEXT_FILE, TemplateContent};
use crate::error::CliError;

const STATE_FILE: &str = ".postrider.json";
/// Templates of a directory.
const FOLDERS_MAX: usize = 10_000;
/// The API takes bodies up to 512 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The draft and the files at the last push or pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SyncState {
    pub(super) draft_version: u64,
    /// Digest of the files.
    pub(super) content: String,
}

/// Times and sizes of the files of a folder.
pub(super) type FolderStamp = Vec<Option<(SystemTime, u64)>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateFolder {
    pub(super) path: PathBuf,
    /// Name of the folder: the template's alias, or its id.
    pub(super) alias: String,
}

impl TemplateFolder {
    /// The folder of a template that the server named.
    pub(super) fn of(directory: &Path, alias: &str) -> Result<Self, CliError> {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if alias.is_empty() || alias.starts_with('.') || !alias.chars().all(is_safe) {
            return Err(CliError::Failed(format!("the alias {alias:?} cannot be used as a folder name")));
        }
        Ok(Self { path: directory.join(alias), alias: alias.to_owned() })
    }

    /// The folders below a directory that have a `template.toml`, by name.
    pub(super) fn list(directory: &Path) -> Result<Vec<Self>, CliError> {
        let failed = |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", directory.display()));
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)?.take(FOLDERS_MAX) {
            let path = entry.map_err(failed)?.path();
            let Some(alias) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
            if path.join(SETTINGS_FILE).is_file() {
                folders.push(Self { path, alias });
            }
        }
        folders.sort_by(|a, b| a.alias.cmp(&b.alias));
        Ok(folders)
    }

    fn read_file(&self, name: &str) -> Result<Option<String>, CliError> {
        let path = self.path.join(name);
        let failed =
            |error: &dyn std::fmt::Display| CliError::usage(format!("cannot read {}: {error}", path.display()));
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => return Err(failed(&"it is larger than 1 MiB")),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        }
        std::fs::read_to_string(&path).map(Some).map_err(|error| failed(&error))
    }

    /// Reads the files; `None` if there is no `template.toml`.
    pub(super) fn read(&self) -> Result<Option<TemplateContent>, CliError> {
        let Some(settings) = self.read_file(SETTINGS_FILE)? else { return Ok(None) };
        let settings = toml::from_str(&settings)
            .map_err(|error| CliError::usage(format!("{}: {error}", self.path.join(SETTINGS_FILE).display())))?;
        let (html, mjml, text) = (self.read_file(HTML_FILE)?, self.read_file(MJML_FILE)?, self.read_file(TEXT_FILE)?);
        if html.is_some() && mjml.is_some() {
            let folder = self.path.display();
            return Err(CliError::usage(format!("{folder} has both {HTML_FILE} and {MJML_FILE}: remove one of them")));
        }
        Ok(Some(TemplateContent { settings, html, text, mjml }))
    }

    /// The state of the last push or pull; `None` if there was none.
    pub(super) fn state(&self) -> Option<SyncState> {
        serde_json::from_str(&self.read_file(STATE_FILE).ok()??).ok()
    }

    /// Writes the files and the state.
    pub(super) fn write(&self, content: &TemplateContent, draft_version: u64) -> Result<(), CliError> {
        let failed = |error: std::io::Error| CliError::Io(format!("cannot write {}: {error}", self.path.display()));
        std::fs::create_dir_all(&self.path).map_err(failed)?;
        for (name, text) in content.files()? {
            match text {
                Some(text) => self.replace_file(name, &text)?,
                None => match std::fs::remove_file(self.path.join(name)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                    _ => {}
                },
            }
        }
        self.write_state(content, draft_version)
    }

    /// Remembers that the files are those of a draft.
    pub(super) fn write_state(&self, content: &TemplateContent, draft_version: u64) -> Result<(), CliError> {
        let state = SyncState { draft_version, content: content.digest() };
        if self.state().as_ref() == Some(&state) {
            return Ok(());
        }
        let text = serde_json::to_string(&state).map_err(|error| CliError::Io(error.to_string()))?;
        self.replace_file(STATE_FILE, &format!("{text}\n"))
    }

    /// Writes a file whole or not at all.
    fn replace_file(&self, name: &str, text: &str) -> Result<(), CliError> {
        let (path, new) = (self.path.join(name), self.path.join(format!(".{name}.new")));
        // A link with this name is not followed.
        let _ = std::fs::remove_file(&new);
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&new);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        let written = written.and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|error| CliError::Io(format!("cannot write {}: {error}", path.display())))
    }

    /// Times and sizes of the files, which change when they are written.
    pub(super) fn stamp(&self) -> FolderStamp {
        let one = |name: &&str| {
            let metadata = std::fs::metadata(self.path.join(name)).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [SETTINGS_FILE, HTML_FILE, MJML_FILE, TEXT_FILE].iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stay_below_their_directory() {
        for alias in ["..", "../x", "a/b", "", ".git", "a\\b"] {
            assert!(TemplateFolder::of(Path::new("d"), alias).is_err(), "{alias}");
        }
        assert_eq!(TemplateFolder::of(Path::new("d"), "welcome-2").unwrap().path, Path::new("d/welcome-2"));
    }
}
