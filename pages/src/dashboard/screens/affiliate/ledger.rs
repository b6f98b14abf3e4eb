//! The ledger of a partner: each commission with its formula, and what the partner had earned after it.

use super::PATH;
use super::commissions::CommissionRow;
use super::partner::load_partner;
use super::partners::{PARTNERS_PATH, partner_path};
use crate::dashboard::kit::money::Money;
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
    let found: List<LedgerLine> = context.read(&call).await?;
    let columns = ["Written", "Amount", "Why", "Status", "Total earned"];
    let mut table = Table::new("Ledger", &columns).numbers(&["Amount", "Total earned"]);
    for line in &found.entries {
        let commission = &line.commission;
        let amount = commission.money().text();
        let is_reversed = commission.status == "reversed";
        let balance = Money { amount: line.balance_after_cents, currency: &commission.currency }.text();
        let path = format!("{PATH}/commissions/{}", encode(&commission.id));
        table.push(
            Row::new()
                .cell(time_or_dash(commission.created_at.as_deref()))
                .cell(maud! { a.nowrap href=(path) { @if is_reversed { s { (amount) } } @else { (amount) } } })
                .cell(&line.formula)
                .cell(commission.badge())
                .cell(maud! { span.nowrap { (balance) } }),
        );
    }
    let empty = EmptyState {
        title: "No commissions yet",
        text: "Each paid invoice of a referred customer becomes a commission here.",
        action: None,
    };
    let body = maud! {
        (list_fragment(None, ListView { context, table: &table, empty: empty.clone(), next_cursor: found.next_cursor.as_deref() }))
    };
    let page = Page::new("Ledger", body)
        .below(PARTNERS_PATH, "Partners")
        .below(partner_path(&partner.id), partner.name())
        .lead(
            "Reversed commissions do not count. “Total earned” includes what is on hold and what has been paid, by \
            currency.",
        );
    Ok(page.same_as(call).live().into())
}
