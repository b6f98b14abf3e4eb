//! `SignIn`: the tokens of a profile that a user allowed in the browser (OAuth 2.1), and their refresh.
//!
//! ```text
//! request ─► access token still valid? ─► yes: use it
//!                └─ no ─► lock ─► read the profile again ─► refreshed by another process? ─► use its token
//!                                        └─ no ─► POST /oauth/token ─► write the profile ─► use the new token
//! ```
//!
//! A refresh token works once, and its second use ends the grant. So a lock on a file beside the profiles lets one process
//! refresh at a time, and the new tokens are written before the lock is released.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api_key::ApiKey;
use crate::base_url::BaseUrl;
use crate::clock;
use crate::error::CliError;
use crate::oauth::{AuthorizationServer, TokenReply};
use crate::profile::ProfileFile;

/// An access token is replaced this long before it expires.
const MARGIN: Duration = Duration::from_secs(60);
/// Longest wait for the lock: another process refreshes.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(40);
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// The tokens of a profile.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub access_token: String,
    pub refresh_token: String,
    /// When the access token expires, by the clock of this machine.
    pub expires_at: Timestamp,
    /// The allowed scopes.
    pub scope: String,
}

impl Tokens {
    /// The tokens of a reply that came now.
    ///
    /// # Errors
    /// The clock of this machine is wrong.
    pub(crate) fn from_reply(reply: TokenReply) -> Result<Self, CliError> {
        let lifetime = Duration::from_secs(reply.expires_in);
        let expires_at = clock::now()?.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let TokenReply { access_token, refresh_token, scope, .. } = reply;
        Ok(Self { access_token, refresh_token, expires_at, scope })
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        now.checked_add(MARGIN).is_ok_and(|soon| soon < self.expires_at)
    }
}

/// The tokens of one profile in use.
pub struct SignIn {
    profile: String,
    path: PathBuf,
    server: AuthorizationServer,
    tokens: Mutex<Tokens>,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl SignIn {
    pub fn new(profile: String, path: PathBuf, base_url: BaseUrl, tokens: Tokens) -> Self {
        Self { profile, path, server: AuthorizationServer::new(base_url), tokens: Mutex::new(tokens) }
    }

    /// The name of the profile.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The allowed scopes, with spaces between them.
    pub async fn scope(&self) -> String {
        self.tokens.lock().await.scope.clone()
    }

    /// A valid access token; it is refreshed if it has expired or will soon.
    ///
    /// # Errors
    /// The sign-in has ended; the server does not answer; the profile cannot be written.
    pub async fn access_token(&self) -> Result<ApiKey, CliError> {
        let mut tokens = self.tokens.lock().await;
        if !tokens.is_fresh(clock::now()?) {
            *tokens = self.refresh().await?;
        }
        ApiKey::parse(&tokens.access_token)
    }

    async fn refresh(&self) -> Result<Tokens, CliError> {
        let _lock = ProfileLock::acquire(&self.path).await?;
        let mut file = ProfileFile::read(&self.path)?;
        let ended = |why: &str| {
            CliError::usage(format!(
                "the sign-in of the profile `{name}` has ended{why}; run `postrider login --profile {name}`",
                name = self.profile
            ))
        };
        let stored = file.profiles.get(&self.profile).and_then(|profile| profile.sign_in.clone());
        let stored = stored.ok_or_else(|| ended(""))?;
        // Another process refreshed it meanwhile.
        if stored.is_fresh(clock::now()?) {
            return Ok(stored);
        }
        let reply = self.server.refresh(&stored.refresh_token).await?;
        let reply = reply.map_err(|refusal| ended(&format!(" ({})", refusal.description)))?;
        let fresh = Tokens::from_reply(reply)?;
        if let Some(profile) = file.profiles.get_mut(&self.profile) {
            profile.sign_in = Some(fresh.clone());
        }
        file.write(&self.path)?;
        Ok(fresh)
    }
}

/// An exclusive lock for changes of the profiles, held by one process. It ends with the value.
#[derive(Debug)]
pub(crate) struct ProfileLock {
    _file: File,
}

impl ProfileLock {
    /// Waits for the lock on a file beside the profiles.
    ///
    /// # Errors
    /// The file cannot be made; another process holds the lock for long.
    pub(crate) async fn acquire(profiles: &Path) -> Result<Self, CliError> {
        let path = profiles.with_extension("lock");
        let failed = |error: &dyn std::fmt::Display| CliError::Io(format!("cannot lock {}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        }
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|error| failed(&error))?;
        let until = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    tokio::time::sleep(LOCK_RETRY).await;
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(failed(&"another process has locked it")),
                Err(std::fs::TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_fresh_until_shortly_before_their_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let tokens = Tokens {
            access_token: String::new(),
            refresh_token: String::new(),
            expires_at: at(3_600),
            scope: String::new(),
        };
        assert!(tokens.is_fresh(at(3_539)) && !tokens.is_fresh(at(3_540)));
    }

    #[tokio::test]
    async fn one_process_at_a_time_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profiles.toml");
        let first = ProfileLock::acquire(&path).await.unwrap();
        let second = tokio::spawn({
            let path = path.clone();
            async move { ProfileLock::acquire(&path).await.is_ok() }
        });
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.unwrap());
    }
}
