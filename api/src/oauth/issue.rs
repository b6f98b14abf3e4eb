//! Creating grants and tokens.

use model::client_policy::ClientPolicy;
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::oauth::scope::ScopeSet;
use model::oauth::{
    ACCESS_TOKEN_TTL, Audience, ClientReference, Grantor, OAuthGrant, OAuthToken, REFRESH_TOKEN_TTL, TokenKind,
};
use model::user::User;
use store::engine::ReadError;

use super::client;
use super::error::OAuthFailure;
use super::token_response::TokenResponse;
use crate::prelude::*;

pub(super) struct GrantTerms {
    pub(super) grantor: Grantor,
    pub(super) client: ClientReference,
    pub(super) scopes: ScopeSet,
    pub(super) audience: Audience,
    /// The rules for the client; `None` keeps those of the user's latest grant for it.
    pub(super) policy: Option<ClientPolicy>,
}

/// The grantor as a user who may still give the grant; `None` if the user is gone or has a lower role.
pub(super) async fn current_grantor(state: &AppState, grantor: Grantor) -> Result<Option<User>, ReadError> {
    let user = store::user::get(&state.services.store, grantor.account, grantor.user).await?;
    Ok(user.filter(|user| user.role >= grantor.role))
}

/// Adds a new grant of `user` with its first tokens to the commit. Returns the grant's id and the response.
pub(super) async fn create_grant(
    state: &AppState,
    batch: &mut Batch,
    user: &User,
    terms: GrantTerms,
) -> Result<(GrantId, TokenResponse), OAuthFailure> {
    let now = state.services.clock.now();
    let GrantTerms { grantor, client, scopes, audience, policy } = terms;
    client::note_use(state, batch, &client).await?;
    let policy = match policy {
        Some(policy) => policy,
        None => store::oauth::grant::latest_policy(&state.services.store, grantor, &client).await?,
    };
    store::oauth::grant::evict_oldest(&state.services.store, batch, grantor).await?;
    // The commit conflicts if the user is removed or gets another role meanwhile.
    store::user::check_unchanged(batch, user);
    let id = GrantId::new(now, state.services.entropy.unique_bits());
    let refresh = new_secret(state, TokenKind::Refresh)?;
    let grant = OAuthGrant {
        id,
        grantor,
        client,
        scopes,
        policy,
        audience,
        refresh: refresh.hash(),
        created_at: now,
        expires_at: refresh.expires_at,
    };
    store::oauth::grant::create(batch, &grant);
    add_tokens(state, batch, &grant, &refresh, scopes, audience).map(|response| (id, response))
}

/// Adds the tokens of a refresh to the commit: the grant's row changes, so that of two uses of a refresh token one
/// conflicts.
pub(super) async fn refresh_grant(
    state: &AppState,
    batch: &mut Batch,
    before: &OAuthGrant,
    scopes: ScopeSet,
    audience: Audience,
) -> Result<TokenResponse, OAuthFailure> {
    client::note_use(state, batch, &before.client).await?;
    let refresh = new_secret(state, TokenKind::Refresh)?;
    let after = OAuthGrant { refresh: refresh.hash(), expires_at: refresh.expires_at, ..before.clone() };
    store::oauth::grant::update(batch, before, &after);
    add_tokens(state, batch, &after, &refresh, scopes, audience)
}

fn add_tokens(
    state: &AppState,
    batch: &mut Batch,
    grant: &OAuthGrant,
    refresh: &ExpiringSecret,
    scopes: ScopeSet,
    audience: Audience,
) -> Result<TokenResponse, OAuthFailure> {
    let access = new_secret(state, TokenKind::Access)?;
    let token =
        |kind, scopes, audience| OAuthToken { kind, account: grant.grantor.account, grant: grant.id, scopes, audience };
    store::oauth::token::create(batch, &access, &token(TokenKind::Access, scopes, audience));
    store::oauth::token::create(batch, refresh, &token(TokenKind::Refresh, grant.scopes, grant.audience));
    Ok(TokenResponse::new(&access, refresh, scopes))
}

fn new_secret(state: &AppState, kind: TokenKind) -> Result<ExpiringSecret, OAuthFailure> {
    let (kind, lifetime) = match kind {
        TokenKind::Access => (SecretKind::AccessToken, ACCESS_TOKEN_TTL),
        TokenKind::Refresh => (SecretKind::RefreshToken, REFRESH_TOKEN_TTL),
    };
    let expires_at = state.services.clock.now().checked_add(lifetime).map_err(Problem::internal)?;
    Ok(ExpiringSecret::new(kind, expires_at, state.services.entropy.secret()))
}
