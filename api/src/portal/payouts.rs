//! The page of payouts, and the receipt of each.

use ::affiliate::letters::{destination_line, site};
use ::affiliate::payouts::show::ShownPayout;
use ::affiliate::portal::receipts::Receipt;
use ::affiliate::refusal::Refusal;
use mail::affiliate::payout::{Payout, PayoutStatus};
use mail::id::PayoutId;
use store::affiliate::listing::Wanted;

use super::frame::View;
use super::html::{Html, html, push};
use super::referrals::{ENTRIES, pages};
use super::words;
use crate::room::Room;

pub(super) async fn show(room: &Room, view: &View<'_>) -> Result<Html, Refusal> {
    let partner = &view.guest.partner;
    let before = view.asked.query.get("before").parse::<PayoutId>().ok();
    let wanted = Wanted { before: before.map(PayoutId::to_bytes), limit: ENTRIES, from: None };
    let page = room.affiliate.payouts_of(partner, wanted).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.payouts.is_empty() {
        content.raw("<p>None yet. What you have earned is paid in the program's next run.</p>");
    } else {
        content.raw(
            "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">To</th>\
             <th scope=\"col\">Standing</th><th scope=\"col\" class=\"num\">Amount</th>\
             <th scope=\"col\">Receipt</th></tr></thead><tbody>",
        );
        page.payouts.iter().for_each(|shown| content.put(&row(shown)));
        content.raw("</tbody></table>");
    }
    let next = page.next.map(|id| PayoutId::from_bytes(id).to_string());
    push!(content, [pages("payouts", before.is_some(), next.as_deref())] "</section>\n");
    content.put(&terms(view));
    Ok(view.page("payouts", "Payouts", &content))
}

fn row(shown: &ShownPayout) -> Html {
    let payout = &shown.payout;
    html! {
        "<tr><td>" [words::day(payout.created_at)] "</td><td>"
        (destination_line((payout.method, &payout.destination))) "</td><td>" [standing(shown)]
        "</td><td class=\"num\"><strong>" (words::money(payout.amount, payout.currency))
        "</strong></td><td><a href=\"payouts/" (payout.id) "\">Receipt</a></td></tr>"
    }
}

/// Where a payout stands.
fn standing(shown: &ShownPayout) -> Html {
    match (shown.status, shown.payout.paid_at) {
        (PayoutStatus::Draft, _) => words::tag("", "being prepared"),
        (PayoutStatus::Processing, _) => words::tag("warn", "on its way"),
        (PayoutStatus::Paid, Some(at)) => {
            html! { [words::tag("good", "paid")] "<small>on " [words::day(at)] "</small>" }
        }
        (PayoutStatus::Paid, None) => words::tag("good", "paid"),
        (PayoutStatus::Failed, _) => html! {
            [words::tag("bad", "did not arrive")] "<small>it goes into the next payout</small>"
        },
    }
}

/// Where money goes, and from how much on.
fn terms(view: &View<'_>) -> Html {
    let (partner, program) = (&view.guest.partner, &view.guest.program);
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
    push!(terms, "<p><a href=\"" (view.up()) "settings#payout\">Change where payouts go</a></p>");
    for (currency, least) in program.settings.min_payout.iter().filter(|(_, least)| **least > 0) {
        push!(terms, "<p class=\"soft\">Paid from " (words::money(*least, *currency)) " on.</p>");
    }
    terms.raw("</section>\n");
    terms
}

/// A payout's receipt; none for what is not this partner's.
pub(super) async fn receipt(room: &Room, view: &View<'_>, id: &str) -> Result<Option<Html>, Refusal> {
    let Ok(id) = id.parse::<PayoutId>() else { return Ok(None) };
    let found = room.affiliate.receipt_of(&view.guest.partner, id).await?;
    Ok(found.map(|receipt| {
        let mut content = html! { "<section class=\"card\">" [facts(view, &receipt.shown)] [lines(&receipt)] };
        push!(content, "</section><p class=\"no-print\"><a href=\"" (view.up()) "payouts\">All payouts</a></p>\n");
        view.page("payouts", "Payout", &content)
    }))
}

/// Who pays what to whom.
fn facts(view: &View<'_>, shown: &ShownPayout) -> Html {
    let (partner, program, payout) = (&view.guest.partner, &view.guest.program, &shown.payout);
    let mut facts = html! {
        "<dl class=\"facts\"><dt>From</dt><dd>" (site(program)) "\n" (program.settings.website_url)
        "</dd><dt>To</dt><dd>" (partner.name())
    };
    if let Some(company) = &partner.company {
        push!(facts, "\n"(company));
    }
    push!(
        facts,
        "\n" (partner.email) "</dd><dt>By</dt><dd>" (destination_line((payout.method, &payout.destination)))
        "</dd><dt>Amount</dt><dd><strong>" (words::money(payout.amount, payout.currency))
        "</strong></dd><dt>Standing</dt><dd>" [standing(shown)] "</dd>"
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
fn lines(receipt: &Receipt) -> Html {
    let Payout { currency, adjusted, lines: all, .. } = receipt.shown.payout;
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">For what, and how it is reckoned</th>\
         <th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for (line, amount) in &receipt.lines {
        push!(
            table,
            "<tr><td>" [words::day(line.created_at)] "</td><td>" (super::earnings::what(line)) "<small>"
            (line.formula()) "</small></td><td class=\"num\">" (words::money(*amount, currency)) "</td></tr>"
        );
    }
    if adjusted != 0 {
        push!(
            table,
            "<tr><td></td><td>Corrections<small>money that customers got back after you were paid for them</small></td>\
             <td class=\"num\">" (words::money(adjusted, currency)) "</td></tr>"
        );
    }
    table.raw("</tbody></table>");
    if usize::try_from(all).is_ok_and(|all| receipt.lines.len() < all) {
        push!(table, "<p class=\"soft\">The first " (receipt.lines.len()) " of " (all) " lines.</p>");
    }
    table
}
