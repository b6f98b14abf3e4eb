//! Users: the people who sign in to an account, and their sessions.
//!
//! A session's token stands in the browser's cookie ([`Token`]).

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::credential::SecretHash;
use crate::id::{AccountId, SessionId, UserId};
use crate::session_token::SessionCookieToken;

/// A session ends when it was not used for so long …
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
/// … and in any case after this time.
pub const SESSION_AGE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// A session made by the operator lasts so long, used or not.
pub const OPERATOR_SESSION: Duration = Duration::from_secs(15 * 60);
/// That a session is used is written down when it moves its end by this much.
const EXTENSION_MIN: Duration = Duration::from_secs(3600);

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// All but what concerns the users and the account itself.
    Member,
    /// Everything.
    Owner,
}

impl UserRole {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Member => "member",
        }
    }
}

impl std::str::FromStr for UserRole {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "owner" => Ok(Self::Owner),
            "member" => Ok(Self::Member),
            _ => Err("must be `owner` or `member`".to_owned()),
        }
    }
}

/// What is stored of a password: its argon2id hash with salt and parameters, in the PHC form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(hidden)")
    }
}

/// Somebody who may sign in to an account. An address signs in to one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Their id.
    pub id: UserId,
    /// To which account.
    pub account: AccountId,
    /// Their address.
    pub email: Address,
    /// What they may do.
    pub role: UserRole,
    /// Their password, when they have one; a mailed link works without.
    pub password: Option<PasswordHash>,
    /// Invited, and has not accepted yet: until then the address may sign in elsewhere.
    pub invited: bool,
    /// Sign-in links of earlier series are void: a change or a reset of the password begins the next one.
    pub link_series: u32,
    /// When they were invited.
    pub created_at: Timestamp,
}

impl User {
    /// The user with another password, or none; sign-in links made until now are void.
    #[must_use]
    pub fn with_password(&self, password: Option<PasswordHash>) -> Self {
        Self { password, link_series: self.link_series.saturating_add(1), ..self.clone() }
    }
}

/// After signing in by a mailed link, for so long a password may be set without the one until now: who reads the address'
/// mail is its user, also when they have forgotten the password or somebody else has changed it.
pub const FRESH_LINK_MAX_AGE: Duration = Duration::from_secs(15 * 60);
/// Characters kept of what a browser says it is.
const USER_AGENT_CHARS_MAX: usize = 200;

/// By what somebody signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInMethod {
    /// Their password.
    Password,
    /// A mailed link.
    Link,
    /// The operator, for a script.
    Operator,
}

impl SignInMethod {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Link => "link",
            Self::Operator => "operator",
        }
    }
}

/// How a session begins, and how long it may last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStart {
    /// By what.
    pub method: SignInMethod,
    /// From where, when that is known.
    pub from: Option<IpAddr>,
    /// What the browser said it is.
    pub user_agent: Option<String>,
    /// How long it lasts when it is not used.
    pub idle_max: Duration,
    /// How long it lasts in any case.
    pub age_max: Duration,
}

impl SessionStart {
    /// A session of a browser.
    #[must_use]
    pub fn new(method: SignInMethod, from: Option<IpAddr>, user_agent: Option<&str>) -> Self {
        // It is shown to people: no line breaks, and not longer than a line or two.
        let shown =
            |text: &str| text.chars().filter(|c| matches!(c, ' '..='~')).take(USER_AGENT_CHARS_MAX).collect::<String>();
        let user_agent = user_agent.map(shown).filter(|text| !text.is_empty());
        Self { method, from, user_agent, idle_max: SESSION_IDLE_MAX, age_max: SESSION_AGE_MAX }
    }

    /// A session that the operator makes for a script.
    #[must_use]
    pub fn for_operator() -> Self {
        let start = Self::new(SignInMethod::Operator, None, None);
        Self { idle_max: OPERATOR_SESSION, age_max: OPERATOR_SESSION, ..start }
    }
}

/// A user's being signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSession {
    /// Its id.
    pub id: SessionId,
    /// To which account.
    pub account: AccountId,
    /// Who.
    pub user: UserId,
    /// The hash of its token.
    pub secret: SecretHash,
    /// When they signed in.
    pub created_at: Timestamp,
    /// When it ends unless it is used.
    pub expires_at: Timestamp,
    /// When it ends in any case.
    pub ends_at: Timestamp,
    /// By what they signed in; not known of sessions that are older than this field.
    pub method: Option<SignInMethod>,
    /// From where they signed in.
    pub from: Option<IpAddr>,
    /// What their browser said it is.
    pub user_agent: Option<String>,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
}

impl UserSession {
    /// A new session for a user.
    #[must_use]
    pub fn new(token: &SessionToken, now: Timestamp, start: SessionStart) -> Self {
        let SessionStart { method, from, user_agent, idle_max, age_max } = start;
        let after = |time: Duration| now.checked_add(time).unwrap_or(Timestamp::MAX);
        Self {
            id: token.session,
            account: token.account,
            user: token.who,
            secret: token.hash(),
            created_at: now,
            expires_at: after(idle_max.min(age_max)),
            ends_at: after(age_max),
            method: Some(method),
            from,
            user_agent,
            last_used_at: Some(now),
        }
    }

    /// Whether its user has just shown that they read the address' mail.
    #[must_use]
    pub fn has_fresh_sign_in_link(&self, now: Timestamp) -> bool {
        let until = self.created_at.checked_add(FRESH_LINK_MAX_AGE).unwrap_or(self.created_at);
        self.method == Some(SignInMethod::Link) && now < until
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.ends_at
    }

    /// Its later end, because it is used now, when that is worth writing down.
    #[must_use]
    pub fn extended(&self, now: Timestamp) -> Option<Self> {
        let later = now.checked_add(SESSION_IDLE_MAX).unwrap_or(Timestamp::MAX).min(self.ends_at);
        let worth = self.expires_at.checked_add(EXTENSION_MIN).unwrap_or(Timestamp::MAX);
        (later >= worth).then(|| Self { expires_at: later, last_used_at: Some(now), ..self.clone() })
    }
}

/// What the browser keeps of a session.
pub type SessionToken = SessionCookieToken<UserId>;

/// A link that signs a user in, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInLink {
    /// To which account.
    pub account: AccountId,
    /// Whom.
    pub user: UserId,
    /// The series of the user's links that it belongs to.
    pub series: u32,
    /// Until when.
    pub expires_at: Timestamp,
}

impl SignInLink {
    /// A link with this token for a user.
    #[must_use]
    pub fn new(user: &User, token: &SignInLinkToken) -> Self {
        Self { account: user.account, user: user.id, series: user.link_series, expires_at: token.expires_at }
    }

    /// Whether it still signs this user in: no password was changed or reset since it was made.
    #[must_use]
    pub fn is_valid_for(&self, user: &User) -> bool {
        (self.account, self.user, self.series) == (user.account, user.id, user.link_series)
    }
}

/// What a mailed link carries: when it ends, so that it is found and forgotten by time, and a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInLinkToken {
    /// Until when it works, to the microsecond.
    pub expires_at: Timestamp,
    secret: [u8; 32],
}

impl fmt::Debug for SignInLinkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkToken({}, hidden)", self.expires_at)
    }
}

impl SignInLinkToken {
    /// A new one.
    #[must_use]
    pub fn new(expires_at: Timestamp, secret: [u8; 32]) -> Self {
        let micros = expires_at.as_microsecond();
        Self { expires_at: Timestamp::from_microsecond(micros).unwrap_or(expires_at), secret }
    }

    /// Reads a path's part; `None` when it is no token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 40] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let (time, secret) = bytes.split_first_chunk::<8>()?;
        let expires_at = Timestamp::from_microsecond(i64::from_be_bytes(*time)).ok()?;
        Some(Self { expires_at, secret: secret.try_into().ok()? })
    }

    /// The path's part.
    #[must_use]
    pub fn text(&self) -> String {
        let time = self.expires_at.as_microsecond().to_be_bytes();
        URL_SAFE_NO_PAD.encode([&time[..], &self.secret].concat())
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_read_back() {
        let link = SignInLinkToken::new(Timestamp::from_second(7).unwrap(), [5; 32]);
        assert_eq!(SignInLinkToken::parse(&link.text()), Some(link));
    }

    #[test]
    fn a_session_slides_until_its_age() {
        let user = (AccountId::from_bytes([1; 16]), UserId::from_bytes([2; 16]));
        let token = SessionToken::new(user, SessionId::from_bytes([3; 16]), [4; 32]);
        let begun = Timestamp::UNIX_EPOCH;
        let mut session =
            UserSession::new(&token, begun, SessionStart::new(SignInMethod::Link, None, Some("a\r\n\u{7f}b")));
        assert_eq!(session.user_agent.as_deref(), Some("ab"));
        let fresh = |seconds| session.has_fresh_sign_in_link(begun + Duration::from_secs(seconds));
        assert!(fresh(0) && fresh(899) && !fresh(900));
        assert_eq!(session.extended(begun + Duration::from_secs(60)), None);
        let mut now = begun;
        while let Some(later) = session.extended(now + Duration::from_secs(24 * 3600)) {
            assert!(session.is_live(now) && later.expires_at <= later.ends_at);
            now += Duration::from_secs(24 * 3600);
            session = later;
        }
        assert_eq!(session.expires_at, begun + SESSION_AGE_MAX);
        assert!(!session.is_live(begun + SESSION_AGE_MAX));
        let short = UserSession::new(&token, begun, SessionStart::for_operator());
        assert_eq!(short.extended(begun + Duration::from_secs(600)), None);
    }
}
