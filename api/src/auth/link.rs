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
use mail::user::{LinkToken, SessionStart, SignInMethod, User};
use queue::people::People;
use serde_json::{Value, json};
use store::engine::Batch;

use super::login_log::LoginKind;
use super::sign_in::begin;
use super::view::{OneSession, WithCookie};
use super::{EMAIL, email, mailed, problem, user_agent};
use crate::call::{Also, Answer, Call, Cookies, Input, PAGE, Reply, SMALL_BYTES_MAX, Takes};
use crate::done::Done;
use crate::fields::{Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// Invitations of one address for which links are mailed when it asks for one.
const INVITATIONS_MAX: usize = 3;

/// What `POST /auth/link` takes.
pub struct AskForLink {
    email: Address,
    from: Option<IpAddr>,
}

impl Input for AskForLink {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object("Who signs in", [("email", schema::string("Their address"))]);
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[(EMAIL, EMAIL)], foreign: &[] };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        match email(&given, &mut notes) {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, from: call.from }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/link`: the link is made and mailed after the answer, so that the answer tells nothing.
///
/// # Errors
/// 503 when no mail can be sent by the service itself; 429 after too many.
pub async fn ask_for_link(room: Arc<Room>, asked: AskForLink) -> Result<Done, Problem> {
    let AskForLink { email, from } = asked;
    mailed::sender(&room)?;
    room.throttle.link(from, &email.to_string(), room.hall.clock().now())?;
    let behind = Arc::clone(&room);
    room.tasks.spawn(async move {
        if let Err(problem) = mail_link(&behind, &email).await {
            let cause = problem.cause().unwrap_or_default();
            tracing::warn!(code = problem.code().word, cause, "a sign-in link could not be mailed");
        }
    });
    Ok(Done::OK)
}

/// Mails a link to the user of an address; where there is none, to those who were invited by it.
async fn mail_link(room: &Arc<Room>, email: &Address) -> Result<(), Problem> {
    if let Some(user) = People::of(&room.hall).by_email(email).await.map_err(problem)? {
        return mailed::send(room, &user, mailed::Why::SignIn).await;
    }
    let store = room.hall.store();
    for user in store::user::invitations(store, &email.to_string(), INVITATIONS_MAX).await? {
        mailed::send(room, &user, mailed::Why::Invitation).await?;
    }
    Ok(())
}

/// A link's token, from the path.
pub struct OfLink {
    token: Option<LinkToken>,
    from: Option<IpAddr>,
    user_agent: Option<String>,
    /// A browser asks, not a program.
    page: bool,
}

impl Input for OfLink {
    fn describe(_: &mut Schemas) -> Takes {
        let token = schema::path_parameter("token", "What the link carries");
        Takes { parameters: vec![token], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let token = LinkToken::parse(call.path_parameter("token"));
        Ok(Self { token, from: call.from, user_agent: user_agent(call), page: wants_page(&call.headers) })
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

/// A page for people.
#[derive(Debug)]
pub struct Page(&'static str);

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

impl Reply for Page {
    const MEDIA_TYPE: &'static str = PAGE;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A page"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(self.0.as_bytes()))
    }

    fn answer(self) -> Result<Answer, Problem> {
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        let headers = PAGE_HEADERS.to_vec();
        Ok(Answer { status: StatusCode::OK, media_type, headers, body: self.write()?, more: None })
    }
}

/// `GET /auth/link/{token}`: a page with a button. It looks nothing up and changes nothing.
///
/// # Errors
/// None.
pub async fn show_link(_: Arc<Room>, _: OfLink) -> Result<Page, Problem> {
    Ok(Page(include_str!("link.html")))
}

/// What using a link answers: JSON to a program, a page to a browser.
#[derive(Debug)]
pub struct LinkUsed {
    session: WithCookie<OneSession>,
    page: bool,
}

impl Reply for LinkUsed {
    const COOKIES: Cookies = Cookies::Session;
    const ALSO: &'static [Also] =
        &[Also { status: 200, media_type: Some(PAGE), about: "To a browser: a page" }];

    fn describe(schemas: &mut Schemas) -> Value {
        OneSession::describe(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        self.session.write()
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut answer = self.session.answer()?;
        if self.page {
            let page = Page(include_str!("signed_in.html")).answer()?;
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
pub async fn use_link(room: Arc<Room>, link: OfLink) -> Result<LinkUsed, Problem> {
    let (from, now) = (link.from, room.hall.clock().now());
    let tried = room.throttle.token(from, now)?;
    match try_link(&room, link).await {
        Ok((used, user)) => {
            tried.right();
            room.throttle.signed_in(from, &user.email.to_string(), now);
            Ok(used)
        }
        Err(problem) => {
            if problem.code() == Code::UNAUTHORIZED {
                room.login_log.failed(LoginKind::SignInLink, from, "used_or_expired", now);
            } else {
                tried.void();
            }
            Err(problem)
        }
    }
}

async fn try_link(room: &Room, link: OfLink) -> Result<(LinkUsed, User), Problem> {
    let (store, now) = (room.hall.store(), room.hall.clock().now());
    let over = || Problem::new(Code::UNAUTHORIZED, "The link was used, or is too old: ask for another");
    let token = link.token.filter(|token| now < token.expires_at).ok_or_else(over)?;
    let found = store::sign_in_link::get(store, &token).await?.ok_or_else(over)?;
    let user = store::user::get(store, found.account, found.user).await?;
    let user = user.filter(|user| found.is_of(user)).ok_or_else(over)?;
    let user = match user.invited {
        true => People::of(&room.hall).accept(&user).await.map_err(problem)?,
        false => user,
    };
    let start = SessionStart::new(SignInMethod::Link, link.from, link.user_agent.as_deref());
    let mut batch = Batch::progress();
    store::sign_in_link::use_up(&mut batch, &token, &found);
    let session = match begin(&People::of(&room.hall), &user, start, batch).await {
        // Used by somebody else at the same moment.
        Err(problem) if problem.code() == Code::CONFLICT => return Err(over()),
        begun => begun?,
    };
    Ok((LinkUsed { session, page: link.page }, user))
}
