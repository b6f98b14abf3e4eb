//! The partner portal's pages: what partners of a program see and do (completions-affiliate.md 2.7).
//!
//! ```text
//! GET  /portal/enter/{token}   a link of a minute: 302 to the portal, with a session's cookie
//! GET  /portal/link/{token}    a mailed link: asks; its button (POST) lets in
//! GET  /portal/payout/{token}  a mailed link: shows another payout destination; its button confirms it
//! GET  /portal/{page}          a page of who has signed in; and: sign-in, join, style.css
//! POST /portal/{form}          a form of a page; then 303 to what came of it
//! ```
//!
//! HTML without scripts, with one style sheet of our own; the policy allows nothing else. Text from outside is escaped by
//! its type ([`html`]). Forms of who has signed in bring a token that only the session's own pages know; links of mail do
//! nothing before their button is pressed. Pages name each other by relative addresses, so that they work on the program's
//! own host as well as on ours, below a path too. What is done is done by the office (`affiliate/src/portal.rs`).

pub mod asked;
pub mod cookie;
mod earnings;
mod forms;
mod frame;
mod home;
pub mod html;
mod join;
mod links;
mod payouts;
mod picture;
mod referrals;
mod settings;
mod sign_in;
mod words;

use std::sync::Arc;

use ::affiliate::portal::entrance::{Guest, Seen};
use ::affiliate::refusal::{Obstacle, Refusal};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use http::header::{REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{Method, StatusCode};
use mail::affiliate::partner::PartnerStatus;
use mail::affiliate::portal::{LinkSecret, PortalToken};
use mail::affiliate::program::Program;
use mail::credential::SecretHash;
use serde_json::{Value, json};

use self::asked::{AtDoor, OfForm, OfLink, OfPage, OfPayout, UseLink};
use self::frame::View;
use self::html::Html;
use crate::affiliate::refused;
use crate::auth::login_log::LoginKind;
use crate::call::{Also, Answer, Cookies, PAGE, Reply};
use crate::operations::{Entry, Operation, operation};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::Schemas;

pub use self::asked::Asked;

/// The pages, by the last part of their path.
pub const PAGES: &[&str] =
    &["home", "links", "referrals", "earnings", "payouts", "settings", "sign-in", "join", "style.css"];

/// The forms, by the last part of their path.
pub const FORMS: &[&str] = &[
    "sign-in",
    "join",
    "sign-out",
    "accept",
    "add-link",
    "change-link",
    "payout-method",
    "profile",
    "postback",
    "postback-secret",
    "postback-test",
    "mail",
];

/// The cookie by which the browser script knows a browser.
const VISITOR: &str = "stx_vid";
/// The way to the other pages, of those one step below them.
const UP: &str = "../";
/// Search engines do not list these pages.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
/// What the pages may do: show the one style sheet, and send their own forms.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";
/// The style sheet's address changes with its text.
const STYLE_KEPT: &str = "public, max-age=31536000, immutable";

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| -> Entry {
        operation(method, path, id).about("portal", summary).fails(&[
            Code::UNAUTHORIZED,
            Code::FORBIDDEN,
            Code::NOT_FOUND,
            Code::CONFLICT,
            Code::GONE,
            Code::RATE_LIMIT_EXCEEDED,
        ])
    };
    let (get, post) = (Method::GET, Method::POST);
    vec![
        of(get.clone(), "/portal", "open_portal", "The partner portal's door: leads to its first page")
            .public(door),
        of(get.clone(), "/portal/{page}", "show_portal_page", "Show a page of the partner portal")
            .public(page),
        of(post.clone(), "/portal/{page}", "send_portal_form", "Send a form of the partner portal")
            .public(form),
        of(get.clone(), "/portal/payouts/{id}", "show_portal_payout", "Show a partner a payout's receipt")
            .public(payout),
        of(get.clone(), "/portal/enter/{token}", "enter_portal", "Let a partner in by a login link, once")
            .public(enter),
        of(
            get.clone(),
            "/portal/link/{token}",
            "show_portal_link",
            "Ask whether to sign in by a mailed link",
        )
        .public(show_link),
        of(
            post.clone(),
            "/portal/link/{token}",
            "use_portal_link",
            "Let a partner in by a mailed link, once",
        )
        .public(use_link),
        of(get, "/portal/payout/{token}", "show_payout_change", "Show where payouts would go from now on")
            .public(show_payout),
        of(post, "/portal/payout/{token}", "confirm_payout_change", "Have payouts go where a link says")
            .public(confirm_payout),
    ]
}

/// A page, or where it leads.
#[derive(Debug)]
pub struct PortalPage {
    status: StatusCode,
    media_type: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl PortalPage {
    fn of(status: StatusCode, page: Html) -> Self {
        Self { status, media_type: PAGE, headers: Vec::new(), body: page.into_string().into() }
    }

    fn to(status: StatusCode, location: &str) -> Result<Self, Problem> {
        let location = HeaderValue::try_from(location).map_err(Problem::internal)?;
        let headers = vec![(LOCATION, location)];
        Ok(Self { status, media_type: "text/plain; charset=utf-8", headers, body: Bytes::new() })
    }

    fn style() -> Self {
        let headers = vec![(CACHE_CONTROL, HeaderValue::from_static(STYLE_KEPT))];
        let body = Bytes::from_static(frame::STYLE.as_bytes());
        Self { status: StatusCode::OK, media_type: "text/css; charset=utf-8", headers, body }
    }

    fn with_cookie(mut self, cookie: Option<HeaderValue>) -> Self {
        self.headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        self
    }
}

impl Reply for PortalPage {
    const MEDIA_TYPE: &'static str = PAGE;
    const COOKIES: Cookies = Cookies::Session;
    const ALSO: &'static [Also] = &[
        Also { status: 200, media_type: Some("text/css; charset=utf-8"), about: "The style sheet" },
        Also {
            status: 204,
            media_type: None,
            about: "Nobody has asked for it yet: HEAD, a browser that looks ahead",
        },
        Also { status: 302, media_type: None, about: "Into the portal" },
        Also { status: 303, media_type: None, about: "To the page that says what came of a form" },
        Also { status: 400, media_type: Some(PAGE), about: "A field will not do" },
        Also { status: 401, media_type: Some(PAGE), about: "Nobody has signed in" },
        Also {
            status: 403,
            media_type: Some(PAGE),
            about: "The partner may look only, or the form is not the session's",
        },
        Also { status: 404, media_type: Some(PAGE), about: "There is no such page" },
        Also { status: 409, media_type: Some(PAGE), about: "It is taken, or was changed meanwhile" },
        Also { status: 410, media_type: Some(PAGE), about: "The link was used, or is too old" },
        Also { status: 429, media_type: Some(PAGE), about: "Too many tries" },
    ];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A page for people"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.body)
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut headers = vec![
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            // With `no-referrer` browsers would send our own forms with `Origin: null`.
            (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
            (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (ROBOTS, HeaderValue::from_static("noindex, nofollow")),
        ];
        headers.extend(self.headers);
        let media_type = HeaderValue::from_static(self.media_type);
        Ok(Answer { status: self.status, media_type, headers, body: self.body, more: None })
    }
}

/// Whether people reach us by TLS.
fn is_secure(room: &Room) -> bool {
    room.options.base_url.starts_with("https://")
}

/// What of a refusal is the visitor's to mend, as a page's status and words; what is not, is an error.
fn told(room: &Room, refusal: Refusal) -> Result<(StatusCode, String), Problem> {
    match &refusal {
        Refusal::Fields(fields) => {
            let told: Vec<String> =
                fields.iter().map(|(name, why)| format!("{} {why}", words::field(name))).collect();
            Ok((StatusCode::BAD_REQUEST, told.join("; ")))
        }
        Refusal::Obstacle(Obstacle::LinkOver) => Ok((StatusCode::GONE, refusal.to_string())),
        Refusal::Obstacle(_) => Ok((StatusCode::CONFLICT, words::sentence(&refusal.to_string()))),
        // The visitor can do nothing about the program's plan.
        Refusal::Quota(_) => {
            Ok((StatusCode::CONFLICT, "The program takes no more partners at the moment".to_owned()))
        }
        Refusal::Ban(_) | Refusal::WrongMove(_) => {
            Ok((StatusCode::FORBIDDEN, words::sentence(&refusal.to_string())))
        }
        Refusal::Unknown(_) => Ok((StatusCode::NOT_FOUND, words::sentence(&refusal.to_string()))),
        _ => Err(refused(room, refusal)),
    }
}

/// Somebody who has signed in, or the page for who has not.
async fn seated(room: &Room, asked: &Asked) -> Result<Result<(Guest, PortalToken), PortalPage>, Problem> {
    let fault = |refusal| refused(room, refusal);
    let at_host = match &asked.host {
        Some(host) => room.affiliate.program_at(host).await.map_err(fault)?,
        None => None,
    };
    let token = cookie::token(&asked.headers, is_secure(room));
    if let Some(token) = &token {
        let guest = room.affiliate.guest(token).await.map_err(fault)?;
        // A program's own host is for its own partners.
        let is_here =
            |guest: &Guest| at_host.as_ref().is_none_or(|program| program.account == guest.program.account);
        if let Some(guest) = guest.filter(is_here) {
            return Ok(Ok((guest, token.clone())));
        }
    }
    let program = match (at_host, token) {
        (Some(program), _) => Some(program),
        (None, Some(token)) => room.affiliate.set_up(token.account).await.ok(),
        (None, None) => None,
    };
    Ok(Err(PortalPage::of(StatusCode::UNAUTHORIZED, sign_in::signed_out(program.as_ref()))))
}

/// The program that a page without a session is about: by the key in its address, or by the host.
async fn program_of(room: &Room, asked: &Asked, key: &str) -> Result<Option<Program>, Problem> {
    let fault = |refusal| refused(room, refusal);
    if !key.is_empty() {
        return room.affiliate.portal_of_key(key).await.map_err(fault);
    }
    match &asked.host {
        Some(host) => room.affiliate.program_at(host).await.map_err(fault),
        None => Ok(None),
    }
}

/// The page for an address that leads to no program: what is missing in it.
fn no_program(key: &str) -> PortalPage {
    let text = if key.is_empty() {
        "The address does not say which program this is about: its key is missing (?key=pk_…). Open the page from the \
         product whose partner you are, or from a mail of it. Only at a host of its own (portal_domain) a program \
         needs no key."
    } else {
        "No partner program has the key that stands in the address."
    };
    PortalPage::of(StatusCode::NOT_FOUND, frame::plain("", "Which program?", text))
}

/// `up` is the way to the other pages.
fn nowhere(up: &'static str) -> PortalPage {
    PortalPage::of(
        StatusCode::NOT_FOUND,
        frame::plain(up, "No such page", "There is nothing at this address."),
    )
}

fn over() -> PortalPage {
    let text = "The link was used already, or is too old: each works once, and for a short time. Ask for another where \
                you found it.";
    PortalPage::of(StatusCode::GONE, frame::plain(UP, "This link is over", text))
}

/// `GET /portal`.
///
/// # Errors
/// None.
pub async fn door(_: Arc<Room>, _: AtDoor) -> Result<PortalPage, Problem> {
    PortalPage::to(StatusCode::FOUND, "portal/home")
}

/// `GET /portal/{page}`.
///
/// # Errors
/// The store cannot be read.
pub async fn page(room: Arc<Room>, OfPage(asked): OfPage) -> Result<PortalPage, Problem> {
    match asked.last.as_str() {
        "style.css" => return Ok(PortalPage::style()),
        "sign-in" => return sign_in::show(&room, &asked).await,
        "join" => return join::show(&room, &asked).await,
        name if !PAGES.contains(&name) => return Ok(nowhere("")),
        _ => {}
    }
    let (guest, token) = match seated(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    let view = View::new(&guest, &token, &asked);
    Ok(PortalPage::of(StatusCode::OK, draw(&room, &asked.last, &view).await?))
}

/// A page of who has signed in.
async fn draw(room: &Room, name: &str, view: &View<'_>) -> Result<Html, Problem> {
    let drawn = match name {
        "links" => links::show(room, view).await,
        "referrals" => referrals::show(room, view).await,
        "earnings" => earnings::show(room, view).await,
        "payouts" => payouts::show(room, view).await,
        "settings" => settings::show(room, view).await,
        _ => home::show(room, view).await,
    };
    drawn.map_err(|refusal| refused(room, refusal))
}

/// `GET /portal/payouts/{id}`.
///
/// # Errors
/// The store cannot be read.
pub async fn payout(room: Arc<Room>, OfPayout(asked): OfPayout) -> Result<PortalPage, Problem> {
    let (guest, token) = match seated(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    let view = View::new(&guest, &token, &asked).below();
    let receipt = payouts::receipt(&room, &view, &asked.last).await;
    let receipt = receipt.map_err(|refusal| refused(&room, refusal))?;
    Ok(receipt.map_or_else(|| nowhere(UP), |receipt| PortalPage::of(StatusCode::OK, receipt)))
}

/// `POST /portal/{page}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn form(room: Arc<Room>, OfForm(asked): OfForm) -> Result<PortalPage, Problem> {
    match asked.last.as_str() {
        name if !FORMS.contains(&name) => return Ok(nowhere("")),
        _ if asked.is_foreign => return Ok(forged("")),
        "sign-in" => return sign_in::ask(&room, &asked).await,
        "join" => return join::send(&room, &asked).await,
        _ => {}
    }
    let (guest, token) = match seated(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    // Hashes are compared: how much of two of them is the same tells nothing.
    let given = SecretHash::of_bytes(asked.form.get("csrf").as_bytes());
    if given != SecretHash::of_bytes(token.csrf().as_bytes()) {
        return Ok(forged(""));
    }
    forms::act(&room, (&guest, &token), &asked).await
}

/// The answer to a form that no page of ours has sent.
fn forged(up: &'static str) -> PortalPage {
    let text = "This form was not sent from a page of the portal as it is now. Go back, load the page anew, and try again.";
    PortalPage::of(StatusCode::FORBIDDEN, frame::plain(up, "Not from here", text))
}

/// The first page, for a redirect: whatever stands before our paths stands before it.
fn first_page(room: &Room, asked: &Asked) -> String {
    let own = room.options.base_url.parse::<http::Uri>().ok();
    let is_own = |url: &http::Uri| {
        let host = asked.host.as_ref().map(ToString::to_string);
        url.host().is_some_and(|own| host.is_none_or(|host| own.eq_ignore_ascii_case(&host)))
    };
    let path = own.filter(is_own).map(|url| url.path().trim_end_matches('/').to_owned());
    format!("{}/portal/home", path.unwrap_or_default())
}

/// Lets in who comes by a link that lets in.
async fn let_in(
    room: &Room,
    asked: &Asked,
    secret: &LinkSecret,
    status: StatusCode,
) -> Result<PortalPage, Problem> {
    let visitor = cookie::values(&asked.headers, VISITOR).next().map(str::to_owned);
    let seen = Seen { visitor, from: asked.from };
    match room.affiliate.enter(secret, &seen).await {
        Ok((token, guest)) => {
            let (now, email) = (room.hall.clock().now(), guest.partner.email.to_string());
            room.throttle.let_in(asked.from, (guest.program.id, &email), now);
            let to = PortalPage::to(status, &first_page(room, asked))?;
            Ok(to.with_cookie(cookie::set(&token, is_secure(room))))
        }
        Err(Refusal::Obstacle(Obstacle::LinkOver)) => Ok(refused_link(room, asked)),
        Err(refusal) => Err(refused(room, refusal)),
    }
}

/// Logs a link that lets nobody in, and says that it is over.
fn refused_link(room: &Room, asked: &Asked) -> PortalPage {
    let now = room.hall.clock().now();
    room.login_log.failed(LoginKind::PortalLink, asked.from, "used_or_expired", now);
    over()
}

/// `GET /portal/enter/{token}`: the program's server has asked for the link a moment ago, and sent a browser here. Who
/// only looks ahead, does not use it up.
///
/// # Errors
/// The store cannot be read or written.
pub async fn enter(room: Arc<Room>, OfLink(asked): OfLink) -> Result<PortalPage, Problem> {
    let Some(secret) = LinkSecret::parse(&asked.last) else { return Ok(over()) };
    if !asked.in_advance {
        let behind = room.affiliate.behind(&secret).await.map_err(|refusal| refused(&room, refusal))?;
        // A link of mail is not followed by looking at it, wherever somebody puts it.
        let is_login = |door: &::affiliate::portal::entrance::Door| {
            door.link.purpose == mail::affiliate::portal::Purpose::Login
        };
        return match behind.filter(is_login) {
            Some(_) => let_in(&room, &asked, &secret, StatusCode::FOUND).await,
            None => Ok(refused_link(&room, &asked)),
        };
    }
    let behind = room.affiliate.behind(&secret).await.map_err(|refusal| refused(&room, refusal))?;
    if behind.is_none() {
        return Ok(over());
    }
    let nothing = Bytes::new();
    Ok(PortalPage { status: StatusCode::NO_CONTENT, media_type: PAGE, headers: Vec::new(), body: nothing })
}

/// `GET /portal/link/{token}`: a page with a button. It uses nothing up.
///
/// # Errors
/// The store cannot be read.
pub async fn show_link(room: Arc<Room>, OfLink(asked): OfLink) -> Result<PortalPage, Problem> {
    let Some(secret) = LinkSecret::parse(&asked.last) else { return Ok(over()) };
    let behind = room.affiliate.behind(&secret).await.map_err(|refusal| refused(&room, refusal))?;
    Ok(match behind.filter(|door| door.link.purpose.lets_in()) {
        Some(door) => PortalPage::of(StatusCode::OK, sign_in::by_link(&door)),
        None => over(),
    })
}

/// `POST /portal/link/{token}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn use_link(room: Arc<Room>, UseLink(asked): UseLink) -> Result<PortalPage, Problem> {
    if asked.is_foreign {
        return Ok(forged(UP));
    }
    let Some(secret) = LinkSecret::parse(&asked.last) else { return Ok(over()) };
    let_in(&room, &asked, &secret, StatusCode::SEE_OTHER).await
}

/// `GET /portal/payout/{token}`: a page with a button. It changes nothing.
///
/// # Errors
/// The store cannot be read.
pub async fn show_payout(room: Arc<Room>, OfLink(asked): OfLink) -> Result<PortalPage, Problem> {
    let Some(secret) = LinkSecret::parse(&asked.last) else { return Ok(over()) };
    let change = room.affiliate.payout_change(&secret).await.map_err(|refusal| refused(&room, refusal))?;
    Ok(match change {
        Some((door, payout)) => PortalPage::of(StatusCode::OK, settings::ask_payout(&door, &payout)),
        None => over(),
    })
}

/// `POST /portal/payout/{token}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn confirm_payout(room: Arc<Room>, UseLink(asked): UseLink) -> Result<PortalPage, Problem> {
    if asked.is_foreign {
        return Ok(forged(UP));
    }
    let Some(secret) = LinkSecret::parse(&asked.last) else { return Ok(over()) };
    match room.affiliate.confirm_payout_change(&secret).await {
        Ok(shown) => Ok(PortalPage::of(StatusCode::OK, settings::payout_changed(&shown))),
        Err(refusal) => match told(&room, refusal)? {
            (StatusCode::GONE, _) => Ok(over()),
            (status, text) => Ok(PortalPage::of(status, frame::plain(UP, "This did not work", &text))),
        },
    }
}

/// Whether a partner may change anything here.
fn may_change(guest: &Guest) -> bool {
    guest.partner.status == PartnerStatus::Active
}
