//! Forms of a signed-in partner.
//!
//! ```text
//! form ─► may the partner edit? ─► AffiliateService, in one commit with its event ─► 303 to a page with the result
//!                                                    └─ refused ─► the page again, with the typed values
//! ```

use ::affiliate::context::no_extension;
use ::affiliate::error::{AffiliateError, AffiliateNoun};
use ::affiliate::partners::changes::PartnerChange;
use ::affiliate::partners::links::LinkDraft;
use ::affiliate::portal::login::PartnerSession;
use ::affiliate::portal::payout_destination::parse_payout_destination;
use html::fragment::Fragment;
use model::affiliate::partner::{PartnerLinkToken, PartnerStatus};
use model::affiliate::portal::PortalToken;

use super::cookie::is_secure;
use super::layout::{PageContext, can_edit};
use super::page::PortalPage;
use super::partner_pages::render_page;
use super::refusal::refusal_text;
use super::request::{FormFields, PortalRequest};
use super::sign_in::rate_limited_page;
use super::{cookie, join, postbacks};
use crate::prelude::*;

/// Longest destination URL and note of a link.
const URL_BYTES_MAX: usize = 2_000;
const LABEL_BYTES_MAX: usize = 200;

/// The result of a form.
enum FormOutcome {
    /// Done; redirect to this page, which shows the message.
    Done(&'static str),
    /// Done; the notice is rendered in this response only, because it shows a secret.
    ShowOnce(Fragment),
    RateLimited(Box<PortalPage>),
}

/// Applies a form and returns the response page.
pub(super) async fn submit(
    state: &AppState,
    partner_session: &PartnerSession,
    token: &PortalToken,
    request: &PortalRequest,
) -> Result<PortalPage> {
    let name = request.path_segment.as_str();
    if name == "sign-out" {
        state.affiliate.context.sign_out_partner(&partner_session.session).await.or_problem(state)?;
        let key = &partner_session.program.publishable_key;
        let to = PortalPage::redirect(StatusCode::SEE_OTHER, &format!("sign-in?key={key}"))?;
        return Ok(to.with_cookie(cookie::clear_cookie(is_secure(state))));
    }
    let page = page_with_form(name);
    let again = async |status, reason| {
        let view = PageContext::new(partner_session, token, request).with_error(name, reason);
        Ok(PortalPage::new(status, render_page(state, page, &view).await?))
    };
    let accepts = name == "accept" && partner_session.partner.status == PartnerStatus::Invited;
    if !accepts && !can_edit(partner_session) {
        let reason = "You can view your data but cannot change it at the moment.".to_owned();
        return again(StatusCode::FORBIDDEN, reason).await;
    }
    match apply_form(state, partner_session, request).await {
        Ok(FormOutcome::Done(to)) => PortalPage::redirect(StatusCode::SEE_OTHER, to),
        Ok(FormOutcome::RateLimited(page)) => Ok(*page),
        Ok(FormOutcome::ShowOnce(notice)) => {
            let changed = state.affiliate.context.authenticate_partner(token).await.or_problem(state)?;
            let partner_session = changed.as_ref().unwrap_or(partner_session);
            let view = PageContext::new(partner_session, token, request).with_notice(notice);
            Ok(PortalPage::new(StatusCode::OK, render_page(state, page, &view).await?))
        }
        Err(refusal) => {
            let (status, reason) = refusal_text(state, refusal)?;
            again(status, reason).await
        }
    }
}

/// The page that contains the form.
fn page_with_form(form: &str) -> &'static str {
    match form {
        "add-link" | "change-link" => "links",
        "accept" => "home",
        _ => "settings",
    }
}

async fn apply_form(
    state: &AppState,
    partner_session: &PartnerSession,
    request: &PortalRequest,
) -> Result<FormOutcome, AffiliateError> {
    let (partner, form, service) = (&partner_session.partner, &request.form, &state.affiliate);
    let (account, id) = (partner.account, partner.id);
    Ok(match request.path_segment.as_str() {
        "accept" => {
            if partner_session.program.settings.terms_url.is_some() && !form.is_checked("terms") {
                return Err(form_error("Please accept the terms of the program"));
            }
            service.partners.accept_invitation(partner).await?;
            FormOutcome::Done("home?done=accepted")
        }
        "add-link" => {
            service.context.create_link(account, id, &read_link(form)?, &no_extension).await?;
            FormOutcome::Done("links?done=link-added")
        }
        "change-link" => {
            let link = form.get("id").parse().map_err(|_| AffiliateError::NotFound(AffiliateNoun::Link))?;
            service.context.change_link(account, id, link, &read_link(form)?).await?;
            FormOutcome::Done("links?done=link-changed")
        }
        "payout-method" => {
            let payout =
                parse_payout_destination(&partner_session.program, form.get("method"), form.get("destination"))?;
            if let Some(page) = check_rate_limit(state, partner_session, request, "payout-method") {
                return Ok(page);
            }
            service.partners.request_payout_change(partner, &partner_session.program, payout).await?;
            FormOutcome::Done("settings?done=payout-asked")
        }
        "profile" => {
            update_partner(state, partner_session, read_profile(form)?, "settings?done=profile-changed").await?
        }
        "postback" => {
            let change =
                PartnerChange { postback_url: Some(form.get_nonempty("postback_url")), ..PartnerChange::default() };
            let is_first = partner.postback_url.is_none() && form.get_nonempty("postback_url").is_some();
            let changed = update_partner(state, partner_session, change, "settings?done=postback-changed").await?;
            match service.partners.postback_secret(partner).filter(|_| is_first) {
                Some(secret) => FormOutcome::ShowOnce(postbacks::first_secret_notice(&secret)),
                None => changed,
            }
        }
        "postback-test" => {
            if let Some(page) = check_rate_limit(state, partner_session, request, "postback-test") {
                return Ok(page);
            }
            service.partners.send_test_postback(account, id).await?;
            FormOutcome::Done("settings?done=postback-sent#postbacks")
        }
        "postback-secret" => FormOutcome::ShowOnce(postbacks::new_secret_notice(
            &service.partners.rotate_postback_secret(account, id).await?,
        )),
        _ => {
            let opt_out_change =
                PartnerChange { email_opt_out: Some(!form.is_checked("mail")), ..PartnerChange::default() };
            update_partner(state, partner_session, opt_out_change, "settings?done=mail-changed").await?
        }
    })
}

/// Bounds the forms that send an email or a request to a partner's server, like requests for a login link.
fn check_rate_limit(
    state: &AppState,
    partner_session: &PartnerSession,
    request: &PortalRequest,
    form: &'static str,
) -> Option<FormOutcome> {
    let (now, email) = (state.services.clock.now(), partner_session.partner.email.to_string());
    let counted =
        state.sign_in.limiter.count_partner_form(request.client_ip, partner_session.program.id, form, &email, now);
    counted.err().map(|problem| FormOutcome::RateLimited(Box::new(rate_limited_page(&problem))))
}

async fn update_partner(
    state: &AppState,
    partner_session: &PartnerSession,
    change: PartnerChange,
    location: &'static str,
) -> Result<FormOutcome, AffiliateError> {
    state
        .affiliate
        .partners
        .change_partner(partner_session.partner.account, partner_session.partner.id, None, &change)
        .await
        .map(|_| FormOutcome::Done(location))
}

/// An error of the form as a whole.
fn form_error(reason: &str) -> AffiliateError {
    AffiliateError::field("", reason)
}

fn read_link(form: &FormFields) -> Result<LinkDraft, AffiliateError> {
    let token = PartnerLinkToken::parse(form.get("token"));
    let token = token.map_err(|error| AffiliateError::field("token", error.to_string()))?;
    let text = |name: &str, bytes_max| match form.get_nonempty(name) {
        Some(text) if text.len() > bytes_max => Err(AffiliateError::field(name, "is too long")),
        Some(text) if text.chars().any(char::is_control) => {
            Err(AffiliateError::field(name, "contains control characters"))
        }
        text => Ok(text),
    };
    let (destination_url, label) = (text("destination_url", URL_BYTES_MAX)?, text("label", LABEL_BYTES_MAX)?);
    Ok(LinkDraft { token, destination_url, label })
}

fn read_profile(form: &FormFields) -> Result<PartnerChange, AffiliateError> {
    let name = |field| join::read_name(form, field).map_err(|error| form_error(&error));
    Ok(PartnerChange {
        first_name: Some(name("first_name")?),
        last_name: Some(name("last_name")?),
        company: Some(name("company")?),
        website: Some(join::read_website(form).map_err(|error| form_error(&error))?),
        ..PartnerChange::default()
    })
}
