//! `Confirmation`: the password or a code by which a signed-in user proves again who they are.

use std::net::IpAddr;

use accounts::users::UserService;
use httpd::request_value::AnyText;
use model::totp::SecondFactorCode;
use model::user::User;

use super::request::parse_password;
use super::{login_log, user_error_problem};
use crate::prelude::*;

/// The user's password, or a code; exactly one of them
#[derive(RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX, check = check_confirmation)]
pub struct Confirmation {
    /// The user's password
    #[field(parse = parse_password, schema = String::schema)]
    password: Option<String>,
    /// A one-time password or a recovery code
    #[field(reader = AnyText)]
    code: Option<String>,
}

fn check_confirmation(given: &Confirmation, _: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    match (&given.password, &given.code) {
        (Some(_), Some(_)) => notes.errors.add("code", "cannot be combined with `password`"),
        (None, None) if notes.errors.is_empty() => {
            notes.errors.add("password", "is required, or `code` for a user with one-time passwords");
        }
        _ => {}
    }
}

impl Confirmation {
    /// Verifies the password or the code. Returns the user as it must be stored: an accepted code is used up.
    ///
    /// # Errors
    /// 403 when the password or the code is wrong; 429 after too many attempts; 503 when too many passwords are
    /// verified at once.
    pub async fn verify(self, state: &AppState, user: &User, client_ip: Option<IpAddr>) -> Result<User> {
        let (email, now) = (user.email.to_string(), state.services.clock.now());
        match self.password {
            Some(password) => {
                let Some(hash) = user.password.clone() else { return Err(no_password_problem(user)) };
                let attempt = state.sign_in.limiter.try_password(client_ip, &email, now)?;
                match state.sign_in.passwords.verify(password, Some(hash)).await {
                    Ok(true) => attempt.succeed(),
                    Ok(false) => {
                        login_log::wrong_password(client_ip, &email);
                        return Err(Problem::new(ErrorCode::FORBIDDEN, "The password is wrong"));
                    }
                    Err(problem) => {
                        attempt.discard();
                        return Err(problem);
                    }
                }
                Ok(user.clone())
            }
            None => {
                let attempt = state.sign_in.limiter.try_code(client_ip, &email, now)?;
                let users = UserService::new(&state.services);
                let accepted = match SecondFactorCode::parse(&self.code.unwrap_or_default()) {
                    Some(code) => users.accept_code(&state.accounts.vault, user, &code).map_err(user_error_problem)?,
                    None => None,
                };
                let Some(after) = accepted else {
                    login_log::wrong_code(client_ip, &email);
                    return Err(user_error_problem(accounts::users::UserError::WrongCode));
                };
                attempt.succeed();
                Ok(after)
            }
        }
    }
}

/// The problem of a user who gave a password but has none.
fn no_password_problem(user: &User) -> Problem {
    let text = match user.has_totp() {
        true => "You have no password: send `code`",
        false => {
            "You have no password: sign in again with an emailed link, or set a password within 15 minutes of doing so"
        }
    };
    Problem::new(ErrorCode::FORBIDDEN, text)
}
