//! Payout runs: the list, and drafting one.

use std::collections::BTreeMap;

use super::payouts::PayoutRow;
use super::{PartnerNames, set_up_first};
use crate::dashboard::prelude::*;

/// The path of the list of runs.
pub const PAYOUTS_PATH: &str = "/dashboard/affiliate/payouts";

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/payouts" => list, reads ["list_affiliate_payout_runs"];
    "/affiliate/payouts/new" => draft_page, reads ["draft_affiliate_payout_run"], forms {
        "draft" => draft, calls "draft_affiliate_payout_run";
    };
};

/// A payout run of the API.
#[answer]
pub struct PayoutRun {
    pub id: String,
    pub status: String,
    pub partial: bool,
    pub rev: u64,
    pub cutoff: Option<String>,
    pub totals: BTreeMap<String, i64>,
    pub payouts_count: u64,
    pub comparing: bool,
    pub uncompared_count: u64,
    pub created_at: Option<String>,
    pub approved_at: Option<String>,
    pub completed_at: Option<String>,
}

/// A run with its payouts and the partners that are left out.
#[answer]
pub struct WholePayoutRun {
    pub run: Option<PayoutRun>,
    pub payouts: Vec<PayoutRow>,
    pub skipped: Vec<SkippedPartner>,
}

/// A partner that a run leaves out.
#[derive(Debug, Clone, Deserialize)]
pub struct SkippedPartner {
    pub affiliate_id: String,
    pub currency: String,
    pub amount_cents: i64,
    pub reason: String,
}

/// The path of a run's page.
pub fn run_path(id: &str) -> String {
    format!("{PAYOUTS_PATH}/runs/{}", encode(id))
}

/// The status of a run with its badge.
pub fn run_badge(run: &PayoutRun) -> Badge {
    match (run.status.as_str(), run.partial) {
        ("draft", _) => Badge::new("Draft: waiting for approval", Tone::Warning),
        ("approved" | "processing", _) => Badge::new("Being paid", Tone::Active),
        ("completed", true) => Badge::new("Completed, some failed", Tone::Warning),
        ("cancelled", _) => Badge::new("Cancelled", Tone::Neutral),
        (word, _) => Badge::of(word),
    }
}

/// Totals by currency.
pub fn totals_view(totals: &BTreeMap<String, i64>) -> impl Renderable {
    maud! {
        @if totals.is_empty() { span.dash { "–" } }
        span.totals { @for (currency, amount) in totals { (Money { amount: *amount, currency }) " " } }
    }
}

/// The two lists of payouts.
pub fn payout_tabs(runs: bool) -> impl Renderable {
    let current = |is_current: bool| is_current.then_some("page");
    maud! {
        nav.tabs aria-label="Payouts" {
            a href=(PAYOUTS_PATH) aria-current=[current(runs)] { "Runs" }
            a href={ (PAYOUTS_PATH) "/all" } aria-current=[current(!runs)] { "All payouts" }
        }
    }
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_affiliate_payout_runs").query("cursor", context.query().get("cursor"));
    let Some(found) = &if_found(context.read_list::<PayoutRun>("data", &call).await)? else {
        return Ok(set_up_first("Payouts"));
    };
    let table = Table::of("Payout runs", &found.entries)
        .column("Run", |run| maud! { a href=(run_path(&run.id)) { (time_or_dash(run.created_at.as_deref())) } })
        .column("Status", run_badge)
        .column("Totals", |run| totals_view(&run.totals))
        .number("Payouts", |run| grouped(run.payouts_count))
        .column("Earned until", |run| time_or_dash(run.cutoff.as_deref()))
        .column("Approved", |run| time_or_dash(run.approved_at.as_deref()));
    let may_draft = context.allows("draft_affiliate_payout_run");
    let empty = EmptyState {
        title: "No payout runs yet",
        text: "A run collects what partners have earned. You draft it, review it, approve it, and pay it with a file \
            or let the processor pay it.",
        action: may_draft.then_some(("/dashboard/affiliate/payouts/new", "Draft a run")),
    };
    let body = maud! {
        (payout_tabs(true))
        (found.fragment(context, &table, empty.clone()))
    };
    let page = Page::new("Payouts", body).actions(maud! {
        @if may_draft { a.button.primary href={ (PAYOUTS_PATH) "/new" } { "Draft a run" } }
    });
    Ok(page.same_as(call).live().into())
}

fn draft_form() -> Form<'static> {
    let cutoff = Field::new("cutoff", "Earned until", Control::DateTime).help("In UTC. Empty: now.");
    Form::new("draft", "Draft the run", vec![cutoff])
}

async fn draft_page(context: &Context<'_>) -> Result<View, Failure> {
    let form = draft_form();
    let body = maud! {
        section.card {
            p { "A draft collects all earned commissions that are not in a payout yet. Nothing is paid until you \
                approve it, and you can cancel it." }
            ul {
                li { "One payout for each partner and currency." }
                li { "Partners below the minimum, without a payout method, suspended or under review are left out, \
                    with the reason." }
                li { "If you have connected an API key of the processor, each charge is first checked for refunds and \
                    disputes." }
                li { "There can be only one draft at a time." }
            }
            (form.within(context))
        }
    };
    let call = Call::new("draft_affiliate_payout_run");
    Ok(Page::new("Draft a payout run", body).below(PAYOUTS_PATH, "Payouts").same_as(call).into())
}

async fn draft(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("draft_affiliate_payout_run").json(draft_form().read(context.form())?);
    let drafted: WholePayoutRun = context.read(&call).await?;
    if let Some(run) = &drafted.run {
        return Ok(Outcome::done(run_path(&run.id), "created"));
    }
    let partners =
        PartnerNames::load(context, drafted.skipped.iter().map(|skipped| skipped.affiliate_id.as_str())).await;
    let body = maud! {
        (Notice { tone: Tone::Active, text: "There is nobody to pay at the moment, so no run was drafted." })
        (skipped_table(&drafted.skipped, &partners))
        p { a.button href=(PAYOUTS_PATH) { "Go to the payouts" } }
    };
    Ok(Outcome::once(Page::new("Draft a payout run", body).below(PAYOUTS_PATH, "Payouts").same_as(call)))
}

/// Why a partner is left out.
fn skipped_text(reason: &str) -> String {
    match reason {
        "not_active" => "The partner is not active".into(),
        "not_ready" => "No payout method, or it is not ready".into(),
        "below_minimum" => "Below the minimum payout".into(),
        "under_review" => "Held for review".into(),
        "disputed" => "The payment is disputed".into(),
        "after_cutoff" => "Earned after the run's time".into(),
        "run_full" => "The run is full; it goes into the next one".into(),
        "amount_changed" => "A refund changed it after the draft; it goes into the next run".into(),
        other => sentence_case(other),
    }
}

/// The partners that are left out, with the reason.
pub fn skipped_table(skipped: &[SkippedPartner], partners: &PartnerNames) -> Fragment {
    if skipped.is_empty() {
        return Fragment::new(maud! { p.soft { "No partner with earned commissions is left out." } });
    }
    let table = Table::of("Partners left out", skipped)
        .column("Partner", |skipped| partners.link(&skipped.affiliate_id))
        .number("Amount", |skipped| Money { amount: skipped.amount_cents, currency: &skipped.currency })
        .column("Reason", |skipped| skipped_text(&skipped.reason));
    Fragment::new(table)
}
