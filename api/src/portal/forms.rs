//! What the forms of who has signed in do.
//!
//! ```text
//! form ─► may this partner? ─► the office does it, in one commit with its event ─► 303 to the page that says so
//!                                                  └─ it will not do ─► the page again, with what was typed
//! ```

use ::affiliate::links::LinkDraft;
use ::affiliate::office::nothing_beside;
use ::affiliate::partners::PartnerChange;
use ::affiliate::portal::entrance::Guest;
use ::affiliate::portal::payout::payout_wish;
use ::affiliate::refusal::{Noun, Refusal};
use http::StatusCode;
use mail::affiliate::partner::{PartnerStatus, Token};
use mail::affiliate::portal::PortalToken;

use super::asked::{Asked, Form};
use super::frame::View;
use super::html::Html;
use super::sign_in::too_many;
use super::{PortalPage, cookie, draw, is_secure, join, may_change, settings, told};
use crate::affiliate::refused;
use crate::problem::Problem;
use crate::room::Room;

/// The longest address and note of a link.
const URL_BYTES_MAX: usize = 2_000;
const LABEL_BYTES_MAX: usize = 200;

/// What came of a form.
enum Did {
    /// It is done: this page says so.
    Done(&'static str),
    /// It is done, and this is shown once.
    News(Html),
    /// It was done too often to be done once more.
    TooOften(Box<PortalPage>),
}

/// Does what a form says.
pub(super) async fn act(
    room: &Room,
    (guest, token): (&Guest, &PortalToken),
    asked: &Asked,
) -> Result<PortalPage, Problem> {
    let name = asked.last.as_str();
    if name == "sign-out" {
        room.affiliate.leave(&guest.session).await.map_err(|refusal| refused(room, refusal))?;
        let key = &guest.program.publishable_key;
        let to = PortalPage::to(StatusCode::SEE_OTHER, &format!("sign-in?key={key}"))?;
        return Ok(to.with_cookie(cookie::clear(is_secure(room))));
    }
    let page = page_of(name);
    let again = async |status, why| {
        let view = View::new(guest, token, asked).after(name, why);
        Ok(PortalPage::of(status, draw(room, page, &view).await?))
    };
    let accepts = name == "accept" && guest.partner.status == PartnerStatus::Invited;
    if !accepts && !may_change(guest) {
        let why = "You can look at everything here, but change nothing at the moment.".to_owned();
        return again(StatusCode::FORBIDDEN, why).await;
    }
    match work(room, guest, asked).await {
        Ok(Did::Done(to)) => PortalPage::to(StatusCode::SEE_OTHER, to),
        Ok(Did::TooOften(page)) => Ok(*page),
        Ok(Did::News(news)) => {
            let view = View::new(guest, token, asked).with(news);
            Ok(PortalPage::of(StatusCode::OK, draw(room, page, &view).await?))
        }
        Err(refusal) => {
            let (status, why) = told(room, refusal)?;
            again(status, why).await
        }
    }
}

/// The page that a form stands on.
fn page_of(form: &str) -> &'static str {
    match form {
        "add-link" | "change-link" => "links",
        "accept" => "home",
        _ => "settings",
    }
}

async fn work(room: &Room, guest: &Guest, asked: &Asked) -> Result<Did, Refusal> {
    let (partner, form, office) = (&guest.partner, &asked.form, &room.affiliate);
    let of = (partner.account, partner.id);
    Ok(match asked.last.as_str() {
        "accept" => {
            if guest.program.settings.terms_url.is_some() && !form.is_on("terms") {
                return Err(wrong("The terms of the program are to be accepted"));
            }
            office.accept_invitation(partner).await?;
            Did::Done("home?done=accepted")
        }
        "add-link" => {
            office.create_link(of, &link(form)?, &nothing_beside).await?;
            Did::Done("links?done=link-added")
        }
        "change-link" => {
            let id = form.get("id").parse().map_err(|_| Refusal::Unknown(Noun::Link))?;
            office.change_link(of, id, &link(form)?).await?;
            Did::Done("links?done=link-changed")
        }
        "payout-method" => {
            let payout = payout_wish(&guest.program, (form.get("method"), form.get("destination")))?;
            if let Some(page) = often(room, guest, (asked, "payout-method")) {
                return Ok(page);
            }
            office.ask_payout_change((partner, &guest.program), payout).await?;
            Did::Done("settings?done=payout-asked")
        }
        "profile" => change(room, guest, profile(form)?, "settings?done=profile-changed").await?,
        "postback" => {
            let change_ =
                PartnerChange { postback_url: Some(form.some("postback_url")), ..PartnerChange::default() };
            let is_first = partner.postback_url.is_none() && form.some("postback_url").is_some();
            let changed = change(room, guest, change_, "settings?done=postback-changed").await?;
            match office.postback_secret(partner).filter(|_| is_first) {
                Some(secret) => Did::News(settings::first_secret(&secret)),
                None => changed,
            }
        }
        "postback-test" => {
            if let Some(page) = often(room, guest, (asked, "postback-test")) {
                return Ok(page);
            }
            office.try_postback(of).await?;
            Did::Done("settings?done=postback-sent#postbacks")
        }
        "postback-secret" => Did::News(settings::secret(&office.rotate_postback_secret(of).await?)),
        _ => {
            let wish = PartnerChange { email_opt_out: Some(!form.is_on("mail")), ..PartnerChange::default() };
            change(room, guest, wish, "settings?done=mail-changed").await?
        }
    })
}

/// What has mail sent, or somebody's server asked, is bounded as asking for a link is.
fn often(room: &Room, guest: &Guest, (asked, form): (&Asked, &'static str)) -> Option<Did> {
    let (now, email) = (room.hall.clock().now(), guest.partner.email.to_string());
    let counted = room.throttle.partner_form(asked.from, (guest.program.id, form, &email), now);
    counted.err().map(|problem| Did::TooOften(Box::new(too_many(&problem))))
}

async fn change(
    room: &Room,
    guest: &Guest,
    change: PartnerChange,
    then: &'static str,
) -> Result<Did, Refusal> {
    let of = (guest.partner.account, guest.partner.id);
    room.affiliate.change_partner(of, None, &change).await.map(|_| Did::Done(then))
}

/// A thing that is wrong with a form as a whole.
fn wrong(why: &str) -> Refusal {
    Refusal::field("", why)
}

fn link(form: &Form) -> Result<LinkDraft, Refusal> {
    let token = Token::exactly(form.get("token"));
    let token = token.map_err(|error| Refusal::field("token", error.to_string()))?;
    let text = |name: &str, bytes_max| match form.some(name) {
        Some(text) if text.len() > bytes_max => Err(Refusal::field(name, "is too long")),
        Some(text) if text.chars().any(char::is_control) => {
            Err(Refusal::field(name, "has characters that cannot be read"))
        }
        text => Ok(text),
    };
    let (destination_url, label) = (text("destination_url", URL_BYTES_MAX)?, text("label", LABEL_BYTES_MAX)?);
    Ok(LinkDraft { token, destination_url, label })
}

fn profile(form: &Form) -> Result<PartnerChange, Refusal> {
    let name = |field| join::name(form, field).map_err(|why| wrong(&why));
    Ok(PartnerChange {
        first_name: Some(name("first_name")?),
        last_name: Some(name("last_name")?),
        company: Some(name("company")?),
        website: Some(join::website(form).map_err(|why| wrong(&why))?),
        ..PartnerChange::default()
    })
}
