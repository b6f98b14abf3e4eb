//! `POST /auth/sign-in`: signing in by password.

use accounts::users::UserService;
use model::user::{SessionStart, SignInMethod, User};

use super::code_sign_in::{SignInResponse, finish_first_step};
use super::request::{SignInClient, email_schema, parse_email, parse_password};
use super::{login_log, user_error_problem};
use crate::prelude::*;

/// The user who signs in
#[derive(RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct PasswordSignIn {
    /// The user's email address
    #[field(parse = parse_email, schema = email_schema)]
    email: Address,
    /// The user's password
    #[field(parse = parse_password, schema = String::schema)]
    password: String,
}

/// `POST /auth/sign-in`.
///
/// # Errors
/// 401 for a wrong address and for a wrong password; 429 after too many attempts; 503 when too many sign in at once.
pub async fn sign_in(state: State, (client, request): (SignInClient, PasswordSignIn)) -> Result<SignInResponse> {
    let (PasswordSignIn { email, password }, from) = (request, client.client_ip);
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
    let start = SessionStart::new(SignInMethod::Password, from, client.user_agent.as_deref());
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
) -> Result<Option<User>> {
    let user = users.by_email(email).await.map_err(user_error_problem)?;
    let hash = user.as_ref().and_then(|user| user.password.clone());
    let is_correct = state.sign_in.passwords.verify(password, hash).await?;
    Ok(user.filter(|_| is_correct))
}
