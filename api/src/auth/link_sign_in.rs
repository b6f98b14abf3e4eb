//! Signing in by a mailed link: requesting a link, the page that it opens, and using it.
//!
//! A link works once and only by POST, so that mail scanners that fetch links do not use it up.

use accounts::users::UserService;
use httpd::response::{CookiePolicy, ExtraResponse, IntoResponse, Response};
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::user::{SessionStart, SignInLink, SignInLinkKind, SignInMethod, User};

use super::code_sign_in::{SignInResponse, finish_first_step};
use super::link_page::{LoginPage, redirect, wants_page};
use super::login_log::LoginKind;
use super::request::{SignInClient, email_schema, parse_email};
use super::session::begin_session;
use super::{login_links, user_error_problem};
use crate::prelude::*;

/// Maximum number of invitations of one address for which a requested link is mailed.
const INVITATIONS_MAX: usize = 3;

/// The user who signs in
#[derive(RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct RequestLoginLink {
    /// The user's email address
    #[field(parse = parse_email, schema = email_schema)]
    email: Address,
}

/// `POST /auth/link`: creates and mails the link after the response, so that its timing reveals nothing.
///
/// # Errors
/// 503 if the service has no sender address for email; 429 above the rate limit.
pub async fn request_link(
    state: State,
    (client, RequestLoginLink { email }): (SignInClient, RequestLoginLink),
) -> Result<OkResponse> {
    login_links::sender_address(&state)?;
    state.sign_in.limiter.count_link_request(client.client_ip, &email.to_string(), state.services.clock.now())?;
    let task_state = Arc::clone(&state);
    state.background.tasks.spawn(async move {
        if let Err(problem) = mail_link(&task_state, &email).await {
            let cause = problem.cause().unwrap_or_default();
            tracing::warn!(code = problem.code().word, cause, "cannot mail a sign-in link");
        }
    });
    Ok(OkResponse::OK)
}

/// Mails a link to the address's user; without a user, to its open invitations.
async fn mail_link(state: &State, email: &Address) -> Result<()> {
    if let Some(user) = UserService::new(&state.services).by_email(email).await.map_err(user_error_problem)? {
        return login_links::send_link(state, &user, login_links::LinkPurpose::SignIn).await;
    }
    let store = &state.services.store;
    for user in store::user::list_invitations(store, &email.to_string(), INVITATIONS_MAX).await? {
        login_links::send_link(state, &user, login_links::LinkPurpose::Invitation).await?;
    }
    Ok(())
}

/// Path and headers of a request with a link's token.
pub struct LoginLinkPath {
    token: Option<ExpiringSecret>,
    client: SignInClient,
    /// The client accepts HTML: a browser.
    wants_page: bool,
}

impl FromRequest for LoginLinkPath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter("token", "The token of the link")]
    }

    fn read(call: &Request) -> Result<Self> {
        let token = ExpiringSecret::parse(SecretKind::SignInLink, call.path_parameter("token"));
        Ok(Self { token, client: SignInClient::read(call)?, wants_page: wants_page(&call.headers) })
    }
}

/// `GET /auth/link/{token}`: a page with a button. It reads and changes nothing.
pub async fn show_link(_: State, _: LoginLinkPath) -> Result<LoginPage> {
    Ok(LoginPage::Link)
}

/// The response to using a link: JSON for programs; for browsers a redirect, or a page if the link is not valid.
#[derive(Debug)]
pub enum UseLinkResponse {
    Json(SignInResponse),
    Redirect(SignInResponse),
    ExpiredPage,
}

impl IntoResponse for UseLinkResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[
        ExtraResponse::empty(303, "For browsers: to the dashboard, or to the page that asks for a one-time password"),
        ExtraResponse::html(401, "For browsers: a page that says that the link was used or has expired"),
    ];

    fn describe(schemas: &mut Schemas) -> Value {
        SignInResponse::describe(schemas)
    }

    fn into_response(self) -> Result<Response> {
        match self {
            Self::Json(signed_in) => signed_in.into_response(),
            Self::Redirect(signed_in) => {
                let page = signed_in.next_page();
                redirect(signed_in.into_response()?, &page)
            }
            Self::ExpiredPage => {
                Ok(Response { status: StatusCode::UNAUTHORIZED, ..LoginPage::Expired.into_response()? })
            }
        }
    }
}

/// `POST /auth/link/{token}`.
///
/// # Errors
/// 401 for a link that is malformed, used, expired, or created before the password was changed or reset; 409 for an
/// invitation of an address that signs in to another account.
pub async fn use_link(state: State, link: LoginLinkPath) -> Result<UseLinkResponse> {
    let (from, wants_page, now) = (link.client.client_ip, link.wants_page, state.services.clock.now());
    let attempt = state.sign_in.limiter.try_token(from, now)?;
    match redeem_link(&state, link).await {
        Ok((signed_in, user)) => {
            attempt.succeed();
            if matches!(signed_in, SignInResponse::Session(_)) {
                state.sign_in.limiter.remember_user_network(from, &user.email.to_string(), now);
            }
            Ok(if wants_page { UseLinkResponse::Redirect(signed_in) } else { UseLinkResponse::Json(signed_in) })
        }
        Err(problem) if problem.code() == ErrorCode::UNAUTHORIZED => {
            state.sign_in.log.failed(LoginKind::SignInLink, from, "used_or_expired", now);
            if wants_page { Ok(UseLinkResponse::ExpiredPage) } else { Err(problem) }
        }
        Err(problem) => {
            attempt.discard();
            Err(problem)
        }
    }
}

async fn redeem_link(state: &AppState, link: LoginLinkPath) -> Result<(SignInResponse, User)> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let expired = || Problem::new(ErrorCode::UNAUTHORIZED, "The link has been used or has expired; request a new one");
    let token = link.token.filter(|token| now < token.expires_at).ok_or_else(expired)?;
    let found = store::sign_in_link::get(store, &token).await?;
    // A challenge is not a link: it must not sign in without a code.
    let is_link = |found: &SignInLink| !matches!(found.kind, SignInLinkKind::SecondFactor(_));
    let found = found.filter(is_link).ok_or_else(expired)?;
    let user = store::user::get(store, found.account, found.user).await?;
    let user = user.filter(|user| found.is_valid_for(user)).ok_or_else(expired)?;
    let user = match user.invited {
        true => UserService::new(&state.services).accept_invitation(&user).await.map_err(user_error_problem)?,
        false => user,
    };
    let mut batch = Batch::progress();
    store::sign_in_link::consume(&mut batch, &token, &found);
    let users = UserService::new(&state.services);
    let signed_in = match found.kind {
        SignInLinkKind::SignIn => {
            let start = SessionStart::new(SignInMethod::Link, link.client.client_ip, link.client.user_agent.as_deref());
            finish_first_step(&users, &user, start, batch).await
        }
        SignInLinkKind::Operator => {
            let rest = Duration::try_from(found.expires_at.duration_since(now)).unwrap_or_default();
            let start =
                SessionStart::new(SignInMethod::Operator, link.client.client_ip, link.client.user_agent.as_deref());
            begin_session(&users, &user, &user, start.lasting(rest), batch)
                .await
                .map(|session| SignInResponse::Session(Box::new(session)))
        }
        SignInLinkKind::SecondFactor(_) => return Err(expired()),
    };
    let signed_in = match signed_in {
        // Another request used the link at the same moment.
        Err(problem) if problem.code() == ErrorCode::CONFLICT => return Err(expired()),
        signed_in => signed_in?,
    };
    Ok((signed_in, user))
}
