//! `POST /oauth/revoke`: revocation of a token by its client (RFC 7009). An access token ends alone, a refresh token with
//! its grant.

use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::oauth::TokenKind;

use super::error::{OAuthFailure, OAuthResponse};
use super::form::{OAuthFields, OAuthForm, OAuthParameters};
use super::token::end_grant;
use crate::prelude::*;

/// The fields of the revocation request.
#[derive(Debug)]
pub struct RevocationFields;

impl OAuthFields for RevocationFields {
    const ABOUT: &'static str = "The revocation request (RFC 7009 2.1), as a form";
    const REQUIRED: &'static [&'static str] = &["token"];
    const FIELDS: &'static [(&'static str, &'static str)] = &[
        ("token", "The access token or refresh token"),
        ("token_type_hint", "Ignored: the token tells its kind"),
        ("client_id", "The client's id"),
    ];
}

/// The token is invalid or no longer valid
#[derive(Debug, Serialize, ToSchema)]
pub struct RevocationResponse {}

/// `POST /oauth/revoke`. The response is the same for unknown tokens (RFC 7009 2.2).
pub async fn revoke(state: State, form: OAuthForm<RevocationFields>) -> Result<OAuthResponse<RevocationResponse>> {
    OAuthResponse::from_result(revoke_token(&state, &form.parameters).await)
}

async fn revoke_token(state: &AppState, form: &OAuthParameters) -> Result<RevocationResponse, OAuthFailure> {
    let token = form.require("token")?;
    let kinds = [SecretKind::AccessToken, SecretKind::RefreshToken];
    let secret = kinds.into_iter().find_map(|kind| ExpiringSecret::parse(kind, token));
    let Some(secret) = secret else { return Ok(RevocationResponse {}) };
    let store = &state.services.store;
    let Some(found) = store::oauth::token::get(store, &secret).await? else { return Ok(RevocationResponse {}) };
    // A token of another client is left alone (RFC 7009 2.1); the id is optional, because the token is the secret.
    let grant = store::oauth::grant::get(store, found.account, found.grant).await?;
    let client_id = form.find("client_id")?;
    if grant.is_some_and(|grant| client_id.is_some_and(|client_id| client_id != grant.client.id)) {
        return Ok(RevocationResponse {});
    }
    match found.kind {
        TokenKind::Refresh => end_grant(state, found.account, found.grant).await?,
        TokenKind::Access => {
            let mut batch = Batch::progress();
            store::oauth::token::delete(&mut batch, &secret);
            store.commit(batch).await?;
            state.accounts.credentials.notify_access_change(found.account);
        }
    }
    Ok(RevocationResponse {})
}
