//! Portal page "Settings": payout destination, profile, postbacks, email preferences, and the program's terms.

use ::affiliate::error::AffiliateError;
use ::affiliate::partner_emails::email_texts::{destination_line, method_name};
use ::affiliate::partner_emails::website_host;
use ::affiliate::partners::lookup::PartnerView;
use ::affiliate::portal::login::LoginTarget;
use ::affiliate::portal::payout_destination::payout_methods;
use html::document::RenderedPage;
use html::facts::Facts;
use html::fragment::Fragment;
use html::text::input_value;
use hypertext::prelude::*;
use model::affiliate::partner::PayoutDestination;
use model::affiliate::program::PayoutMethod;

use super::field::{CheckField, TextField};
use super::layout::{self, PageContext, submit_button};
use super::{postbacks, texts};
use crate::state::AppState;

/// Longest payout destination: an address, or bank details.
const DESTINATION_CHARS_MAX: u32 = 1_000;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let postbacks = postbacks::section(state, view).await?;
    let content = maud! {
        (payout_section(view))
        (profile_form(view))
        (postbacks)
        (mail_form(view))
        (terms_section(view))
    };
    Ok(view.render("settings", "Settings", content))
}

/// The current payout destination, and the form that changes it.
fn payout_section(view: &PageContext<'_>) -> Fragment {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let choices = payout_methods(program);
    Fragment::new(maud! {
        section #payout.card {
            h2 { "Payout details" }
            @match &partner.payout {
                Some(payout) => { (destination_facts(payout)) }
                None => { p { "You have not added payout details yet." } }
            }
            @if choices.is_empty() {
                p.soft { "Contact the program to set up payouts." }
            } @else if view.can_edit() {
                (payout_form(view, &choices))
            }
        }
    })
}

/// A payout destination, with all of its lines.
fn destination_facts(payout: &PayoutDestination) -> Facts {
    Facts::new().row(method_name(payout.method), maud! { div.lines { (payout.destination) } })
}

fn payout_form(view: &PageContext<'_>, choices: &[PayoutMethod]) -> Fragment {
    let partner = &view.session.partner;
    let is_open = partner.payout.is_none() || view.has_error("payout-method");
    let chosen = view.field_value("payout-method", "method", "");
    let destination = view.field_value("payout-method", "destination", "");
    // The parser drops a line feed after the start tag of `textarea`, so one precedes the text (HTML, "textarea").
    Fragment::new(maud! {
        details open[is_open] {
            summary { "Edit" }
            form.form method="post" action="payout-method" {
                (view.csrf_field())
                div.field {
                    label for="method" { "Method" }
                    select #method name="method" {
                        @for method in choices {
                            option value=(method.word()) selected[chosen == method.word()] { (method_name(*method)) }
                        }
                    }
                }
                div.field {
                    label for="destination" { "Account" }
                    textarea #destination name="destination" required maxlength=(DESTINATION_CHARS_MAX) rows="3"
                        aria-describedby="destination-help" { "\n" (input_value(&destination)) }
                    p #destination-help.help {
                        "An email address for PayPal and Wise; IBAN and account holder for a bank transfer"
                    }
                }
                p.soft.small {
                    "We send a confirmation link to " (partner.email.to_string())
                    ". The change takes effect once you open it."
                }
                (submit_button("Change payout details"))
            }
        }
    })
}

/// A form of one section; without its button, only the fields of a partner who may not change them.
fn section_form(view: &PageContext<'_>, title: &str, action: &str, fields: impl Renderable) -> Fragment {
    Fragment::new(maud! {
        section.card {
            h2 { (title) }
            @if view.can_edit() {
                form.form.wide method="post" action=(action) {
                    (view.csrf_field())
                    (fields)
                    (submit_button("Save"))
                }
            } @else {
                div.form.wide { (fields) }
            }
        }
    })
}

/// The partner's profile.
fn profile_form(view: &PageContext<'_>) -> Fragment {
    let partner = &view.session.partner;
    let email = partner.email.to_string();
    let email = TextField { is_read_only: true, ..TextField::new("email", "email", "Email", &email) };
    let fields = [
        ("first_name", "First name", &partner.first_name),
        ("last_name", "Last name", &partner.last_name),
        ("company", "Company", &partner.company),
        ("website", "Website or channel", &partner.website),
    ];
    let fields = fields
        .map(|(name, label, now)| (name, label, view.field_value("profile", name, now.as_deref().unwrap_or_default())));
    let fields = maud! {
        (email)
        div.columns {
            @for (name, label, value) in &fields {
                (TextField { is_read_only: !view.can_edit(), ..TextField::new(name, name, label, value) })
            }
        }
    };
    section_form(view, "Profile", "profile", fields)
}

/// The email preference.
fn mail_form(view: &PageContext<'_>) -> Fragment {
    let field = CheckField {
        name: "mail",
        label: "Email me about payouts and account news",
        help: Some("Sign-in links and security emails are always sent."),
        is_checked: !view.session.partner.email_opt_out,
        is_required: false,
        is_disabled: !view.can_edit(),
    };
    section_form(view, "Email", "mail", field)
}

/// The program's terms, and when the partner accepted them.
fn terms_section(view: &PageContext<'_>) -> Fragment {
    let (partner, program) = (&view.session.partner, &view.session.program);
    Fragment::new(maud! {
        section.card {
            h2 { "Terms" }
            @match &program.settings.terms_url {
                Some(url) => {
                    p { a href=(url.to_string()) rel="noopener noreferrer" { "The terms of the program" } }
                }
                None => { p { (website_host(program)) " has not published terms." } }
            }
            @if let Some(at) = partner.terms_accepted_at {
                p.soft.small { "You accepted them on " (texts::format_day(at)) "." }
            }
            p.soft.small { "Partner since " (texts::format_day(partner.created_at)) "." }
        }
    })
}

/// The page of a confirmation link: the new and the current destination, and a button.
pub(super) fn confirm_payout_page(target: &LoginTarget, payout: &PayoutDestination) -> RenderedPage {
    let before = target.partner.payout.as_ref();
    let before = before.map(|before| destination_line(before.method, &before.destination));
    let content = maud! {
        p { (website_host(&target.program)) " will send payouts for " (target.partner.email.to_string()) " to:" }
        (destination_facts(payout))
        @if let Some(before) = &before { p.soft { "Current: " (before) } }
        form.form method="post" { (submit_button("Confirm")) }
        p.soft.small { "If you did not request this, close the page: nothing changes." }
    };
    layout::signed_out_page("Change payout details?", layout::PARENT_PATH, None, content)
}

/// The page after a confirmed change.
pub(super) fn payout_changed_page(view: &PartnerView) -> RenderedPage {
    let destination = view.partner.payout.as_ref();
    let to = destination.map(|payout| destination_line(payout.method, &payout.destination)).unwrap_or_default();
    let content = maud! {
        p role="status" { "Payouts will be sent to: " (to) }
        p { a.button.primary href="../home" { "Go to the portal" } }
    };
    layout::signed_out_page("Payout details changed", layout::PARENT_PATH, None, content)
}
