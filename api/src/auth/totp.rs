//! `/auth/totp`: set-up and removal of the user's own one-time passwords (RFC 6238).
//!
//! ```text
//! POST /auth/totp ─► secret ─► POST /auth/totp/confirm {code} ─► recovery codes, shown once
//! ```

use accounts::users::UserService;
use httpd::fields::{self, FieldDiagnostics, FieldNames};
use model::totp::{RecoveryCode, base32, otpauth_uri};
use store::access::SignedInUser;

use super::confirmation::Confirmation;
use super::{login_links, user_error_problem};
use crate::prelude::*;

const CODE: &str = "code";

/// A new secret; it is inactive until it is confirmed with a code
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TotpSecret")]
pub struct BeginTotpResponse {
    /// The secret in base32, for an authenticator app; shown once
    secret: String,
    /// The same as a URI, for a QR code
    otpauth_uri: String,
}

/// The user's recovery codes; shown once
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "RecoveryCodes")]
pub struct RecoveryCodesResponse {
    /// Ten codes; each replaces a one-time password once
    recovery_codes: Vec<String>,
}

impl RecoveryCodesResponse {
    fn from_codes(codes: &[RecoveryCode]) -> Self {
        Self { recovery_codes: codes.iter().map(RecoveryCode::text).collect() }
    }
}

/// `POST /auth/totp`: creates a secret, which replaces one that was not confirmed.
///
/// # Errors
/// 409 when one-time passwords are active.
pub async fn begin(state: Arc<AppState>, signed_in: SignedInUser, _: NoInput) -> Result<BeginTotpResponse, Problem> {
    let users = UserService::new(&state.services);
    let user = signed_in.user();
    let secret = users.begin_totp(&state.accounts.vault, user).await.map_err(user_error_problem)?;
    // An authenticator app shows the service's host above the code.
    let base_url = &state.options.base_url;
    let issuer = base_url.split_once("://").map_or(base_url.as_str(), |(_, host)| host);
    let otpauth_uri = otpauth_uri(issuer, &user.email.to_string(), &secret);
    Ok(BeginTotpResponse { secret: base32(&secret), otpauth_uri })
}

/// Body of `POST /auth/totp/confirm`.
pub struct ConfirmTotp {
    code: String,
    client_ip: Option<std::net::IpAddr>,
}

impl FromRequest for ConfirmTotp {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let code = schema::string("The six digits that the authenticator app shows");
        let body = schema::object("A code of the new secret", [(CODE, code)]);
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(CODE, CODE)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        match fields.value(CODE).map(fields::parse_text) {
            None => notes.errors.add(CODE, "is required"),
            Some(Err(text)) => notes.errors.add(CODE, text),
            Some(Ok(code)) if notes.errors.is_empty() => {
                return Ok(Self { code: code.into_owned(), client_ip: call.client_ip });
            }
            Some(Ok(_)) => {}
        }
        Err(notes.errors.into())
    }
}

/// `POST /auth/totp/confirm`: activates the secret. From then on, sign-in asks for a code.
///
/// # Errors
/// 403 when the code is wrong; 409 when no secret waits for confirmation; 429 after too many attempts.
pub async fn confirm(
    state: Arc<AppState>,
    signed_in: SignedInUser,
    request: ConfirmTotp,
) -> Result<RecoveryCodesResponse, Problem> {
    let ConfirmTotp { code, client_ip } = request;
    let user = signed_in.user();
    let now = state.services.clock.now();
    let attempt = state.sign_in.limiter.try_code(client_ip, &user.email.to_string(), now)?;
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
    state: Arc<AppState>,
    signed_in: SignedInUser,
    request: Confirmation,
) -> Result<OkResponse, Problem> {
    let user = signed_in.user();
    // The user's row is written as it was read: a recovery code that confirmed this disappears with the others.
    request.verify(&state, user).await?;
    UserService::new(&state.services).disable_totp(user).await.map_err(user_error_problem)?;
    login_links::notify_totp_changed(&state, user, false);
    Ok(OkResponse::OK)
}

/// `POST /auth/totp/recovery-codes`: replaces the recovery codes.
///
/// # Errors
/// 409 when one-time passwords are not active.
pub async fn replace_recovery_codes(
    state: Arc<AppState>,
    signed_in: SignedInUser,
    _: NoInput,
) -> Result<RecoveryCodesResponse, Problem> {
    let replaced = UserService::new(&state.services).replace_recovery_codes(signed_in.user()).await;
    Ok(RecoveryCodesResponse::from_codes(&replaced.map_err(user_error_problem)?))
}
