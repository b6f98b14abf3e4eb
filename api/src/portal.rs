//! Partner portal: the HTML pages for partners of an affiliate program.
//!
//! ```text
//! GET  /portal/enter/{token}   login link of one minute: 302 to the portal with a session cookie
//! GET  /portal/link/{token}    mailed login link: page with a button, whose POST signs in
//! GET  /portal/payout/{token}  mailed link: shows the new payout destination; its POST confirms it
//! GET  /portal/{page}          a page of the signed-in partner; also sign-in, join, style.css
//! POST /portal/{form}          submits a form; 303 to a page that shows the result
//! ```
//!
//! The pages are HTML without scripts and with one style sheet; the Content-Security-Policy allows nothing else.
//! Crate `html` has the kit and the style sheet's shared parts; `maud!` escapes every text. Forms of a session carry a
//! CSRF token. A mailed link changes nothing until its button is pressed. Pages use relative URLs, so that they work on
//! the program's own host and below a path prefix. `affiliate/src/portal.rs` performs the changes.

mod chart;
pub mod cookie;
mod earnings;
mod field;
mod forms;
mod home;
mod join;
mod layout;
mod links;
pub mod page;
mod partner_pages;
mod payouts;
mod postbacks;
mod program;
mod referrals;
mod refusal;
pub mod request;
mod settings;
mod sign_in;
mod texts;

use ::affiliate::error::{AffiliateError, ConflictReason};
use ::affiliate::portal::login::{PartnerSession, SignInContext};
use httpd::response::HTML_MEDIA_TYPE;
use model::affiliate::portal::{PortalLinkSecret, PortalToken};
use model::credential::SecretHash;

use self::layout::PageContext;
use self::request::{PortalFormPath, PortalIndex, PortalLinkPath, PortalPagePath, PortalPayoutPath, UsePortalLink};
use crate::auth::login_log::LoginKind;
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

use self::cookie::is_secure;
use self::layout::PARENT_PATH;
use self::page::PortalPage;
use self::partner_pages::render_page;
use self::refusal::refusal_text;
pub use self::request::PortalRequest;
use self::request::{FORMS, PAGES};

/// The cookie by which the browser script recognises a browser.
const VISITOR_COOKIE: &str = "stx_vid";
/// The operations of the portal.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("portal").errors(&[
        ErrorCode::UNAUTHORIZED,
        ErrorCode::FORBIDDEN,
        ErrorCode::NOT_FOUND,
        ErrorCode::CONFLICT,
        ErrorCode::GONE,
        ErrorCode::RATE_LIMIT_EXCEEDED,
    ]);
    vec![
        tag.get("/portal", "Redirect to the first page of the partner portal").public("open_portal", index),
        tag.get("/portal/{page}", "Show a page of the partner portal").public("show_portal_page", page),
        tag.post("/portal/{page}", "Submit a form of the partner portal").public("send_portal_form", submit_form),
        tag.get("/portal/payouts/{id}", "Show a payout receipt").public("show_portal_payout", payout),
        tag.get("/portal/enter/{token}", "Sign in with a login link (single use)")
            .public("enter_portal", enter_by_link),
        tag.get("/portal/link/{token}", "Show the sign-in page of a mailed link").public("show_portal_link", show_link),
        tag.post("/portal/link/{token}", "Sign in with a mailed link (single use)").public("use_portal_link", use_link),
        tag.get("/portal/payout/{token}", "Show a requested payout destination")
            .public("show_payout_change", show_payout),
        tag.post("/portal/payout/{token}", "Confirm a payout destination")
            .public("confirm_payout_change", confirm_payout),
    ]
}

/// The signed-in partner with the session token, or the page for visitors without a session.
async fn require_partner_session(
    state: &AppState,
    request: &PortalRequest,
) -> Result<Result<(PartnerSession, PortalToken), PortalPage>> {
    let at_host = match &request.host {
        Some(host) => state.affiliate.hosts.find_program_by_host(host).await.or_problem(state)?,
        None => None,
    };
    let token = cookie::token(&request.headers, is_secure(state));
    if let Some(token) = &token {
        let partner_session = state.affiliate.context.authenticate_partner(token).await.or_problem(state)?;
        // A program's own host serves only that program's partners.
        let is_of_program = |partner_session: &PartnerSession| {
            at_host.as_ref().is_none_or(|program| program.account == partner_session.program.account)
        };
        if let Some(partner_session) = partner_session.filter(is_of_program) {
            return Ok(Ok((partner_session, token.clone())));
        }
    }
    let program = match (at_host, token) {
        (Some(program), _) => Some(program),
        (None, Some(token)) => state.affiliate.context.require_set_up(token.account).await.ok(),
        (None, None) => None,
    };
    Ok(Err(PortalPage::new(StatusCode::UNAUTHORIZED, sign_in::signed_out_page(program.as_ref()))))
}

/// `up` is the relative path to the other pages.
fn not_found_page(up: &'static str) -> PortalPage {
    PortalPage::new(
        StatusCode::NOT_FOUND,
        layout::message_page(up, "Page not found", "There is no page at this address."),
    )
}

fn expired_link_page() -> PortalPage {
    let text = "Each link works once and only for a short time; this one has been used or has expired. Request a new \
        link where you got this one.";
    PortalPage::new(StatusCode::GONE, layout::message_page(PARENT_PATH, "This link has expired", text))
}

/// `GET /portal`.
pub async fn index(_: State, _: PortalIndex) -> Result<PortalPage> {
    PortalPage::redirect(StatusCode::FOUND, "portal/home")
}

/// `GET /portal/{page}`.
pub async fn page(state: State, PortalPagePath(request): PortalPagePath) -> Result<PortalPage> {
    match request.path_segment.as_str() {
        "style.css" => return Ok(PortalPage::style_sheet()),
        "sign-in" => return sign_in::show(&state, &request).await,
        "join" => return join::show_form(&state, &request).await,
        name if !PAGES.contains(&name) => return Ok(not_found_page("")),
        _ => {}
    }
    let (partner_session, token) = match require_partner_session(&state, &request).await? {
        Ok(signed_in) => signed_in,
        Err(page) => return Ok(page),
    };
    let view = PageContext::new(&partner_session, &token, &request);
    Ok(PortalPage::new(StatusCode::OK, render_page(&state, &request.path_segment, &view).await?))
}

/// `GET /portal/payouts/{id}`.
pub async fn payout(state: State, PortalPayoutPath(request): PortalPayoutPath) -> Result<PortalPage> {
    let (partner_session, token) = match require_partner_session(&state, &request).await? {
        Ok(signed_in) => signed_in,
        Err(page) => return Ok(page),
    };
    let view = PageContext::new(&partner_session, &token, &request).nested();
    let receipt = payouts::receipt(&state, &view, &request.path_segment).await.or_problem(&state)?;
    Ok(receipt.map_or_else(|| not_found_page(PARENT_PATH), |receipt| PortalPage::new(StatusCode::OK, receipt)))
}

/// `POST /portal/{page}`.
pub async fn submit_form(state: State, PortalFormPath(request): PortalFormPath) -> Result<PortalPage> {
    match request.path_segment.as_str() {
        name if !FORMS.contains(&name) => return Ok(not_found_page("")),
        _ if request.is_cross_site => return Ok(forged_form_page("")),
        "sign-in" => return sign_in::request_link(&state, &request).await,
        "join" => return join::submit_form(&state, &request).await,
        _ => {}
    }
    let (partner_session, token) = match require_partner_session(&state, &request).await? {
        Ok(signed_in) => signed_in,
        Err(page) => return Ok(page),
    };
    // Compare hashes: the timing of the comparison reveals nothing about the token.
    let csrf_hash = SecretHash::from_bytes(request.form.get("csrf").as_bytes());
    if csrf_hash != SecretHash::from_bytes(token.csrf().as_bytes()) {
        return Ok(forged_form_page(""));
    }
    forms::submit(&state, &partner_session, &token, &request).await
}

/// The response to a form with a missing or wrong CSRF token, or from another site.
fn forged_form_page(up: &'static str) -> PortalPage {
    let text = "This form is out of date or was not sent from the portal. Go back, reload the page, and try again.";
    PortalPage::new(StatusCode::FORBIDDEN, layout::message_page(up, "Form not accepted", text))
}

/// The redirect target after sign-in: the first page, with the path prefix of the base URL on its own host.
fn home_url(state: &AppState, request: &PortalRequest) -> String {
    let base_url = state.options.base_url.parse::<http::Uri>().ok();
    let is_own = |url: &http::Uri| {
        let host = request.host.as_ref().map(ToString::to_string);
        url.host().is_some_and(|base_url| host.is_none_or(|host| base_url.eq_ignore_ascii_case(&host)))
    };
    let path = base_url.filter(is_own).map(|url| url.path().trim_end_matches('/').to_owned());
    format!("{}/portal/home", path.unwrap_or_default())
}

/// Uses up a login link: sets the session cookie and redirects to the portal.
async fn sign_in_with_link(
    state: &AppState,
    request: &PortalRequest,
    secret: &PortalLinkSecret,
    status: StatusCode,
) -> Result<PortalPage> {
    let visitor = cookie::values(&request.headers, VISITOR_COOKIE).next().map(str::to_owned);
    let context = SignInContext { visitor, from: request.client_ip };
    match state.affiliate.context.sign_in_partner(secret, &context).await {
        Ok((token, partner_session)) => {
            let (now, email) = (state.services.clock.now(), partner_session.partner.email.to_string());
            state.sign_in.limiter.remember_partner_network(request.client_ip, partner_session.program.id, &email, now);
            let to = PortalPage::redirect(status, &home_url(state, request))?;
            Ok(to.with_cookie(cookie::set_cookie(&token, is_secure(state))))
        }
        Err(AffiliateError::Conflict(ConflictReason::PortalLinkExpired)) => Ok(refused_link(state, request)),
        Err(refusal) => Err(refusal.into_problem(state)),
    }
}

/// Logs a used or expired link and returns the page for it.
fn refused_link(state: &AppState, request: &PortalRequest) -> PortalPage {
    let now = state.services.clock.now();
    state.sign_in.log.failed(LoginKind::PortalLink, request.client_ip, "used_or_expired", now);
    expired_link_page()
}

/// `GET /portal/enter/{token}`: the program's server created the link and redirected the browser here. A prefetch
/// does not use up the link.
pub async fn enter_by_link(state: State, PortalLinkPath(request): PortalLinkPath) -> Result<PortalPage> {
    let Some(secret) = PortalLinkSecret::parse(&request.path_segment) else { return Ok(expired_link_page()) };
    let found = state.affiliate.context.find_login_target(&secret).await.or_problem(&state)?;
    if !request.is_prefetch {
        // A mailed link needs its button, even if it is placed in this URL.
        let is_login = |target: &::affiliate::portal::login::LoginTarget| {
            target.link.purpose == model::affiliate::portal::PortalLinkPurpose::Login
        };
        return match found.filter(is_login) {
            Some(_) => sign_in_with_link(&state, &request, &secret, StatusCode::FOUND).await,
            None => Ok(refused_link(&state, &request)),
        };
    }
    if found.is_none() {
        return Ok(expired_link_page());
    }
    let empty = Bytes::new();
    Ok(PortalPage { status: StatusCode::NO_CONTENT, media_type: HTML_MEDIA_TYPE, headers: Vec::new(), body: empty })
}

/// `GET /portal/link/{token}`: a page with a button. Showing it does not use up the link.
pub async fn show_link(state: State, PortalLinkPath(request): PortalLinkPath) -> Result<PortalPage> {
    let Some(secret) = PortalLinkSecret::parse(&request.path_segment) else { return Ok(expired_link_page()) };
    let found = state.affiliate.context.find_login_target(&secret).await.or_problem(&state)?;
    Ok(match found.filter(|target| target.link.purpose.signs_in()) {
        Some(target) => PortalPage::new(StatusCode::OK, sign_in::link_page(&target)),
        None => expired_link_page(),
    })
}

/// `POST /portal/link/{token}`.
pub async fn use_link(state: State, UsePortalLink(request): UsePortalLink) -> Result<PortalPage> {
    if request.is_cross_site {
        return Ok(forged_form_page(PARENT_PATH));
    }
    let Some(secret) = PortalLinkSecret::parse(&request.path_segment) else { return Ok(expired_link_page()) };
    sign_in_with_link(&state, &request, &secret, StatusCode::SEE_OTHER).await
}

/// `GET /portal/payout/{token}`: a page with a button. Showing it changes nothing.
pub async fn show_payout(state: State, PortalLinkPath(request): PortalLinkPath) -> Result<PortalPage> {
    let Some(secret) = PortalLinkSecret::parse(&request.path_segment) else { return Ok(expired_link_page()) };
    let change = state.affiliate.partners.find_payout_change(&secret).await.or_problem(&state)?;
    Ok(match change {
        Some((target, payout)) => PortalPage::new(StatusCode::OK, settings::confirm_payout_page(&target, &payout)),
        None => expired_link_page(),
    })
}

/// `POST /portal/payout/{token}`.
pub async fn confirm_payout(state: State, UsePortalLink(request): UsePortalLink) -> Result<PortalPage> {
    if request.is_cross_site {
        return Ok(forged_form_page(PARENT_PATH));
    }
    let Some(secret) = PortalLinkSecret::parse(&request.path_segment) else { return Ok(expired_link_page()) };
    match state.affiliate.partners.confirm_payout_change(&secret).await {
        Ok(view) => Ok(PortalPage::new(StatusCode::OK, settings::payout_changed_page(&view))),
        Err(refusal) => match refusal_text(&state, refusal)? {
            (StatusCode::GONE, _) => Ok(expired_link_page()),
            (status, text) => {
                Ok(PortalPage::new(status, layout::message_page(PARENT_PATH, "Something went wrong", &text)))
            }
        },
    }
}
