//! `/auth/totp`: set-up and removal of the user's own one-time passwords (RFC 6238).
//!
//! ```text
//! POST /auth/totp ─► secret ─► POST /auth/totp/confirm {code} ─► recovery codes, shown once
//! ```

use accounts::users::UserService;
use httpd::request_value::AnyText;
use model::totp::{RecoveryCode, base32, otpauth_uri};

use super::confirmation::Confirmation;
use super::request::SignInClient;
use super::{login_links, user_error_problem};
use crate::prelude::*;

/// A new secret; it is inactive until it is confirmed with a code
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TotpSecret")]
pub struct BeginTotpResponse {
    /// The secret in base32, for an authenticator app; shown once
    secret: String,
    /// The same as a URI, for a QR code
    otpauth_uri: String,
}

object_view! {
    /// The user's recovery codes; shown once
    #[schema(name = "RecoveryCodes")]
    pub struct RecoveryCodesResponse, fn from_codes(codes: &[RecoveryCode]) {
        /// Ten codes; each replaces a one-time password once
        recovery_codes: Vec<String> = codes.iter().map(RecoveryCode::text).collect(),
    }
}

/// `POST /auth/totp`: creates a secret, which replaces one that was not confirmed.
///
/// # Errors
/// 409 when one-time passwords are active.
pub async fn begin(state: State, signed_in: SignedInUser, _: NoInput) -> Result<BeginTotpResponse> {
    let users = UserService::new(&state.services);
    let user = signed_in.user();
    let secret = users.begin_totp(&state.accounts.vault, user).await.map_err(user_error_problem)?;
    // An authenticator app shows the service's host above the code.
    let base_url = &state.options.base_url;
    let issuer = base_url.split_once("://").map_or(base_url.as_str(), |(_, host)| host);
    let otpauth_uri = otpauth_uri(issuer, &user.email.to_string(), &secret);
    Ok(BeginTotpResponse { secret: base32(&secret), otpauth_uri })
}

/// A code of the new secret
#[derive(RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct ConfirmTotp {
    /// The six digits that the authenticator app shows
    #[field(reader = AnyText)]
    code: String,
}

/// `POST /auth/totp/confirm`: activates the secret. From then on, sign-in asks for a code.
///
/// # Errors
/// 403 when the code is wrong; 409 when no secret waits for confirmation; 429 after too many attempts.
pub async fn confirm(
    state: State,
    signed_in: SignedInUser,
    (client, ConfirmTotp { code }): (SignInClient, ConfirmTotp),
) -> Result<RecoveryCodesResponse> {
    let user = signed_in.user();
    let now = state.services.clock.now();
    let attempt = state.sign_in.limiter.try_code(client.client_ip, &user.email.to_string(), now)?;
    let code = model::totp::SecondFactorCode::parse(&code).ok_or(accounts::users::UserError::WrongCode);
    let confirmed = match code {
        Ok(code) => UserService::new(&state.services).confirm_totp(&state.accounts.vault, user, &code).await,
        Err(error) => Err(error),
    };
    let codes = confirmed.map_err(user_error_problem)?;
    attempt.succeed();
    login_links::notify_totp_changed(&state, user, true);
    Ok(RecoveryCodesResponse::from_codes(&codes))
}

/// `POST /auth/totp/disable`: removes the secret and the recovery codes.
///
/// # Errors
/// 403 when the password or the code is wrong; 429 after too many attempts.
pub async fn disable(
    state: State,
    signed_in: SignedInUser,
    (client, request): (SignInClient, Confirmation),
) -> Result<OkResponse> {
    let user = signed_in.user();
    // The user's row is written as it was read: a recovery code that confirmed this disappears with the others.
    request.verify(&state, user, client.client_ip).await?;
    UserService::new(&state.services).disable_totp(user).await.map_err(user_error_problem)?;
    login_links::notify_totp_changed(&state, user, false);
    Ok(OkResponse::OK)
}

/// `POST /auth/totp/recovery-codes`: replaces the recovery codes.
///
/// # Errors
/// 409 when one-time passwords are not active.
pub async fn replace_recovery_codes(
    state: State,
    signed_in: SignedInUser,
    _: NoInput,
) -> Result<RecoveryCodesResponse> {
    let replaced = UserService::new(&state.services).replace_recovery_codes(signed_in.user()).await;
    Ok(RecoveryCodesResponse::from_codes(&replaced.map_err(user_error_problem)?))
}
