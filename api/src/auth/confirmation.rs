//! `Confirmation`: the password or a code by which a signed-in user proves again who they are.

use std::net::IpAddr;

use accounts::users::UserService;
use httpd::fields::{self, FieldDiagnostics, FieldNames};
use model::totp::SecondFactorCode;
use model::user::User;

use super::{PASSWORD, login_log, read_password, user_error_problem};
use crate::prelude::*;

const CODE: &str = "code";

/// A body with the user's password or a code.
pub struct Confirmation {
    proof: ConfirmationProof,
    client_ip: Option<IpAddr>,
}

enum ConfirmationProof {
    Password(String),
    /// A one-time password or a recovery code.
    Code(String),
}

impl FromRequest for Confirmation {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object_with(
            "The user's password, or a code; exactly one of them",
            &[],
            [
                (PASSWORD, schema::string("The user's password")),
                (CODE, schema::string("A one-time password or a recovery code")),
            ],
        );
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(PASSWORD, PASSWORD), (CODE, CODE)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let password = read_password(&fields, PASSWORD, &mut notes);
        let code = fields.value(CODE).map(fields::parse_text);
        let code = code.and_then(|parsed| parsed.map_err(|text| notes.errors.add(CODE, text)).ok());
        let proof = match (password, code) {
            (Some(password), None) => ConfirmationProof::Password(password),
            (None, Some(code)) => ConfirmationProof::Code(code.into_owned()),
            (Some(_), Some(_)) => {
                notes.errors.add(CODE, "cannot be combined with `password`");
                return Err(notes.errors.into());
            }
            (None, None) => {
                if notes.errors.is_empty() {
                    notes.errors.add(PASSWORD, "is required, or `code` for a user with one-time passwords");
                }
                return Err(notes.errors.into());
            }
        };
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        Ok(Self { proof, client_ip: call.client_ip })
    }
}

impl Confirmation {
    /// Verifies the password or the code. Returns the user as it must be stored: an accepted code is used up.
    ///
    /// # Errors
    /// 403 when the password or the code is wrong; 429 after too many attempts; 503 when too many passwords are
    /// verified at once.
    pub async fn verify(self, state: &AppState, user: &User) -> Result<User, Problem> {
        let (email, now) = (user.email.to_string(), state.services.clock.now());
        match self.proof {
            ConfirmationProof::Password(password) => {
                let Some(hash) = user.password.clone() else { return Err(no_password_problem(user)) };
                let attempt = state.sign_in.limiter.try_password(self.client_ip, &email, now)?;
                match state.sign_in.passwords.verify(password, Some(hash)).await {
                    Ok(true) => attempt.succeed(),
                    Ok(false) => {
                        login_log::wrong_password(self.client_ip, &email);
                        return Err(Problem::new(ErrorCode::FORBIDDEN, "The password is wrong"));
                    }
                    Err(problem) => {
                        attempt.discard();
                        return Err(problem);
                    }
                }
                Ok(user.clone())
            }
            ConfirmationProof::Code(code) => {
                let attempt = state.sign_in.limiter.try_code(self.client_ip, &email, now)?;
                let users = UserService::new(&state.services);
                let accepted = match SecondFactorCode::parse(&code) {
                    Some(code) => users.accept_code(&state.accounts.vault, user, &code).map_err(user_error_problem)?,
                    None => None,
                };
                let Some(after) = accepted else {
                    login_log::wrong_code(self.client_ip, &email);
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
