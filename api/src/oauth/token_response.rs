//! The response with tokens (RFC 6749 5.1).

use model::expiring_secret::ExpiringSecret;
use model::oauth::ACCESS_TOKEN_TTL;
use model::oauth::scope::ScopeSet;
use schema::ToSchema;
use serde::Serialize;

/// Tokens (RFC 6749 5.1)
#[derive(Serialize, ToSchema)]
#[schema(name = "OAuthTokens")]
pub struct TokenResponse {
    /// For `Authorization: Bearer`
    access_token: String,
    #[schema(const = "Bearer")]
    token_type: &'static str,
    /// Seconds until the access token expires
    expires_in: u64,
    /// The next refresh token; the one that was sent can no longer be used
    refresh_token: String,
    /// The scopes of the access token
    scope: String,
}

impl TokenResponse {
    pub(super) fn new(access: &ExpiringSecret, refresh: &ExpiringSecret, scopes: ScopeSet) -> Self {
        Self {
            access_token: access.text(),
            token_type: "Bearer",
            expires_in: ACCESS_TOKEN_TTL.as_secs(),
            refresh_token: refresh.text(),
            scope: scopes.to_string(),
        }
    }
}
