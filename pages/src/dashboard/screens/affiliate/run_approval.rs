//! Approval of a payout run: the person sees the audit, the totals and what will happen, confirms the password, and
//! approves what was seen. If the run changed meanwhile, the API refuses and nothing moves.
//!
//! The API asks for a session that signed in within 15 minutes. An older one signs in again first, here.

use std::collections::BTreeMap;

use hypertext::{Buffer, prelude::*};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::audit::{AuditResult, AuditView, run_audit};
use super::payout_runs::{PAYOUTS_PATH, PayoutRun, SkippedTable, TotalsView, WholePayoutRun, run_path};
use super::run_page::{MethodTable, load_run, sums_by_method};
use super::PartnerNames;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field, Form};
use crate::dashboard::kit::badge::Tone;
use crate::dashboard::kit::money::Money;
use crate::dashboard::kit::notice::Notice;
use crate::dashboard::kit::text::grouped;
use crate::dashboard::page::Page;
use crate::dashboard::table::{FormRow, Outcome, PageAccess, PageRow, View};

/// The session must have signed in within this time; a minute less than the API, for reading the page.
const FRESH_FOR: SignedDuration = SignedDuration::from_mins(14);

pub const PAGES: &[PageRow] = &[PageRow {
    path: "/affiliate/payouts/runs/{id}/approve",
    access: PageAccess::SignedIn,
    reads: &["get_affiliate_payout_run", "approve_affiliate_payout_run", "audit_affiliate_program"],
    show: |context| Box::pin(show(context)),
    forms: &[
        FormRow {
            name: "approve",
            operation: "approve_affiliate_payout_run",
            submit: |context| Box::pin(approve(context)),
        },
        FormRow {
            name: "sign-in",
            operation: "approve_affiliate_payout_run",
            submit: |context| Box::pin(sign_in_again(context)),
        },
    ],
}];

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

fn password_field() -> Field {
    Field::new("password", "Your password", Control::Password).required().autocomplete("current-password").ignored()
}

fn approve_form(run: &PayoutRun, has_password: bool) -> Form<'static> {
    let seen = [
        Field::hidden("rev", run.rev.to_string()).ignored(),
        Field::hidden("totals", totals_text(&run.totals)).ignored(),
    ];
    let password = has_password.then(password_field);
    Form::new("approve", "Approve the run", seen.into_iter().chain(password).collect()).danger()
}

fn is_fresh(context: &Context<'_>) -> bool {
    context.viewer.is_some_and(|viewer| context.now().duration_since(viewer.signed_in_at) < FRESH_FOR)
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (run, whole) = load_run(context).await?;
    let audit = run_audit(context).await?;
    let skipped = whole.skipped.iter().take(100).map(|skipped| skipped.affiliate_id.as_str());
    let partners = PartnerNames::load(context, skipped).await;
    let view = ApprovalView { context, run: &run, whole: &whole, audit: &audit, partners: &partners };
    let call = Call::new("approve_affiliate_payout_run").id(&run.id).json(json!({"rev": run.rev, "totals": run.totals}));
    let page = Page::new("Approve the payout run", &view)
        .below(PAYOUTS_PATH, "Payouts")
        .below(run_path(&run.id), "Payout run");
    Ok(page.same_as(call).into())
}

struct ApprovalView<'r> {
    context: &'r Context<'r>,
    run: &'r PayoutRun,
    whole: &'r WholePayoutRun,
    audit: &'r AuditResult,
    partners: &'r PartnerNames,
}

impl Renderable for ApprovalView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { run, whole, audit, partners, .. } = *self;
        if run.status != "draft" {
            let text = "This run is not a draft any more, so there is nothing to approve.";
            maud! { (Notice { tone: Tone::Warning, text }) p { a.button href=(run_path(&run.id)) { "To the run" } } }.render_to(buffer);
            return;
        }
        maud! {
            section { h2 { "Audit" } (AuditView { audit, is_folded: true }) }
            section.card {
                h2 { "What you approve" }
                p.formula { (TotalsView(&run.totals)) }
                ul { @for sentence in effects(whole) { li { (sentence) } } }
                p { "This cannot be taken back: after the approval the run cannot be cancelled, and refunds do not change it any more." }
            }
            section { h2 { "By method" } (MethodTable { sums: &sums_by_method(&whole.payouts) }) }
            section { h2 { "Left out" } (SkippedTable { skipped: &whole.skipped, partners }) }
            section.card { h2 { "Confirm" } (Confirmation(self)) }
        }
        .render_to(buffer);
    }
}

/// Says what the approval does, by method.
fn effects(whole: &WholePayoutRun) -> Vec<String> {
    let mut sentences = Vec::new();
    for ((method, currency), (count, amount)) in sums_by_method(&whole.payouts) {
        let money = Money { amount, currency: &currency }.text();
        let payouts = if count == 1 { "1 payout".to_owned() } else { format!("{} payouts", grouped(count)) };
        let method_name = super::method_name(&method);
        sentences.push(if method == "stripe" {
            format!("The processor transfers {money} now, in {payouts}.")
        } else {
            format!("You pay {money} yourself by {method_name}, in {payouts}. The run's page has the file for it.")
        });
    }
    sentences
}

struct Confirmation<'r>(&'r ApprovalView<'r>);

impl Renderable for Confirmation<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let ApprovalView { context, run, .. } = *self.0;
        let has_password = context.viewer.is_some_and(|viewer| viewer.has_password);
        if run.comparing {
            let text = "The charges are still being compared with the processor. Reload this page in a moment.";
            Notice { tone: Tone::Active, text }.render_to(buffer);
        } else if is_fresh(context) {
            let form = approve_form(run, has_password);
            maud! { (form.within(context)) }.render_to(buffer);
        } else if has_password {
            let form = Form::new("sign-in", "Continue", vec![password_field()]);
            maud! {
                p { "You signed in more than 15 minutes ago. Confirm your password; then you can approve the run." }
                (form.within(context))
            }
            .render_to(buffer);
        } else {
            maud! {
                p { "You signed in more than 15 minutes ago. Sign out and sign in with a new link, then approve the run." }
                p { a.button href="/dashboard/security" { "Your sign-in" } }
            }
            .render_to(buffer);
        }
    }
}

/// Checks the password by signing in. Returns the cookies of the new session.
async fn check_password(context: &Context<'_>) -> Result<Vec<String>, Failure> {
    let email = context.viewer.map_or("", |viewer| viewer.email.as_str());
    let password = context.form().get("password");
    if password.is_empty() {
        return Err(Failure::field("password", "Enter your password"));
    }
    let call = Call::new("sign_in").json(json!({"email": email, "password": password}));
    match context.perform(&call).await {
        Ok(reply) => Ok(reply.cookies),
        Err(failure) if failure.status == 401 || failure.status == 403 || failure.status == 400 => {
            Err(Failure::field("password", "This is not your password"))
        }
        Err(failure) => Err(failure),
    }
}

async fn sign_in_again(context: &Context<'_>) -> Result<Outcome, Failure> {
    let cookies = check_password(context).await?;
    Ok(Outcome::SignedIn { path: context.request.path.clone(), cookies })
}

async fn approve(context: &Context<'_>) -> Result<Outcome, Failure> {
    let form = context.form();
    let refuse = || Failure::field("totals", "The form is damaged; reload the page");
    let rev: u64 = form.get("rev").parse().map_err(|_| refuse())?;
    let totals = parse_totals(form.get("totals")).ok_or_else(refuse)?;
    let cookies = match context.viewer {
        Some(viewer) if viewer.has_password => check_password(context).await?,
        _ => Vec::new(),
    };
    let call = Call::new("approve_affiliate_payout_run").id(context.id()).json(json!({"rev": rev, "totals": totals}));
    context.perform(&call).await?;
    let path = format!("{}?done=approved", run_path(context.id()));
    Ok(if cookies.is_empty() { Outcome::SeeOther(path) } else { Outcome::SignedIn { path, cookies } })
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
