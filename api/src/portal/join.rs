//! The public application form: `join?key=pk_…`. `via` is the link token of the recruiting partner; `campaign`
//! selects a campaign other than the default.

use ::affiliate::error::AffiliateError;
use ::affiliate::partner_emails::website_host;
use ::affiliate::portal::application::PartnerApplication;
use html::document::RenderedPage;
use html::text::input_value;
use hypertext::prelude::*;
use model::affiliate::campaign::{Campaign, CommissionRate};
use model::affiliate::partner::{PartnerLinkToken, PartnerSource};
use model::affiliate::partner_fields::{self, NAME_BYTES_MAX, PartnerDraft, PartnerOrigin};
use model::affiliate::program::AffiliateProgram;

use super::field::TextField;
use super::layout::submit_button;
use super::page::PortalPage;
use super::program::{find_program, no_program_page};
use super::refusal::refusal_text;
use super::request::{FormFields, PortalRequest};
use super::{layout, sign_in, texts};
use crate::prelude::*;

/// `GET /portal/join`.
pub(super) async fn show_form(state: &AppState, request: &PortalRequest) -> Result<PortalPage> {
    Ok(match find_open_campaign(state, request, &request.query).await? {
        Ok((program, campaign)) => {
            let page = join_page(&program, &campaign, &request.query, None);
            PortalPage::new(StatusCode::OK, page)
        }
        Err(page) => page,
    })
}

/// The program and the campaign to join, or the page which states that the program is not open.
async fn find_open_campaign(
    state: &AppState,
    request: &PortalRequest,
    form: &FormFields,
) -> Result<Result<(AffiliateProgram, Campaign), PortalPage>> {
    let key = form.get("key");
    let Some(program) = find_program(state, request, key).await? else { return Ok(Err(no_program_page(key))) };
    let named = form.get("campaign");
    let id = match named {
        "" => Ok(None),
        text => text.parse().map(Some),
    };
    let found = match id {
        Ok(id) => state.affiliate.context.campaign_to_join(&program, id).await,
        Err(_) => Ok(None),
    };
    let found = found.or_problem(state)?;
    Ok(found.map(|campaign| (program.clone(), campaign)).ok_or_else(|| {
        let text = format!("The partner program of {} does not accept applications here.", website_host(&program));
        PortalPage::new(StatusCode::NOT_FOUND, layout::message_page("", "Applications closed", &text))
    }))
}

/// One sentence about the commission of a campaign.
pub(super) fn commission_offer(program: &AffiliateProgram, campaign: &Campaign) -> String {
    let currency = program.settings.currency;
    let rate = match campaign.terms.base {
        CommissionRate::Percent(basis_points) => {
            let text = format!("{}.{:02}", basis_points.get() / 100, basis_points.get() % 100);
            format!("{} % of each sale", text.trim_end_matches('0').trim_end_matches('.'))
        }
        CommissionRate::Flat(amount) => format!("{} for each sale", texts::format_money(amount, currency)),
    };
    let duration = match campaign.terms.duration {
        model::affiliate::campaign::CommissionDuration::Once => "on a customer's first purchase only".to_owned(),
        model::affiliate::campaign::CommissionDuration::Recurring(None) => {
            "for as long as the customer stays".to_owned()
        }
        model::affiliate::campaign::CommissionDuration::Recurring(Some(1)) => "for the first month".to_owned(),
        model::affiliate::campaign::CommissionDuration::Recurring(Some(months)) => {
            format!("for the first {months} months")
        }
    };
    format!("You earn {rate}, {duration}.")
}

fn join_page(program: &AffiliateProgram, campaign: &Campaign, form: &FormFields, error: Option<&str>) -> RenderedPage {
    let site = website_host(program);
    let title = format!("Become a partner of {site}");
    let key = program.publishable_key.to_string();
    let key = key.as_str();
    let hidden = [("key", key), ("via", form.get("via")), ("campaign", form.get("campaign"))];
    let fields = [
        ("first_name", "First name", "given-name"),
        ("last_name", "Last name", "family-name"),
        ("company", "Company", "organization"),
        ("website", "Website or channel", "url"),
    ];
    let content = maud! {
        p {
            "Share a link to " (site) " and earn a commission on every sale. " (commission_offer(program, campaign))
            @if !campaign.auto_approve { " Applications are reviewed." }
        }
        form.form method="post" action="join" {
            @for (name, value) in hidden { input type="hidden" name=(name) value=(input_value(value)); }
            (TextField::email(form.get("email")))
            @for (name, label, autocomplete) in fields {
                (TextField { autocomplete: Some(autocomplete), ..TextField::new(name, name, label, form.get(name)) })
            }
            (layout::terms_box(program.settings.terms_url.as_deref()))
            (submit_button("Join"))
        }
        p.soft { "Already a partner? " a href={ "sign-in?key=" (key) } { "Sign in" } }
    };
    layout::signed_out_page(&title, "", error, content)
}

/// `POST /portal/join`.
pub(super) async fn submit_form(state: &AppState, request: &PortalRequest) -> Result<PortalPage> {
    let (program, campaign) = match find_open_campaign(state, request, &request.form).await? {
        Ok(open) => open,
        Err(page) => return Ok(page),
    };
    let again =
        |status, reason: &str| PortalPage::new(status, join_page(&program, &campaign, &request.form, Some(reason)));
    let application = match read_application(&program, &request.form) {
        Ok(application) => application,
        Err(reason) => return Ok(again(StatusCode::BAD_REQUEST, &reason)),
    };
    let email = &application.draft.email;
    if let Some(page) = sign_in::check_rate_limit(state, request, &program, email, "join") {
        return Ok(page);
    }
    let (applied, ()) = tokio::join!(
        submit_application(state, &program, &campaign, &application),
        tokio::time::sleep(sign_in::RESPONSE_DELAY)
    );
    if let Err(refusal) = applied {
        let (status, reason) = refusal_text(state, refusal)?;
        return Ok(again(status, &reason));
    }
    // The page does not reveal whether the address already belongs to a partner.
    if !state.affiliate.partners.senders.answers_by_mail(&program).await? {
        let text = "Thank you, your application was received. This program cannot send email at the moment.";
        return Ok(PortalPage::new(StatusCode::OK, layout::message_page("", "Received", text)));
    }
    let content = maud! {
        p { "Thank you. We have sent an email to " strong { (email.to_string()) } " with the next steps." }
    };
    Ok(PortalPage::new(StatusCode::OK, layout::signed_out_page("Check your email", "", None, content)))
}

/// Submits the application. Does nothing if the same address applied, and was sent an email, a moment ago.
async fn submit_application(
    state: &AppState,
    program: &AffiliateProgram,
    campaign: &Campaign,
    application: &PartnerApplication,
) -> Result<(), AffiliateError> {
    let (email, now) = (application.draft.email.to_string(), state.services.clock.now());
    let Some(attempt) = state.sign_in.limiter.try_join(program.id, &email, now) else { return Ok(()) };
    let applied = state.affiliate.partners.apply_by_form(program, campaign, application).await;
    if applied.is_err() {
        // No email was sent.
        attempt.discard();
    }
    applied
}

fn read_application(program: &AffiliateProgram, form: &FormFields) -> Result<PartnerApplication, String> {
    let email = form.get("email").parse::<Address>().map_err(|_| "This is not a valid email address.".to_owned())?;
    let accepts_terms = form.is_checked("terms");
    if program.settings.terms_url.is_some() && !accepts_terms {
        return Err("Please accept the terms of the program.".to_owned());
    }
    let origin = PartnerOrigin { source: PartnerSource::Portal, terms_accepted: accepts_terms };
    let draft = PartnerDraft {
        first_name: read_name(form, "first_name")?,
        last_name: read_name(form, "last_name")?,
        company: read_name(form, "company")?,
        website: read_website(form)?,
        ..PartnerDraft::new(email, origin)
    };
    Ok(PartnerApplication { draft, via: PartnerLinkToken::parse(form.get("via")).ok(), accepts_terms })
}

/// An optional name.
pub(super) fn read_name(form: &FormFields, field: &str) -> Result<Option<String>, String> {
    match form.get_nonempty(field) {
        Some(text) if text.len() > NAME_BYTES_MAX => Err(format!("{} is too long.", texts::field_label(field))),
        Some(text) if text.chars().any(char::is_control) => {
            Err(format!("{} contains control characters.", texts::field_label(field)))
        }
        text => Ok(text),
    }
}

/// An optional website; `https://` may be missing.
pub(super) fn read_website(form: &FormFields) -> Result<Option<String>, String> {
    let parsed = form.get_nonempty("website").map(|text| partner_fields::parse_website(&text)).transpose();
    parsed.map_err(|error| format!("The website {error}."))
}
