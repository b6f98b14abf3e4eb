//! The ledger of a partner: each commission with its formula, and what the partner had earned after it.

use super::PATH;
use super::commissions::CommissionRow;
use super::partner::load_partner;
use super::partners::{PARTNERS_PATH, partner_path};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/partners/{id}/ledger" => show, reads ["get_affiliate", "list_affiliate_ledger"];
};

#[derive(Debug, Deserialize)]
struct LedgerLine {
    commission: CommissionRow,
    formula: String,
    balance_after_cents: i64,
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let partner = &load_partner(context, context.id()).await?;
    let call = Call::new("list_affiliate_ledger").id(&partner.id).query("cursor", context.query().get("cursor"));
    let found: &List<LedgerLine> = &context.read_list("data", &call).await?;
    let table = Table::of("Ledger", &found.entries)
        .column("Created", |line| time_or_dash(line.commission.created_at.as_deref()))
        .number("Amount", |line| {
            let (commission, amount) = (&line.commission, line.commission.money().text());
            maud! {
                a.nowrap href={ (PATH) "/commissions/" (encode(&commission.id)) } {
                    @if commission.status == "reversed" { s { (amount) } } @else { (amount) }
                }
            }
        })
        .column("Why", |line| &line.formula)
        .column("Status", |line| line.commission.badge())
        .number("Total earned", |line| Money { amount: line.balance_after_cents, currency: &line.commission.currency });
    let empty = EmptyState {
        title: "No commissions yet",
        text: "Each paid invoice of a referred customer becomes a commission here.",
        action: None,
    };
    let body = found.fragment(context, &table, empty);
    let page = Page::new("Ledger", body)
        .below(PARTNERS_PATH, "Partners")
        .below(partner_path(&partner.id), partner.name())
        .lead(
            "Reversed commissions do not count. “Total earned” includes what is on hold and what has been paid, by \
            currency.",
        );
    Ok(page.same_as(call).live().into())
}
