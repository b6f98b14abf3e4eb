//! Portal page "Payouts", and the receipt of each payout.

use ::affiliate::error::AffiliateError;
use ::affiliate::partner_emails::{destination_line, website_host};
use ::affiliate::payouts::view::PayoutView;
use ::affiliate::portal::receipts::Receipt;
use mail::affiliate::payout::{Payout, PayoutStatus};
use mail::id::PayoutId;
use store::affiliate::listing::ListPageRequest;

use super::html::{Html, html, push};
use super::layout::PageContext;
use super::referrals::{ENTRIES, page_links};
use super::texts;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<PayoutId>().ok();
    let page_request = ListPageRequest { before: before.map(PayoutId::to_bytes), limit: ENTRIES, from: None };
    let page = state.affiliate.list_partner_payouts(partner, page_request).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.payouts.is_empty() {
        content.raw("<p>No payouts yet. Confirmed commissions are paid in the program's next payout run.</p>");
    } else {
        content.raw(
            "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">To</th>\
             <th scope=\"col\">Status</th><th scope=\"col\" class=\"num\">Amount</th>\
             <th scope=\"col\">Receipt</th></tr></thead><tbody>",
        );
        page.payouts.iter().for_each(|payout_view| content.put(&payout_row(payout_view)));
        content.raw("</tbody></table>");
    }
    let next = page.next.map(|id| PayoutId::from_bytes(id).to_string());
    push!(content, [page_links("payouts", before.is_some(), next.as_deref())] "</section>\n");
    content.put(&payout_terms(view));
    Ok(view.render("payouts", "Payouts", &content))
}

fn payout_row(view: &PayoutView) -> Html {
    let payout = &view.payout;
    html! {
        "<tr><td>" [texts::format_day(payout.created_at)] "</td><td>"
        (destination_line(payout.method, &payout.destination)) "</td><td>" [status_text(view)]
        "</td><td class=\"num\"><strong>" (texts::format_money(payout.amount, payout.currency))
        "</strong></td><td><a href=\"payouts/" (payout.id) "\">Receipt</a></td></tr>"
    }
}

/// The status of a payout.
fn status_text(view: &PayoutView) -> Html {
    match (view.status, view.payout.paid_at) {
        (PayoutStatus::Draft, _) => texts::badge("", "being prepared"),
        (PayoutStatus::Processing, _) => texts::badge("warn", "on its way"),
        (PayoutStatus::Paid, Some(at)) => {
            html! { [texts::badge("good", "paid")] "<small>on " [texts::format_day(at)] "</small>" }
        }
        (PayoutStatus::Paid, None) => texts::badge("good", "paid"),
        (PayoutStatus::Failed, _) => html! {
            [texts::badge("bad", "failed")] "<small>included in your next payout</small>"
        },
    }
}

/// The payout destination and the minimum payout.
fn payout_terms(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut section = html! { "<section class=\"card\"><h2>How you are paid</h2>" };
    match &partner.payout {
        Some(payout) => {
            push!(section, "<p>" (destination_line(payout.method, &payout.destination)) "</p>");
            if !partner.is_payout_ready(&program.settings.allowed_methods) {
                section.raw("<p class=\"note warn\">Payouts cannot be sent there at the moment.</p>");
            }
        }
        None => section.raw("<p class=\"note warn\">Add your payout details to receive payouts.</p>"),
    }
    push!(section, "<p><a href=\"" (view.parent_path()) "settings#payout\">Change payout details</a></p>");
    for (currency, least) in program.settings.min_payout.iter().filter(|(_, least)| **least > 0) {
        push!(section, "<p class=\"soft\">Minimum payout: " (texts::format_money(*least, *currency)) ".</p>");
    }
    section.raw("</section>\n");
    section
}

/// The receipt of a payout; `None` for an unknown id or another partner's payout.
pub(super) async fn receipt(
    state: &AppState,
    view: &PageContext<'_>,
    id: &str,
) -> Result<Option<Html>, AffiliateError> {
    let Ok(id) = id.parse::<PayoutId>() else { return Ok(None) };
    let found = state.affiliate.get_receipt(&view.session.partner, id).await?;
    Ok(found.map(|receipt| {
        let mut content = html! { "<section class=\"card\">" [receipt_header(view, &receipt.shown)] [receipt_lines(&receipt)] };
        push!(content, "</section><p class=\"no-print\"><a href=\"" (view.parent_path()) "payouts\">All payouts</a></p>\n");
        view.render("payouts", "Payout", &content)
    }))
}

/// Payer, payee, amount and status.
fn receipt_header(view: &PageContext<'_>, payout_view: &PayoutView) -> Html {
    let (partner, program, payout) = (&view.session.partner, &view.session.program, &payout_view.payout);
    let mut facts = html! {
        "<dl class=\"facts\"><dt>From</dt><dd>" (website_host(program)) "\n" (program.settings.website_url)
        "</dd><dt>To</dt><dd>" (partner.name())
    };
    if let Some(company) = &partner.company {
        push!(facts, "\n"(company));
    }
    push!(
        facts,
        "\n" (partner.email) "</dd><dt>Method</dt><dd>" (destination_line(payout.method, &payout.destination))
        "</dd><dt>Amount</dt><dd><strong>" (texts::format_money(payout.amount, payout.currency))
        "</strong></dd><dt>Status</dt><dd>" [status_text(payout_view)] "</dd>"
    );
    let reference = payout.reference.as_deref().or(payout.transfer.as_deref());
    for (label, text) in [("Reference", reference), ("Reason", payout.failure_reason.as_deref())] {
        if let Some(text) = text {
            push!(facts, "<dt>" (label) "</dt><dd>" (text) "</dd>");
        }
    }
    push!(facts, "<dt>Number</dt><dd>" (payout.id) "</dd></dl>");
    facts
}

/// The commissions and corrections of a payout.
fn receipt_lines(receipt: &Receipt) -> Html {
    let Payout { currency, adjusted, lines: all, .. } = receipt.shown.payout;
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">Details</th>\
         <th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for (line, amount) in &receipt.lines {
        push!(
            table,
            "<tr><td>" [texts::format_day(line.created_at)] "</td><td>" (super::earnings::commission_label(line)) "<small>"
            (line.formula()) "</small></td><td class=\"num\">" (texts::format_money(*amount, currency)) "</td></tr>"
        );
    }
    if adjusted != 0 {
        push!(
            table,
            "<tr><td></td><td>Corrections<small>refunds of purchases that you were already paid for</small></td>\
             <td class=\"num\">" (texts::format_money(adjusted, currency)) "</td></tr>"
        );
    }
    table.raw("</tbody></table>");
    if usize::try_from(all).is_ok_and(|all| receipt.lines.len() < all) {
        push!(table, "<p class=\"soft\">Showing the first " (receipt.lines.len()) " of " (all) " lines.</p>");
    }
    table
}
