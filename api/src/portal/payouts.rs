//! The page of payouts, and the receipt of each.

use ::affiliate::letters::{destination_line, website_host};
use ::affiliate::payouts::show::PayoutView;
use ::affiliate::portal::receipts::Receipt;
use ::affiliate::refusal::AffiliateError;
use mail::affiliate::payout::{Payout, PayoutStatus};
use mail::id::PayoutId;
use store::affiliate::listing::ListPageRequest;

use super::frame::PageContext;
use super::html::{Html, html, push};
use super::referrals::{ENTRIES, page_links};
use super::words;
use crate::room::AppState;

pub(super) async fn show(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<PayoutId>().ok();
    let wanted = ListPageRequest { before: before.map(PayoutId::to_bytes), limit: ENTRIES, from: None };
    let page = room.affiliate.list_partner_payouts(partner, wanted).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.payouts.is_empty() {
        content.raw("<p>None yet. What you have earned is paid in the program's next run.</p>");
    } else {
        content.raw(
            "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">To</th>\
             <th scope=\"col\">Standing</th><th scope=\"col\" class=\"num\">Amount</th>\
             <th scope=\"col\">Receipt</th></tr></thead><tbody>",
        );
        page.payouts.iter().for_each(|shown| content.put(&payout_row(shown)));
        content.raw("</tbody></table>");
    }
    let next = page.next.map(|id| PayoutId::from_bytes(id).to_string());
    push!(content, [page_links("payouts", before.is_some(), next.as_deref())] "</section>\n");
    content.put(&payout_terms(view));
    Ok(view.render("payouts", "Payouts", &content))
}

fn payout_row(shown: &PayoutView) -> Html {
    let payout = &shown.payout;
    html! {
        "<tr><td>" [words::format_day(payout.created_at)] "</td><td>"
        (destination_line((payout.method, &payout.destination))) "</td><td>" [status_text(shown)]
        "</td><td class=\"num\"><strong>" (words::format_money(payout.amount, payout.currency))
        "</strong></td><td><a href=\"payouts/" (payout.id) "\">Receipt</a></td></tr>"
    }
}

/// Where a payout stands.
fn status_text(shown: &PayoutView) -> Html {
    match (shown.status, shown.payout.paid_at) {
        (PayoutStatus::Draft, _) => words::badge("", "being prepared"),
        (PayoutStatus::Processing, _) => words::badge("warn", "on its way"),
        (PayoutStatus::Paid, Some(at)) => {
            html! { [words::badge("good", "paid")] "<small>on " [words::format_day(at)] "</small>" }
        }
        (PayoutStatus::Paid, None) => words::badge("good", "paid"),
        (PayoutStatus::Failed, _) => html! {
            [words::badge("bad", "did not arrive")] "<small>it goes into the next payout</small>"
        },
    }
}

/// Where money goes, and from how much on.
fn payout_terms(view: &PageContext<'_>) -> Html {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let mut terms = html! { "<section class=\"card\"><h2>How you are paid</h2>" };
    match &partner.payout {
        Some(payout) => {
            push!(terms, "<p>" (destination_line((payout.method, &payout.destination))) "</p>");
            if !partner.is_payout_ready(&program.settings.allowed_methods) {
                terms.raw("<p class=\"note warn\">Nothing can be paid there at the moment.</p>");
            }
        }
        None => terms.raw("<p class=\"note warn\">Nothing can be paid to you before you say where to.</p>"),
    }
    push!(terms, "<p><a href=\"" (view.parent_path()) "settings#payout\">Change where payouts go</a></p>");
    for (currency, least) in program.settings.min_payout.iter().filter(|(_, least)| **least > 0) {
        push!(terms, "<p class=\"soft\">Paid from " (words::format_money(*least, *currency)) " on.</p>");
    }
    terms.raw("</section>\n");
    terms
}

/// A payout's receipt; none for what is not this partner's.
pub(super) async fn receipt(room: &AppState, view: &PageContext<'_>, id: &str) -> Result<Option<Html>, AffiliateError> {
    let Ok(id) = id.parse::<PayoutId>() else { return Ok(None) };
    let found = room.affiliate.get_receipt(&view.session.partner, id).await?;
    Ok(found.map(|receipt| {
        let mut content = html! { "<section class=\"card\">" [receipt_header(view, &receipt.shown)] [receipt_lines(&receipt)] };
        push!(content, "</section><p class=\"no-print\"><a href=\"" (view.parent_path()) "payouts\">All payouts</a></p>\n");
        view.render("payouts", "Payout", &content)
    }))
}

/// Who pays what to whom.
fn receipt_header(view: &PageContext<'_>, shown: &PayoutView) -> Html {
    let (partner, program, payout) = (&view.session.partner, &view.session.program, &shown.payout);
    let mut facts = html! {
        "<dl class=\"facts\"><dt>From</dt><dd>" (website_host(program)) "\n" (program.settings.website_url)
        "</dd><dt>To</dt><dd>" (partner.name())
    };
    if let Some(company) = &partner.company {
        push!(facts, "\n"(company));
    }
    push!(
        facts,
        "\n" (partner.email) "</dd><dt>By</dt><dd>" (destination_line((payout.method, &payout.destination)))
        "</dd><dt>Amount</dt><dd><strong>" (words::format_money(payout.amount, payout.currency))
        "</strong></dd><dt>Standing</dt><dd>" [status_text(shown)] "</dd>"
    );
    let reference = payout.reference.as_deref().or(payout.transfer.as_deref());
    for (label, text) in [("Reference", reference), ("Why", payout.failure_reason.as_deref())] {
        if let Some(text) = text {
            push!(facts, "<dt>" (label) "</dt><dd>" (text) "</dd>");
        }
    }
    push!(facts, "<dt>Number</dt><dd>" (payout.id) "</dd></dl>");
    facts
}

/// What a payout is made of.
fn receipt_lines(receipt: &Receipt) -> Html {
    let Payout { currency, adjusted, lines: all, .. } = receipt.shown.payout;
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">For what, and how it is reckoned</th>\
         <th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for (line, amount) in &receipt.lines {
        push!(
            table,
            "<tr><td>" [words::format_day(line.created_at)] "</td><td>" (super::earnings::commission_label(line)) "<small>"
            (line.formula()) "</small></td><td class=\"num\">" (words::format_money(*amount, currency)) "</td></tr>"
        );
    }
    if adjusted != 0 {
        push!(
            table,
            "<tr><td></td><td>Corrections<small>money that customers got back after you were paid for them</small></td>\
             <td class=\"num\">" (words::format_money(adjusted, currency)) "</td></tr>"
        );
    }
    table.raw("</tbody></table>");
    if usize::try_from(all).is_ok_and(|all| receipt.lines.len() < all) {
        push!(table, "<p class=\"soft\">The first " (receipt.lines.len()) " of " (all) " lines.</p>");
    }
    table
}
