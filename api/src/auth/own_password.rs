//! `POST /auth/password`: sets the user's own password.

use std::net::IpAddr;

use accounts::users::UserService;
use httpd::fields::{FieldDiagnostics, FieldNames};
use store::access::SignedInUser;

use super::{PASSWORD, login_links, password_hashing, read_password, user_error_problem};
use crate::access;
use crate::prelude::*;

const CURRENT_PASSWORD: &str = "current_password";

/// Body of `POST /auth/password`.
pub struct SetPassword {
    current: Option<String>,
    password: String,
    from: Option<IpAddr>,
}

impl FromRequest for SetPassword {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let password = json!({
            "type": "string", "minLength": password_hashing::CHARS_MIN, "maxLength": password_hashing::BYTES_MAX,
            "description": "The new password",
        });
        let body = schema::object_with(
            "A new password",
            &[PASSWORD],
            [(CURRENT_PASSWORD, schema::string("The current password, if one is set")), (PASSWORD, password)],
        );
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[(PASSWORD, PASSWORD), ("new_password", PASSWORD), (CURRENT_PASSWORD, CURRENT_PASSWORD)],
            foreign: &[],
        };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let current = read_password(&fields, CURRENT_PASSWORD, &mut notes);
        let new = read_password(&fields, PASSWORD, &mut notes);
        if !fields.is_present_or_misnamed(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        if new.as_ref().is_some_and(|new| new.chars().count() < password_hashing::CHARS_MIN) {
            notes.errors.add(PASSWORD, format!("is shorter than {} characters", password_hashing::CHARS_MIN));
        }
        match new {
            Some(password) if notes.errors.is_empty() => Ok(Self { current, password, from: call.client_ip }),
            _ => Err(notes.errors.into()),
        }
    }
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
    state: Arc<AppState>,
    signed_in: SignedInUser,
    request: SetPassword,
) -> Result<SetPasswordResponse, Problem> {
    let SetPassword { current, password, from } = request;
    let user = signed_in.user();
    let is_by_link = signed_in.session().has_fresh_sign_in_link(state.services.clock.now());
    if user.password.is_none() && !is_by_link {
        // A first password would otherwise let an old session prove what it is not.
        access::require_recent_authentication(signed_in.tenant())?;
    }
    if user.password.is_some() && !is_by_link {
        let email = user.email.to_string();
        let attempt = state.sign_in.limiter.try_password(from, &email, state.services.clock.now())?;
        match state.sign_in.passwords.verify(current.unwrap_or_default(), user.password.clone()).await {
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
