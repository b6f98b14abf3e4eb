//! The page of earnings: the ledger, each line with why it is as large as it is and when it is the partner's.

use ::affiliate::refusal::AffiliateError;
use mail::affiliate::commission::{Commission, CommissionLevel, SoldInvoice};
use mail::id::CommissionId;
use store::affiliate::commission::CommissionFilter;
use store::affiliate::listing::ListPageRequest;

use super::frame::PageContext;
use super::html::{Html, html, push};
use super::referrals::{ENTRIES, page_links};
use super::words;
use crate::room::AppState;

pub(super) async fn show(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<CommissionId>().ok();
    let wanted = ListPageRequest { before: before.map(CommissionId::to_bytes), limit: ENTRIES, from: None };
    let filter = CommissionFilter { partner: Some(partner.id), ..CommissionFilter::default() };
    let page = store::affiliate::commission::list(room.intake.store(), partner.account, &filter, wanted).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.rows.is_empty() {
        content.raw("<p>Nothing yet. When somebody whom you brought pays, a line is written here.</p>");
    } else {
        content.put(&commission_table(&page.rows));
    }
    let next = page.next.map(|id| CommissionId::from_bytes(id).to_string());
    push!(content, [page_links("earnings", before.is_some(), next.as_deref())] "</section>\n");
    Ok(view.render("earnings", "Earnings", &content))
}

/// A table of lines.
fn commission_table(lines: &[Commission]) -> Html {
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">For what, and how it is reckoned</th>\
         <th scope=\"col\">Standing</th><th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for line in lines {
        push!(
            table,
            "<tr><td>" [words::format_day(line.created_at)] "</td><td>" (commission_label(line)) "<small>" (line.formula())
            "</small></td><td>" [words::commission_status(line)] "</td><td class=\"num\"><strong>"
            (words::format_money(line.amount, line.currency)) "</strong></td></tr>"
        );
    }
    table.raw("</tbody></table>");
    table
}

/// What a line is for; the processor's own names are the program's.
pub(super) fn commission_label(line: &Commission) -> &'static str {
    match line.sold_invoice() {
        None => "Somebody whom you brought",
        Some(SoldInvoice { level: CommissionLevel::One | CommissionLevel::OneFixed, .. }) => "A sale",
        Some(SoldInvoice { level: CommissionLevel::Two, .. }) => "A sale of a partner whom you recruited",
    }
}
