//! Data directory of the development server, and the secrets in it that survive a restart.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::engine::private_files;

use super::inbox;
use crate::node::NODE_FILE;
use crate::{admin, clock_shift, services};

/// File of the secrets. It also marks the directory as one of the development server.
const SECRETS_FILE: &str = "dev.json";
const INBOX_DIRECTORY: &str = "inbox";
/// Files that a directory without the marker may contain: those that a first start writes before it, or that `--fresh`
/// leaves. A store or a key may belong to a production server, so they are not listed.
const HARMLESS_FILES: [&str; 2] = [NODE_FILE, SECRETS_NEW_FILE];
/// Temporary name of the file of secrets.
const SECRETS_NEW_FILE: &str = "dev.json.new";

#[derive(Debug, Clone)]
pub struct Directory(PathBuf);

/// API key and SMTP password, which a developer copies into an application's settings.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secrets {
    pub api_key: String,
    pub smtp_password: String,
}

impl Directory {
    /// The given directory, or else `$XDG_DATA_HOME/postrider/dev`, by default `~/.local/share/postrider/dev` (XDG Base
    /// Directory Specification).
    ///
    /// # Errors
    /// No directory is given, and neither `XDG_DATA_HOME` nor `HOME` is set.
    pub fn new(configured: Option<&Path>) -> io::Result<Self> {
        let absolute_path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home_default = || Some(absolute_path("HOME")?.join(".local/share"));
        let user_default = || Some(absolute_path("XDG_DATA_HOME").or_else(home_default)?.join("postrider/dev"));
        let path = configured.map(Path::to_owned).or_else(user_default);
        let no_home_error = || io::Error::other("HOME is not set: set the data directory with --data-dir DIR");
        path.map(Self).ok_or_else(no_home_error)
    }

    /// Returns the default directory, if a development server runs in it.
    pub fn find_running_server() -> Option<PathBuf> {
        let Self(path) = Self::new(None).ok()?;
        // The socket may exist without a server, if the server was killed.
        UnixStream::connect(path.join(admin::SOCKET)).is_ok().then_some(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn inbox(&self) -> PathBuf {
        self.0.join(INBOX_DIRECTORY)
    }

    /// Checks that the directory is the development server's: absent, empty, or with the file of secrets.
    ///
    /// # Errors
    /// The directory contains other files, or cannot be read.
    pub fn check(&self) -> io::Result<()> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        if self.0.join(SECRETS_FILE).exists() {
            return Ok(());
        }
        for entry in entries {
            let name = entry?.file_name();
            if !HARMLESS_FILES.iter().any(|harmless| name == *harmless) {
                return Err(io::Error::other(format!(
                    "not a directory of `postrider dev` (it contains {}, but no {SECRETS_FILE})",
                    name.to_string_lossy().escape_debug(),
                )));
            }
        }
        Ok(())
    }

    /// Marks the directory as the development server's, before other files are written.
    pub fn claim(&self) -> io::Result<()> {
        self.check()?;
        private_files::create_directory(&self.0)?;
        if self.0.join(SECRETS_FILE).exists() {
            return Ok(());
        }
        // No secrets exist yet.
        self.write_marker(b"{}")
    }

    /// Removes the development server's files, and no others.
    ///
    /// # Errors
    /// Another server runs in it, it is not a directory of the development server, or a file cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        self.check()?;
        if !self.0.join(SECRETS_FILE).exists() {
            return Ok(());
        }
        let node = private_files::open_or_create_file(&self.0.join(NODE_FILE))?;
        store::engine::lock_with_retry(&node).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("in use by another process"),
            _ => error,
        })?;
        ignore_not_found(std::fs::remove_dir_all(self.0.join(services::STORE_DIRECTORY)))?;
        ignore_not_found(inbox::remove_files(&self.inbox()))?;
        // Removes the marker last: if this is interrupted, the directory can still be cleared.
        for file in [services::KEY_FILE, clock_shift::FILE, admin::SOCKET, SECRETS_NEW_FILE, SECRETS_FILE] {
            ignore_not_found(std::fs::remove_file(self.0.join(file)))?;
        }
        Ok(())
    }

    /// Secrets of the last start; none if there was none or the file is damaged.
    pub fn secrets(&self) -> Option<Secrets> {
        serde_json::from_slice(&std::fs::read(self.0.join(SECRETS_FILE)).ok()?).ok()
    }

    /// Stores the secrets in a file that only the user can read.
    pub fn store_secrets(&self, secrets: &Secrets) -> io::Result<()> {
        self.write_marker(&serde_json::to_vec(secrets)?)
    }

    fn write_marker(&self, content: &[u8]) -> io::Result<()> {
        use io::Write as _;
        let new_file = self.0.join(SECRETS_NEW_FILE);
        // A killed process may have left it.
        ignore_not_found(std::fs::remove_file(&new_file))?;
        let mut file = private_files::create_file(&new_file)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(new_file, self.0.join(SECRETS_FILE))
    }
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_of_the_development_server_is_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let dev_directory = Directory::new(Some(directory.path())).unwrap();
        dev_directory.clear().unwrap();
        std::fs::create_dir(at("store")).unwrap();
        std::fs::write(at("thesis.txt"), "x").unwrap();
        assert!(dev_directory.clear().unwrap_err().to_string().contains("not a directory of `postrider dev`"));
        assert!(at("store").exists());
        let secrets = Secrets { api_key: "rnl_x".to_owned(), smtp_password: "stxsmtp_x".to_owned() };
        dev_directory.store_secrets(&secrets).unwrap();
        assert_eq!(dev_directory.secrets().unwrap().api_key, "rnl_x");
        dev_directory.clear().unwrap();
        assert!(!at("store").exists() && at("thesis.txt").exists() && dev_directory.secrets().is_none());
    }

    #[test]
    fn only_an_empty_or_a_marked_directory_is_claimed() {
        let directory = tempfile::tempdir().unwrap();
        let dev_directory = Directory::new(Some(&directory.path().join("dev"))).unwrap();
        dev_directory.claim().unwrap();
        assert!(dev_directory.path().join(SECRETS_FILE).exists() && dev_directory.secrets().is_none());
        dev_directory.claim().unwrap();
        // As `--fresh` leaves it: `node` stays, because it is locked.
        dev_directory.clear().unwrap();
        assert!(dev_directory.path().join(NODE_FILE).exists() && !dev_directory.path().join(SECRETS_FILE).exists());
        dev_directory.claim().unwrap();
        // As a production server leaves it.
        let other_directory = Directory::new(Some(directory.path())).unwrap();
        for name in [NODE_FILE, services::KEY_FILE] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        for result in [other_directory.claim(), other_directory.clear()] {
            assert!(result.unwrap_err().to_string().contains("not a directory of `postrider dev`"));
        }
        assert!(!directory.path().join(SECRETS_FILE).exists());
    }
}
