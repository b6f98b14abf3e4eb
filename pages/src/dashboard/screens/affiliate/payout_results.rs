//! Results of payouts that were paid by hand: the file of PayPal or Wise marks each payout as paid or failed.

use super::payout_runs::{PAYOUTS_PATH, run_path};
use super::run_page::load_run;
use super::{at_csv, csv_fields, read_csv};
use crate::dashboard::backend::CallBody;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/payouts/runs/{id}/results" => show, reads ["get_affiliate_payout_run", "mark_affiliate_payouts"], forms {
        "results" => mark, calls "mark_affiliate_payouts";
    };
};

#[derive(Debug, Deserialize)]
struct ResultsReport {
    paid: u64,
    failed: u64,
    unchanged: u64,
    #[serde(default)]
    in_progress: u64,
    #[serde(default)]
    skipped: Vec<SkippedResult>,
}

#[derive(Debug, Deserialize)]
struct SkippedResult {
    row: u64,
    id: Option<String>,
    reason: String,
}

fn form() -> Form<'static> {
    Form::new("results", "Mark the payouts", csv_fields("The first line must name the columns."))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (run, whole) = load_run(context).await?;
    let open = whole.payouts.iter().filter(|payout| payout.status == "processing" && payout.method != "stripe").count();
    let form = form();
    let body = maud! {
        section.card {
            p { strong { (grouped(open as u64)) } @if open == 1 { " payout is waiting for its result." } @else { " \
                payouts are waiting for their results." } }
            ul {
                li { "Each row is matched by the payout's id (pay_…), in any column. Rows for other payouts are \
                    skipped and listed." }
                li { "A row with a paid status marks its payout as paid, with the transaction id as the reference." }
                li { "A row with a failed status marks its payout as failed; its commissions go to the next run." }
                li { "Payouts that are not in the file do not change. Importing a file again changes nothing." }
            }
            (form.within(context))
        }
        section.card {
            h2 { "Columns" }
            p { code { "status" } " or PayPal's " code { "Transaction Status" } "; " code { "reference" } ", PayPal's " code { "Transaction ID" }
                " or Wise's " code { "ID" } "; " code { "reason" } " if it failed." }
        }
    };
    let page = Page::new("Import results", body).below(PAYOUTS_PATH, "Payouts").below(run_path(&run.id), "Payout run");
    Ok(page.same_as(Call::new("mark_affiliate_payouts").id(&run.id)).into())
}

async fn mark(context: &Context<'_>) -> Result<Outcome, Failure> {
    let csv = read_csv(context)?;
    let call = Call::new("mark_affiliate_payouts").id(context.id());
    let sent = Call { body: CallBody::File("text/csv", csv.into()), ..call.clone() };
    let report: ResultsReport = context.read(&sent).await.map_err(at_csv)?;
    let skipped = Table::of("Skipped rows", &report.skipped)
        .column("Row", |row| row.row)
        .column("Payout", |row| row.id.as_deref().unwrap_or("–"))
        .column("Reason", |row| &row.reason);
    let text = format!(
        "{} marked as paid, {} as failed, {} already had this result, {} in progress, {} skipped.",
        grouped(report.paid),
        grouped(report.failed),
        grouped(report.unchanged),
        grouped(report.in_progress),
        grouped(report.skipped.len() as u64)
    );
    let tone = if report.skipped.is_empty() { Tone::Good } else { Tone::Warning };
    let body = maud! {
        (Notice { tone, text: &text })
        @if !skipped.is_empty() { section { h2 { "Skipped rows" } (skipped) } }
        p { a.button.primary href=(run_path(context.id())) { "Go to the run" } }
    };
    let page = Page::new("Results", body).below(PAYOUTS_PATH, "Payouts").below(run_path(context.id()), "Payout run");
    Ok(Outcome::once(page.same_as(call)))
}
