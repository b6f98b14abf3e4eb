//! Portal page "Settings": payout destination, profile, postbacks, email preferences, and the program's terms.

use ::affiliate::error::AffiliateError;
use ::affiliate::partner_emails::{destination_line, method_name, website_host};
use ::affiliate::partners::PartnerView;
use ::affiliate::portal::login::LoginTarget;
use ::affiliate::portal::payout_destination::payout_methods;
use ::affiliate::postbacks::PostbackDelivery;
use mail::affiliate::partner::PayoutDestination;
use mail::webhook_delivery::WebhookDeliveryStatus;

use super::html::{Html, html, push};
use super::layout::{self, PageContext};
use super::texts;
use crate::state::AppState;

/// Rows of the postback log.
const POSTBACKS_SHOWN_MAX: usize = 20;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let content = html! {
        [payout_form(view)] [profile_form(view)] [postback_section(state, view).await?] [mail_form(view)] [terms_section(view)]
    };
    Ok(view.render("settings", "Settings", &content))
}

/// The current payout destination, and the form that changes it.
fn payout_form(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut card = html! { "<section class=\"card\" id=\"payout\"><h2>Payout details</h2>" };
    match &partner.payout {
        Some(payout) => push!(
            card,
            "<dl class=\"facts\"><dt>" (method_name(payout.method)) "</dt><dd>" (payout.destination) "</dd></dl>"
        ),
        None => card.raw("<p>You have not added payout details yet.</p>"),
    }
    let choices = payout_methods(program);
    if !view.can_edit() || choices.is_empty() {
        if choices.is_empty() {
            card.raw("<p class=\"soft\">Contact the program to set up payouts.</p>");
        }
        card.raw("</section>\n");
        return card;
    }
    let open = if partner.payout.is_none() || view.has_error("payout-method") { " open" } else { "" };
    let chosen = view.field_value("payout-method", "method", "");
    push!(
        card,
        "<details" (open) "><summary>Edit</summary><form method=\"post\" action=\"payout-method\">" [view.csrf_field()]
        "<label>Method<select name=\"method\" required>"
    );
    for method in choices {
        let selected = if chosen == method.as_str() { " selected" } else { "" };
        push!(card, "<option value=\"" (method.as_str()) "\"" (selected) ">" (method_name(method)) "</option>");
    }
    push!(
        card,
        "</select></label><label>Account<textarea name=\"destination\" required maxlength=\"1000\" rows=\"3\">\n"
        (view.field_value("payout-method", "destination", ""))
        "</textarea><small>An email address for PayPal and Wise; IBAN and account holder for a bank transfer\
         </small></label><p class=\"soft\">We send a confirmation link to " (partner.email)
        ". The change takes effect once you open it.</p>\
         <button type=\"submit\">Change payout details</button></form></details></section>\n"
    );
    card
}

/// The partner's profile.
fn profile_form(view: &PageContext<'_>) -> Html {
    let partner = &view.session.partner;
    let mut card = html! {
        "<section class=\"card\"><h2>Profile</h2><form method=\"post\" action=\"profile\">" [view.csrf_field()]
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

/// The postback URL, its signing secret, and the log.
async fn postback_section(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let url = view.field_value("postback", "postback_url", partner.postback_url.as_deref().unwrap_or_default());
    let mut card = html! {
        "<section class=\"card\" id=\"postbacks\"><h2>Postbacks</h2><p class=\"soft\">For your own systems: each of your \
         referrals and earnings is sent as JSON to your postback URL.</p>"
    };
    if !view.can_edit() {
        push!(card, "<p>" (if url.is_empty() { "None" } else { url.as_str() }) "</p></section>\n");
        return Ok(card);
    }
    push!(
        card,
        "<form method=\"post\" action=\"postback\">" [view.csrf_field()]
        "<label>Postback URL<input type=\"url\" name=\"postback_url\" maxlength=\"2000\" \
         placeholder=\"https://example.org/postback\" value=\"" (url)
        "\"><small>Leave empty to disable postbacks</small></label><button type=\"submit\">Save</button></form>\
         <form method=\"post\" action=\"postback-secret\">" [view.csrf_field()]
        "<p class=\"soft\">Each postback is signed (<code>Service-Signature</code>). The secret is shown only when you \
         first save a URL or create a new secret.</p>\
         <button type=\"submit\" class=\"quiet\">Create a new secret</button></form>"
        [postback_log(state, view).await?] "</section>\n"
    );
    Ok(card)
}

/// The most recent postbacks, and the button that sends a test.
async fn postback_log(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let (sent, _) = state.affiliate.list_postbacks(partner.account, partner.id, None, POSTBACKS_SHOWN_MAX).await?;
    let mut log = Html::new();
    if partner.postback_url.is_some() {
        push!(
            log,
            "<form method=\"post\" action=\"postback-test\">" [view.csrf_field()]
            "<button type=\"submit\" class=\"quiet\">Send a test</button></form>"
        );
    }
    if sent.is_empty() {
        return Ok(log);
    }
    log.raw(
        "<table class=\"list\"><caption>Recent postbacks</caption><thead><tr><th scope=\"col\">Time</th>\
         <th scope=\"col\">Event</th><th scope=\"col\">Result</th></tr></thead><tbody>",
    );
    for PostbackDelivery { delivery, attempts } in &sent {
        let error = attempts.last().and_then(|attempt| attempt.error.as_deref());
        let (kind, word) = match delivery.status {
            WebhookDeliveryStatus::Pending => ("warn", "pending"),
            WebhookDeliveryStatus::Delivered => ("good", "delivered"),
            WebhookDeliveryStatus::Failed => ("bad", "failed"),
        };
        push!(
            log,
            "<tr><td>" [texts::format_time(delivery.created_at)] "</td><td>" (delivery.kind)
            "<small>" (delivery.event) "</small></td><td>" [texts::badge(kind, word)] "<small>"
            (delivery.attempts) (if delivery.attempts == 1 { " attempt" } else { " attempts" })
        );
        if let Some(status) = delivery.response_status {
            push!(log, ", HTTP status "(status));
        }
        if let Some(error) = error {
            push!(log, ", "(error));
        }
        log.raw("</small></td></tr>");
    }
    log.raw("</tbody></table>");
    Ok(log)
}

/// The notice that shows the first postback secret.
pub(super) fn first_secret_notice(secret: &str) -> Html {
    html! {
        "<div class=\"note\" role=\"status\"><p>Postbacks are enabled. They are signed with this secret. \
         Copy it now: it is not shown again.</p><p class=\"secret\">" (secret) "</p></div>\n"
    }
}

/// The notice that shows a new postback secret.
pub(super) fn new_secret_notice(secret: &str) -> Html {
    html! {
        "<div class=\"note\" role=\"status\"><p>This is the new secret of your postbacks. Copy it now: it is not shown \
         again. The previous secret no longer works.</p><p class=\"secret\">" (secret) "</p></div>\n"
    }
}

/// The email preference.
fn mail_form(view: &PageContext<'_>) -> Html {
    let checked = if view.session.partner.email_opt_out { "" } else { " checked" };
    let disabled = if view.can_edit() { "" } else { " disabled" };
    let mut card = html! {
        "<section class=\"card\"><h2>Email</h2><form method=\"post\" action=\"mail\">" [view.csrf_field()]
        "<label class=\"tick\"><input type=\"checkbox\" name=\"mail\" value=\"on\"" (checked) (disabled)
        "><span>Email me about payouts and account news\
         <small>Sign-in links and security emails are always sent.</small></span></label>"
    };
    if view.can_edit() {
        card.raw("<button type=\"submit\">Save</button>");
    }
    card.raw("</form></section>\n");
    card
}

/// The program's terms, and when the partner accepted them.
fn terms_section(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut card = html! { "<section class=\"card\"><h2>Terms</h2>" };
    match &program.settings.terms_url {
        Some(url) => push!(
            card,
            "<p><a href=\"" (url) "\" rel=\"noopener noreferrer\">The terms of the program</a></p>"
        ),
        None => push!(card, "<p>" (website_host(program)) " has not published terms.</p>"),
    }
    if let Some(at) = partner.terms_accepted_at {
        push!(card, "<p class=\"soft\">You accepted them on " [texts::format_day(at)] ".</p>");
    }
    push!(card, "<p class=\"soft\">Partner since " [texts::format_day(partner.created_at)] ".</p></section>\n");
    card
}

/// The page of a confirmation link: the new and the current destination, and a button.
pub(super) fn confirm_payout_page(target: &LoginTarget, payout: &PayoutDestination) -> Html {
    let mut content = html! {
        "<div class=\"card\"><p>" (website_host(&target.program)) " will send payouts for " (target.partner.email)
        " to:</p><dl class=\"facts\"><dt>" (method_name(payout.method)) "</dt><dd>" (payout.destination) "</dd></dl>"
    };
    if let Some(before) = &target.partner.payout {
        let before = destination_line(before.method, &before.destination);
        push!(content, "<p class=\"soft\">Current: " (before) "</p>");
    }
    content.raw(
        "<form method=\"post\"><button type=\"submit\">Confirm</button></form>\
         <p class=\"soft\">If you did not request this, close the page: nothing changes.</p></div>",
    );
    layout::signed_out_page("Change payout details?", layout::PARENT_PATH, &content)
}

/// The page after a confirmed change.
pub(super) fn payout_changed_page(view: &PartnerView) -> Html {
    let destination = view.partner.payout.as_ref();
    let to = destination.map(|payout| destination_line(payout.method, &payout.destination)).unwrap_or_default();
    let content = html! {
        "<div class=\"card\"><p role=\"status\">Payouts will be sent to: " (to) "</p>\
         <p><a class=\"button\" href=\"../home\">Go to the portal</a></p></div>"
    };
    layout::signed_out_page("Payout details changed", layout::PARENT_PATH, &content)
}
