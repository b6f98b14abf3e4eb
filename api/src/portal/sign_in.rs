//! Sign-in: the page that requests a login link by email, and the page that such a link opens.
//!
//! The response does not reveal whether an address belongs to a partner: text and duration are the same in both
//! cases. Requests are rate-limited by address and network.

use ::affiliate::partner_emails::website_host;
use ::affiliate::portal::login::LoginTarget;
use html::document::RenderedPage;
use hypertext::prelude::*;
use model::affiliate::partner::PartnerStatus;
use model::affiliate::program::AffiliateProgram;

use super::field::TextField;
use super::layout::{self, submit_button};
use super::page::PortalPage;
use super::program::{find_program, no_program_page};
use super::request::PortalRequest;
use crate::prelude::*;

/// Minimum duration of the response; it hides whether a commit was made.
pub(super) const RESPONSE_DELAY: Duration = Duration::from_millis(150);

/// The page for visitors without a session.
pub(super) fn signed_out_page(program: Option<&AffiliateProgram>) -> RenderedPage {
    let content = maud! {
        @match program {
            Some(program) => {
                p { "You are signed out of the partner portal of " (website_host(program)) "." }
                p { a.button.primary href={ "sign-in?key=" (program.publishable_key.to_string()) } { "Sign in" } }
            }
            None => {
                p {
                    "Open the partner portal from the product that you are a partner of, or from one of its emails."
                }
            }
        }
    };
    layout::signed_out_page("You are signed out", "", None, content)
}

/// `GET /portal/sign-in`.
pub(super) async fn show(state: &AppState, request: &PortalRequest) -> Result<PortalPage> {
    let key = request.query.get("key");
    let Some(program) = find_program(state, request, key).await? else { return Ok(no_program_page(key)) };
    Ok(PortalPage::new(StatusCode::OK, sign_in_page(&program, "", None)))
}

fn sign_in_page(program: &AffiliateProgram, email: &str, error: Option<&str>) -> RenderedPage {
    let site = website_host(program);
    let title = format!("Partner portal of {site}");
    let content = maud! {
        p { "Enter the email you joined with as a partner of " (site) ". We will send you a sign-in link." }
        form.form method="post" action="sign-in" {
            input type="hidden" name="key" value=(program.publishable_key.to_string());
            (TextField::email(email))
            (submit_button("Send me a link"))
        }
    };
    layout::signed_out_page(&title, "", error, content)
}

/// `POST /portal/sign-in`.
pub(super) async fn request_link(state: &AppState, request: &PortalRequest) -> Result<PortalPage> {
    let key = request.form.get("key");
    let Some(program) = find_program(state, request, key).await? else { return Ok(no_program_page(key)) };
    let typed = request.form.get("email");
    let Ok(email) = typed.parse::<Address>() else {
        let page = sign_in_page(&program, typed, Some("This is not a valid email address."));
        return Ok(PortalPage::new(StatusCode::BAD_REQUEST, page));
    };
    if let Some(page) = check_rate_limit(state, request, &program, &email, "sign-in") {
        return Ok(page);
    }
    if !state.affiliate.partners.senders.answers_by_mail(&program).await? {
        let text = format!(
            "The partner program of {} cannot send email at the moment. Contact its owner.",
            website_host(&program)
        );
        return Ok(PortalPage::new(StatusCode::CONFLICT, layout::message_page("", "Email unavailable", &text)));
    }
    // Runs concurrently with the delay, so that the duration does not depend on the result.
    let (sent, ()) =
        tokio::join!(state.affiliate.context.request_login_link(&program, &email), tokio::time::sleep(RESPONSE_DELAY));
    sent.or_problem(state)?;
    let content = maud! {
        p {
            "If " strong { (email.to_string()) } " is a partner of " (website_host(&program))
            ", we have sent an email with a sign-in link. It works once, within 15 minutes."
        }
        p.soft {
            "No email? Check your spam folder, or "
            a href={ "sign-in?key=" (program.publishable_key.to_string()) } { "try another address" } "."
        }
    };
    Ok(PortalPage::new(StatusCode::OK, layout::signed_out_page("Check your email", "", None, content)))
}

/// Counts a request of this form; returns the 429 page when the limit is exceeded.
pub(super) fn check_rate_limit(
    state: &AppState,
    request: &PortalRequest,
    program: &AffiliateProgram,
    email: &Address,
    form: &'static str,
) -> Option<PortalPage> {
    let (now, email) = (state.services.clock.now(), email.to_string());
    let counted = state.sign_in.limiter.count_portal_form(request.client_ip, program.id, form, &email, now);
    counted.err().map(|problem| rate_limited_page(&problem))
}

/// The page for a form that was sent too often.
pub(super) fn rate_limited_page(problem: &Problem) -> PortalPage {
    let text = "Too many attempts. Wait a few minutes and try again.";
    let mut page = PortalPage::new(StatusCode::TOO_MANY_REQUESTS, layout::message_page("", "Too many attempts", text));
    for (name, value) in problem.headers() {
        page.headers.extend(value.parse().ok().map(|value| (name.clone(), value)));
    }
    page
}

/// The page that a mailed login link opens.
pub(super) fn link_page(target: &LoginTarget) -> RenderedPage {
    let site = website_host(&target.program);
    let is_invited = target.partner.status == PartnerStatus::Invited;
    let content = maud! {
        @if is_invited {
            p { "You have been invited to become a partner of " (site) "." }
        } @else {
            p { "Sign in to the partner portal of " (site) " as " (target.partner.email.to_string()) "." }
        }
        form.form method="post" { (submit_button("Continue")) }
        p.soft.small { "The link works once." }
    };
    layout::signed_out_page("Sign in", layout::PARENT_PATH, None, content)
}
