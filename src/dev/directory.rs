//! Where the development server keeps its mail, and the secrets that survive a restart there.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::engine::private;

use crate::node::NODE_FILE;
use crate::{admin, clock_shift, world};

/// The file of the secrets. It also says that a directory is one of the development server.
const SECRETS_FILE: &str = "dev.json";
/// The directory of the inbox.
const INBOX_DIRECTORY: &str = "inbox";

/// The data directory.
#[derive(Debug, Clone)]
pub struct Directory(PathBuf);

/// The API key and the SMTP password: a developer writes them into an application's settings once.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secrets {
    /// The API key.
    pub api_key: String,
    /// The SMTP password.
    pub smtp_password: String,
}

impl Directory {
    /// The given directory, or else the user's: `$XDG_DATA_HOME/postrider/dev`, which is
    /// `~/.local/share/postrider/dev` unless the variable says otherwise (XDG Base Directory Specification).
    ///
    /// # Errors
    /// Neither is there.
    pub fn new(given: Option<&Path>) -> io::Result<Self> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || Some(absolute("HOME")?.join(".local/share"));
        let users = || Some(absolute("XDG_DATA_HOME").or_else(home)?.join("postrider/dev"));
        let path = given.map(Path::to_owned).or_else(users);
        let missing = || io::Error::other("HOME is not set: say where to keep mail with --data-dir DIR");
        path.map(Self).ok_or_else(missing)
    }

    /// The user's directory, if a development server runs there.
    #[must_use]
    pub fn of_running_server() -> Option<PathBuf> {
        let Self(path) = Self::new(None).ok()?;
        // A server that was killed leaves its socket.
        UnixStream::connect(path.join(admin::SOCKET)).is_ok().then_some(path)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the inbox is.
    #[must_use]
    pub fn inbox(&self) -> PathBuf {
        self.0.join(INBOX_DIRECTORY)
    }

    /// Removes what the development server keeps here, and nothing else.
    ///
    /// # Errors
    /// Another server runs here, the directory is not one of the development server, or something cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(mut entries) => {
                if entries.next().is_none() {
                    return Ok(());
                }
            }
        }
        if !self.0.join(SECRETS_FILE).exists() {
            return Err(io::Error::other(
                "not a directory of `postrider dev`, so --fresh removes nothing here",
            ));
        }
        let node = private::open_or_create_file(&self.0.join(NODE_FILE))?;
        store::engine::lock_soon(&node).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("in use by another process"),
            _ => error,
        })?;
        for directory in [world::STORE_DIRECTORY, INBOX_DIRECTORY] {
            absent_is_fine(std::fs::remove_dir_all(self.0.join(directory)))?;
        }
        // The secrets last: until then it is a directory that can be cleared.
        for file in [world::KEY_FILE, clock_shift::FILE, admin::SOCKET, SECRETS_FILE] {
            absent_is_fine(std::fs::remove_file(self.0.join(file)))?;
        }
        Ok(())
    }

    /// The secrets of the last start; none when there was none, or when the file is damaged.
    #[must_use]
    pub fn secrets(&self) -> Option<Secrets> {
        serde_json::from_slice(&std::fs::read(self.0.join(SECRETS_FILE)).ok()?).ok()
    }

    /// Keeps the secrets, for the owner of the directory alone.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, secrets: &Secrets) -> io::Result<()> {
        use io::Write as _;
        let fresh = self.0.join(format!("{SECRETS_FILE}.new"));
        let mut file = private::create_file(&fresh)?;
        file.write_all(&serde_json::to_vec(secrets)?)?;
        file.sync_all()?;
        std::fs::rename(fresh, self.0.join(SECRETS_FILE))
    }
}

fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
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
        let own = Directory::new(Some(directory.path())).unwrap();
        own.clear().unwrap();
        std::fs::create_dir(at("store")).unwrap();
        std::fs::write(at("thesis.txt"), "x").unwrap();
        assert!(own.clear().unwrap_err().to_string().contains("not a directory of `postrider dev`"));
        assert!(at("store").exists());
        let secrets = Secrets { api_key: "rnl_x".to_owned(), smtp_password: "stxsmtp_x".to_owned() };
        own.keep(&secrets).unwrap();
        assert_eq!(own.secrets().unwrap().api_key, "rnl_x");
        own.clear().unwrap();
        assert!(!at("store").exists() && at("thesis.txt").exists() && own.secrets().is_none());
    }
}
