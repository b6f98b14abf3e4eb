//! Approval of a payout run: the person sees the audit, the totals and what will happen, proves their identity, and
//! approves what was seen. If the run changed meanwhile, the API refuses and nothing moves.

use std::collections::BTreeMap;

use super::PartnerNames;
use super::audit::{AuditResult, AuditVerdict, audit_view, run_audit};
use super::payout_runs::{PAYOUTS_PATH, PayoutRun, WholePayoutRun, run_path, skipped_table, totals_view};
use super::run_page::{load_run, method_table, sums_by_method};
use crate::dashboard::identity_proof::PROOF;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/payouts/runs/{id}/approve" => show, reads ["get_affiliate_payout_run", "approve_affiliate_payout_run", "audit_affiliate_program"], forms {
        "approve" => approve, calls "approve_affiliate_payout_run";
    };
};

/// The totals as one hidden field: `usd=67369,jpy=237600`.
fn totals_text(totals: &BTreeMap<String, i64>) -> String {
    totals.iter().map(|(currency, amount)| format!("{currency}={amount}")).collect::<Vec<_>>().join(",")
}

fn parse_totals(text: &str) -> Option<Value> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (currency, amount) = pair.split_once('=')?;
        Some((currency.to_owned(), Value::from(amount.parse::<i64>().ok()?)))
    });
    pairs.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
}

/// The result of the audit that was seen.
const AUDIT: &str = "audit";
/// The value of [`AUDIT`] if all invariants hold for all rows.
const AUDIT_HOLDS: &str = "holds";
/// The tick of a person who approves with another audit.
const AUDIT_ACCEPTED: &str = "audit_accepted";

/// The box to tick before an approval with this audit; `None` if the audit is no reason not to approve.
fn audit_box(audit: &AuditResult) -> Option<Field> {
    let label = match audit.verdict() {
        AuditVerdict::Holds => return None,
        AuditVerdict::Running => "Approve although the audit has not finished",
        AuditVerdict::Broken => "Approve although the audit found the ledger inconsistent",
        AuditVerdict::Incomplete => "Approve although the audit did not check all rows",
    };
    Some(Field::new(AUDIT_ACCEPTED, label, Control::Checkbox).ignored())
}

/// The form with what was seen. The router checks the proof of identity before it calls [`approve`]; a user without a
/// password is asked for a proof only if the API needs one.
fn approve_form(run: &PayoutRun, audit: &AuditResult, has_password: bool) -> Form<'static> {
    let accepted = audit_box(audit);
    let seen = [
        Field::hidden("rev", run.rev.to_string()).ignored(),
        Field::hidden("totals", totals_text(&run.totals)).ignored(),
        Field::hidden(AUDIT, if accepted.is_none() { AUDIT_HOLDS } else { "" }).ignored(),
    ];
    let proof = has_password.then(|| {
        Field::new(PROOF, "Your password, or a one-time password", Control::Password)
            .required()
            .ignored()
            .autocomplete("current-password")
    });
    Form::new("approve", "Approve the run", seen.into_iter().chain(accepted).chain(proof).collect()).danger()
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (run, whole) = load_run(context).await?;
    // Other runs cannot be approved, so they need no audit.
    let audit = if run.status == "draft" { Some(run_audit(context).await?) } else { None };
    let skipped = whole.skipped.iter().take(100).map(|skipped| skipped.affiliate_id.as_str());
    let partners = PartnerNames::load(context, skipped).await;
    let body = match &audit {
        Some(audit) => Fragment::new(approval_view(context, &run, &whole, audit, &partners)),
        None => not_a_draft(&run),
    };
    let call =
        Call::new("approve_affiliate_payout_run").id(&run.id).json(json!({"rev": run.rev, "totals": run.totals}));
    let page =
        Page::new("Approve the payout run", body).below(PAYOUTS_PATH, "Payouts").below(run_path(&run.id), "Payout run");
    Ok(page.same_as(call).into())
}

fn not_a_draft(run: &PayoutRun) -> Fragment {
    let text = "This run is no longer a draft, so there is nothing to approve.";
    Fragment::new(
        maud! { (Notice { tone: Tone::Warning, text }) p { a.button href=(run_path(&run.id)) { "Go to the run" } } },
    )
}

fn approval_view(
    context: &Context<'_>,
    run: &PayoutRun,
    whole: &WholePayoutRun,
    audit: &AuditResult,
    partners: &PartnerNames,
) -> impl Renderable {
    maud! {
        section { h2 { "Audit" } (audit_view(audit)) }
        section.card {
            h2 { "What you approve" }
            p.formula { (totals_view(&run.totals)) }
            ul { @for sentence in effects(whole) { li { (sentence) } } }
            p { "This cannot be undone: after approval, the run cannot be cancelled, and refunds no longer change \
                it." }
        }
        section { h2 { "By method" } (method_table(&sums_by_method(&whole.payouts))) }
        section { h2 { "Left out" } (skipped_table(&whole.skipped, partners)) }
        section.card { h2 { "Confirm" } (confirmation(context, run, audit)) }
    }
}

/// Says what the approval does, by method.
fn effects(whole: &WholePayoutRun) -> Vec<String> {
    let mut sentences = Vec::new();
    for ((method, currency), (count, amount)) in sums_by_method(&whole.payouts) {
        let money = Money { amount, currency: &currency }.text();
        let payouts = counted(count, "payout");
        let by = match method.as_str() {
            "bank" => "by bank transfer".into(),
            "other" => "in the way that each partner named".into(),
            method => format!("by {}", super::method_name(method)),
        };
        sentences.push(if method == "stripe" {
            format!("The processor will now transfer {money}, in {payouts}.")
        } else {
            format!("You pay {money} yourself {by}, in {payouts}. The file is on the run's page.")
        });
    }
    sentences
}

fn confirmation(context: &Context<'_>, run: &PayoutRun, audit: &AuditResult) -> Fragment {
    if run.comparing {
        let text = "The charges are still being compared with the processor. Reload this page in a moment.";
        return Fragment::new(Notice { tone: Tone::Active, text });
    }
    if context.failure_of("approve").is_some_and(|failure| failure.status == 409) {
        // The form would send what was seen before. The person looks at the run again first.
        return Fragment::new(maud! {
            p { "The run has changed since you saw it. Nothing was approved." }
            p { a.button.primary href=(context.request.path) { "Show the current version" } }
        });
    }
    let form = approve_form(run, audit, context.viewer.is_some_and(|viewer| viewer.has_password));
    Fragment::new(maud! {
        p { "You approve exactly these totals. If the run changes first, for example because of a refund, nothing \
            is approved and you see the new totals." }
        (form.within(context))
    })
}

async fn approve(context: &Context<'_>) -> Result<Outcome, Failure> {
    let form = context.form();
    // The router has checked the proof, if the form has one.
    if context.viewer.is_some_and(|viewer| viewer.has_password) && form.get(PROOF).is_empty() {
        return Err(Failure::field(PROOF, "Enter your password, or a one-time password, to approve the run"));
    }
    if form.get(AUDIT) != AUDIT_HOLDS && form.find(AUDIT_ACCEPTED).is_none() {
        let text = "Tick this box to approve the run although the audit has not confirmed the ledger";
        return Err(Failure::field(AUDIT_ACCEPTED, text));
    }
    let refuse = || Failure::field("totals", "The form is invalid; reload the page");
    let rev: u64 = form.get("rev").parse().map_err(|_| refuse())?;
    let totals = parse_totals(form.get("totals")).ok_or_else(refuse)?;
    let call = Call::new("approve_affiliate_payout_run").id(context.id()).json(json!({"rev": rev, "totals": totals}));
    context.act(&call, run_path(context.id()), "approved").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sent_as_seen() {
        let totals = BTreeMap::from([("jpy".to_owned(), 237_600), ("usd".to_owned(), 67_369)]);
        let text = totals_text(&totals);
        assert_eq!(text, "jpy=237600,usd=67369");
        assert_eq!(parse_totals(&text), Some(json!({"jpy": 237_600, "usd": 67_369})));
        assert_eq!(parse_totals("usd=1.5"), None);
    }
}
