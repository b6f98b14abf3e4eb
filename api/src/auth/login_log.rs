//! Logs failed logins at WARN with the client's address.
//!
//! A wrong password is always logged, because sign_in_limiter.rs bounds the attempts. Unknown keys can arrive by
//! the thousand per second: of each kind ten lines a minute are logged, with the number of lines left out.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use model::log_limit::LogLimit;

/// The kind of credential that a client tried to log in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginKind {
    /// `Authorization: Bearer`.
    ApiKey = 0,
    /// A session's cookie.
    Session = 1,
    /// A mailed link of the dashboard.
    SignInLink = 2,
    /// A link of the partner portal.
    PortalLink = 3,
    /// The challenge between the two steps of signing in.
    SignInChallenge = 4,
    /// An access token of a grant.
    AccessToken = 5,
}

impl LoginKind {
    const COUNT: usize = 6;

    fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Session => "session",
            Self::SignInLink => "sign_in_link",
            Self::PortalLink => "portal_link",
            Self::SignInChallenge => "sign_in_challenge",
            Self::AccessToken => "access_token",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LoginLog {
    limits: Mutex<[LogLimit; LoginKind::COUNT]>,
}

impl LoginLog {
    /// Logs a failed login; at most ten per kind and minute.
    pub(crate) fn failed(&self, kind: LoginKind, from: Option<IpAddr>, reason: &'static str, now: Timestamp) {
        let since_1970 = Duration::from_millis(u64::try_from(now.as_millisecond()).unwrap_or(0));
        let skipped = {
            let mut limits = self.limits.lock();
            limits.get_mut(kind as usize).and_then(|limit| limit.take(since_1970))
        };
        let Some(skipped) = skipped else { return };
        tracing::warn!(
            ip = from.map(tracing::field::display),
            by = kind.word(),
            reason,
            not_logged = (skipped > 0).then_some(skipped),
            "authentication failed"
        );
    }
}

/// Logs a wrong one-time password or recovery code. The address is masked unless `[log] addresses` is on.
pub(crate) fn wrong_code(from: Option<IpAddr>, user: &str) {
    tracing::warn!(ip = from.map(tracing::field::display), by = "code", user, "authentication failed");
}

/// Logs a wrong password of the dashboard. The address is masked unless `[log] addresses` is on.
pub(crate) fn wrong_password(from: Option<IpAddr>, user: &str) {
    tracing::warn!(ip = from.map(tracing::field::display), by = "password", user, "authentication failed");
}
