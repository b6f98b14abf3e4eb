//! Profiles: base URL and API key, or tokens of a sign-in, of servers, in `~/.config/postrider/profiles.toml` (mode 0600).
//!
//! ```toml
//! default = "production"
//!
//! [profiles.production]
//! base_url = "https://mail.example.com"
//! api_key = "rnl_…"         # or:
//! [profiles.production.sign_in]
//! access_token = "rnl_at_…"
//! refresh_token = "rnl_rt_…"
//! ```
//!
//! `POSTRIDER_API_KEY` and `POSTRIDER_BASE_URL` go before the profile; `--profile` and `POSTRIDER_PROFILE` choose one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::api_key::ApiKey;
use crate::base_url::BaseUrl;
use crate::client::Credential;
use crate::error::CliError;
use crate::sign_in::{SignIn, Tokens};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The file of profiles.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// The profile that is used if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
}

/// One server, and the key or the sign-in for it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub base_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<Tokens>,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// The server and credential of a command, and where they come from.
#[derive(Debug)]
pub struct Access {
    pub base_url: BaseUrl,
    pub credential: Credential,
    /// The profile; `None` if both are from the environment.
    pub profile: Option<String>,
}

impl ProfileFile {
    /// Path of the file: below `XDG_CONFIG_HOME`, or `~/.config`.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn path() -> Result<PathBuf, CliError> {
        let home =
            || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".config"));
        let config =
            std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or_else(home);
        let config = config.ok_or_else(|| CliError::usage("HOME is not set, so profiles cannot be stored"))?;
        Ok(config.join("postrider/profiles.toml"))
    }

    /// Reads the file; a missing one has no profiles.
    ///
    /// # Errors
    /// It cannot be read, or others may read it.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CliError::usage(format!("cannot read {}: {error}", path.display()))),
        };
        let mode = std::fs::metadata(path).map_or(FILE_MODE, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            let path = path.display();
            return Err(CliError::usage(format!(
                "other users can read {path}, which contains API keys: run `chmod 600 {path}`"
            )));
        }
        toml::from_str(&text).map_err(|error| {
            // The library's sentence may show a line with a key.
            CliError::usage(format!(
                "{} is not valid: {}; correct it, or delete it and run `postrider login`",
                path.display(),
                error.message()
            ))
        })
    }

    /// Writes the file with mode 0600, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), CliError> {
        let failed = |error: &dyn std::fmt::Display| CliError::Io(format!("cannot write {}: {error}", path.display()));
        let text = toml::to_string(self).map_err(|error| failed(&error))?;
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
            let private = std::fs::Permissions::from_mode(DIRECTORY_MODE);
            std::fs::set_permissions(directory, private).map_err(|error| failed(&error))?;
        }
        let new = path.with_extension("new");
        let _ = std::fs::remove_file(&new);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&new)
            .map_err(|error| failed(&error))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| failed(&error))?;
        std::fs::rename(&new, path).map_err(|error| failed(&error))
    }

    /// The named profile, or the default one.
    ///
    /// # Errors
    /// There is no profile of that name.
    pub fn profile(&self, name: Option<&str>) -> Result<Option<(String, &Profile)>, CliError> {
        let Some(name) = name.or(self.default.as_deref()) else { return Ok(None) };
        match self.profiles.get(name) {
            Some(profile) => Ok(Some((name.to_owned(), profile))),
            None => {
                let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
                let known = if known.is_empty() {
                    "none is stored".to_owned()
                } else {
                    format!("stored: {}", known.join(", "))
                };
                Err(CliError::usage(format!(
                    "there is no profile `{name}` ({known}); `postrider login --profile {name}` creates it"
                )))
            }
        }
    }
}

impl Access {
    /// Finds server and key: the environment, then the profile.
    ///
    /// # Errors
    /// Something is missing or wrong; the error says how to set it.
    pub fn find(profile: Option<&str>) -> Result<Self, CliError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let chosen = profile.map(str::to_owned).or_else(|| variable("POSTRIDER_PROFILE"));
        // A profile that is named goes before the environment.
        let (key, url) = match profile {
            Some(_) => (None, None),
            None => (variable("POSTRIDER_API_KEY"), variable("POSTRIDER_BASE_URL")),
        };
        let file = match (&key, &url) {
            (Some(_), Some(_)) => ProfileFile::default(),
            _ => ProfileFile::read(&ProfileFile::path()?)?,
        };
        let stored = match (&key, &url) {
            (Some(_), Some(_)) => None,
            _ => file.profile(chosen.as_deref())?,
        };
        if let (None, Some(url), Some((name, profile))) = (&key, &url, &stored)
            && !is_same_server(url, &profile.base_url)
        {
            return Err(CliError::usage(format!(
                "POSTRIDER_BASE_URL names a different server than the profile `{name}`, whose key is not sent to it: \
                 set POSTRIDER_API_KEY too"
            )));
        }
        let url = url.or_else(|| stored.as_ref().map(|(_, profile)| profile.base_url.clone()));
        let url = url.ok_or_else(|| {
            CliError::usage(
                "no server: set POSTRIDER_BASE_URL (for example https://mail.example.com), or run `postrider login`",
            )
        })?;
        let base_url = BaseUrl::parse(&url, variable("POSTRIDER_ALLOW_INSECURE_HTTP").is_some())?;
        let credential = match (key, &stored) {
            (None, Some((name, Profile { api_key: None, sign_in: Some(tokens), .. }))) => {
                let sign_in = SignIn::new(name.clone(), ProfileFile::path()?, base_url.clone(), tokens.clone());
                Credential::SignIn(Box::new(sign_in))
            }
            (key, stored) => {
                let key = key.or_else(|| stored.as_ref().and_then(|(_, profile)| profile.api_key.clone()));
                Credential::Key(ApiKey::parse(&key.unwrap_or_default())?)
            }
        };
        Ok(Self { base_url, credential, profile: stored.map(|(name, _)| name) })
    }
}

fn is_same_server(one: &str, other: &str) -> bool {
    match (BaseUrl::parse(one, true), BaseUrl::parse(other, true)) {
        (Ok(one), Ok(other)) => one == other,
        // The error of the URL says more.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_stored_privately() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postrider/profiles.toml");
        assert!(ProfileFile::read(&path).unwrap().profiles.is_empty());
        let mut file = ProfileFile { default: Some("a".to_owned()), ..ProfileFile::default() };
        let profile =
            Profile { base_url: "https://a.example".to_owned(), api_key: Some("rnl_x".to_owned()), sign_in: None };
        file.profiles.insert("a".to_owned(), profile);
        file.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = ProfileFile::read(&path).unwrap();
        assert_eq!(read.profile(None).unwrap().unwrap().1.api_key.as_deref(), Some("rnl_x"));
        assert!(read.profile(Some("b")).unwrap_err().to_string().contains("stored: a"));
        assert!(!format!("{read:?}").contains("rnl_x"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(ProfileFile::read(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "[profiles.a]\napi_key = 'rnl_secret'\nbase = 1\n").unwrap();
        assert!(!ProfileFile::read(&path).unwrap_err().to_string().contains("rnl_secret"));
    }
}
