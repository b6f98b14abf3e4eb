//! Signing in by a mailed link: requesting a link, the page that it opens, and using it.
//!
//! A link works once and only by POST, so that mail scanners that fetch links do not use it up.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use mail::address::Address;
use mail::user::{SessionStart, SignInLinkToken, SignInMethod, User};
use queue::users::UserService;
use serde_json::{Value, json};
use store::engine::Batch;

use super::login_log::LoginKind;
use super::password_sign_in::begin_session;
use super::view::{SessionResponse, WithSessionCookie};
use super::{EMAIL, login_links, read_email, user_agent, user_error_problem};
use crate::fields::{FieldDiagnostics, FieldNames};
use crate::ok_response::OkResponse;
use crate::problem::{ErrorCode, Problem};
use crate::request::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::response::{CookiePolicy, ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};
use crate::schema::{self, Schemas};
use crate::state::AppState;

/// Maximum number of invitations of one address for which a requested link is mailed.
const INVITATIONS_MAX: usize = 3;

/// Body of `POST /auth/link`.
pub struct RequestLoginLink {
    email: Address,
    from: Option<IpAddr>,
}

impl FromRequest for RequestLoginLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object("The user who signs in", [("email", schema::address("The user's email address"))]);
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(EMAIL, EMAIL)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        match read_email(&fields, &mut notes) {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, from: call.client_ip }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/link`: creates and mails the link after the response, so that its timing reveals nothing.
///
/// # Errors
/// 503 if the service has no sender address for email; 429 above the rate limit.
pub async fn request_link(state: Arc<AppState>, request: RequestLoginLink) -> Result<OkResponse, Problem> {
    let RequestLoginLink { email, from } = request;
    login_links::sender_address(&state)?;
    state.sign_in_limiter.count_link_request(from, &email.to_string(), state.intake.clock().now())?;
    let task_state = Arc::clone(&state);
    state.tasks.spawn(async move {
        if let Err(problem) = mail_link(&task_state, &email).await {
            let cause = problem.cause().unwrap_or_default();
            tracing::warn!(code = problem.code().word, cause, "cannot mail a sign-in link");
        }
    });
    Ok(OkResponse::OK)
}

/// Mails a link to the address's user; without a user, to its open invitations.
async fn mail_link(state: &Arc<AppState>, email: &Address) -> Result<(), Problem> {
    if let Some(user) = UserService::from_intake(&state.intake).by_email(email).await.map_err(user_error_problem)? {
        return login_links::send_link(state, &user, login_links::LinkPurpose::SignIn).await;
    }
    let store = state.intake.store();
    for user in store::user::list_invitations(store, &email.to_string(), INVITATIONS_MAX).await? {
        login_links::send_link(state, &user, login_links::LinkPurpose::Invitation).await?;
    }
    Ok(())
}

/// Path and headers of a request with a link's token.
pub struct LoginLinkPath {
    token: Option<SignInLinkToken>,
    client_ip: Option<IpAddr>,
    user_agent: Option<String>,
    /// The client accepts HTML: a browser.
    wants_page: bool,
}

impl FromRequest for LoginLinkPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let token = schema::path_parameter("token", "The token of the link");
        RequestSpec { parameters: vec![token], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let token = SignInLinkToken::parse(call.path_parameter("token"));
        Ok(Self {
            token,
            client_ip: call.client_ip,
            user_agent: user_agent(call),
            wants_page: wants_page(&call.headers),
        })
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

#[derive(Debug)]
pub struct LoginLinkPage(&'static str);

/// The page loads nothing, posts only to this host, and does not leak the token in a referrer. `no-referrer` would not
/// work: browsers then send `Origin: null` with the form (Fetch, "append a request `Origin` header"), which is
/// rejected.
const PAGE_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        http::header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (http::header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (http::header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

impl IntoResponse for LoginLinkPage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "An HTML page"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(self.0.as_bytes()))
    }

    fn into_response(self) -> Result<Response, Problem> {
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        let headers = PAGE_HEADERS.to_vec();
        Ok(Response { status: StatusCode::OK, media_type, headers, body: self.into_body()?, stream: None })
    }
}

/// `GET /auth/link/{token}`: a page with a button. It reads and changes nothing.
///
/// # Errors
/// None.
pub async fn show_link(_: Arc<AppState>, _: LoginLinkPath) -> Result<LoginLinkPage, Problem> {
    Ok(LoginLinkPage(include_str!("link.html")))
}

/// The response to using a link: JSON for programs, a page for browsers.
#[derive(Debug)]
pub struct UseLinkResponse {
    session: WithSessionCookie<SessionResponse>,
    wants_page: bool,
}

impl IntoResponse for UseLinkResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse { status: 200, media_type: Some(HTML_MEDIA_TYPE), description: "For browsers: a page" }];

    fn describe(schemas: &mut Schemas) -> Value {
        SessionResponse::describe(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        self.session.into_body()
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut response = self.session.into_response()?;
        if self.wants_page {
            let page = LoginLinkPage(include_str!("signed_in.html")).into_response()?;
            response.headers.extend(page.headers);
            (response.media_type, response.body) = (page.media_type, page.body);
        }
        Ok(response)
    }
}

/// `POST /auth/link/{token}`.
///
/// # Errors
/// 401 for a link that is malformed, used, expired, or created before the password was changed or reset; 409 for an
/// invitation of an address that signs in to another account.
pub async fn use_link(state: Arc<AppState>, link: LoginLinkPath) -> Result<UseLinkResponse, Problem> {
    let (from, now) = (link.client_ip, state.intake.clock().now());
    let attempt = state.sign_in_limiter.try_token(from, now)?;
    match redeem_link(&state, link).await {
        Ok((used, user)) => {
            attempt.succeed();
            state.sign_in_limiter.remember_user_network(from, &user.email.to_string(), now);
            Ok(used)
        }
        Err(problem) => {
            if problem.code() == ErrorCode::UNAUTHORIZED {
                state.login_log.failed(LoginKind::SignInLink, from, "used_or_expired", now);
            } else {
                attempt.discard();
            }
            Err(problem)
        }
    }
}

async fn redeem_link(state: &AppState, link: LoginLinkPath) -> Result<(UseLinkResponse, User), Problem> {
    let (store, now) = (state.intake.store(), state.intake.clock().now());
    let expired = || Problem::new(ErrorCode::UNAUTHORIZED, "The link was used or has expired; request a new one");
    let token = link.token.filter(|token| now < token.expires_at).ok_or_else(expired)?;
    let found = store::sign_in_link::get(store, &token).await?.ok_or_else(expired)?;
    let user = store::user::get(store, found.account, found.user).await?;
    let user = user.filter(|user| found.is_valid_for(user)).ok_or_else(expired)?;
    let user = match user.invited {
        true => UserService::from_intake(&state.intake).accept_invitation(&user).await.map_err(user_error_problem)?,
        false => user,
    };
    let start = SessionStart::new(SignInMethod::Link, link.client_ip, link.user_agent.as_deref());
    let mut batch = Batch::progress();
    store::sign_in_link::consume(&mut batch, &token, &found);
    let session = match begin_session(&UserService::from_intake(&state.intake), &user, start, batch).await {
        // Another request used the link at the same moment.
        Err(problem) if problem.code() == ErrorCode::CONFLICT => return Err(expired()),
        started => started?,
    };
    Ok((UseLinkResponse { session, wants_page: link.wants_page }, user))
}
