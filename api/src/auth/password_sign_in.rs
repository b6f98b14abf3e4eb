//! `POST /auth/sign-in`: signing in by password.

use std::net::IpAddr;

use accounts::users::UserService;
use httpd::fields::{FieldDiagnostics, FieldNames};
use message::address::Address;
use model::user::{SessionStart, SignInMethod, User};
use store::engine::Batch;

use super::code_sign_in::{SignInResponse, finish_first_step};
use super::{EMAIL, PASSWORD, login_log, read_email, read_password, user_agent, user_error_problem};
use crate::prelude::*;

/// Body of `POST /auth/sign-in`.
pub struct PasswordSignIn {
    email: Address,
    password: String,
    client_ip: Option<IpAddr>,
    user_agent: Option<String>,
}

impl FromRequest for PasswordSignIn {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object(
            "The user who signs in",
            [
                ("email", schema::address("The user's email address")),
                ("password", schema::string("The user's password")),
            ],
        );
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(EMAIL, EMAIL), (PASSWORD, PASSWORD)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let email = read_email(&fields, &mut notes);
        let password = read_password(&fields, PASSWORD, &mut notes);
        if !fields.is_present_or_misnamed(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        match (email, password) {
            (Some(email), Some(password)) if notes.errors.is_empty() => {
                Ok(Self { email, password, client_ip: call.client_ip, user_agent: user_agent(call) })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/sign-in`.
///
/// # Errors
/// 401 for a wrong address and for a wrong password; 429 after too many attempts; 503 when too many sign in at once.
pub async fn sign_in(state: Arc<AppState>, request: PasswordSignIn) -> Result<SignInResponse, Problem> {
    let PasswordSignIn { email, password, client_ip: from, user_agent } = request;
    let text = email.to_string();
    let now = state.services.clock.now();
    let attempt = state.sign_in.limiter.try_password(from, &text, now)?;
    let users = UserService::new(&state.services);
    let user = match verify_credentials(&state, &users, &email, password).await {
        Ok(user) => user,
        Err(problem) => {
            attempt.discard();
            return Err(problem);
        }
    };
    let Some(user) = user else {
        login_log::wrong_password(from, &text);
        return Err(Problem::new(ErrorCode::UNAUTHORIZED, "The email address or the password is wrong"));
    };
    attempt.succeed();
    let start = SessionStart::new(SignInMethod::Password, from, user_agent.as_deref());
    let signed_in = finish_first_step(&users, &user, start, Batch::progress()).await?;
    if matches!(signed_in, SignInResponse::Session(_)) {
        state.sign_in.limiter.remember_user_network(from, &text, now);
    }
    Ok(signed_in)
}

/// Returns the address's user if the password is correct.
async fn verify_credentials(
    state: &AppState,
    users: &UserService,
    email: &Address,
    password: String,
) -> Result<Option<User>, Problem> {
    let user = users.by_email(email).await.map_err(user_error_problem)?;
    let hash = user.as_ref().and_then(|user| user.password.clone());
    let is_correct = state.sign_in.passwords.verify(password, hash).await?;
    Ok(user.filter(|_| is_correct))
}
