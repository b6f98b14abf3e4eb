//! Portal page "Earnings": the partner's commissions with their formula and status.

use ::affiliate::error::AffiliateError;
use html::document::RenderedPage;
use html::empty::EmptyState;
use html::table::{Row, Table};
use hypertext::prelude::*;
use model::affiliate::commission::{Commission, CommissionLevel, SoldInvoice};
use model::affiliate::payout::Payout;
use model::id::CommissionId;
use store::affiliate::commission::CommissionFilter;
use store::affiliate::listing::ListPageRequest;

use super::layout::PageContext;
use super::referrals::{ENTRIES, page_links};
use super::texts;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<CommissionId>().ok();
    let page_request = ListPageRequest { before: before.map(CommissionId::to_bytes), limit: ENTRIES, from: None };
    let filter = CommissionFilter { partner: Some(partner.id), ..CommissionFilter::default() };
    let page =
        store::affiliate::commission::list(&state.services.store, partner.account, &filter, page_request).await?;
    let drafts = state.affiliate.ledger.draft_payouts(partner).await?;
    let next = page.next.map(|id| CommissionId::from_bytes(id).to_string());
    let content = maud! {
        @if page.rows.is_empty() {
            (EmptyState {
                title: "No commissions yet",
                text: "They appear here when a customer you referred pays.",
                action: None,
            })
        } @else {
            (commission_table(&page.rows, &drafts))
        }
        (page_links("earnings", before.is_some(), next.as_deref()))
    };
    Ok(view.render("earnings", "Earnings", content))
}

fn commission_table(lines: &[Commission], drafts: &[Payout]) -> Table {
    let mut table = Table::new("Your commissions", &["Day", "Details", "Status", "Amount"]).numbers(&["Amount"]);
    for line in lines {
        table.push(
            Row::new()
                .cell(texts::format_day(line.created_at))
                .cell(commission_details(line))
                .cell(texts::commission_status(line, drafts))
                .cell(maud! { strong.nowrap { (texts::format_money(line.amount, line.currency)) } }),
        );
    }
    table
}

/// The sale and the formula of a commission.
pub(super) fn commission_details(line: &Commission) -> impl Renderable + use<> {
    let (label, formula) = (commission_label(line), line.formula_with(texts::format_money, texts::format_currency));
    maud! { p { (label) } p.small.soft { (formula) } }
}

/// Label of a commission. The processor's ids are not shown to partners.
fn commission_label(line: &Commission) -> &'static str {
    match line.sold_invoice() {
        None => "A referral",
        Some(SoldInvoice { level: CommissionLevel::One | CommissionLevel::OneFixed, .. }) => "A sale",
        Some(SoldInvoice { level: CommissionLevel::Two, .. }) => "A sale by a partner you recruited",
    }
}
