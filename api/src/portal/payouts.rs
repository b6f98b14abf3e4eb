//! Portal page "Payouts", and the receipt of each payout.

use ::affiliate::error::AffiliateError;
use ::affiliate::partner_emails::email_texts::destination_line;
use ::affiliate::partner_emails::website_host;
use ::affiliate::payouts::view::PayoutView;
use ::affiliate::portal::receipts::Receipt;
use html::badge::{Badge, Tone};
use html::document::RenderedPage;
use html::empty::EmptyState;
use html::facts::Facts;
use html::fragment::Fragment;
use html::table::{Row, Table};
use hypertext::prelude::*;
use model::affiliate::payout::{Payout, PayoutStatus};
use model::id::PayoutId;
use store::affiliate::listing::ListPageRequest;

use super::layout::PageContext;
use super::referrals::{ENTRIES, page_links};
use super::texts;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let partner = &view.session.partner;
    let before = view.request.query.get("before").parse::<PayoutId>().ok();
    let page_request = ListPageRequest { before: before.map(PayoutId::to_bytes), limit: ENTRIES, from: None };
    let page = state.affiliate.ledger.list_partner_payouts(partner, page_request).await?;
    let next = page.next.map(|id| PayoutId::from_bytes(id).to_string());
    let content = maud! {
        @if page.rows.is_empty() {
            (EmptyState {
                title: "No payouts yet",
                text: "Earned commissions are paid in the program's next payout run.",
                action: None,
            })
        } @else {
            (payout_table(&page.rows))
        }
        (page_links("payouts", before.is_some(), next.as_deref()))
        (payout_terms(view))
    };
    Ok(view.render("payouts", "Payouts", content))
}

fn payout_table(payouts: &[PayoutView]) -> Table {
    let columns = ["Day", "To", "Status", "Amount", "Receipt"];
    let mut table = Table::new("Your payouts", &columns).numbers(&["Amount"]);
    for view in payouts {
        let payout = &view.payout;
        table.push(
            Row::new()
                .cell(texts::format_day(payout.created_at))
                .cell(maud! { (destination_line(payout.method, &payout.destination)) })
                .cell(status_text(view))
                .cell(maud! { strong.nowrap { (texts::format_money(payout.amount, payout.currency)) } })
                .link(format!("payouts/{}", payout.id), "Receipt"),
        );
    }
    table
}

fn status_text(view: &PayoutView) -> Fragment {
    let badge = |text, tone| Fragment::new(Badge::new(text, tone));
    match (view.status, view.payout.paid_at) {
        (PayoutStatus::Draft, _) => badge("being prepared", Tone::Neutral),
        (PayoutStatus::Processing, _) => badge("on its way", Tone::Active),
        (PayoutStatus::Paid, Some(at)) => Fragment::new(maud! {
            (Badge::new("paid", Tone::Good))
            p.small.soft { "on " (texts::format_day(at)) }
        }),
        (PayoutStatus::Paid, None) => badge("paid", Tone::Good),
        (PayoutStatus::Failed, _) => Fragment::new(maud! {
            (Badge::new("failed", Tone::Bad))
            p.small.soft { "included in your next payout" }
        }),
    }
}

/// The payout destination and the minimum payout.
fn payout_terms(view: &PageContext<'_>) -> Fragment {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let minimum = program.settings.min_payout.iter().filter(|(_, least)| **least > 0);
    let minimum: Vec<_> = minimum.map(|(currency, least)| texts::format_money(*least, *currency)).collect();
    Fragment::new(maud! {
        section.card {
            h2 { "How you are paid" }
            @match &partner.payout {
                Some(payout) => {
                    p { (destination_line(payout.method, &payout.destination)) }
                    @if !partner.is_payout_ready(&program.settings.allowed_methods) {
                        div.notice.warning { p { "Payouts cannot be sent there at the moment." } }
                    }
                }
                None => { div.notice.warning { p { "Add your payout details to receive payouts." } } }
            }
            @for least in &minimum { p.soft.small { "Minimum payout: " (least) "." } }
            p { a href={ (view.parent_path()) "settings#payout" } { "Change payout details" } }
        }
    })
}

/// The receipt of a payout; `None` for an unknown id or another partner's payout.
pub(super) async fn receipt(
    state: &AppState,
    view: &PageContext<'_>,
    id: &str,
) -> Result<Option<RenderedPage>, AffiliateError> {
    let Ok(id) = id.parse::<PayoutId>() else { return Ok(None) };
    let found = state.affiliate.ledger.get_receipt(&view.session.partner, id).await?;
    Ok(found.map(|receipt| {
        let content = maud! {
            section.card { (receipt_facts(view, &receipt.shown)) }
            (receipt_lines(&receipt))
            p.no-print { a href={ (view.parent_path()) "payouts" } { "All payouts" } }
        };
        view.render("payouts", "Payout", content)
    }))
}

/// Payer, payee, amount and status.
fn receipt_facts(view: &PageContext<'_>, payout_view: &PayoutView) -> Facts {
    let (partner, program, payout) = (&view.session.partner, &view.session.program, &payout_view.payout);
    let company = partner.company.as_deref();
    let reference = payout.reference.as_deref().or(payout.transfer.as_deref());
    let text = |text: Option<&str>| text.map(str::to_owned).map(|text| maud! { (text) });
    Facts::new()
        .row("From", maud! { p { (website_host(program)) } p { (program.settings.website_url.to_string()) } })
        .row(
            "To",
            maud! {
                p { (partner.name()) }
                @if let Some(company) = company { p { (company) } }
                p { (partner.email.to_string()) }
            },
        )
        .row("Method", maud! { (destination_line(payout.method, &payout.destination)) })
        .row("Amount", maud! { strong { (texts::format_money(payout.amount, payout.currency)) } })
        .row("Status", status_text(payout_view))
        .optional("Reference", text(reference))
        .optional("Reason", text(payout.failure_reason.as_deref()))
        .row("Number", maud! { (payout.id.to_string()) })
}

/// The commissions and corrections of a payout.
fn receipt_lines(receipt: &Receipt) -> impl Renderable + use<> {
    let Payout { currency, adjusted, lines: all, .. } = receipt.shown.payout;
    let mut table = Table::new("What is paid", &["Day", "Details", "Amount"]).numbers(&["Amount"]);
    let amount = |amount| maud! { span.nowrap { (texts::format_money(amount, currency)) } };
    for (line, paid) in &receipt.lines {
        table.push(
            Row::new()
                .cell(texts::format_day(line.created_at))
                .cell(super::earnings::commission_details(line))
                .cell(amount(*paid)),
        );
    }
    if adjusted != 0 {
        let corrections = maud! {
            p { "Corrections" }
            p.small.soft {
                @if adjusted < 0 { "refunds of purchases that you were already paid for" }
                @else { "failed refunds, and earlier deductions that were too high" }
            }
        };
        table.push(Row::new().cell(texts::dash()).cell(corrections).cell(amount(adjusted)));
    }
    let shown = receipt.lines.len();
    let is_cut = usize::try_from(all).is_ok_and(|all| shown < all);
    maud! {
        (table)
        @if is_cut { p.soft.small { "Showing the first " (shown) " of " (all) " lines." } }
    }
}
