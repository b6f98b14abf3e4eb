//! The public form by which people join a program: `join?key=pk_…`, with `via` of who recruited them, and `campaign` for
//! one that is not the default.

use ::affiliate::letters::site;
use ::affiliate::partners::PartnerDraft;
use ::affiliate::portal::joining::Application;
use ::affiliate::refusal::Refusal;
use http::StatusCode;
use mail::address::Address;
use mail::affiliate::campaign::{Campaign, Rate};
use mail::affiliate::particulars::{self, NAME_BYTES_MAX};
use mail::affiliate::partner::{PartnerSource, PartnerStatus, Token};
use mail::affiliate::program::Program;

use super::asked::{Asked, Form};
use super::html::{Html, html, push};
use super::{PortalPage, frame, no_program, program_of, sign_in, told, words};
use crate::problem::Problem;
use crate::room::Room;

/// `GET /portal/join`.
pub(super) async fn show(room: &Room, asked: &Asked) -> Result<PortalPage, Problem> {
    Ok(match open(room, asked, &asked.query).await? {
        Ok((program, campaign)) => {
            let page = page((&program, &campaign), &asked.query, None);
            PortalPage::of(StatusCode::OK, page)
        }
        Err(page) => page,
    })
}

/// The program and the campaign that one joins, or the page that says that there is none.
async fn open(
    room: &Room,
    asked: &Asked,
    given: &Form,
) -> Result<Result<(Program, Campaign), PortalPage>, Problem> {
    let key = given.get("key");
    let Some(program) = program_of(room, asked, key).await? else { return Ok(Err(no_program(key))) };
    let named = given.get("campaign");
    let id = match named {
        "" => Ok(None),
        text => text.parse().map(Some),
    };
    let found = match id {
        Ok(id) => room.affiliate.campaign_to_join(&program, id).await,
        Err(_) => Ok(None),
    };
    let found = found.map_err(|refusal| crate::affiliate::refused(room, refusal))?;
    Ok(found.map(|campaign| (program.clone(), campaign)).ok_or_else(|| {
        let text = format!("The partner program of {} takes nobody by this form.", site(&program));
        PortalPage::of(StatusCode::NOT_FOUND, frame::plain("", "Not open", &text))
    }))
}

/// What a partner earns, in a sentence.
pub(super) fn offer(program: &Program, campaign: &Campaign) -> String {
    let currency = program.settings.currency;
    let rate = match campaign.terms.base {
        Rate::Percent(points) => {
            let text = format!("{}.{:02}", points.get() / 100, points.get() % 100);
            format!("{} % of each sale", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Rate::Flat(amount) => format!("{} for each sale", words::money(amount, currency)),
    };
    let duration = match campaign.terms.duration {
        mail::affiliate::campaign::Duration::Once => "a customer's first one alone".to_owned(),
        mail::affiliate::campaign::Duration::Recurring(None) => {
            "for as long as the customer stays".to_owned()
        }
        mail::affiliate::campaign::Duration::Recurring(Some(1)) => "for the first month".to_owned(),
        mail::affiliate::campaign::Duration::Recurring(Some(months)) => {
            format!("for the first {months} months")
        }
    };
    format!("You earn {rate}, {duration}.")
}

fn page((program, campaign): (&Program, &Campaign), given: &Form, wrong: Option<&str>) -> Html {
    let mut content = Html::new();
    if let Some(wrong) = wrong {
        push!(content, "<p class=\"note bad\" role=\"alert\">" (wrong) "</p>\n");
    }
    let waits = if campaign.auto_approve { "" } else { " Each application is looked at first." };
    push!(
        content,
        "<div class=\"card\"><p>Share a link to " (site(program)) ", and earn when somebody buys by it. "
        (offer(program, campaign)) (waits) "</p><form method=\"post\" action=\"join\">\
         <input type=\"hidden\" name=\"key\" value=\"" (program.publishable_key) "\">\
         <input type=\"hidden\" name=\"via\" value=\"" (given.get("via")) "\">\
         <input type=\"hidden\" name=\"campaign\" value=\"" (given.get("campaign")) "\">\
         <label>Email<input type=\"email\" name=\"email\" autocomplete=\"email\" required maxlength=\"254\" value=\""
        (given.get("email")) "\"></label><div class=\"two\">"
    );
    for (name, label, complete) in [
        ("first_name", "First name", "given-name"),
        ("last_name", "Last name", "family-name"),
        ("company", "Company (if any)", "organization"),
        ("website", "Website or channel (if any)", "url"),
    ] {
        push!(
            content,
            "<label>" (label) "<input name=\"" (name) "\" autocomplete=\"" (complete) "\" maxlength=\"200\" value=\""
            (given.get(name)) "\"></label>"
        );
    }
    push!(
        content,
        "</div>" [frame::terms_box(program.settings.terms_url.as_deref())]
        "<button type=\"submit\">Join</button></form><p class=\"soft\">A partner already? \
         <a href=\"sign-in?key=" (program.publishable_key) "\">Sign in</a></p></div>"
    );
    frame::bare(&format!("Be a partner of {}", site(program)), "", &content)
}

/// `POST /portal/join`.
pub(super) async fn send(room: &Room, asked: &Asked) -> Result<PortalPage, Problem> {
    let (program, campaign) = match open(room, asked, &asked.form).await? {
        Ok(open) => open,
        Err(page) => return Ok(page),
    };
    let again =
        |status, why: &str| PortalPage::of(status, page((&program, &campaign), &asked.form, Some(why)));
    let application = match application(&program, &asked.form) {
        Ok(application) => application,
        Err(why) => return Ok(again(StatusCode::BAD_REQUEST, &why)),
    };
    let email = &application.draft.email;
    if let Some(page) = sign_in::too_often(room, asked, (&program, email, "join")) {
        return Ok(page);
    }
    let (applied, ()) = tokio::join!(
        apply(room, (&program, &campaign), &application),
        tokio::time::sleep(sign_in::ANSWER_AFTER)
    );
    if let Err(refusal) = applied {
        let (status, why) = told(room, refusal)?;
        return Ok(again(status, &why));
    }
    // The same whether or not there was a partner of this address.
    if !room.affiliate.answers_by_mail(&program).await? {
        let text = "Thank you, your application was received. This program cannot send mail at the moment.";
        return Ok(PortalPage::of(StatusCode::OK, frame::plain("", "Received", text)));
    }
    let content = html! {
        "<div class=\"card\"><p>Thank you. We have written to <strong>" (email) "</strong>: there you find how it goes \
         on.</p></div>"
    };
    Ok(PortalPage::of(StatusCode::OK, frame::bare("Look into your mail", "", &content)))
}

/// Applies; not again for an address that has just done so, and was written to.
async fn apply(
    room: &Room,
    (program, campaign): (&Program, &Campaign),
    application: &Application,
) -> Result<(), Refusal> {
    let (email, now) = (application.draft.email.to_string(), room.hall.clock().now());
    let Some(joining) = room.throttle.joining(program.id, &email, now) else { return Ok(()) };
    let applied = room.affiliate.apply_by_form(program, campaign, application).await;
    if applied.is_err() {
        // Nobody was written to.
        joining.void();
    }
    applied
}

/// What the form says.
fn application(program: &Program, form: &Form) -> Result<Application, String> {
    let email = form.get("email").parse::<Address>().map_err(|_| "This is no email address.".to_owned())?;
    let accepts_terms = form.is_on("terms");
    if program.settings.terms_url.is_some() && !accepts_terms {
        return Err("The terms of the program are to be accepted.".to_owned());
    }
    let draft = PartnerDraft {
        email,
        first_name: name(form, "first_name")?,
        last_name: name(form, "last_name")?,
        company: name(form, "company")?,
        website: website(form)?,
        country: None,
        campaign: None,
        token: None,
        status: PartnerStatus::Pending,
        paypal_email: None,
        tags: Vec::new(),
        notes: None,
        source: PartnerSource::Portal,
        parent: None,
        send_invite: true,
        terms_accepted: accepts_terms,
    };
    Ok(Application { draft, via: Token::exactly(form.get("via")).ok(), accepts_terms })
}

/// A name, if one was given.
pub(super) fn name(form: &Form, field: &str) -> Result<Option<String>, String> {
    match form.some(field) {
        Some(text) if text.len() > NAME_BYTES_MAX => Err(format!("{} is too long.", words::field(field))),
        Some(text) if text.chars().any(char::is_control) => {
            Err(format!("{} has characters that cannot be read.", words::field(field)))
        }
        text => Ok(text),
    }
}

/// A website, if one was given; people leave `https://` out.
pub(super) fn website(form: &Form) -> Result<Option<String>, String> {
    let read = form.some("website").map(|text| particulars::website(&text)).transpose();
    read.map_err(|why| format!("The website {why}."))
}
