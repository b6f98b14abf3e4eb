//! A payout run: its audit, totals, payouts, partners left out, files; cancelling it.

use std::collections::BTreeMap;

use futures_util::future::join;

use super::audit::{AuditResult, audit_view, read_audit};
use super::payout_runs::{PAYOUTS_PATH, PayoutRun, WholePayoutRun, run_badge, run_path, skipped_table, totals_view};
use super::payouts::{PayoutRow, payout_table};
use super::{PartnerNames, method_name};
use crate::dashboard::kit::progress::Progress;
use crate::dashboard::prelude::*;

/// Payouts of a run that its page shows; the list of payouts has all.
const SHOWN_MAX: usize = 200;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/payouts/runs/{id}" => show, reads ["get_affiliate_payout_run"];
    "/affiliate/payouts/runs/{id}/file" => file, reads ["get_affiliate_payout_file"];
    "/affiliate/payouts/runs/{id}/cancel" => cancel_page, reads ["get_affiliate_payout_run", "cancel_affiliate_payout_run"], forms {
        "cancel" => cancel, calls "cancel_affiliate_payout_run";
    };
};

/// Sums of payouts by method and currency: number and amount in minor units.
pub type SumsByMethod = BTreeMap<(String, String), (u64, i64)>;

/// Sums payouts by method and currency.
pub fn sums_by_method(payouts: &[PayoutRow]) -> SumsByMethod {
    let mut sums = SumsByMethod::new();
    for payout in payouts {
        let (count, amount) = sums.entry((payout.method.clone(), payout.currency.clone())).or_default();
        *count += 1;
        *amount = amount.saturating_add(payout.amount_cents);
    }
    sums
}

pub async fn load_run(context: &Context<'_>) -> Result<(PayoutRun, WholePayoutRun), Failure> {
    let whole: WholePayoutRun = context.read(&Call::new("get_affiliate_payout_run").id(context.id())).await?;
    let run = whole.run.clone().ok_or_else(Failure::not_found)?;
    Ok((run, whole))
}

/// Names of the partners of a run, of as many as are shown.
async fn load_names(context: &Context<'_>, whole: &WholePayoutRun) -> PartnerNames {
    let payouts = whole.payouts.iter().take(SHOWN_MAX).map(|payout| payout.affiliate_id.as_str());
    let skipped = whole.skipped.iter().take(SHOWN_MAX).map(|skipped| skipped.affiliate_id.as_str());
    PartnerNames::load(context, payouts.chain(skipped)).await
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (run, whole) = load_run(context).await?;
    let is_draft = run.status == "draft";
    let audit = async {
        if is_draft && context.allows("audit_affiliate_program") { Some(read_audit(context).await) } else { None }
    };
    let (audit, names) = join(audit, load_names(context, &whole)).await;
    let files = load_files(context, &run).await;
    let view = run_view(&run, &whole, audit.as_ref(), &names, &files);
    let call = Call::new("get_affiliate_payout_run").id(&run.id);
    let title = format!("Payout run of {}", short_date(run.created_at.as_deref()));
    let page = Page::new(title, view).below(PAYOUTS_PATH, "Payouts").actions(run_actions(context, &run));
    Ok(page.same_as(call).live().into())
}

/// `14 Nov 2026`.
fn short_date(time: Option<&str>) -> String {
    let time = time.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    time.map_or_else(|| "–".into(), |time| time.strftime("%-d %b %Y").to_string())
}

fn run_actions(context: &Context<'_>, run: &PayoutRun) -> impl Renderable {
    let path = run_path(&run.id);
    let is_draft = run.status == "draft";
    let is_paying = matches!(run.status.as_str(), "approved" | "processing");
    maud! {
        @if is_draft && context.allows("cancel_affiliate_payout_run") { a.button href={ (path) "/cancel" } { "Cancel the run" } }
        @if is_draft && !run.comparing && context.allows("approve_affiliate_payout_run") {
            a.button.primary href={ (path) "/approve" } { "Approve…" }
        }
        @if is_paying && context.allows("mark_affiliate_payouts") {
            a.button.primary href={ (path) "/results" } { "Import results" }
        }
    }
}

fn run_view(
    run: &PayoutRun,
    whole: &WholePayoutRun,
    audit: Option<&Result<AuditResult, Failure>>,
    names: &PartnerNames,
    files: &[PayoutFile],
) -> impl Renderable {
    let shown = &whole.payouts[..whole.payouts.len().min(SHOWN_MAX)];
    maud! {
        @if let Some(audit) = audit {
            section data-fragment="audit" {
                h2 { "Audit" }
                @match audit {
                    Ok(audit) => { (audit_view(audit)) }
                    Err(failure) => { (Notice { tone: Tone::Bad, text: &format!("The audit failed: {}", failure.message) }) }
                }
            }
        }
        div.flow data-fragment="progress" { (comparison_notice(run)) (run_progress(run, &whole.payouts)) }
        section.card data-fragment="totals" { h2 { "Totals" } p.formula { (totals_view(&run.totals)) } (run_facts(run)) }
        section data-fragment="methods" { h2 { "By method" } (method_table(&sums_by_method(&whole.payouts))) }
        @if files.iter().any(|file| file.rows > 0) { section { h2 { "Files for paying by hand" } (file_table(run, files)) } }
        section data-fragment="payouts" {
            h2 { "Payouts" }
            @if shown.is_empty() { p.soft { "The run has no payouts." } } @else { (payout_table(shown, names, true)) }
            @if whole.payouts.len() > SHOWN_MAX {
                p { a href={ (PAYOUTS_PATH) "/all?run_id=" (encode(&run.id)) } { "All " (grouped(whole.payouts.len() as u64)) " payouts of this run" } }
            }
        }
        @if run.status == "draft" || !whole.skipped.is_empty() {
            section { h2 { "Left out" } (skipped_table(&whole.skipped, names)) }
        }
    }
}

fn run_facts(run: &PayoutRun) -> Facts {
    Facts::new()
        .row("Status", run_badge(run))
        .row("Payouts", grouped(run.payouts_count))
        .row("Earned until", time_or_dash(run.cutoff.as_deref()))
        .row("Drafted", time_or_dash(run.created_at.as_deref()))
        .row("Approved", time_or_dash(run.approved_at.as_deref()))
        .row("Completed", time_or_dash(run.completed_at.as_deref()))
        .row("Revision", run.rev)
        .row("Id", maud! { code { (run.id) } })
}

fn run_progress(run: &PayoutRun, payouts: &[PayoutRow]) -> impl Renderable {
    let settled = payouts.iter().filter(|payout| matches!(payout.status.as_str(), "paid" | "failed")).count();
    let is_paying = matches!(run.status.as_str(), "approved" | "processing" | "completed");
    let bar = Progress {
        label: "Payouts settled",
        done: settled as u64,
        total: Some(payouts.len() as u64),
        is_ended: run.status == "completed",
    };
    maud! { @if is_paying { section.card { (bar) } } }
}

/// The known charges of a run.
fn comparison_notice(run: &PayoutRun) -> Fragment {
    if run.comparing {
        let text = "The charges are being compared with the processor. The run can be approved once that is done; reload this page.";
        Fragment::new(Notice { tone: Tone::Active, text })
    } else if run.uncompared_count > 0 && run.status == "draft" {
        let text = format!(
            "The processor did not answer, so {} could not be compared with it. Their refunds may have been missed.",
            counted(run.uncompared_count, "charge")
        );
        Fragment::new(Notice { tone: Tone::Warning, text: &text })
    } else {
        Fragment::default()
    }
}

/// The sums by method and currency, with how each is paid.
pub fn method_table(sums: &SumsByMethod) -> impl Renderable {
    Table::of("Totals by method and currency", sums)
        .column("Method", |((method, _), _)| method_name(method))
        .number("Payouts", |(_, (count, _))| grouped(*count))
        .number("Total", |((_, currency), (_, amount))| Money { amount: *amount, currency })
        .column(
            "How it is paid",
            |((method, _), _)| {
                if method == "stripe" { "By processor transfers" } else { "By hand, with a file" }
            },
        )
}

#[derive(Debug, Clone, Deserialize)]
struct PayoutFile {
    name: String,
    method: String,
    currency: String,
    format: String,
    rows: u64,
}

/// The files of an approved run; none if the role may not read them.
async fn load_files(context: &Context<'_>, run: &PayoutRun) -> Vec<PayoutFile> {
    let is_approved = !matches!(run.status.as_str(), "draft" | "cancelled");
    if !is_approved {
        return Vec::new();
    }
    context.read_allowed("files", &Call::new("list_affiliate_payout_files").id(&run.id)).await.unwrap_or_default()
}

fn file_table(run: &PayoutRun, files: &[PayoutFile]) -> impl Renderable {
    let mut table = Table::new("Files", &["File", "Method", "Currency", "Format", "Payouts"]).numbers(&["Payouts"]);
    let mut parts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for file in files {
        let part = parts.entry((&file.method, &file.currency)).or_default();
        *part += 1;
        if file.rows == 0 {
            continue;
        }
        let link = format!(
            "{}/file?method={}&currency={}&format={}&part={part}&name={}",
            run_path(&run.id),
            encode(&file.method),
            encode(&file.currency),
            encode(&file.format),
            encode(&file.name)
        );
        let format = if file.format == "generic" { "All columns".to_owned() } else { method_name(&file.format) };
        table.push(
            Row::new()
                .cell(maud! { a href=(link) download=(file.name) { (file.name) } })
                .cell(method_name(&file.method))
                .cell(file.currency.to_uppercase())
                .cell(format)
                .cell(grouped(file.rows)),
        );
    }
    maud! {
        (table)
        p.small.soft { "Upload the file where you make payments, then import the results file here. Settled payouts \
            are not included in later files." }
    }
}

async fn file(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = Call::new("get_affiliate_payout_file")
        .id(context.id())
        .filters(query, &["method", "currency", "format", "part"]);
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
    let name: String = query.get("name").chars().filter(|one| is_plain(*one)).take(80).collect();
    let file_name = if name.is_empty() { "payouts.csv".to_owned() } else { name };
    Ok(View::Download { call, file_name })
}

async fn cancel_page(context: &Context<'_>) -> Result<View, Failure> {
    let (run, whole) = load_run(context).await?;
    let form = Form::new("cancel", "Cancel the run", Vec::new()).danger();
    let body = maud! {
        section.card {
            p.formula { (totals_view(&run.totals)) }
            ul {
                li { "Nobody is paid. Removed from the draft: " (counted(whole.payouts.len() as u64, "payout")) "." }
                li { "Their commissions stay earned, and go into the next run." }
                li { "The run stays in the list as cancelled." }
            }
            (form.within(context))
        }
    };
    let call = Call::new("cancel_affiliate_payout_run").id(&run.id);
    let page = Page::new("Cancel the run", body).below(PAYOUTS_PATH, "Payouts").below(run_path(&run.id), "Payout run");
    Ok(page.same_as(call).into())
}

async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("cancel_affiliate_payout_run").id(context.id()), run_path(context.id()), "cancelled").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payouts_are_summed_by_method_and_currency() {
        let payout = |method: &str, currency: &str, amount_cents| PayoutRow {
            method: method.into(),
            currency: currency.into(),
            amount_cents,
            ..PayoutRow::default()
        };
        let sums = sums_by_method(&[payout("wise", "usd", 5), payout("wise", "usd", 7), payout("wise", "jpy", 1)]);
        assert_eq!(sums[&("wise".into(), "usd".into())], (2, 12));
        assert_eq!(sums.len(), 2);
    }
}
