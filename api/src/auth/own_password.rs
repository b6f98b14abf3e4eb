//! `POST /auth/password`: sets the user's own password.

use accounts::users::UserService;

use super::request::{SignInClient, parse_password};
use super::{login_links, password_hashing, user_error_problem};
use crate::access;
use crate::prelude::*;

/// A new password
#[derive(RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct SetPassword {
    /// The current password, if one is set
    #[field(parse = parse_password, schema = String::schema)]
    current_password: Option<String>,
    /// The new password
    #[field(
        aliases = ["new_password"], parse = parse_new_password,
        schema = json!({"type": "string", "minLength": password_hashing::CHARS_MIN, "maxLength": password_hashing::BYTES_MAX}),
    )]
    password: String,
}

fn parse_new_password(value: &RawValue) -> Result<String, String> {
    let password = parse_password(value)?;
    let error = || format!("is shorter than {} characters", password_hashing::CHARS_MIN);
    Some(password).filter(|password| password.chars().count() >= password_hashing::CHARS_MIN).ok_or_else(error)
}

/// The password was set
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "PasswordSet")]
pub struct SetPasswordResponse {
    #[schema(const = true)]
    ok: bool,
    /// Number of other sessions of the user that were ended
    sessions_ended: usize,
}

/// `POST /auth/password`: sets the user's password, ends their other sessions and notifies them by email. The current
/// password is not required within 15 minutes of signing in by a mailed link.
///
/// # Errors
/// 403 when the current password is wrong, or `reauthentication_required` for a first password; 429 after too many
/// attempts.
pub async fn set_password(
    state: State,
    signed_in: SignedInUser,
    (client, request): (SignInClient, SetPassword),
) -> Result<SetPasswordResponse> {
    let SetPassword { current_password, password } = request;
    let user = signed_in.user();
    let is_by_link = signed_in.session().has_fresh_sign_in_link(state.services.clock.now());
    if user.password.is_none() && !is_by_link {
        // A first password would otherwise let an old session prove what it is not.
        access::require_recent_authentication(signed_in.tenant())?;
    }
    if user.password.is_some() && !is_by_link {
        let email = user.email.to_string();
        let attempt = state.sign_in.limiter.try_password(client.client_ip, &email, state.services.clock.now())?;
        match state.sign_in.passwords.verify(current_password.unwrap_or_default(), user.password.clone()).await {
            Ok(true) => attempt.succeed(),
            Ok(false) => {
                let text = "`current_password` is wrong. If you have forgotten it, sign in with an emailed link and \
                    set a new password within 15 minutes";
                return Err(Problem::new(ErrorCode::FORBIDDEN, text));
            }
            Err(problem) => {
                attempt.discard();
                return Err(problem);
            }
        }
    }
    let salt = state.services.entropy.u128().to_ne_bytes();
    let hash = state.sign_in.passwords.hash(password, salt).await?;
    let users = UserService::new(&state.services);
    let sessions_ended = users.set_password(user, hash, signed_in.session().id).await.map_err(user_error_problem)?;
    login_links::notify_password_changed(&state, user);
    Ok(SetPasswordResponse { ok: true, sessions_ended })
}
