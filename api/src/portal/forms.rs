//! What the forms of who has signed in do.
//!
//! ```text
//! form ─► may this partner? ─► the office does it, in one commit with its event ─► 303 to the page that says so
//!                                                  └─ it will not do ─► the page again, with what was typed
//! ```

use ::affiliate::links::LinkDraft;
use ::affiliate::office::no_extension;
use ::affiliate::partners::PartnerChange;
use ::affiliate::portal::entrance::PartnerSession;
use ::affiliate::portal::payout::parse_payout_destination;
use ::affiliate::refusal::{AffiliateError, AffiliateNoun};
use http::StatusCode;
use mail::affiliate::partner::{PartnerLinkToken, PartnerStatus};
use mail::affiliate::portal::PortalToken;

use super::asked::{FormFields, PortalRequest};
use super::frame::PageContext;
use super::html::Html;
use super::sign_in::rate_limited_page;
use super::{PortalPage, can_edit, cookie, is_secure, join, refusal_text, render_page, settings};
use crate::affiliate::refusal_problem;
use crate::problem::Problem;
use crate::room::AppState;

/// The longest address and note of a link.
const URL_BYTES_MAX: usize = 2_000;
const LABEL_BYTES_MAX: usize = 200;

/// What came of a form.
enum FormOutcome {
    /// It is done: this page says so.
    Done(&'static str),
    /// It is done, and this is shown once.
    ShowOnce(Html),
    /// It was done too often to be done once more.
    RateLimited(Box<PortalPage>),
}

/// Does what a form says.
pub(super) async fn submit(
    room: &AppState,
    (guest, token): (&PartnerSession, &PortalToken),
    asked: &PortalRequest,
) -> Result<PortalPage, Problem> {
    let name = asked.path_segment.as_str();
    if name == "sign-out" {
        room.affiliate.sign_out(&guest.session).await.map_err(|refusal| refusal_problem(room, refusal))?;
        let key = &guest.program.publishable_key;
        let to = PortalPage::redirect(StatusCode::SEE_OTHER, &format!("sign-in?key={key}"))?;
        return Ok(to.with_cookie(cookie::clear_cookie(is_secure(room))));
    }
    let page = page_with_form(name);
    let again = async |status, why| {
        let view = PageContext::new(guest, token, asked).with_error(name, why);
        Ok(PortalPage::new(status, render_page(room, page, &view).await?))
    };
    let accepts = name == "accept" && guest.partner.status == PartnerStatus::Invited;
    if !accepts && !can_edit(guest) {
        let why = "You can look at everything here, but change nothing at the moment.".to_owned();
        return again(StatusCode::FORBIDDEN, why).await;
    }
    match apply_form(room, guest, asked).await {
        Ok(FormOutcome::Done(to)) => PortalPage::redirect(StatusCode::SEE_OTHER, to),
        Ok(FormOutcome::RateLimited(page)) => Ok(*page),
        Ok(FormOutcome::ShowOnce(news)) => {
            let view = PageContext::new(guest, token, asked).with_notice(news);
            Ok(PortalPage::new(StatusCode::OK, render_page(room, page, &view).await?))
        }
        Err(refusal) => {
            let (status, why) = refusal_text(room, refusal)?;
            again(status, why).await
        }
    }
}

/// The page that a form stands on.
fn page_with_form(form: &str) -> &'static str {
    match form {
        "add-link" | "change-link" => "links",
        "accept" => "home",
        _ => "settings",
    }
}

async fn apply_form(
    room: &AppState,
    guest: &PartnerSession,
    asked: &PortalRequest,
) -> Result<FormOutcome, AffiliateError> {
    let (partner, form, office) = (&guest.partner, &asked.form, &room.affiliate);
    let of = (partner.account, partner.id);
    Ok(match asked.path_segment.as_str() {
        "accept" => {
            if guest.program.settings.terms_url.is_some() && !form.is_checked("terms") {
                return Err(form_error("The terms of the program are to be accepted"));
            }
            office.accept_invitation(partner).await?;
            FormOutcome::Done("home?done=accepted")
        }
        "add-link" => {
            office.create_link(of, &read_link(form)?, &no_extension).await?;
            FormOutcome::Done("links?done=link-added")
        }
        "change-link" => {
            let id = form.get("id").parse().map_err(|_| AffiliateError::NotFound(AffiliateNoun::Link))?;
            office.change_link(of, id, &read_link(form)?).await?;
            FormOutcome::Done("links?done=link-changed")
        }
        "payout-method" => {
            let payout = parse_payout_destination(&guest.program, (form.get("method"), form.get("destination")))?;
            if let Some(page) = check_rate_limit(room, guest, (asked, "payout-method")) {
                return Ok(page);
            }
            office.request_payout_change((partner, &guest.program), payout).await?;
            FormOutcome::Done("settings?done=payout-asked")
        }
        "profile" => update_partner(room, guest, read_profile(form)?, "settings?done=profile-changed").await?,
        "postback" => {
            let change_ =
                PartnerChange { postback_url: Some(form.get_nonempty("postback_url")), ..PartnerChange::default() };
            let is_first = partner.postback_url.is_none() && form.get_nonempty("postback_url").is_some();
            let changed = update_partner(room, guest, change_, "settings?done=postback-changed").await?;
            match office.postback_secret(partner).filter(|_| is_first) {
                Some(secret) => FormOutcome::ShowOnce(settings::first_secret_notice(&secret)),
                None => changed,
            }
        }
        "postback-test" => {
            if let Some(page) = check_rate_limit(room, guest, (asked, "postback-test")) {
                return Ok(page);
            }
            office.send_test_postback(of).await?;
            FormOutcome::Done("settings?done=postback-sent#postbacks")
        }
        "postback-secret" => {
            FormOutcome::ShowOnce(settings::new_secret_notice(&office.rotate_postback_secret(of).await?))
        }
        _ => {
            let wish = PartnerChange { email_opt_out: Some(!form.is_checked("mail")), ..PartnerChange::default() };
            update_partner(room, guest, wish, "settings?done=mail-changed").await?
        }
    })
}

/// What has mail sent, or somebody's server asked, is bounded as asking for a link is.
fn check_rate_limit(
    room: &AppState,
    guest: &PartnerSession,
    (asked, form): (&PortalRequest, &'static str),
) -> Option<FormOutcome> {
    let (now, email) = (room.intake.clock().now(), guest.partner.email.to_string());
    let counted = room.sign_in_limiter.count_partner_form(asked.client_ip, (guest.program.id, form, &email), now);
    counted.err().map(|problem| FormOutcome::RateLimited(Box::new(rate_limited_page(&problem))))
}

async fn update_partner(
    room: &AppState,
    guest: &PartnerSession,
    change: PartnerChange,
    then: &'static str,
) -> Result<FormOutcome, AffiliateError> {
    let of = (guest.partner.account, guest.partner.id);
    room.affiliate.change_partner(of, None, &change).await.map(|_| FormOutcome::Done(then))
}

/// A thing that is wrong with a form as a whole.
fn form_error(why: &str) -> AffiliateError {
    AffiliateError::field("", why)
}

fn read_link(form: &FormFields) -> Result<LinkDraft, AffiliateError> {
    let token = PartnerLinkToken::parse(form.get("token"));
    let token = token.map_err(|error| AffiliateError::field("token", error.to_string()))?;
    let text = |name: &str, bytes_max| match form.get_nonempty(name) {
        Some(text) if text.len() > bytes_max => Err(AffiliateError::field(name, "is too long")),
        Some(text) if text.chars().any(char::is_control) => {
            Err(AffiliateError::field(name, "has characters that cannot be read"))
        }
        text => Ok(text),
    };
    let (destination_url, label) = (text("destination_url", URL_BYTES_MAX)?, text("label", LABEL_BYTES_MAX)?);
    Ok(LinkDraft { token, destination_url, label })
}

fn read_profile(form: &FormFields) -> Result<PartnerChange, AffiliateError> {
    let name = |field| join::read_name(form, field).map_err(|why| form_error(&why));
    Ok(PartnerChange {
        first_name: Some(name("first_name")?),
        last_name: Some(name("last_name")?),
        company: Some(name("company")?),
        website: Some(join::read_website(form).map_err(|why| form_error(&why))?),
        ..PartnerChange::default()
    })
}
