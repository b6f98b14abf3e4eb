//! Getting in: the page where a link is asked for by mail, and the one that such a link leads to.
//!
//! Whether an address is a partner's is not told: the page says the same in any case, and takes as long (it is one commit,
//! or none). How often it may be asked is bounded by address and network.

use std::time::Duration;

use ::affiliate::letters::website_host;
use ::affiliate::portal::entrance::LoginTarget;
use http::StatusCode;
use mail::address::Address;
use mail::affiliate::partner::PartnerStatus;
use mail::affiliate::program::AffiliateProgram;

use super::asked::PortalRequest;
use super::html::{Html, html, push};
use super::{PortalPage, find_program, frame, no_program_page};
use crate::affiliate::refusal_problem;
use crate::problem::Problem;
use crate::room::AppState;

/// Whatever is found, the answer takes this long at least: what one commit takes does not show.
pub(super) const RESPONSE_DELAY: Duration = Duration::from_millis(150);

/// Says that nobody has signed in, and how to.
pub(super) fn signed_out_page(program: Option<&AffiliateProgram>) -> Html {
    let content = match program {
        Some(program) => html! {
            "<div class=\"card\"><p>You are signed out of the partner portal of " (website_host(program)) ".</p>\
             <p><a class=\"button\" href=\"sign-in?key=" (program.publishable_key) "\">Sign in</a></p></div>"
        },
        None => html! {
            "<div class=\"card\"><p>Open the partner portal from the product whose partner you are, or from a mail of \
             it.</p></div>"
        },
    };
    frame::signed_out_page("You are signed out", "", &content)
}

/// `GET /portal/sign-in`.
pub(super) async fn show(room: &AppState, asked: &PortalRequest) -> Result<PortalPage, Problem> {
    let key = asked.query.get("key");
    let Some(program) = find_program(room, asked, key).await? else { return Ok(no_program_page(key)) };
    Ok(PortalPage::new(StatusCode::OK, sign_in_page(&program, "", None)))
}

fn sign_in_page(program: &AffiliateProgram, email: &str, wrong: Option<&str>) -> Html {
    let mut content = Html::new();
    if let Some(wrong) = wrong {
        push!(content, "<p class=\"note bad\" role=\"alert\">" (wrong) "</p>\n");
    }
    push!(
        content,
        "<div class=\"card\"><p>Say the address that you are known by as a partner of " (website_host(program)) ", and we mail \
         you a link to sign in with.</p><form method=\"post\" action=\"sign-in\">\
         <input type=\"hidden\" name=\"key\" value=\"" (program.publishable_key) "\">\
         <label>Email<input type=\"email\" name=\"email\" autocomplete=\"email\" required maxlength=\"254\" value=\""
        (email) "\"></label><button type=\"submit\">Mail me a link</button></form></div>"
    );
    frame::signed_out_page(&format!("Partner portal of {}", website_host(program)), "", &content)
}

/// `POST /portal/sign-in`.
pub(super) async fn request_link(room: &AppState, asked: &PortalRequest) -> Result<PortalPage, Problem> {
    let key = asked.form.get("key");
    let Some(program) = find_program(room, asked, key).await? else { return Ok(no_program_page(key)) };
    let given = asked.form.get("email");
    let Ok(email) = given.parse::<Address>() else {
        let page = sign_in_page(&program, given, Some("This is no email address."));
        return Ok(PortalPage::new(StatusCode::BAD_REQUEST, page));
    };
    if let Some(page) = check_rate_limit(room, asked, (&program, &email, "sign-in")) {
        return Ok(page);
    }
    if !room.affiliate.answers_by_mail(&program).await? {
        let text = format!(
            "The partner program of {} cannot send mail at the moment. Ask who runs it.",
            website_host(&program)
        );
        return Ok(PortalPage::new(StatusCode::CONFLICT, frame::message_page("", "No mail", &text)));
    }
    // Beside the rest of the time: who measures the answer learns nothing.
    let (sent, ()) =
        tokio::join!(room.affiliate.request_login_link(&program, &email), tokio::time::sleep(RESPONSE_DELAY));
    sent.map_err(|refusal| refusal_problem(room, refusal))?;
    let content = html! {
        "<div class=\"card\"><p>If <strong>" (email) "</strong> is a partner of " (website_host(&program)) ", a mail with a link \
         is on its way. It works once, within 15 minutes.</p><p class=\"soft\">Nothing there? Look among the unwanted \
         mail, or <a href=\"sign-in?key=" (program.publishable_key) "\">try another address</a>.</p></div>"
    };
    Ok(PortalPage::new(StatusCode::OK, frame::signed_out_page("Look into your mail", "", &content)))
}

/// The page for who asks too often.
pub(super) fn check_rate_limit(
    room: &AppState,
    asked: &PortalRequest,
    (program, email, form): (&AffiliateProgram, &Address, &'static str),
) -> Option<PortalPage> {
    let (now, email) = (room.intake.clock().now(), email.to_string());
    let counted = room.sign_in_limiter.count_portal_form(asked.client_ip, (program.id, form, &email), now);
    counted.err().map(|problem| rate_limited_page(&problem))
}

/// The page of a form that was sent too often.
pub(super) fn rate_limited_page(problem: &Problem) -> PortalPage {
    let text = "That were too many tries. Wait some minutes, and try again.";
    let mut page = PortalPage::new(StatusCode::TOO_MANY_REQUESTS, frame::message_page("", "Too many tries", text));
    for (name, value) in problem.headers() {
        page.headers.extend(value.parse().ok().map(|value| (name.clone(), value)));
    }
    page
}

/// The page that a mailed link leads to.
pub(super) fn link_page(door: &LoginTarget) -> Html {
    let site = website_host(&door.program);
    let words = match door.partner.status {
        PartnerStatus::Invited => {
            html! { "You are invited to be a partner of " (site) ". Come in and look." }
        }
        _ => html! { "Sign in to the partner portal of " (site) " as " (door.partner.email) "." },
    };
    let content = html! {
        "<div class=\"card\"><p>" [words] "</p><form method=\"post\"><button type=\"submit\">Continue</button></form>\
         <p class=\"soft\">The link works once.</p></div>"
    };
    frame::signed_out_page("Sign in", super::PARENT_PATH, &content)
}
