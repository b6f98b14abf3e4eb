//! Signing in and out: by password or by mailed link, to a session in a cookie.
//!
//! ```text
//! POST /auth/sign-in {email, password} ─┐
//! POST /auth/link {email} ─► mail ─► GET (a page) ─► POST /auth/link/{token} ─┴─► session ─► cookie + csrf token
//! ```
//!
//! Whether an address signs in to anything is not told: a wrong password and an unknown address are
//! answered alike and take the same time, and a link is promised in any case. A link signs in once, and
//! only when it is posted: whoever looks at links in mail for safety's sake does not use it up.

pub mod cookie;
pub mod mailed;
pub mod passwords;
pub mod throttle;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderName, HeaderValue, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use mail::address::Address;
use mail::user::{LinkToken, Role, SESSION_AGE_MAX, SESSION_IDLE_MAX, Session, SessionToken, User};
use queue::people::{People, PeopleError};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::SignedIn;
use store::engine::Batch;

use crate::call::{Also, Answer, Call, Input, Nothing, PAGE, Reply, SMALL_BYTES_MAX, Takes};
use crate::emails::view::Moment;
use crate::fields::{self, Given, Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// What goes wrong about users, on the wire.
#[must_use]
pub fn problem(error: PeopleError) -> Problem {
    match error {
        PeopleError::Unknown => Problem::not_found("user"),
        PeopleError::Taken(_) | PeopleError::LastOwner | PeopleError::TooMany | PeopleError::Changed => {
            Problem::new(Code::CONFLICT, error.to_string())
        }
        PeopleError::Read(error) => Problem::outage(error),
        PeopleError::Commit(error) => Problem::outage(error),
    }
}

/// It was done.
#[derive(Debug, Serialize)]
pub struct Done {
    ok: bool,
}

impl Done {
    /// It was.
    pub const OK: Self = Self { ok: true };
}

impl Describe for Done {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("Ok", |_| schema::object("Done", [("ok", schema::boolean("Always true"))]))
    }
}

/// A user as they are shown.
#[derive(Debug, Serialize)]
pub struct UserView {
    id: mail::id::UserId,
    email: String,
    role: Role,
    has_password: bool,
    created_at: Moment,
}

impl UserView {
    /// What is shown of a user.
    #[must_use]
    pub fn of(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.to_string(),
            role: user.role,
            has_password: user.password.is_some(),
            created_at: Moment(user.created_at),
        }
    }
}

impl Describe for UserView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("User", |_| {
            schema::object(
                "Somebody who may sign in",
                [
                    ("id", schema::string("`user_…`")),
                    ("email", schema::string("Their address")),
                    ("role", schema::words(&["owner", "member"], "What they may do")),
                    ("has_password", schema::boolean("Else they sign in by a mailed link")),
                    ("created_at", schema::time("When they were invited")),
                ],
            )
        })
    }
}

/// A session as its user sees it.
#[derive(Debug, Serialize)]
pub struct SessionView {
    id: mail::id::SessionId,
    account_id: mail::id::AccountId,
    user: UserView,
    csrf_token: String,
    created_at: Moment,
    expires_at: Moment,
}

impl SessionView {
    fn of(session: &Session, user: &User, token: &SessionToken) -> Self {
        Self {
            id: session.id,
            account_id: session.account,
            user: UserView::of(user),
            csrf_token: token.csrf(),
            created_at: Moment(session.created_at),
            expires_at: Moment(session.expires_at),
        }
    }
}

/// One session.
#[derive(Debug, Serialize)]
pub struct OneSession {
    session: SessionView,
}

impl Describe for OneSession {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let session = schemas.named("Session", |_| {
            schema::object(
                "A session; its cookie comes in `set-cookie`",
                [
                    ("id", schema::string("`ses_…`")),
                    ("account_id", schema::string("To which account")),
                    ("user", user),
                    ("csrf_token", schema::string("For `x-csrf-token` of all calls other than GET")),
                    ("created_at", schema::time("When they signed in")),
                    ("expires_at", schema::time("When it ends unless it is used")),
                ],
            )
        });
        schema::object("A session", [("session", session)])
    }
}

/// An answer that changes the session's cookie.
#[derive(Debug)]
pub struct WithCookie<T> {
    reply: T,
    cookie: Option<HeaderValue>,
}

impl<T: Reply> Reply for WithCookie<T> {
    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        self.reply.write()
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut answer = self.reply.answer()?;
        answer.headers.extend(self.cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(answer)
    }
}

const EMAIL: &str = "email";
const PASSWORD: &str = "password";

fn email(given: &Given<'_>, notes: &mut Notes) -> Option<Address> {
    let Some(value) = given.value(EMAIL) else {
        notes.errors.add(EMAIL, "is required");
        return None;
    };
    let read = fields::text(value)
        .and_then(|text| text.trim().parse::<Address>().map_err(|_| "is not an address".to_owned()));
    read.map_err(|text| notes.errors.add(EMAIL, text)).ok()
}

/// A password's text, of any length that may be one.
fn password(given: &Given<'_>, name: &'static str, notes: &mut Notes) -> Option<String> {
    let value = given.value(name)?;
    let read = fields::text(value).and_then(|text| {
        let length = text.len();
        (length <= passwords::BYTES_MAX)
            .then(|| text.into_owned())
            .ok_or_else(|| format!("is longer than {} bytes", passwords::BYTES_MAX))
    });
    read.map_err(|text| notes.errors.add(name, text)).ok()
}

/// What `POST /auth/sign-in` takes.
pub struct SignIn {
    email: Address,
    password: String,
    from: Option<IpAddr>,
}

impl Input for SignIn {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object(
            "Who signs in",
            [("email", schema::string("Their address")), ("password", schema::string("Their password"))],
        );
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names =
            Names { known: &[(EMAIL, EMAIL), (PASSWORD, PASSWORD)], later: &[], foreign: &[] };
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
        let email = email(&given, &mut notes);
        let password = password(&given, PASSWORD, &mut notes);
        if !given.is_meant(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        match (email, password) {
            (Some(email), Some(password)) if notes.errors.is_empty() => {
                Ok(Self { email, password, from: call.from })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/sign-in`.
///
/// # Errors
/// 401 whatever is wrong with the two; 429 after too many tries; 503 when too many sign in at once.
pub async fn sign_in(room: Arc<Room>, asked: SignIn) -> Result<WithCookie<OneSession>, Problem> {
    let SignIn { email, password, from } = asked;
    let text = email.to_string();
    room.throttle.password(from, &text, room.hall.clock().now())?;
    let people = People::of(&room.hall);
    let user = people.by_email(&email).await.map_err(problem)?;
    let hash = user.as_ref().and_then(|user| user.password.clone());
    let right = room.passwords.check(password, hash).await?;
    let Some(user) = user.filter(|_| right) else {
        return Err(Problem::new(Code::UNAUTHORIZED, "The address or the password is wrong"));
    };
    room.throttle.right(&text);
    begin(&people, &user, Batch::progress()).await
}

async fn begin(people: &People, user: &User, batch: Batch) -> Result<WithCookie<OneSession>, Problem> {
    let begun = people.begin_session(user, SESSION_IDLE_MAX, SESSION_AGE_MAX, batch).await;
    let (token, session) = begun.map_err(problem)?;
    let reply = OneSession { session: SessionView::of(&session, user, &token) };
    Ok(WithCookie { reply, cookie: cookie::set(&token) })
}

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
        const NAMES: Names = Names { known: &[(EMAIL, EMAIL)], later: &[], foreign: &[] };
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
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
        let sent = match People::of(&behind.hall).by_email(&email).await {
            Ok(Some(user)) => mailed::send(&behind, &user, mailed::Why::SignIn).await,
            Ok(None) => Ok(()),
            Err(error) => Err(problem(error)),
        };
        if let Err(problem) = sent {
            let cause = problem.cause().unwrap_or_default();
            tracing::warn!(code = problem.code().word, cause, "a sign-in link could not be mailed");
        }
    });
    Ok(Done::OK)
}

/// A link's token, from the path.
pub struct OfLink {
    token: Option<LinkToken>,
    from: Option<IpAddr>,
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
        Ok(Self { token, from: call.from, page: wants_page(&call.headers) })
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

/// A page for people.
#[derive(Debug)]
pub struct Page(&'static str);

/// Nothing is loaded, the form goes to ourselves, and the link's token goes nowhere else.
const PAGE_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        http::header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
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
    Ok(Page(include_str!("auth/link.html")))
}

/// What using a link answers: JSON to a program, a page to a browser.
#[derive(Debug)]
pub struct LinkUsed {
    session: WithCookie<OneSession>,
    page: bool,
}

impl Reply for LinkUsed {
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
            let page = Page(include_str!("auth/signed_in.html")).answer()?;
            answer.headers.extend(page.headers);
            (answer.media_type, answer.body) = (page.media_type, page.body);
        }
        Ok(answer)
    }
}

/// `POST /auth/link/{token}`.
///
/// # Errors
/// 401 for a link that is none, was used, or is too old.
pub async fn use_link(room: Arc<Room>, link: OfLink) -> Result<LinkUsed, Problem> {
    let (store, now) = (room.hall.store(), room.hall.clock().now());
    room.throttle.token(link.from, now)?;
    let over = || Problem::new(Code::UNAUTHORIZED, "The link was used, or is too old: ask for another");
    let token = link.token.filter(|token| now < token.expires_at).ok_or_else(over)?;
    let found = store::sign_in_link::get(store, &token).await?.ok_or_else(over)?;
    let user = store::user::get(store, found.account, found.user).await?.ok_or_else(over)?;
    let mut batch = Batch::progress();
    store::sign_in_link::use_up(&mut batch, &token, &found);
    let session = match begin(&People::of(&room.hall), &user, batch).await {
        // Used by somebody else at the same moment.
        Err(problem) if problem.code() == Code::CONFLICT => return Err(over()),
        begun => begun?,
    };
    Ok(LinkUsed { session, page: link.page })
}

/// `POST /auth/sign-out`.
///
/// # Errors
/// The store cannot be written.
pub async fn sign_out(room: Arc<Room>, who: SignedIn, _: Nothing) -> Result<WithCookie<Done>, Problem> {
    let mut batch = Batch::progress();
    store::session::delete(&mut batch, who.session());
    room.hall.store().commit(batch).await.map_err(Problem::outage)?;
    Ok(WithCookie { reply: Done::OK, cookie: cookie::clear() })
}

/// `GET /auth/session`.
///
/// # Errors
/// None.
pub async fn session(_: Arc<Room>, who: SignedIn, _: Nothing) -> Result<OneSession, Problem> {
    Ok(OneSession { session: SessionView::of(who.session(), who.user(), who.token()) })
}

const CURRENT_PASSWORD: &str = "current_password";

/// What `POST /auth/password` takes.
pub struct NewPassword {
    current: Option<String>,
    password: String,
    from: Option<IpAddr>,
}

impl Input for NewPassword {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> Takes {
        let password = json!({
            "type": "string", "minLength": passwords::CHARS_MIN, "maxLength": passwords::BYTES_MAX,
            "description": "The new password",
        });
        let body = schema::object_with(
            "A new password",
            &[PASSWORD],
            [(CURRENT_PASSWORD, schema::string("The one until now, if there is one")), (PASSWORD, password)],
        );
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[(PASSWORD, PASSWORD), ("new_password", PASSWORD), (CURRENT_PASSWORD, CURRENT_PASSWORD)],
            later: &[],
            foreign: &[],
        };
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
        let current = password(&given, CURRENT_PASSWORD, &mut notes);
        let new = password(&given, PASSWORD, &mut notes);
        if !given.is_meant(PASSWORD) {
            notes.errors.add(PASSWORD, "is required");
        }
        if new.as_ref().is_some_and(|new| new.chars().count() < passwords::CHARS_MIN) {
            notes.errors.add(PASSWORD, format!("is shorter than {} characters", passwords::CHARS_MIN));
        }
        match new {
            Some(password) if notes.errors.is_empty() => Ok(Self { current, password, from: call.from }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /auth/password`: the user's own; their other sessions end.
///
/// # Errors
/// 403 when the current password is wrong; 429 after too many tries.
pub async fn set_password(room: Arc<Room>, who: SignedIn, asked: NewPassword) -> Result<Done, Problem> {
    let NewPassword { current, password, from } = asked;
    let user = who.user();
    if user.password.is_some() {
        let email = user.email.to_string();
        room.throttle.password(from, &email, room.hall.clock().now())?;
        if !room.passwords.check(current.unwrap_or_default(), user.password.clone()).await? {
            return Err(Problem::new(Code::FORBIDDEN, "`current_password` is wrong"));
        }
        room.throttle.right(&email);
    }
    let salt = room.hall.entropy().u128().to_ne_bytes();
    let hash = room.passwords.hash(password, salt).await?;
    People::of(&room.hall).set_password(user, hash, who.session().id).await.map_err(problem)?;
    Ok(Done::OK)
}
