//! Signing in by a mailed link: asking for one, the page that it leads to, using it.
//!
//! A link signs in once, and only when it is posted: whoever looks at links in mail for safety's sake does
//! not use it up.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use mail::address::Address;
use mail::user::{SessionStart, SignInLinkToken, SignInMethod, User};
use queue::people::UserService;
use serde_json::{Value, json};
use store::engine::Batch;

use super::login_log::LoginKind;
use super::sign_in::begin_session;
use super::view::{SessionResponse, WithSessionCookie};
use super::{EMAIL, mailed, read_email, user_agent, user_error_problem};
use crate::call::{
    CookiePolicy, ExtraResponse, FromRequest, HTML_MEDIA_TYPE, IntoResponse, Request, RequestSpec, Response,
    SMALL_BYTES_MAX,
};
use crate::done::OkResponse;
use crate::fields::{FieldDiagnostics, FieldNames};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// Invitations of one address for which links are mailed when it asks for one.
const INVITATIONS_MAX: usize = 3;

/// What `POST /auth/link` takes.
pub struct RequestLoginLink {
    email: Address,
    from: Option<IpAddr>,
}

impl FromRequest for RequestLoginLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object("Who signs in", [("email", schema::string("Their address"))]);
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(EMAIL, EMAIL)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let given = call.body_fields(&NAMES, &mut notes)?;
        match read_email(&given, &mut notes) {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, from: call.client_ip }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/link`: the link is made and mailed after the answer, so that the answer tells nothing.
///
/// # Errors
/// 503 when no mail can be sent by the service itself; 429 after too many.
pub async fn request_link(room: Arc<AppState>, asked: RequestLoginLink) -> Result<OkResponse, Problem> {
    let RequestLoginLink { email, from } = asked;
    mailed::sender_address(&room)?;
    room.sign_in_limiter.count_link_request(from, &email.to_string(), room.intake.clock().now())?;
    let behind = Arc::clone(&room);
    room.tasks.spawn(async move {
        if let Err(problem) = mail_link(&behind, &email).await {
            let cause = problem.cause().unwrap_or_default();
            tracing::warn!(code = problem.code().word, cause, "a sign-in link could not be mailed");
        }
    });
    Ok(OkResponse::OK)
}

/// Mails a link to the user of an address; where there is none, to those who were invited by it.
async fn mail_link(room: &Arc<AppState>, email: &Address) -> Result<(), Problem> {
    if let Some(user) = UserService::from_intake(&room.intake).by_email(email).await.map_err(user_error_problem)? {
        return mailed::send_link(room, &user, mailed::LinkPurpose::SignIn).await;
    }
    let store = room.intake.store();
    for user in store::user::list_invitations(store, &email.to_string(), INVITATIONS_MAX).await? {
        mailed::send_link(room, &user, mailed::LinkPurpose::Invitation).await?;
    }
    Ok(())
}

/// A link's token, from the path.
pub struct LoginLinkPath {
    token: Option<SignInLinkToken>,
    client_ip: Option<IpAddr>,
    user_agent: Option<String>,
    /// A browser asks, not a program.
    wants_page: bool,
}

impl FromRequest for LoginLinkPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let token = schema::path_parameter("token", "What the link carries");
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

/// A page for people.
#[derive(Debug)]
pub struct LoginLinkPage(&'static str);

/// Nothing is loaded, the form goes to ourselves, and the link's token goes nowhere else. Not `no-referrer`: then browsers
/// send `Origin: null` with the form (Fetch, "append a request `Origin` header"), and it would be refused as foreign.
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
        json!({"type": "string", "description": "A page"})
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

/// `GET /auth/link/{token}`: a page with a button. It looks nothing up and changes nothing.
///
/// # Errors
/// None.
pub async fn show_link(_: Arc<AppState>, _: LoginLinkPath) -> Result<LoginLinkPage, Problem> {
    Ok(LoginLinkPage(include_str!("link.html")))
}

/// What using a link answers: JSON to a program, a page to a browser.
#[derive(Debug)]
pub struct UseLinkResponse {
    session: WithSessionCookie<SessionResponse>,
    wants_page: bool,
}

impl IntoResponse for UseLinkResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse { status: 200, media_type: Some(HTML_MEDIA_TYPE), about: "To a browser: a page" }];

    fn describe(schemas: &mut Schemas) -> Value {
        SessionResponse::describe(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        self.session.into_body()
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut answer = self.session.into_response()?;
        if self.wants_page {
            let page = LoginLinkPage(include_str!("signed_in.html")).into_response()?;
            answer.headers.extend(page.headers);
            (answer.media_type, answer.body) = (page.media_type, page.body);
        }
        Ok(answer)
    }
}

/// `POST /auth/link/{token}`.
///
/// # Errors
/// 401 for a link that is none, was used, is too old, or was made before the password was changed or reset; 409 for an invitation of an address that signs in to
/// another account.
pub async fn use_link(room: Arc<AppState>, link: LoginLinkPath) -> Result<UseLinkResponse, Problem> {
    let (from, now) = (link.client_ip, room.intake.clock().now());
    let tried = room.sign_in_limiter.try_token(from, now)?;
    match redeem_link(&room, link).await {
        Ok((used, user)) => {
            tried.succeed();
            room.sign_in_limiter.remember_user_network(from, &user.email.to_string(), now);
            Ok(used)
        }
        Err(problem) => {
            if problem.code() == ErrorCode::UNAUTHORIZED {
                room.login_log.failed(LoginKind::SignInLink, from, "used_or_expired", now);
            } else {
                tried.discard();
            }
            Err(problem)
        }
    }
}

async fn redeem_link(room: &AppState, link: LoginLinkPath) -> Result<(UseLinkResponse, User), Problem> {
    let (store, now) = (room.intake.store(), room.intake.clock().now());
    let over = || Problem::new(ErrorCode::UNAUTHORIZED, "The link was used, or is too old: ask for another");
    let token = link.token.filter(|token| now < token.expires_at).ok_or_else(over)?;
    let found = store::sign_in_link::get(store, &token).await?.ok_or_else(over)?;
    let user = store::user::get(store, found.account, found.user).await?;
    let user = user.filter(|user| found.is_valid_for(user)).ok_or_else(over)?;
    let user = match user.invited {
        true => UserService::from_intake(&room.intake).accept_invitation(&user).await.map_err(user_error_problem)?,
        false => user,
    };
    let start = SessionStart::new(SignInMethod::Link, link.client_ip, link.user_agent.as_deref());
    let mut batch = Batch::progress();
    store::sign_in_link::consume(&mut batch, &token, &found);
    let session = match begin_session(&UserService::from_intake(&room.intake), &user, start, batch).await {
        // Used by somebody else at the same moment.
        Err(problem) if problem.code() == ErrorCode::CONFLICT => return Err(over()),
        begun => begun?,
    };
    Ok((UseLinkResponse { session, wants_page: link.wants_page }, user))
}
