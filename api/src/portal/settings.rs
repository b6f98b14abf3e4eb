//! The page of settings: who the partner is, where money goes, what is posted where, what is mailed, and the terms.

use ::affiliate::letters::{destination_line, method_name, website_host};
use ::affiliate::partners::PartnerView;
use ::affiliate::portal::entrance::LoginTarget;
use ::affiliate::portal::payout::payout_methods;
use ::affiliate::postbacks::PostbackDelivery;
use ::affiliate::refusal::AffiliateError;
use mail::affiliate::partner::PayoutDestination;
use mail::delivery::WebhookDeliveryStatus;

use super::frame::{self, PageContext};
use super::html::{Html, html, push};
use super::words;
use crate::room::AppState;

/// Entries of the log.
const POSTBACKS_SHOWN_MAX: usize = 20;

pub(super) async fn show(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let content = html! {
        [payout_form(view)] [profile_form(view)] [postback_section(room, view).await?] [mail_form(view)] [terms_section(view)]
    };
    Ok(view.render("settings", "Settings", &content))
}

/// Where money goes.
fn payout_form(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut card = html! { "<section class=\"card\" id=\"payout\"><h2>Where payouts go</h2>" };
    match &partner.payout {
        Some(payout) => push!(
            card,
            "<dl class=\"facts\"><dt>" (method_name(payout.method)) "</dt><dd>" (payout.destination) "</dd></dl>"
        ),
        None => card.raw("<p>You have not said yet where payouts go.</p>"),
    }
    let choices = payout_methods(program);
    if !view.can_edit() || choices.is_empty() {
        if choices.is_empty() {
            card.raw("<p class=\"soft\">The program sets this up with you.</p>");
        }
        card.raw("</section>\n");
        return card;
    }
    let open = if partner.payout.is_none() || view.has_error("payout-method") { " open" } else { "" };
    let chosen = view.field_value("payout-method", "method", "");
    push!(
        card,
        "<details" (open) "><summary>Change it</summary><form method=\"post\" action=\"payout-method\">" [view.csrf_field()]
        "<label>How<select name=\"method\" required>"
    );
    for method in choices {
        let selected = if chosen == method.as_str() { " selected" } else { "" };
        push!(card, "<option value=\"" (method.as_str()) "\"" (selected) ">" (method_name(method)) "</option>");
    }
    push!(
        card,
        "</select></label><label>To<textarea name=\"destination\" required maxlength=\"1000\" rows=\"3\">\n"
        (view.field_value("payout-method", "destination", "")) "</textarea><small>An email address for PayPal and Wise; the \
         account's particulars for a bank transfer</small></label><p class=\"soft\">We mail a link to "
        (partner.email) ": payouts go there once you follow it.</p><button type=\"submit\">Change where payouts go</button>\
         </form></details></section>\n"
    );
    card
}

/// Who the partner is.
fn profile_form(view: &PageContext<'_>) -> Html {
    let partner = &view.session.partner;
    let mut card = html! {
        "<section class=\"card\"><h2>You</h2><form method=\"post\" action=\"profile\">" [view.csrf_field()]
        "<label>Email<input readonly value=\"" (partner.email) "\"></label><div class=\"two\">"
    };
    for (name, label, now) in [
        ("first_name", "First name", &partner.first_name),
        ("last_name", "Last name", &partner.last_name),
        ("company", "Company", &partner.company),
        ("website", "Website or channel", &partner.website),
    ] {
        let value = view.field_value("profile", name, now.as_deref().unwrap_or_default());
        let readonly = if view.can_edit() { "" } else { " readonly" };
        push!(
            card,
            "<label>" (label) "<input name=\"" (name) "\" maxlength=\"200\"" (readonly) " value=\"" (value) "\"></label>"
        );
    }
    card.raw("</div>");
    if view.can_edit() {
        card.raw("<button type=\"submit\">Save</button>");
    }
    card.raw("</form></section>\n");
    card
}

/// What is posted where, signed with what.
async fn postback_section(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let url = view.field_value("postback", "postback_url", partner.postback_url.as_deref().unwrap_or_default());
    let mut card = html! {
        "<section class=\"card\" id=\"postbacks\"><h2>Postbacks</h2><p class=\"soft\">For your own systems: each of your \
         referrals and earnings is posted as JSON to an address of yours, when it happens.</p>"
    };
    if !view.can_edit() {
        push!(card, "<p>" (if url.is_empty() { "None" } else { url.as_str() }) "</p></section>\n");
        return Ok(card);
    }
    push!(
        card,
        "<form method=\"post\" action=\"postback\">" [view.csrf_field()]
        "<label>Address<input type=\"url\" name=\"postback_url\" maxlength=\"2000\" placeholder=\"https://example.org/postback\" \
         value=\"" (url) "\"><small>Empty: nothing is posted</small></label><button type=\"submit\">Save</button></form>\
         <form method=\"post\" action=\"postback-secret\">" [view.csrf_field()] "<p class=\"soft\">Each is signed \
         (<code>Service-Signature</code>) with a secret, which is shown when you first save an address or make a new one, and never again.</p>\
         <button type=\"submit\" class=\"quiet\">Make a new secret</button></form>"
        [postback_log(room, view).await?] "</section>\n"
    );
    Ok(card)
}

/// What was posted lately, and the button that posts a trial.
async fn postback_log(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let (sent, _) = room.affiliate.list_postbacks((partner.account, partner.id), None, POSTBACKS_SHOWN_MAX).await?;
    let mut log = Html::new();
    if partner.postback_url.is_some() {
        push!(
            log,
            "<form method=\"post\" action=\"postback-test\">" [view.csrf_field()]
            "<button type=\"submit\" class=\"quiet\">Post a trial</button></form>"
        );
    }
    if sent.is_empty() {
        return Ok(log);
    }
    log.raw(
        "<table class=\"list\"><caption>Posted lately</caption><thead><tr><th scope=\"col\">When</th>\
         <th scope=\"col\">What</th><th scope=\"col\">What came of it</th></tr></thead><tbody>",
    );
    for PostbackDelivery { delivery, attempts } in &sent {
        let error = attempts.last().and_then(|attempt| attempt.error.as_deref());
        let (kind, word) = match delivery.status {
            WebhookDeliveryStatus::Pending => ("warn", "on its way"),
            WebhookDeliveryStatus::Delivered => ("good", "taken"),
            WebhookDeliveryStatus::Failed => ("bad", "given up"),
        };
        push!(
            log,
            "<tr><td>" [words::format_time(delivery.created_at)] "</td><td>" (delivery.kind)
            "<small>" (delivery.event) "</small></td><td>" [words::badge(kind, word)] "<small>"
            (delivery.attempts) (if delivery.attempts == 1 { " attempt" } else { " attempts" })
        );
        if let Some(status) = delivery.response_status {
            push!(log, ", answered "(status));
        }
        if let Some(error) = error {
            push!(log, ", "(error));
        }
        log.raw("</small></td></tr>");
    }
    log.raw("</tbody></table>");
    Ok(log)
}

/// The secret that holds when postbacks begin.
pub(super) fn first_secret_notice(secret: &str) -> Html {
    html! {
        "<div class=\"note\" role=\"status\"><p>Postbacks go there from now on. This is the secret that they are signed with. \
         Copy it now: it is not shown again.</p><p class=\"secret\">" (secret) "</p></div>\n"
    }
}

/// A secret that was just made.
pub(super) fn new_secret_notice(secret: &str) -> Html {
    html! {
        "<div class=\"note\" role=\"status\"><p>This is the new secret of your postbacks. Copy it now: it is not shown \
         again, and the one before it holds no more.</p><p class=\"secret\">" (secret) "</p></div>\n"
    }
}

/// What is mailed.
fn mail_form(view: &PageContext<'_>) -> Html {
    let ticked = if view.session.partner.email_opt_out { "" } else { " checked" };
    let disabled = if view.can_edit() { "" } else { " disabled" };
    let mut card = html! {
        "<section class=\"card\"><h2>Mail</h2><form method=\"post\" action=\"mail\">" [view.csrf_field()]
        "<label class=\"tick\"><input type=\"checkbox\" name=\"mail\" value=\"on\"" (ticked) (disabled) "><span>Write to \
         me about payouts and news of my account<small>Links that you ask for, and what concerns your money's safety, \
         come in any case.</small></span></label>"
    };
    if view.can_edit() {
        card.raw("<button type=\"submit\">Save</button>");
    }
    card.raw("</form></section>\n");
    card
}

/// The program's terms.
fn terms_section(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut card = html! { "<section class=\"card\"><h2>Terms</h2>" };
    match &program.settings.terms_url {
        Some(url) => push!(
            card,
            "<p><a href=\"" (url) "\" rel=\"noopener noreferrer\">The terms of the program</a></p>"
        ),
        None => push!(card, "<p>" (website_host(program)) " has written none down.</p>"),
    }
    if let Some(at) = partner.terms_accepted_at {
        push!(card, "<p class=\"soft\">You accepted them on " [words::format_day(at)] ".</p>");
    }
    push!(card, "<p class=\"soft\">A partner since " [words::format_day(partner.created_at)] ".</p></section>\n");
    card
}

/// The page that a confirming link leads to.
pub(super) fn confirm_payout_page(door: &LoginTarget, payout: &PayoutDestination) -> Html {
    let mut content = html! {
        "<div class=\"card\"><p>From now on " (website_host(&door.program)) " is to pay " (door.partner.email) " here:</p>\
         <dl class=\"facts\"><dt>" (method_name(payout.method)) "</dt><dd>" (payout.destination) "</dd></dl>"
    };
    if let Some(before) = &door.partner.payout {
        let before = destination_line((before.method, &before.destination));
        push!(content, "<p class=\"soft\">So far: " (before) "</p>");
    }
    content.raw(
        "<form method=\"post\"><button type=\"submit\">Yes, pay me there</button></form>\
         <p class=\"soft\">If you did not ask for this, close the page: nothing changes.</p></div>",
    );
    frame::signed_out_page("Change where payouts go?", super::PARENT_PATH, &content)
}

/// Says that it is done.
pub(super) fn payout_changed_page(shown: &PartnerView) -> Html {
    let goes_to = shown.partner.payout.as_ref();
    let to = goes_to.map(|payout| destination_line((payout.method, &payout.destination))).unwrap_or_default();
    let content = html! {
        "<div class=\"card\"><p role=\"status\">Payouts go here from now on: " (to) "</p>\
         <p><a class=\"button\" href=\"../home\">To the portal</a></p></div>"
    };
    frame::signed_out_page("It is changed", super::PARENT_PATH, &content)
}
