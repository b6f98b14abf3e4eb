//! The second step of signing in, for users with one-time passwords: a challenge and a code.
//!
//! ```text
//! POST /auth/sign-in, POST /auth/link/{token} ─► challenge ─► GET (page) ─► POST /auth/code/{challenge} ─► session
//! ```
//!
//! The challenge proves the first step. It expires after five minutes, works once, and is no link: it is stored as a
//! sign-in link of another kind. Programs send JSON, the page sends a form.

use accounts::users::{UserError, UserService};
use httpd::request_value::AnyText;
use httpd::response::{CookiePolicy, ExtraResponse, IntoResponse, Response};
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::totp::SecondFactorCode;
use model::user::{SessionStart, SignInLink, SignInLinkKind, SignInMethod, User};

use super::link_page::{LoginPage, redirect, wants_page};
use super::login_log::LoginKind;
use super::request::SignInClient;
use super::session::begin_session;
use super::view::{SessionResponse, WithSessionCookie};
use super::{login_log, user_error_problem};
use crate::prelude::*;

/// Lifetime of a challenge.
const CHALLENGE_TTL: Duration = Duration::from_secs(5 * 60);
const CHALLENGE: &str = "challenge";
const CODE: &str = "code";

/// The first step of signing in succeeded; a one-time password is required
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SignInChallenge")]
pub struct ChallengeResponse {
    #[schema(const = true)]
    totp_required: bool,
    /// For `POST /auth/code/{challenge}`; works once
    challenge: String,
    /// When the challenge expires
    expires_at: JsonTimestamp,
}

/// The response to the first step of signing in: a session, or a challenge for a user with one-time passwords.
#[derive(Debug)]
pub enum SignInResponse {
    Session(Box<WithSessionCookie<SessionResponse>>),
    Challenge(ChallengeResponse),
}

impl SignInResponse {
    /// The path to which a browser is led.
    pub(super) fn next_page(&self) -> String {
        match self {
            Self::Session(_) => DASHBOARD.to_owned(),
            Self::Challenge(ChallengeResponse { challenge, .. }) => format!("/auth/code/{challenge}"),
        }
    }
}

/// The page to which a browser is led after signing in.
const DASHBOARD: &str = "/dashboard";

impl IntoResponse for SignInResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Session;

    fn describe(schemas: &mut Schemas) -> Value {
        json!({"oneOf": [SessionResponse::describe(schemas), ChallengeResponse::describe(schemas)]})
    }

    fn into_response(self) -> Result<Response> {
        match self {
            Self::Session(session) => (*session).into_response(),
            Self::Challenge(challenge) => challenge.into_response(),
        }
    }
}

/// Completes the first step of signing in: begins a session or, for a user with one-time passwords, creates a
/// challenge. Commits `batch` with it.
///
/// # Errors
/// 409 when the user changed since it was read; the store cannot be written.
pub(super) async fn finish_first_step(
    users: &UserService,
    user: &User,
    start: SessionStart,
    mut batch: Batch,
) -> Result<SignInResponse> {
    if !user.has_totp() {
        return begin_session(users, user, user, start, batch)
            .await
            .map(|session| SignInResponse::Session(Box::new(session)));
    }
    // The commit conflicts if the password was changed after it was verified.
    store::user::check_unchanged(&mut batch, user);
    let token = users.create_link(&mut batch, user, SignInLinkKind::SecondFactor(start.method), CHALLENGE_TTL);
    users.store.commit(batch).await.map_err(|error| user_error_problem(UserError::from(error)))?;
    let expires_at = JsonTimestamp(token.expires_at);
    Ok(SignInResponse::Challenge(ChallengeResponse { totp_required: true, challenge: token.text(), expires_at }))
}

fn challenge_parameter() -> Value {
    schema::path_parameter(CHALLENGE, "The challenge of the first step")
}

#[derive(Debug)]
pub struct ChallengePath(());

impl FromRequest for ChallengePath {
    fn parameters() -> Vec<Value> {
        vec![challenge_parameter()]
    }

    fn read(_: &Request) -> Result<Self> {
        Ok(Self(()))
    }
}

/// `GET /auth/code/{challenge}`: a page with a form for the code. It reads and changes nothing.
pub async fn show_page(_: State, _: ChallengePath) -> Result<LoginPage> {
    Ok(LoginPage::Code { is_wrong: false })
}

/// Path and body of `POST /auth/code/{challenge}`.
pub struct CodeSignIn {
    challenge: Option<ExpiringSecret>,
    code: String,
    client: SignInClient,
    wants_page: bool,
}

impl FromRequest for CodeSignIn {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::Form;
    const BODY: Option<BodySchema> = Some(CodeField::schema);

    fn parameters() -> Vec<Value> {
        vec![challenge_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self {
            challenge: ExpiringSecret::parse(SecretKind::SignInLink, call.path_parameter(CHALLENGE)),
            code: read_code(call)?,
            client: SignInClient::read(call)?,
            wants_page: wants_page(&call.headers),
        })
    }
}

/// Reads the code of a JSON object or a form.
fn read_code(call: &Request) -> Result<String> {
    let required = || Problem::field(CODE, "is required");
    if !call.body.trim_ascii_start().starts_with(b"{") {
        let form = paging::parse_query(std::str::from_utf8(&call.body).unwrap_or_default())?;
        return form.into_iter().find(|(name, _)| name == CODE).map(|(_, value)| value).ok_or_else(required);
    }
    read_body::<CodeField>(call).map(|field| field.code)
}

/// The code, as a form or as JSON
#[derive(RequestObject)]
struct CodeField {
    /// A one-time password or a recovery code
    #[field(reader = AnyText)]
    code: String,
}

/// The response to a code: JSON for programs; for browsers a redirect, or the page again.
#[derive(Debug)]
pub enum CodeSignInResponse {
    Session(WithSessionCookie<SessionResponse>),
    SignedInPage(WithSessionCookie<SessionResponse>),
    /// The page with an error.
    TryAgain(StatusCode, LoginPage),
}

impl IntoResponse for CodeSignInResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[
        ExtraResponse::empty(303, "For browsers: to the dashboard"),
        ExtraResponse::html(401, "For browsers: the page with the error"),
    ];

    fn describe(schemas: &mut Schemas) -> Value {
        SessionResponse::describe(schemas)
    }

    fn into_response(self) -> Result<Response> {
        match self {
            Self::Session(session) => session.into_response(),
            Self::SignedInPage(session) => redirect(session.into_response()?, DASHBOARD),
            Self::TryAgain(status, page) => Ok(Response { status, ..page.into_response()? }),
        }
    }
}

/// `POST /auth/code/{challenge}`.
///
/// # Errors
/// 401 for a challenge that was used or has expired, and for a wrong code; 429 after too many attempts.
pub async fn sign_in(state: State, request: CodeSignIn) -> Result<CodeSignInResponse> {
    let is_page = request.wants_page;
    match verify_code(&state, request).await {
        Ok(session) if is_page => Ok(CodeSignInResponse::SignedInPage(session)),
        Ok(session) => Ok(CodeSignInResponse::Session(session)),
        Err(CodeSignInError::WrongCode) if is_page => {
            Ok(CodeSignInResponse::TryAgain(StatusCode::UNAUTHORIZED, LoginPage::Code { is_wrong: true }))
        }
        Err(CodeSignInError::Expired) if is_page => {
            Ok(CodeSignInResponse::TryAgain(StatusCode::UNAUTHORIZED, LoginPage::Expired))
        }
        Err(CodeSignInError::WrongCode) => {
            Err(Problem::new(ErrorCode::UNAUTHORIZED, "The code is wrong or has already been used"))
        }
        Err(CodeSignInError::Expired) => {
            Err(Problem::new(ErrorCode::UNAUTHORIZED, "The challenge has been used or has expired; sign in again"))
        }
        Err(CodeSignInError::Other(problem)) => Err(problem),
    }
}

enum CodeSignInError {
    WrongCode,
    /// The challenge is malformed, used or expired.
    Expired,
    Other(Problem),
}

impl From<Problem> for CodeSignInError {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

async fn verify_code(
    state: &AppState,
    request: CodeSignIn,
) -> Result<WithSessionCookie<SessionResponse>, CodeSignInError> {
    let CodeSignIn { challenge, code, client: SignInClient { client_ip: from, user_agent }, .. } = request;
    let now = state.services.clock.now();
    let attempt = state.sign_in.limiter.try_token(from, now)?;
    let Some((token, challenge, method, user)) = find_challenge(state, challenge).await? else {
        state.sign_in.log.failed(LoginKind::SignInChallenge, from, "used_or_expired", now);
        return Err(CodeSignInError::Expired);
    };
    attempt.discard();
    let (users, email) = (UserService::new(&state.services), user.email.to_string());
    let attempt = state.sign_in.limiter.try_code(from, &email, now)?;
    let accepted = match SecondFactorCode::parse(&code) {
        Some(code) => users.accept_code(&state.accounts.vault, &user, &code).map_err(user_error_problem)?,
        None => None,
    };
    let Some(after) = accepted else {
        login_log::wrong_code(from, &email);
        return Err(CodeSignInError::WrongCode);
    };
    let mut batch = Batch::progress();
    store::sign_in_link::consume(&mut batch, &token, &challenge);
    store::user::update(&mut batch, &user, &after);
    let start = SessionStart::new(method, from, user_agent.as_deref());
    let session = match begin_session(&users, &user, &after, start, batch).await {
        // Another request used the challenge or the code at the same moment.
        Err(problem) if problem.code() == ErrorCode::CONFLICT => return Err(CodeSignInError::Expired),
        started => started?,
    };
    attempt.succeed();
    state.sign_in.limiter.remember_user_network(from, &email, now);
    Ok(session)
}

/// Reads a live challenge with its user.
async fn find_challenge(
    state: &AppState,
    token: Option<ExpiringSecret>,
) -> Result<Option<(ExpiringSecret, SignInLink, SignInMethod, User)>> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let Some(token) = token.filter(|token| now < token.expires_at) else { return Ok(None) };
    let Some(challenge) = store::sign_in_link::get(store, &token).await? else { return Ok(None) };
    let SignInLinkKind::SecondFactor(method) = challenge.kind else { return Ok(None) };
    let user = store::user::get(store, challenge.account, challenge.user).await?;
    let user = user.filter(|user| challenge.is_valid_for(user) && user.has_totp());
    Ok(user.map(|user| (token, challenge, method, user)))
}
