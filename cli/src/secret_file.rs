//! `SecretFile`: a new file (mode 0600) that receives a secret which the server shows once.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use serde_json::{Value, json};

use crate::error::CliError;

/// Fields of an answer that are secrets.
const SECRET_FIELDS: &[&str] = &["secret", "password", "url", "token"];

/// A new file for a secret. It is created before the call, so that no secret is lost because it cannot be written. It
/// is removed again if no secret is written to it.
pub(crate) struct SecretFile {
    path: String,
    file: std::fs::File,
    has_secret: bool,
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        if !self.has_secret {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SecretFile {
    /// Creates the file with mode 0600.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn create(path: &str) -> Result<Self, CliError> {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|error| CliError::usage(format!("cannot create {path}: {error}")))?;
        Ok(Self { path: path.to_owned(), file, has_secret: false })
    }

    /// Moves the secret of an answer to the file.
    ///
    /// # Errors
    /// The answer has no secret, or the file cannot be written; then the secret is printed to standard error.
    pub(crate) fn take_from(mut self, value: &mut Value) -> Result<(), CliError> {
        let name = SECRET_FIELDS.iter().find(|name| value[**name].is_string());
        let secret = name.and_then(|name| value.as_object_mut()?.remove(*name));
        let Some(secret) = secret.as_ref().and_then(Value::as_str) else {
            return Err(CliError::Failed("the response contains no secret".to_owned()));
        };
        let written = writeln!(self.file, "{secret}").and_then(|()| self.file.sync_all());
        if let Err(error) = written {
            // The secret cannot be asked for again.
            eprintln!("{secret}");
            return Err(CliError::Io(format!("cannot write {}: {error}; the secret is printed above", self.path)));
        }
        self.has_secret = true;
        value["saved_to"] = json!(self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_secret_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key").display().to_string();
        drop(SecretFile::create(&path).unwrap());
        assert!(SecretFile::create(&path).unwrap().take_from(&mut json!({"id": "key_1"})).is_err());
        SecretFile::create(&path).unwrap().take_from(&mut json!({"secret": "s"})).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "s\n");
        assert!(SecretFile::create(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "s\n");
    }
}
