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

use ::affiliate::portal::entrance::{PartnerSession, SignInContext};
use ::affiliate::refusal::{AffiliateError, ConflictReason};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use http::header::{REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{Method, StatusCode};
use mail::affiliate::partner::PartnerStatus;
use mail::affiliate::portal::{PortalLinkSecret, PortalToken};
use mail::affiliate::program::AffiliateProgram;
use mail::credential::SecretHash;
use serde_json::{Value, json};

use self::asked::{PortalFormPath, PortalIndex, PortalLinkPath, PortalPagePath, PortalPayoutPath, UsePortalLink};
use self::frame::PageContext;
use self::html::Html;
use crate::affiliate::refusal_problem;
use crate::auth::login_log::LoginKind;
use crate::call::{CookiePolicy, ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};
use crate::operations::{Operation, OperationBuilder, operation};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::Schemas;

pub use self::asked::PortalRequest;

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
const VISITOR_COOKIE: &str = "stx_vid";
/// The way to the other pages, of those one step below them.
const PARENT_PATH: &str = "../";
/// Search engines do not list these pages.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
/// What the pages may do: show the one style sheet, and send their own forms.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";
/// The style sheet's address changes with its text.
const STYLE_CACHE_CONTROL: &str = "public, max-age=31536000, immutable";

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| -> OperationBuilder {
        operation(method, path, id).about("portal", summary).errors(&[
            ErrorCode::UNAUTHORIZED,
            ErrorCode::FORBIDDEN,
            ErrorCode::NOT_FOUND,
            ErrorCode::CONFLICT,
            ErrorCode::GONE,
            ErrorCode::RATE_LIMIT_EXCEEDED,
        ])
    };
    let (get, post) = (Method::GET, Method::POST);
    vec![
        of(get.clone(), "/portal", "open_portal", "The partner portal's door: leads to its first page").public(index),
        of(get.clone(), "/portal/{page}", "show_portal_page", "Show a page of the partner portal").public(page),
        of(post.clone(), "/portal/{page}", "send_portal_form", "Send a form of the partner portal").public(submit_form),
        of(get.clone(), "/portal/payouts/{id}", "show_portal_payout", "Show a partner a payout's receipt")
            .public(payout),
        of(get.clone(), "/portal/enter/{token}", "enter_portal", "Let a partner in by a login link, once")
            .public(enter_by_link),
        of(get.clone(), "/portal/link/{token}", "show_portal_link", "Ask whether to sign in by a mailed link")
            .public(show_link),
        of(post.clone(), "/portal/link/{token}", "use_portal_link", "Let a partner in by a mailed link, once")
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
    fn new(status: StatusCode, page: Html) -> Self {
        Self { status, media_type: HTML_MEDIA_TYPE, headers: Vec::new(), body: page.into_string().into() }
    }

    fn redirect(status: StatusCode, location: &str) -> Result<Self, Problem> {
        let location = HeaderValue::try_from(location).map_err(Problem::internal)?;
        let headers = vec![(LOCATION, location)];
        Ok(Self { status, media_type: "text/plain; charset=utf-8", headers, body: Bytes::new() })
    }

    fn style_sheet() -> Self {
        let headers = vec![(CACHE_CONTROL, HeaderValue::from_static(STYLE_CACHE_CONTROL))];
        let body = Bytes::from_static(frame::STYLE.as_bytes());
        Self { status: StatusCode::OK, media_type: "text/css; charset=utf-8", headers, body }
    }

    fn with_cookie(mut self, cookie: Option<HeaderValue>) -> Self {
        self.headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        self
    }
}

impl IntoResponse for PortalPage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;
    const COOKIES: CookiePolicy = CookiePolicy::Session;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[
        ExtraResponse { status: 200, media_type: Some("text/css; charset=utf-8"), about: "The style sheet" },
        ExtraResponse {
            status: 204,
            media_type: None,
            about: "Nobody has asked for it yet: HEAD, a browser that looks ahead",
        },
        ExtraResponse { status: 302, media_type: None, about: "Into the portal" },
        ExtraResponse { status: 303, media_type: None, about: "To the page that says what came of a form" },
        ExtraResponse { status: 400, media_type: Some(HTML_MEDIA_TYPE), about: "A field will not do" },
        ExtraResponse { status: 401, media_type: Some(HTML_MEDIA_TYPE), about: "Nobody has signed in" },
        ExtraResponse {
            status: 403,
            media_type: Some(HTML_MEDIA_TYPE),
            about: "The partner may look only, or the form is not the session's",
        },
        ExtraResponse { status: 404, media_type: Some(HTML_MEDIA_TYPE), about: "There is no such page" },
        ExtraResponse {
            status: 409,
            media_type: Some(HTML_MEDIA_TYPE),
            about: "It is taken, or was changed meanwhile",
        },
        ExtraResponse { status: 410, media_type: Some(HTML_MEDIA_TYPE), about: "The link was used, or is too old" },
        ExtraResponse { status: 429, media_type: Some(HTML_MEDIA_TYPE), about: "Too many tries" },
    ];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A page for people"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(self.body)
    }

    fn into_response(self) -> Result<Response, Problem> {
        let mut headers = vec![
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            // With `no-referrer` browsers would send our own forms with `Origin: null`.
            (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
            (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (ROBOTS, HeaderValue::from_static("noindex, nofollow")),
        ];
        headers.extend(self.headers);
        let media_type = HeaderValue::from_static(self.media_type);
        Ok(Response { status: self.status, media_type, headers, body: self.body, stream: None })
    }
}

/// Whether people reach us by TLS.
fn is_secure(room: &AppState) -> bool {
    room.options.base_url.starts_with("https://")
}

/// What of a refusal is the visitor's to mend, as a page's status and words; what is not, is an error.
fn refusal_text(room: &AppState, refusal: AffiliateError) -> Result<(StatusCode, String), Problem> {
    match &refusal {
        AffiliateError::Fields(fields) => {
            let told: Vec<String> =
                fields.iter().map(|(name, why)| format!("{} {why}", words::field_label(name))).collect();
            Ok((StatusCode::BAD_REQUEST, told.join("; ")))
        }
        AffiliateError::Conflict(ConflictReason::PortalLinkExpired) => Ok((StatusCode::GONE, refusal.to_string())),
        AffiliateError::Conflict(_) => Ok((StatusCode::CONFLICT, words::to_sentence(&refusal.to_string()))),
        // The visitor can do nothing about the program's plan.
        AffiliateError::Quota(_) => {
            Ok((StatusCode::CONFLICT, "The program takes no more partners at the moment".to_owned()))
        }
        AffiliateError::Forbidden(_) | AffiliateError::WrongMove(_) => {
            Ok((StatusCode::FORBIDDEN, words::to_sentence(&refusal.to_string())))
        }
        AffiliateError::NotFound(_) => Ok((StatusCode::NOT_FOUND, words::to_sentence(&refusal.to_string()))),
        _ => Err(refusal_problem(room, refusal)),
    }
}

/// Somebody who has signed in, or the page for who has not.
async fn require_partner_session(
    room: &AppState,
    asked: &PortalRequest,
) -> Result<Result<(PartnerSession, PortalToken), PortalPage>, Problem> {
    let fault = |refusal| refusal_problem(room, refusal);
    let at_host = match &asked.host {
        Some(host) => room.affiliate.find_program_by_host(host).await.map_err(fault)?,
        None => None,
    };
    let token = cookie::token(&asked.headers, is_secure(room));
    if let Some(token) = &token {
        let guest = room.affiliate.authenticate(token).await.map_err(fault)?;
        // A program's own host is for its own partners.
        let is_here =
            |guest: &PartnerSession| at_host.as_ref().is_none_or(|program| program.account == guest.program.account);
        if let Some(guest) = guest.filter(is_here) {
            return Ok(Ok((guest, token.clone())));
        }
    }
    let program = match (at_host, token) {
        (Some(program), _) => Some(program),
        (None, Some(token)) => room.affiliate.require_set_up(token.account).await.ok(),
        (None, None) => None,
    };
    Ok(Err(PortalPage::new(StatusCode::UNAUTHORIZED, sign_in::signed_out_page(program.as_ref()))))
}

/// The program that a page without a session is about: by the key in its address, or by the host.
async fn find_program(room: &AppState, asked: &PortalRequest, key: &str) -> Result<Option<AffiliateProgram>, Problem> {
    let fault = |refusal| refusal_problem(room, refusal);
    if !key.is_empty() {
        return room.affiliate.find_portal_by_key(key).await.map_err(fault);
    }
    match &asked.host {
        Some(host) => room.affiliate.find_program_by_host(host).await.map_err(fault),
        None => Ok(None),
    }
}

/// The page for an address that leads to no program: what is missing in it.
fn no_program_page(key: &str) -> PortalPage {
    let text = if key.is_empty() {
        "The address does not say which program this is about: its key is missing (?key=pk_…). Open the page from the \
         product whose partner you are, or from a mail of it. Only at a host of its own (portal_domain) a program \
         needs no key."
    } else {
        "No partner program has the key that stands in the address."
    };
    PortalPage::new(StatusCode::NOT_FOUND, frame::message_page("", "Which program?", text))
}

/// `up` is the way to the other pages.
fn not_found_page(up: &'static str) -> PortalPage {
    PortalPage::new(StatusCode::NOT_FOUND, frame::message_page(up, "No such page", "There is nothing at this address."))
}

fn expired_link_page() -> PortalPage {
    let text = "The link was used already, or is too old: each works once, and for a short time. Ask for another where \
                you found it.";
    PortalPage::new(StatusCode::GONE, frame::message_page(PARENT_PATH, "This link is over", text))
}

/// `GET /portal`.
///
/// # Errors
/// None.
pub async fn index(_: Arc<AppState>, _: PortalIndex) -> Result<PortalPage, Problem> {
    PortalPage::redirect(StatusCode::FOUND, "portal/home")
}

/// `GET /portal/{page}`.
///
/// # Errors
/// The store cannot be read.
pub async fn page(room: Arc<AppState>, PortalPagePath(asked): PortalPagePath) -> Result<PortalPage, Problem> {
    match asked.path_segment.as_str() {
        "style.css" => return Ok(PortalPage::style_sheet()),
        "sign-in" => return sign_in::show(&room, &asked).await,
        "join" => return join::show_form(&room, &asked).await,
        name if !PAGES.contains(&name) => return Ok(not_found_page("")),
        _ => {}
    }
    let (guest, token) = match require_partner_session(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    let view = PageContext::new(&guest, &token, &asked);
    Ok(PortalPage::new(StatusCode::OK, render_page(&room, &asked.path_segment, &view).await?))
}

/// A page of who has signed in.
async fn render_page(room: &AppState, name: &str, view: &PageContext<'_>) -> Result<Html, Problem> {
    let drawn = match name {
        "links" => links::show(room, view).await,
        "referrals" => referrals::show(room, view).await,
        "earnings" => earnings::show(room, view).await,
        "payouts" => payouts::show(room, view).await,
        "settings" => settings::show(room, view).await,
        _ => home::show(room, view).await,
    };
    drawn.map_err(|refusal| refusal_problem(room, refusal))
}

/// `GET /portal/payouts/{id}`.
///
/// # Errors
/// The store cannot be read.
pub async fn payout(room: Arc<AppState>, PortalPayoutPath(asked): PortalPayoutPath) -> Result<PortalPage, Problem> {
    let (guest, token) = match require_partner_session(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    let view = PageContext::new(&guest, &token, &asked).nested();
    let receipt = payouts::receipt(&room, &view, &asked.path_segment).await;
    let receipt = receipt.map_err(|refusal| refusal_problem(&room, refusal))?;
    Ok(receipt.map_or_else(|| not_found_page(PARENT_PATH), |receipt| PortalPage::new(StatusCode::OK, receipt)))
}

/// `POST /portal/{page}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn submit_form(room: Arc<AppState>, PortalFormPath(asked): PortalFormPath) -> Result<PortalPage, Problem> {
    match asked.path_segment.as_str() {
        name if !FORMS.contains(&name) => return Ok(not_found_page("")),
        _ if asked.is_cross_site => return Ok(forged_form_page("")),
        "sign-in" => return sign_in::request_link(&room, &asked).await,
        "join" => return join::submit_form(&room, &asked).await,
        _ => {}
    }
    let (guest, token) = match require_partner_session(&room, &asked).await? {
        Ok(seated) => seated,
        Err(page) => return Ok(page),
    };
    // Hashes are compared: how much of two of them is the same tells nothing.
    let given = SecretHash::from_bytes(asked.form.get("csrf").as_bytes());
    if given != SecretHash::from_bytes(token.csrf().as_bytes()) {
        return Ok(forged_form_page(""));
    }
    forms::submit(&room, (&guest, &token), &asked).await
}

/// The answer to a form that no page of ours has sent.
fn forged_form_page(up: &'static str) -> PortalPage {
    let text =
        "This form was not sent from a page of the portal as it is now. Go back, load the page anew, and try again.";
    PortalPage::new(StatusCode::FORBIDDEN, frame::message_page(up, "Not from here", text))
}

/// The first page, for a redirect: whatever stands before our paths stands before it.
fn home_url(room: &AppState, asked: &PortalRequest) -> String {
    let own = room.options.base_url.parse::<http::Uri>().ok();
    let is_own = |url: &http::Uri| {
        let host = asked.host.as_ref().map(ToString::to_string);
        url.host().is_some_and(|own| host.is_none_or(|host| own.eq_ignore_ascii_case(&host)))
    };
    let path = own.filter(is_own).map(|url| url.path().trim_end_matches('/').to_owned());
    format!("{}/portal/home", path.unwrap_or_default())
}

/// Lets in who comes by a link that lets in.
async fn sign_in_with_link(
    room: &AppState,
    asked: &PortalRequest,
    secret: &PortalLinkSecret,
    status: StatusCode,
) -> Result<PortalPage, Problem> {
    let visitor = cookie::values(&asked.headers, VISITOR_COOKIE).next().map(str::to_owned);
    let seen = SignInContext { visitor, from: asked.client_ip };
    match room.affiliate.sign_in(secret, &seen).await {
        Ok((token, guest)) => {
            let (now, email) = (room.intake.clock().now(), guest.partner.email.to_string());
            room.sign_in_limiter.remember_partner_network(asked.client_ip, (guest.program.id, &email), now);
            let to = PortalPage::redirect(status, &home_url(room, asked))?;
            Ok(to.with_cookie(cookie::set_cookie(&token, is_secure(room))))
        }
        Err(AffiliateError::Conflict(ConflictReason::PortalLinkExpired)) => Ok(refused_link(room, asked)),
        Err(refusal) => Err(refusal_problem(room, refusal)),
    }
}

/// Logs a link that lets nobody in, and says that it is over.
fn refused_link(room: &AppState, asked: &PortalRequest) -> PortalPage {
    let now = room.intake.clock().now();
    room.login_log.failed(LoginKind::PortalLink, asked.client_ip, "used_or_expired", now);
    expired_link_page()
}

/// `GET /portal/enter/{token}`: the program's server has asked for the link a moment ago, and sent a browser here. Who
/// only looks ahead, does not use it up.
///
/// # Errors
/// The store cannot be read or written.
pub async fn enter_by_link(room: Arc<AppState>, PortalLinkPath(asked): PortalLinkPath) -> Result<PortalPage, Problem> {
    let Some(secret) = PortalLinkSecret::parse(&asked.path_segment) else { return Ok(expired_link_page()) };
    if !asked.is_prefetch {
        let behind =
            room.affiliate.find_login_target(&secret).await.map_err(|refusal| refusal_problem(&room, refusal))?;
        // A link of mail is not followed by looking at it, wherever somebody puts it.
        let is_login = |door: &::affiliate::portal::entrance::LoginTarget| {
            door.link.purpose == mail::affiliate::portal::PortalLinkPurpose::Login
        };
        return match behind.filter(is_login) {
            Some(_) => sign_in_with_link(&room, &asked, &secret, StatusCode::FOUND).await,
            None => Ok(refused_link(&room, &asked)),
        };
    }
    let behind = room.affiliate.find_login_target(&secret).await.map_err(|refusal| refusal_problem(&room, refusal))?;
    if behind.is_none() {
        return Ok(expired_link_page());
    }
    let nothing = Bytes::new();
    Ok(PortalPage { status: StatusCode::NO_CONTENT, media_type: HTML_MEDIA_TYPE, headers: Vec::new(), body: nothing })
}

/// `GET /portal/link/{token}`: a page with a button. It uses nothing up.
///
/// # Errors
/// The store cannot be read.
pub async fn show_link(room: Arc<AppState>, PortalLinkPath(asked): PortalLinkPath) -> Result<PortalPage, Problem> {
    let Some(secret) = PortalLinkSecret::parse(&asked.path_segment) else { return Ok(expired_link_page()) };
    let behind = room.affiliate.find_login_target(&secret).await.map_err(|refusal| refusal_problem(&room, refusal))?;
    Ok(match behind.filter(|door| door.link.purpose.signs_in()) {
        Some(door) => PortalPage::new(StatusCode::OK, sign_in::link_page(&door)),
        None => expired_link_page(),
    })
}

/// `POST /portal/link/{token}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn use_link(room: Arc<AppState>, UsePortalLink(asked): UsePortalLink) -> Result<PortalPage, Problem> {
    if asked.is_cross_site {
        return Ok(forged_form_page(PARENT_PATH));
    }
    let Some(secret) = PortalLinkSecret::parse(&asked.path_segment) else { return Ok(expired_link_page()) };
    sign_in_with_link(&room, &asked, &secret, StatusCode::SEE_OTHER).await
}

/// `GET /portal/payout/{token}`: a page with a button. It changes nothing.
///
/// # Errors
/// The store cannot be read.
pub async fn show_payout(room: Arc<AppState>, PortalLinkPath(asked): PortalLinkPath) -> Result<PortalPage, Problem> {
    let Some(secret) = PortalLinkSecret::parse(&asked.path_segment) else { return Ok(expired_link_page()) };
    let change = room.affiliate.find_payout_change(&secret).await.map_err(|refusal| refusal_problem(&room, refusal))?;
    Ok(match change {
        Some((door, payout)) => PortalPage::new(StatusCode::OK, settings::confirm_payout_page(&door, &payout)),
        None => expired_link_page(),
    })
}

/// `POST /portal/payout/{token}`.
///
/// # Errors
/// The store cannot be read or written.
pub async fn confirm_payout(room: Arc<AppState>, UsePortalLink(asked): UsePortalLink) -> Result<PortalPage, Problem> {
    if asked.is_cross_site {
        return Ok(forged_form_page(PARENT_PATH));
    }
    let Some(secret) = PortalLinkSecret::parse(&asked.path_segment) else { return Ok(expired_link_page()) };
    match room.affiliate.confirm_payout_change(&secret).await {
        Ok(shown) => Ok(PortalPage::new(StatusCode::OK, settings::payout_changed_page(&shown))),
        Err(refusal) => match refusal_text(&room, refusal)? {
            (StatusCode::GONE, _) => Ok(expired_link_page()),
            (status, text) => Ok(PortalPage::new(status, frame::message_page(PARENT_PATH, "This did not work", &text))),
        },
    }
}

/// Whether a partner may change anything here.
fn can_edit(guest: &PartnerSession) -> bool {
    guest.partner.status == PartnerStatus::Active
}
