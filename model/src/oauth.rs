//! OAuth 2.1: what a person allows a program to do, and the rows of it.
//!
//! ```text
//! consent ─► AuthorizationCode ─┐
//! device  ─► DeviceAuthorization┴─► OAuthGrant ─► OAuthToken (access, refresh)
//! ```
//!
//! A grant belongs to a user. It names a client, scopes and the services for which its tokens are valid. Deleting its
//! row ends all its tokens.

pub mod pkce;
pub mod redirect_uri;
pub mod scope;
pub mod user_code;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::client_policy::ClientPolicy;
use crate::credential::SecretHash;
use crate::id::{AccountId, GrantId, OAuthClientId, UserId};
use crate::user::UserRole;
use scope::ScopeSet;

/// Lifetime of an authorization code.
pub const CODE_TTL: Duration = Duration::from_secs(60);
/// A used code is remembered this long, so that its reuse ends the grant.
pub const CODE_MEMORY: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of an access token.
pub const ACCESS_TOKEN_TTL: Duration = Duration::from_secs(3600);
/// Lifetime of a refresh token. A grant ends if it is not refreshed for this long.
pub const REFRESH_TOKEN_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// Lifetime of a device code and its user code.
pub const DEVICE_CODE_TTL: Duration = Duration::from_secs(10 * 60);
/// Lifetime of a registered client without a grant.
pub const UNUSED_CLIENT_TTL: Duration = Duration::from_secs(24 * 3600);
/// A registered client is deleted this long after its last grant or refresh: later than its last grant ends.
pub const USED_CLIENT_TTL: Duration = Duration::from_secs(60 * 24 * 3600);
/// Maximum number of grants of a user; a new one ends the oldest.
pub const GRANTS_MAX: usize = 50;
/// Redirect URIs of a client.
pub const REDIRECT_URIS_MAX: usize = 10;
/// Characters of a client's name.
pub const CLIENT_NAME_CHARS_MAX: usize = 80;

/// A part of the service that accepts access tokens: a protected resource (RFC 8707, RFC 9728).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthResource {
    Api,
    Mcp,
}

/// The parts of the service for which a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    Api,
    Mcp,
    /// The client named no resource, or both.
    Both,
}

impl Audience {
    /// Returns whether a token of this audience is accepted by the resource.
    pub fn includes(self, resource: OAuthResource) -> bool {
        match self {
            Self::Both => true,
            Self::Api => resource == OAuthResource::Api,
            Self::Mcp => resource == OAuthResource::Mcp,
        }
    }

    pub fn of_resource(resource: OAuthResource) -> Self {
        match resource {
            OAuthResource::Api => Self::Api,
            OAuthResource::Mcp => Self::Mcp,
        }
    }

    /// Returns whether every resource of `other` is one of this audience.
    pub fn covers(self, other: Self) -> bool {
        self == Self::Both || self == other
    }

    /// Adds a resource.
    pub fn and(self, resource: OAuthResource) -> Self {
        if self.includes(resource) { self } else { Self::Both }
    }
}

/// A client as its grants name it. The name is the client's own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientReference {
    /// `client_…`, the URL of a metadata document, or the name of a built-in client.
    pub id: String,
    pub name: String,
}

/// A client that registered itself (RFC 7591). It has no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthClient {
    pub id: OAuthClientId,
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// The client may use the device authorization grant (RFC 8628).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uses_device_codes: bool,
    pub created_at: Timestamp,
    /// The client is deleted at this time, unless it is used.
    pub expires_at: Timestamp,
}

impl OAuthClient {
    /// The client with its life extended by use at `now`; `None` if the change is too small to store.
    pub fn extended(&self, now: Timestamp) -> Option<Self> {
        let expires_at = now.checked_add(USED_CLIENT_TTL).unwrap_or(Timestamp::MAX);
        let worth = self.expires_at.checked_add(UNUSED_CLIENT_TTL).unwrap_or(Timestamp::MAX);
        (expires_at >= worth).then(|| Self { expires_at, ..self.clone() })
    }
}

/// The user who allows something, as read when they decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grantor {
    pub account: AccountId,
    pub user: UserId,
    /// The role at the decision. A grant ends when the user has a lower one.
    pub role: UserRole,
}

/// An allowance of a user for a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthGrant {
    pub id: GrantId,
    pub grantor: Grantor,
    pub client: ClientReference,
    pub scopes: ScopeSet,
    /// The rules for the client below its scopes.
    #[serde(default, skip_serializing_if = "ClientPolicy::is_empty")]
    pub policy: ClientPolicy,
    pub audience: Audience,
    /// Hash of the current refresh token. Any other one was used before.
    pub refresh: SecretHash,
    pub created_at: Timestamp,
    /// End of the current refresh token.
    pub expires_at: Timestamp,
}

impl OAuthGrant {
    /// Returns whether the grant has not ended, for a user with this role.
    pub fn is_live(&self, role: UserRole, now: Timestamp) -> bool {
        role >= self.grantor.role && now < self.expires_at
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    Access,
    Refresh,
}

/// An issued token, found by its expiry and the hash of its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthToken {
    pub kind: TokenKind,
    pub account: AccountId,
    pub grant: GrantId,
    /// The scopes of the grant, or fewer.
    pub scopes: ScopeSet,
    pub audience: Audience,
}

/// An authorization code: a user's consent that the client has not collected yet (RFC 6749 4.1.2).
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationCode {
    pub grantor: Grantor,
    pub client: ClientReference,
    pub redirect_uri: String,
    pub scopes: ScopeSet,
    pub audience: Audience,
    /// The S256 code challenge (RFC 7636 4.2).
    pub challenge: String,
    /// The rules for the client, as the user saw them; `None` if an earlier release wrote the row.
    pub policy: Option<ClientPolicy>,
    /// The grant, once the code was used.
    pub grant: Option<GrantId>,
}

/// The user's decision about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceDecision {
    #[default]
    Pending,
    Denied,
    Approved(Grantor, ScopeSet),
}

/// A request of a device without a browser (RFC 8628 3.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAuthorization {
    pub client: ClientReference,
    pub scopes: ScopeSet,
    pub audience: Audience,
    /// Eight letters.
    pub user_code: String,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub decision: DeviceDecision,
    /// The rules for an approved client; `None` without a decision, or if an earlier release wrote the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<ClientPolicy>,
}

/// A client's name as it is stored and shown: one line of at most [`CLIENT_NAME_CHARS_MAX`] characters, without control
/// characters. `None` if nothing is left.
pub fn client_name(text: &str) -> Option<String> {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(4 * CLIENT_NAME_CHARS_MAX).collect();
    let words: Vec<&str> = line.split_whitespace().collect();
    let name: String = words.join(" ").chars().take(CLIENT_NAME_CHARS_MAX).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audiences_cover_their_resources() {
        assert!(Audience::Both.includes(OAuthResource::Api) && Audience::Both.includes(OAuthResource::Mcp));
        assert!(Audience::Api.includes(OAuthResource::Api) && !Audience::Api.includes(OAuthResource::Mcp));
        assert!(Audience::Both.covers(Audience::Mcp) && !Audience::Mcp.covers(Audience::Both));
        assert_eq!(Audience::Api.and(OAuthResource::Mcp), Audience::Both);
        assert_eq!(Audience::Api.and(OAuthResource::Api), Audience::Api);
    }

    #[test]
    fn names_of_clients_are_one_short_line() {
        assert_eq!(client_name(" a\r\n\tb ").as_deref(), Some("a b"));
        assert_eq!(client_name("\u{0}\n "), None);
        assert_eq!(client_name(&"x".repeat(5_000)).map(|name| name.len()), Some(CLIENT_NAME_CHARS_MAX));
    }

    #[test]
    fn a_grant_ends_with_its_time_and_with_the_role() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let grant = OAuthGrant {
            id: GrantId::from_bytes([1; 16]),
            grantor: Grantor {
                account: AccountId::from_bytes([2; 16]),
                user: UserId::from_bytes([3; 16]),
                role: UserRole::Developer,
            },
            client: ClientReference { id: "c".to_owned(), name: "C".to_owned() },
            scopes: ScopeSet::default(),
            policy: ClientPolicy::default(),
            audience: Audience::Api,
            refresh: SecretHash::from_bytes(b"r"),
            created_at: at(0),
            expires_at: at(10),
        };
        assert!(grant.is_live(UserRole::Developer, at(9)) && grant.is_live(UserRole::Owner, at(9)));
        assert!(!grant.is_live(UserRole::Viewer, at(9)) && !grant.is_live(UserRole::Owner, at(10)));
    }
}
