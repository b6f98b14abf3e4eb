//! Users: the people who sign in to an account, and their sessions.
//!
//! The browser's cookie holds the session's token ([`SessionToken`]).

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use message::address::Address;
use message::words;
use serde::{Deserialize, Serialize};

use crate::credential::SecretHash;
use crate::expiring_secret::ExpiringSecret;
use crate::id::{AccountId, SessionId, UserId};
use crate::redacted;
use crate::session_token::SessionCookieToken;
use crate::totp::Totp;

/// A session expires after this time without use.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
/// Maximum lifetime of a session.
pub const SESSION_AGE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// Secrets and money are available to a session for this long after the user proved their identity.
pub const REAUTHENTICATION_AGE_MAX: Duration = Duration::from_secs(15 * 60);
/// Lifetime of a session created by the operator.
pub const OPERATOR_SESSION: Duration = Duration::from_secs(15 * 60);
/// Use of a session is stored only if it extends the expiry by at least this much.
const EXTENSION_MIN: Duration = Duration::from_secs(3600);

/// The rights of a user in the account, from the least role to the highest. The role table of the API lists the
/// operations of each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// Reads everything except secrets.
    Viewer,
    /// Everything except money and the team. Stored as `member`, its name in earlier versions.
    #[serde(rename = "member", alias = "developer")]
    Developer,
    /// Everything except approving payout runs and managing owners and admins.
    Admin,
    /// Everything.
    Owner,
}

impl UserRole {
    /// All roles, from the least to the highest.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Developer, Self::Admin, Self::Owner];

    /// Name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Developer => "developer",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Returns whether a user with this role may give the role `other`, and change or remove a user who has it.
    pub fn may_manage(self, other: Self) -> bool {
        match self {
            Self::Owner => true,
            Self::Admin => other < Self::Admin,
            Self::Developer | Self::Viewer => false,
        }
    }
}

impl std::str::FromStr for UserRole {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let word = if text == "member" { "developer" } else { text };
        let role = Self::ALL.into_iter().find(|role| role.word() == word);
        role.ok_or_else(|| "must be `owner`, `admin`, `developer` or `viewer`".to_owned())
    }
}

/// Stored form of a password: its argon2id hash with salt and parameters, in PHC string format.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(pub String);

redacted!(PasswordHash, "PasswordHash(hidden)");

/// A person who may sign in to an account. An address belongs to one account.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    pub account: AccountId,
    pub email: Address,
    pub role: UserRole,
    /// The password, if set; sign-in links work without one.
    pub password: Option<PasswordHash>,
    /// Invited but not yet accepted: until then the address may sign in to another account.
    pub invited: bool,
    /// Current series of sign-in links. A password change or reset starts a new series and invalidates earlier links.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub link_series: u32,
    /// One-time passwords, if the user has set them up.
    pub totp: Option<Totp>,
    /// Time of the invitation.
    pub created_at: Timestamp,
}

impl User {
    /// Returns whether sign-in asks for a one-time password.
    pub fn has_totp(&self) -> bool {
        self.recovery_codes_left().is_some()
    }

    /// Number of unused recovery codes; `None` without active one-time passwords.
    pub fn recovery_codes_left(&self) -> Option<usize> {
        match &self.totp {
            Some(Totp::Active { recovery_codes, .. }) => Some(recovery_codes.len()),
            Some(Totp::Pending { .. }) | None => None,
        }
    }

    /// Sets or removes the password and invalidates existing sign-in links.
    pub fn with_password(&self, password: Option<PasswordHash>) -> Self {
        Self { password, link_series: self.link_series.saturating_add(1), ..self.clone() }
    }
}

/// After sign-in by a mailed link, the password can be changed for this long without the old one. Whoever reads the
/// address's mail is its user, even if the password was forgotten or changed by another person.
pub const FRESH_LINK_MAX_AGE: Duration = Duration::from_secs(15 * 60);
/// Maximum length of a stored user agent, in characters.
const USER_AGENT_CHARS_MAX: usize = 200;

words! {
    SignInMethod {
        Password = "password",
        /// A mailed link.
        Link = "link",
        /// Created by the operator, for a script.
        Operator = "operator",
    }
}

/// Origin and lifetimes of a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStart {
    pub method: SignInMethod,
    /// Client address, if known.
    pub from: Option<IpAddr>,
    /// The browser's User-Agent field.
    pub user_agent: Option<String>,
    /// Lifetime without use.
    pub idle_max: Duration,
    /// Maximum lifetime.
    pub age_max: Duration,
}

impl SessionStart {
    /// A session of a browser.
    pub fn new(method: SignInMethod, from: Option<IpAddr>, user_agent: Option<&str>) -> Self {
        // The text is shown to people, so it is printable and short.
        let printable =
            |text: &str| text.chars().filter(|c| matches!(c, ' '..='~')).take(USER_AGENT_CHARS_MAX).collect::<String>();
        let user_agent = user_agent.map(printable).filter(|text| !text.is_empty());
        Self { method, from, user_agent, idle_max: SESSION_IDLE_MAX, age_max: SESSION_AGE_MAX }
    }

    /// A session that the operator creates for a script.
    pub fn for_operator() -> Self {
        Self::new(SignInMethod::Operator, None, None).lasting(OPERATOR_SESSION)
    }

    /// Ends the session after this time, used or not.
    pub fn lasting(self, age_max: Duration) -> Self {
        Self { idle_max: age_max, age_max, ..self }
    }
}

/// A session of a signed-in user.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSession {
    pub id: SessionId,
    pub account: AccountId,
    pub user: UserId,
    /// Hash of the token.
    pub secret: SecretHash,
    pub created_at: Timestamp,
    /// Expiry unless the session is used.
    pub expires_at: Timestamp,
    /// Latest possible end.
    pub ends_at: Timestamp,
    /// Sign-in method; `None` for sessions older than this field.
    pub method: Option<SignInMethod>,
    /// Client address at sign-in.
    pub from: Option<IpAddr>,
    pub user_agent: Option<String>,
    /// Time of the last use, to the hour.
    pub last_used_at: Option<Timestamp>,
    /// When the user last proved their identity again after signing in.
    pub reauthenticated_at: Option<Timestamp>,
}

impl UserSession {
    pub fn new(token: &SessionToken, now: Timestamp, start: SessionStart) -> Self {
        let SessionStart { method, from, user_agent, idle_max, age_max } = start;
        let after = |time: Duration| now.checked_add(time).unwrap_or(Timestamp::MAX);
        Self {
            id: token.session,
            account: token.account,
            user: token.owner,
            secret: token.hash(),
            created_at: now,
            expires_at: after(idle_max.min(age_max)),
            ends_at: after(age_max),
            method: Some(method),
            from,
            user_agent,
            last_used_at: Some(now),
            reauthenticated_at: None,
        }
    }

    /// When the user last proved their identity.
    pub fn authenticated_at(&self) -> Timestamp {
        self.reauthenticated_at.map_or(self.created_at, |again| again.max(self.created_at))
    }

    /// Returns whether the user proved their identity within [`REAUTHENTICATION_AGE_MAX`].
    pub fn is_recently_authenticated(&self, now: Timestamp) -> bool {
        let until = self.authenticated_at().checked_add(REAUTHENTICATION_AGE_MAX).unwrap_or(Timestamp::MAX);
        now <= until
    }

    /// Returns whether the user signed in by a mailed link within [`FRESH_LINK_MAX_AGE`].
    pub fn has_fresh_sign_in_link(&self, now: Timestamp) -> bool {
        let until = self.created_at.checked_add(FRESH_LINK_MAX_AGE).unwrap_or(self.created_at);
        self.method == Some(SignInMethod::Link) && now < until
    }

    /// Returns whether the session has not ended.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.ends_at
    }

    /// Returns the session with its expiry extended by use at `now`, or `None` if the change is too small to store.
    pub fn extended(&self, now: Timestamp) -> Option<Self> {
        let later = now.checked_add(SESSION_IDLE_MAX).unwrap_or(Timestamp::MAX).min(self.ends_at);
        let worth = self.expires_at.checked_add(EXTENSION_MIN).unwrap_or(Timestamp::MAX);
        (later >= worth).then(|| Self { expires_at: later, last_used_at: Some(now), ..self.clone() })
    }
}

/// The token in the browser's cookie.
pub type SessionToken = SessionCookieToken<UserId>;

/// The use of a stored sign-in link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInLinkKind {
    /// A link that signs the user in, mailed or handed over by the operator.
    #[default]
    SignIn,
    /// A link of the operator: it begins a session like [`SessionStart::for_operator`], which ends when the link
    /// expires.
    Operator,
    /// No link: the user signed in by this method, and must also give a one-time password.
    SecondFactor(SignInMethod),
}

/// A link or challenge that signs a user in once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInLink {
    pub account: AccountId,
    pub user: UserId,
    /// The user's link series at creation.
    #[serde(default)]
    pub series: u32,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub kind: SignInLinkKind,
}

impl SignInLink {
    pub fn new(user: &User, token: &ExpiringSecret, kind: SignInLinkKind) -> Self {
        Self { account: user.account, user: user.id, series: user.link_series, expires_at: token.expires_at, kind }
    }

    /// Returns whether the link is still valid for the user: no password change or reset since its creation.
    pub fn is_valid_for(&self, user: &User) -> bool {
        (self.account, self.user, self.series) == (user.account, user.id, user.link_series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_their_names_and_keep_the_stored_one() {
        for role in UserRole::ALL {
            assert_eq!(role.word().parse(), Ok(role));
        }
        assert_eq!("member".parse(), Ok(UserRole::Developer));
        assert!(UserRole::ALL.is_sorted());
        // An unchanged row must encode to the same bytes.
        assert_eq!(serde_json::to_string(&UserRole::Developer).unwrap(), r#""member""#);
        for stored in [r#""member""#, r#""developer""#] {
            assert_eq!(serde_json::from_str::<UserRole>(stored).unwrap(), UserRole::Developer);
        }
    }

    #[test]
    fn admins_manage_the_roles_below_their_own() {
        for other in UserRole::ALL {
            assert!(UserRole::Owner.may_manage(other));
            assert_eq!(UserRole::Admin.may_manage(other), other < UserRole::Admin);
            assert!(!UserRole::Developer.may_manage(other) && !UserRole::Viewer.may_manage(other));
        }
    }

    #[test]
    fn a_session_is_extended_up_to_its_maximum_age() {
        let (account, user) = (AccountId::from_bytes([1; 16]), UserId::from_bytes([2; 16]));
        let token = SessionToken::new(account, user, SessionId::from_bytes([3; 16]), [4; 32]);
        let start = Timestamp::UNIX_EPOCH;
        let mut session =
            UserSession::new(&token, start, SessionStart::new(SignInMethod::Link, None, Some("a\r\n\u{7f}b")));
        assert_eq!(session.user_agent.as_deref(), Some("ab"));
        let fresh = |seconds| session.has_fresh_sign_in_link(start + Duration::from_secs(seconds));
        assert!(fresh(0) && fresh(899) && !fresh(900));
        assert_eq!(session.extended(start + Duration::from_secs(60)), None);
        let mut now = start;
        while let Some(later) = session.extended(now + Duration::from_secs(24 * 3600)) {
            assert!(session.is_live(now) && later.expires_at <= later.ends_at);
            now += Duration::from_secs(24 * 3600);
            session = later;
        }
        assert_eq!(session.expires_at, start + SESSION_AGE_MAX);
        assert!(!session.is_live(start + SESSION_AGE_MAX));
        let mut again = UserSession { reauthenticated_at: Some(start + Duration::from_secs(3600)), ..session };
        let recent =
            |session: &UserSession, second| session.is_recently_authenticated(start + Duration::from_secs(second));
        assert!(recent(&again, 3600 + 900) && !recent(&again, 3600 + 901));
        again.reauthenticated_at = None;
        assert!(recent(&again, 900) && !recent(&again, 901));
        let short = UserSession::new(&token, start, SessionStart::for_operator());
        assert_eq!(short.extended(start + Duration::from_secs(600)), None);
    }
}
