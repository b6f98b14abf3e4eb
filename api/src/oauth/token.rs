//! `POST /oauth/token`: tokens for an authorization code, a device code or a refresh token.
//!
//! A code and a refresh token work once. The second use of either means that somebody else has it, so it ends the grant
//! (RFC 6749 4.1.2, RFC 9700 4.14.2).

use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::oauth::scope::ScopeSet;
use model::oauth::{AuthorizationCode, DeviceDecision, OAuthGrant, TokenKind, pkce};

use super::device_polls::PollDecision;
use super::error::{OAuthError, OAuthErrorCode, OAuthFailure, OAuthResponse};
use super::form::{OAuthFields, OAuthForm, OAuthParameters};
use super::grant_type::{AUTHORIZATION_CODE, DEVICE_CODE, REFRESH_TOKEN};
use super::issue::{GrantTerms, create_grant, current_grantor, refresh_grant};
use super::token_response::TokenResponse;
use crate::auth::login_links::{self, AccessGrant};
use crate::prelude::*;

/// Attempts after a concurrent change.
const TRIES_MAX: usize = 3;

/// The fields of the token request.
#[derive(Debug)]
pub struct TokenFields;

impl OAuthFields for TokenFields {
    const ABOUT: &'static str = "The token request (RFC 6749 4.1.3 and 6, RFC 8628 3.4), as a form";
    const REQUIRED: &'static [&'static str] = &["grant_type", "client_id"];
    const FIELDS: &'static [(&'static str, &'static str)] = &[
        ("grant_type", "`authorization_code`, `refresh_token` or `urn:ietf:params:oauth:grant-type:device_code`"),
        ("client_id", "The client's id"),
        ("code", "The authorization code"),
        ("redirect_uri", "The redirect URI of the authorization request"),
        ("code_verifier", "The code verifier (RFC 7636)"),
        ("refresh_token", "The refresh token; it works once"),
        ("device_code", "The device code"),
        ("scope", "For a refresh: fewer scopes than the grant has"),
        ("resource", "A resource of the grant (RFC 8707); all of them if absent"),
    ];
}

/// `POST /oauth/token`.
pub async fn exchange(state: State, form: OAuthForm<TokenFields>) -> Result<OAuthResponse<TokenResponse>> {
    OAuthResponse::from_result(exchange_form(&state, &form.parameters).await)
}

async fn exchange_form(state: &State, form: &OAuthParameters) -> Result<TokenResponse, OAuthFailure> {
    match form.require("grant_type")? {
        AUTHORIZATION_CODE => exchange_code(state, form).await,
        REFRESH_TOKEN => exchange_refresh_token(state, form).await,
        DEVICE_CODE => exchange_device_code(state, form).await,
        _ => {
            let text = "`grant_type` must be `authorization_code`, `refresh_token` or the one of RFC 8628";
            Err(OAuthError::new(OAuthErrorCode::UnsupportedGrantType, text).into())
        }
    }
}

fn invalid_grant(description: &str) -> OAuthFailure {
    OAuthError::new(OAuthErrorCode::InvalidGrant, description).into()
}

async fn exchange_code(state: &State, form: &OAuthParameters) -> Result<TokenResponse, OAuthFailure> {
    let unknown = || invalid_grant("The code is unknown, has expired or has been used");
    let (client_id, verifier) = (form.require("client_id")?, form.require("code_verifier")?);
    let secret = ExpiringSecret::parse(SecretKind::AuthorizationCode, form.require("code")?).ok_or_else(unknown)?;
    for _ in 0..TRIES_MAX {
        let code = store::oauth::code::get(&state.services.store, &secret).await?.ok_or_else(unknown)?;
        if let Some(grant) = code.grant {
            end_reused(state, code.grantor.account, grant, "authorization code").await?;
            return Err(unknown());
        }
        if secret.expires_at <= state.services.clock.now() {
            return Err(unknown());
        }
        check_code(&code, client_id, verifier, form)?;
        let audience = form.audience(&state.options.base_url)?;
        if audience.is_some_and(|audience| !code.audience.covers(audience)) {
            return Err(wrong_target());
        }
        let user = current_grantor(state, code.grantor).await?.ok_or_else(unknown)?;
        let terms = GrantTerms {
            grantor: code.grantor,
            client: code.client.clone(),
            scopes: code.scopes,
            audience: audience.unwrap_or(code.audience),
            policy: code.policy.clone(),
        };
        let mut batch = Batch::progress();
        let (grant, response) = create_grant(state, &mut batch, &user, terms).await?;
        store::oauth::code::use_up(&mut batch, &secret, &code, grant);
        if state.commit(batch).await? {
            notify_granted(state, code.grantor.account, grant).await;
            return Ok(response);
        }
        // Another request used the code at the same moment, or the user changed: the next turn tells.
    }
    Err(OAuthFailure::Problem(Problem::busy()))
}

fn check_code(
    code: &AuthorizationCode,
    client_id: &str,
    verifier: &str,
    form: &OAuthParameters,
) -> Result<(), OAuthFailure> {
    if code.client.id != client_id {
        return Err(invalid_grant("The code belongs to another client"));
    }
    // OAuth 2.1 does not require it; a different one is wrong.
    if form.find("redirect_uri")?.is_some_and(|uri| uri != code.redirect_uri) {
        return Err(invalid_grant("`redirect_uri` is not the one of the authorization request"));
    }
    if !pkce::verify(&code.challenge, verifier) {
        return Err(invalid_grant("`code_verifier` does not belong to the code challenge"));
    }
    Ok(())
}

fn wrong_target() -> OAuthFailure {
    OAuthError::new(OAuthErrorCode::InvalidTarget, "`resource` was not requested at the authorization").into()
}

async fn exchange_refresh_token(state: &State, form: &OAuthParameters) -> Result<TokenResponse, OAuthFailure> {
    let unknown = || invalid_grant("The refresh token is unknown, expired, revoked or has been used");
    let client_id = form.require("client_id")?;
    let secret = ExpiringSecret::parse(SecretKind::RefreshToken, form.require("refresh_token")?);
    let secret = secret.ok_or_else(unknown)?;
    for _ in 0..TRIES_MAX {
        let (store, now) = (&state.services.store, state.services.clock.now());
        let token = store::oauth::token::get(store, &secret).await?.filter(|token| token.kind == TokenKind::Refresh);
        let token = token.filter(|_| now < secret.expires_at).ok_or_else(unknown)?;
        let grant = store::oauth::grant::get(store, token.account, token.grant).await?.ok_or_else(unknown)?;
        if grant.client.id != client_id {
            return Err(invalid_grant("The refresh token belongs to another client"));
        }
        if grant.refresh != secret.hash() {
            end_reused(state, token.account, grant.id, "refresh token").await?;
            return Err(unknown());
        }
        if current_grantor(state, grant.grantor).await?.is_none() {
            end_grant(state, token.account, grant.id).await?;
            return Err(unknown());
        }
        let scopes = refreshed_scopes(form, &grant)?;
        let audience = form.audience(&state.options.base_url)?.unwrap_or(grant.audience);
        if !grant.audience.covers(audience) {
            return Err(wrong_target());
        }
        let mut batch = Batch::progress();
        let response = refresh_grant(state, &mut batch, &grant, scopes, audience).await?;
        if state.commit(batch).await? {
            return Ok(response);
        }
    }
    Err(OAuthFailure::Problem(Problem::busy()))
}

/// The scopes of a refreshed access token: those of the grant, or fewer (RFC 6749 6).
fn refreshed_scopes(form: &OAuthParameters, grant: &OAuthGrant) -> Result<ScopeSet, OAuthError> {
    let Some(text) = form.find("scope")? else { return Ok(grant.scopes) };
    let scopes = ScopeSet::parse_known(text);
    if scopes.is_empty() || !scopes.is_subset_of(grant.scopes) {
        let text = format!("`scope` must be scopes of the grant: {}", grant.scopes);
        return Err(OAuthError::new(OAuthErrorCode::InvalidScope, text));
    }
    Ok(scopes)
}

async fn exchange_device_code(state: &State, form: &OAuthParameters) -> Result<TokenResponse, OAuthFailure> {
    let unknown = || invalid_grant("The device code is unknown or has been used");
    let error = |code, text: &str| OAuthFailure::from(OAuthError::new(code, text));
    let client_id = form.require("client_id")?;
    let secret = ExpiringSecret::parse(SecretKind::DeviceCode, form.require("device_code")?).ok_or_else(unknown)?;
    for _ in 0..TRIES_MAX {
        let now = state.services.clock.now();
        if secret.expires_at <= now {
            return Err(error(OAuthErrorCode::ExpiredToken, "The device code has expired; start again"));
        }
        let device = store::oauth::device::get(&state.services.store, &secret).await?.ok_or_else(unknown)?;
        if device.client.id != client_id {
            return Err(invalid_grant("The device code belongs to another client"));
        }
        let (grantor, scopes) = match device.decision {
            DeviceDecision::Pending => {
                return Err(match state.oauth.device_polls.poll(secret.hash(), secret.expires_at, now) {
                    PollDecision::Wait => error(OAuthErrorCode::AuthorizationPending, "The user has not decided yet"),
                    PollDecision::SlowDown => {
                        error(OAuthErrorCode::SlowDown, "Wait five seconds longer between requests")
                    }
                });
            }
            DeviceDecision::Denied => {
                return Err(error(OAuthErrorCode::AccessDenied, "The user denied the request"));
            }
            DeviceDecision::Approved(grantor, scopes) => (grantor, scopes),
        };
        let user = current_grantor(state, grantor).await?.ok_or_else(unknown)?;
        let mut batch = Batch::progress();
        let terms = GrantTerms {
            grantor,
            client: device.client.clone(),
            scopes,
            audience: device.audience,
            policy: device.policy.clone(),
        };
        let (grant, response) = create_grant(state, &mut batch, &user, terms).await?;
        store::oauth::device::consume(&mut batch, &secret, &device);
        if state.commit(batch).await? {
            notify_granted(state, grantor.account, grant).await;
            return Ok(response);
        }
    }
    Err(OAuthFailure::Problem(Problem::busy()))
}

/// Ends a grant because its code or refresh token was used twice.
async fn end_reused(
    state: &AppState,
    account: AccountId,
    grant: GrantId,
    secret: &'static str,
) -> Result<(), CommitError> {
    tracing::warn!(%account, %grant, secret, "a secret of a grant was used twice: the grant ends");
    end_grant(state, account, grant).await
}

/// Ends a grant, and the streams of its access tokens.
pub(super) async fn end_grant(state: &AppState, account: AccountId, grant: GrantId) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    store::oauth::grant::delete(&mut batch, account, grant);
    state.services.store.commit(batch).await?;
    state.accounts.credentials.forget_last_used(grant.to_bytes());
    state.accounts.credentials.notify_access_change(account);
    Ok(())
}

/// Notifies the owners by email of new access.
async fn notify_granted(state: &State, account: AccountId, grant: GrantId) {
    if let Ok(Some(account)) = store::account::get(&state.services.store, account).await {
        login_links::notify_access_granted(state, &account, AccessGrant::Credential("OAuth grant", grant.to_string()));
    }
}
