//! Postbacks on the portal page "Settings": the address, its signing secret, and the log.

use ::affiliate::error::AffiliateError;
use ::affiliate::partners::postbacks::PostbackDelivery;
use html::badge::{Badge, Tone};
use html::fragment::Fragment;
use html::table::{Row, Table};
use hypertext::prelude::*;
use model::webhook_delivery::WebhookDeliveryStatus;

use super::field::TextField;
use super::layout::{PageContext, submit_button};
use super::texts;
use crate::state::AppState;

/// Rows of the log.
const SHOWN_MAX: usize = 20;

pub(super) async fn section(state: &AppState, view: &PageContext<'_>) -> Result<Fragment, AffiliateError> {
    let partner = &view.session.partner;
    let url = view.field_value("postback", "postback_url", partner.postback_url.as_deref().unwrap_or_default());
    let forms = if view.can_edit() {
        let log = log(state, view).await?;
        Fragment::new(maud! { (url_form(view, &url)) (secret_form(view)) (log) })
    } else {
        Fragment::new(maud! { p { (if url.is_empty() { "None" } else { url.as_str() }) } })
    };
    Ok(Fragment::new(maud! {
        section #postbacks.card {
            h2 { "Postbacks" }
            p.soft {
                "For your own systems: each of your referrals and earnings is sent as JSON to your postback URL."
            }
            (forms)
        }
    }))
}

fn url_form<'a>(view: &'a PageContext<'a>, url: &'a str) -> impl Renderable + use<'a> {
    let field = TextField {
        kind: "url",
        help: Some("Leave empty to disable postbacks"),
        placeholder: Some("https://example.org/postback"),
        chars_max: 2_000,
        ..TextField::new("postback_url", "postback_url", "Postback URL", url)
    };
    maud! {
        form.form method="post" action="postback" {
            (view.csrf_field())
            (field)
            (submit_button("Save"))
        }
    }
}

fn secret_form<'a>(view: &'a PageContext<'a>) -> impl Renderable + use<'a> {
    maud! {
        form.form method="post" action="postback-secret" {
            (view.csrf_field())
            p.soft.small {
                "Each postback is signed (" code { "Service-Signature" } "). The secret is shown only when you first \
                 save a URL or create a new secret."
            }
            div.buttons { button.button type="submit" { "Create a new secret" } }
        }
    }
}

/// The most recent postbacks, and the button that sends a test.
async fn log(state: &AppState, view: &PageContext<'_>) -> Result<Fragment, AffiliateError> {
    let partner = &view.session.partner;
    let (sent, _) = state.affiliate.partners.list_postbacks(partner.account, partner.id, None, SHOWN_MAX).await?;
    Ok(Fragment::new(maud! {
        @if partner.postback_url.is_some() {
            form method="post" action="postback-test" {
                (view.csrf_field())
                button.button type="submit" { "Send a test" }
            }
        }
        @if !sent.is_empty() {
            h3 { "Recent postbacks" }
            (log_table(&sent))
        }
    }))
}

fn log_table(sent: &[PostbackDelivery]) -> Table {
    let mut table = Table::new("Recent postbacks", &["Time", "Event", "Result"]);
    for PostbackDelivery { delivery, attempts } in sent {
        let error = attempts.last().and_then(|attempt| attempt.error.as_deref());
        let (tone, word) = match delivery.status {
            WebhookDeliveryStatus::Pending => (Tone::Active, "pending"),
            WebhookDeliveryStatus::Delivered => (Tone::Good, "delivered"),
            WebhookDeliveryStatus::Failed => (Tone::Bad, "failed"),
        };
        let plural = if delivery.attempts == 1 { " attempt" } else { " attempts" };
        table.push(
            Row::new()
                .cell(texts::format_time(delivery.created_at))
                .cell(maud! { p { (delivery.kind.to_string()) } p.small.soft { (delivery.event.to_string()) } })
                .cell(maud! {
                    (Badge::new(word, tone))
                    p.small.soft {
                        (delivery.attempts) (plural)
                        @if let Some(status) = delivery.response_status { ", HTTP status " (status) }
                        @if let Some(error) = error { ", " (error) }
                    }
                }),
        );
    }
    table
}

pub(super) fn first_secret_notice(secret: &str) -> Fragment {
    secret_notice(
        "Postbacks are enabled. They are signed with this secret. Copy it now: it is not shown again.",
        secret,
    )
}

pub(super) fn new_secret_notice(secret: &str) -> Fragment {
    secret_notice(
        "This is the new secret for your postbacks. Copy it now: it is not shown again. The previous secret no longer \
         works.",
        secret,
    )
}

fn secret_notice(text: &str, secret: &str) -> Fragment {
    Fragment::new(maud! {
        div.notice.warning role="status" { p { (text) } p { code.secret { (secret) } } }
    })
}
