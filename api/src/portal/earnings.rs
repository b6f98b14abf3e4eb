//! Portal page "Earnings": the partner's commissions with their formula and status.

use ::affiliate::error::AffiliateError;
use mail::affiliate::commission::{Commission, CommissionLevel, SoldInvoice};
use mail::id::CommissionId;
use store::affiliate::commission::CommissionFilter;
use store::affiliate::listing::ListPageRequest;

use super::html::{Html, html, push};
use super::layout::PageContext;
use super::referrals::{ENTRIES, page_links};
use super::texts;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<CommissionId>().ok();
    let page_request = ListPageRequest { before: before.map(CommissionId::to_bytes), limit: ENTRIES, from: None };
    let filter = CommissionFilter { partner: Some(partner.id), ..CommissionFilter::default() };
    let page = store::affiliate::commission::list(state.intake.store(), partner.account, &filter, page_request).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.rows.is_empty() {
        content.raw("<p>No commissions yet. They appear here when a customer whom you referred pays.</p>");
    } else {
        content.put(&commission_table(&page.rows));
    }
    let next = page.next.map(|id| CommissionId::from_bytes(id).to_string());
    push!(content, [page_links("earnings", before.is_some(), next.as_deref())] "</section>\n");
    Ok(view.render("earnings", "Earnings", &content))
}

fn commission_table(lines: &[Commission]) -> Html {
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">Details</th>\
         <th scope=\"col\">Status</th><th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for line in lines {
        push!(
            table,
            "<tr><td>" [texts::format_day(line.created_at)] "</td><td>" (commission_label(line)) "<small>" (line.formula())
            "</small></td><td>" [texts::commission_status(line)] "</td><td class=\"num\"><strong>"
            (texts::format_money(line.amount, line.currency)) "</strong></td></tr>"
        );
    }
    table.raw("</tbody></table>");
    table
}

/// Label of a commission. The processor's ids are not shown to partners.
pub(super) fn commission_label(line: &Commission) -> &'static str {
    match line.sold_invoice() {
        None => "A referral",
        Some(SoldInvoice { level: CommissionLevel::One | CommissionLevel::OneFixed, .. }) => "A sale",
        Some(SoldInvoice { level: CommissionLevel::Two, .. }) => "A sale by a partner you recruited",
    }
}
