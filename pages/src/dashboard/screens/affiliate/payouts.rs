//! Payouts: the list, and one with marking it as paid or failed.

use super::commissions::{CommissionRow, commission_table};
use super::payout_runs::{PAYOUTS_PATH, payout_tabs, run_path};
use super::{PATH, PartnerNames, method_name, set_up_first};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/payouts/all" => list, reads ["list_affiliate_payouts"];
    "/affiliate/payouts/{id}" => detail, reads ["get_affiliate_payout"];
    "/affiliate/payouts/{id}/mark-paid" => paid_page, reads ["get_affiliate_payout", "mark_affiliate_payout_paid"], forms {
        "paid" => mark(paid_form(), "mark_affiliate_payout_paid", "marked_paid"), calls "mark_affiliate_payout_paid";
    };
    "/affiliate/payouts/{id}/fail" => fail_page, reads ["get_affiliate_payout", "fail_affiliate_payout"], forms {
        "fail" => mark(fail_form(), "fail_affiliate_payout", "marked_failed"), calls "fail_affiliate_payout";
    };
};

/// A payout of the API.
#[answer]
pub struct PayoutRow {
    pub id: String,
    pub affiliate_id: String,
    pub run_id: String,
    pub amount_cents: i64,
    pub currency: String,
    pub method: String,
    pub status: String,
    pub processor_transfer_id: Option<String>,
    pub external_reference: Option<String>,
    pub failure_reason: Option<String>,
    pub paid_at: Option<String>,
    pub created_at: Option<String>,
    /// Only in a run.
    pub destination: Option<String>,
}

/// A status in words.
fn status_label(status: &str) -> String {
    if status == "processing" { "To be paid".into() } else { sentence_case(status) }
}

impl PayoutRow {
    /// The amount with its currency.
    pub fn money(&self) -> Money<'_> {
        Money { amount: self.amount_cents, currency: &self.currency }
    }

    fn path(&self) -> String {
        payout_path(&self.id)
    }

    fn badge(&self) -> Badge {
        match self.status.as_str() {
            "draft" => Badge::new("Draft", Tone::Warning),
            "processing" => Badge::new(status_label("processing"), Tone::Active),
            word => Badge::of(word),
        }
    }

    /// The proof of payment, or why it failed or waits.
    fn note(&self) -> Option<&str> {
        self.failure_reason.as_deref().or(self.external_reference.as_deref()).or(self.processor_transfer_id.as_deref())
    }

    fn is_open(&self) -> bool {
        self.status == "processing"
    }
}

fn payout_path(id: &str) -> String {
    format!("{PAYOUTS_PATH}/{}", encode(id))
}

/// The table of payouts. Payouts of one run show their destination, others their time.
pub fn payout_table(payouts: &[PayoutRow], partners: &PartnerNames, of_run: bool) -> Table {
    let last = if of_run { "Destination" } else { "Drafted" };
    Table::new("Payouts", &["Amount", "Partner", "Method", "Status", "Reference or reason", last]).rows(
        payouts,
        |payout| {
            let money = payout.money().text();
            let row = Row::new()
                .cell(maud! { a.nowrap href=(payout.path()) { (money) } })
                .cell(partners.link(&payout.affiliate_id))
                .cell(method_name(&payout.method))
                .cell(payout.badge())
                .cell(or_dash(payout.note()));
            if of_run {
                row.cell(payout.destination.as_deref().unwrap_or_default())
            } else {
                row.cell(time_or_dash(payout.created_at.as_deref()))
            }
        },
    )
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [
        Filter::labelled("status", "Status", &["draft", "processing", "paid", "failed"], status_label),
        Filter::text("affiliate_id", "Partner", "aff_…"),
        Filter::text("run_id", "Run", "prn_…"),
    ];
    let query = context.query();
    let call = Call::new("list_affiliate_payouts").filters(query, &["status", "affiliate_id", "run_id", "cursor"]);
    let Some(found) = &if_found(context.read_filtered::<PayoutRow>("data", &call).await)? else {
        return Ok(set_up_first("Payouts"));
    };
    let partners = PartnerNames::load(context, found.entries.iter().map(|row| row.affiliate_id.as_str())).await;
    let table = payout_table(&found.entries, &partners, false);
    let bar = FilterBar { context, filters: &filters };
    let empty = EmptyState {
        title: if bar.is_active() { "No matching payouts" } else { "No payouts yet" },
        text: "A payout is what one partner gets in one currency. Payouts are created by payout runs.",
        action: None,
    };
    let body = maud! {
        (payout_tabs(false))
        (bar.with_list(found, &table, empty.clone()))
    };
    Ok(Page::new("Payouts", body).same_as(call).live().into())
}

async fn load(context: &Context<'_>) -> Result<PayoutRow, Failure> {
    context.read_field("payout", &Call::new("get_affiliate_payout").id(context.id())).await
}

/// The commissions of a payout.
fn lines_call(payout: &PayoutRow) -> Call {
    Call::new("list_affiliate_commissions").query("payout_id", &payout.id)
}

/// The first commissions of a payout, and whether there are more.
async fn load_lines(context: &Context<'_>, payout: &PayoutRow) -> Result<(Vec<CommissionRow>, bool), Failure> {
    let page: List<CommissionRow> = context.read_list("data", &lines_call(payout).query("limit", "100")).await?;
    Ok((page.entries, page.next_cursor.is_some()))
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let payout = &load(context).await?;
    let partners = PartnerNames::load(context, [payout.affiliate_id.as_str()].into_iter()).await;
    let (lines, has_more) = load_lines(context, payout).await?;
    let all_lines = format!("{PATH}/commissions?payout_id={}", encode(&payout.id));
    let sum: i64 = lines.iter().map(|line| line.amount_cents).fold(0, i64::saturating_add);
    let table = commission_table(&lines, &partners, true);
    let facts = Facts::new()
        .row("Status", payout.badge())
        .row("Partner", partners.link(&payout.affiliate_id))
        .row("Method", method_name(&payout.method))
        .row("Run", maud! { a href=(run_path(&payout.run_id)) { (payout.run_id) } })
        .optional("Reference", payout.external_reference.clone())
        .optional("Transfer", payout.processor_transfer_id.clone())
        .row("Drafted", time_or_dash(payout.created_at.as_deref()))
        .row("Paid", time_or_dash(payout.paid_at.as_deref()))
        .row("Id", maud! { code { (payout.id) } });
    let body = maud! {
        @if let Some(reason) = &payout.failure_reason {
            (Notice { tone: if payout.is_open() { Tone::Warning } else { Tone::Bad }, text: reason })
        }
        section.card { (facts) }
        section {
            h2 { "Commissions" }
            @if table.is_empty() {
                p.soft {
                    @if payout.status == "failed" { "The commissions of a failed payout are earned again, and go into \
                        the next run." }
                    @else { "This payout has no commissions." }
                }
            } @else {
                @if has_more {
                    p { "The newest 100 commissions. " a href=(all_lines) { "Show all" } }
                } @else {
                    p { (counted(lines.len() as u64, "commission")) ", " (Money { amount: sum, currency: &payout.currency }) " in all." }
                }
                (table)
            }
        }
    };
    let path = payout.path();
    let is_manual = payout.method != "stripe";
    let page = Page::new(payout.money().text(), body).below(PAYOUTS_PATH, "Payouts").actions(maud! {
        @if payout.is_open() && context.allows("fail_affiliate_payout") { a.button href={ (path) "/fail" } { "Mark as failed" } }
        @if payout.is_open() && is_manual && context.allows("mark_affiliate_payout_paid") {
            a.button.primary href={ (path) "/mark-paid" } { "Mark as paid" }
        }
    });
    Ok(page.same_as(Call::new("get_affiliate_payout").id(&payout.id)).live().into())
}

fn paid_form() -> Form<'static> {
    let reference = Field::text("reference", "Payment reference")
        .required()
        .placeholder("PAYPAL-BATCH-7")
        .help("Proof that it was paid, such as a transaction id. It cannot be changed later.");
    Form::new("paid", "Mark as paid", vec![reference])
}

fn fail_form() -> Form<'static> {
    let reason = Field::text("reason", "Why it failed").required().placeholder("The account is closed");
    Form::new("fail", "Mark as failed", vec![reason]).danger()
}

async fn change_page(
    context: &Context<'_>,
    title: &str,
    form: &Form<'_>,
    effects: &[&str],
    operation: &'static str,
) -> Result<View, Failure> {
    let payout = &load(context).await?;
    let partners = PartnerNames::load(context, [payout.affiliate_id.as_str()].into_iter()).await;
    let body = maud! {
        section.card {
            p.formula { (payout.money()) " to " (partners.link(&payout.affiliate_id)) " by " (method_name(&payout.method)) }
            ul { @for effect in effects { li { (effect) } } }
            (form.within(context))
        }
    };
    let page = Page::new(title, body).below(PAYOUTS_PATH, "Payouts").below(payout.path(), payout.money().text());
    Ok(page.same_as(Call::new(operation).id(&payout.id)).into())
}

async fn paid_page(context: &Context<'_>) -> Result<View, Failure> {
    let effects = [
        "No money moves: you have paid the partner already.",
        "The commissions of this payout become paid, and the partner sees the payment in the portal.",
        "Your webhooks get payout.paid.",
        "A paid payout can no longer be marked as failed.",
    ];
    change_page(context, "Mark as paid", &paid_form(), &effects, "mark_affiliate_payout_paid").await
}

async fn fail_page(context: &Context<'_>) -> Result<View, Failure> {
    let effects = [
        "The payout fails permanently.",
        "Its commissions are earned again, and go into the next run.",
        "After two failures in a row the partner has to set the payout method again.",
        "First make sure that the money was not sent; otherwise the partner is paid twice.",
    ];
    change_page(context, "Mark as failed", &fail_form(), &effects, "fail_affiliate_payout").await
}

async fn mark(context: &Context<'_>, form: Form<'_>, operation: &'static str, done: &str) -> Result<Outcome, Failure> {
    let body = form.read(context.form())?;
    context.act(&Call::new(operation).id(context.id()).json(body), payout_path(context.id()), done).await
}
