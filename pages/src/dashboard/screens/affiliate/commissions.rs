//! Commissions: the lines of the ledger, each with its formula; reversing and reinstating one.

use super::referrals::{ReferralAnswer, referral_path};
use super::{PATH, PartnerNames, object, set_up_first, start_of_day};
use crate::dashboard::kit::money::{percent_text, rate_of};
use crate::dashboard::prelude::*;

const COMMISSIONS_PATH: &str = "/dashboard/affiliate/commissions";
const STATUSES: &[&str] = &["pending", "earned", "paid", "reversed"];

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/commissions" => list, reads ["list_affiliate_commissions"];
    "/affiliate/commissions/{id}" => detail, reads ["get_affiliate_commission"];
    "/affiliate/commissions/{id}/reverse" => reverse_page, reads ["get_affiliate_commission", "reverse_affiliate_commission"], forms {
        "reverse" => reverse, calls "reverse_affiliate_commission";
    };
    "/affiliate/commissions/{id}/reinstate" => reinstate_page, reads ["get_affiliate_commission", "reinstate_affiliate_commission"], forms {
        "reinstate" => reinstate, calls "reinstate_affiliate_commission";
    };
};

/// A commission of the API.
#[answer]
pub struct CommissionRow {
    pub id: String,
    pub affiliate_id: String,
    pub referral_id: String,
    pub tier: u8,
    pub status: String,
    pub amount_cents: i64,
    pub sale_amount_cents: i64,
    pub currency: String,
    pub description: String,
    pub processor_invoice_id: Option<String>,
    pub processor_charge_id: Option<String>,
    pub earns_at: Option<String>,
    pub earned_at: Option<String>,
    pub paid_at: Option<String>,
    pub reversed_at: Option<String>,
    pub reverse_reason: Option<String>,
    pub payout_id: Option<String>,
    pub created_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CommissionAnswer {
    commission: CommissionRow,
    /// The calculation in one line.
    #[serde(default)]
    formula: String,
    calculation: Option<Calculation>,
}

/// The calculation of a commission on a sale.
#[answer]
struct Calculation {
    currency: String,
    paid_cents: i64,
    tax_cents: i64,
    base_cents: i64,
    remaining_base_cents: i64,
    paying_customers: u32,
    rates: Vec<CalculatedRate>,
}

/// Lines of a sale that have the same rate.
#[answer]
struct CalculatedRate {
    base_cents: i64,
    commission_bps: Option<i64>,
    commission_flat_cents: Option<i64>,
    rule: String,
    product: Option<String>,
    min_paid_customers: Option<u32>,
}

impl CalculatedRate {
    /// The rule that the rate comes from.
    fn reason(&self) -> String {
        match (self.rule.as_str(), &self.product, self.min_paid_customers) {
            ("override", ..) => "The partner's own rate".to_owned(),
            ("product", Some(product), _) => format!("The campaign's rate for {product}"),
            ("tier", _, Some(customers)) => {
                format!("The campaign's rate from {}", counted(customers.into(), "paying customer"))
            }
            ("second_tier", ..) => "The recruiter's share".to_owned(),
            _ => "The campaign's rate".to_owned(),
        }
    }
}

/// How the amount came about: what was paid, what counts of it, and by which rates.
fn calculation_card(calculation: &Calculation) -> impl Renderable {
    let money = |amount| Money { amount, currency: &calculation.currency };
    let refunded = calculation.base_cents != calculation.remaining_base_cents;
    let facts = Facts::new()
        .row("The customer paid", money(calculation.paid_cents))
        .optional("Included tax", (calculation.tax_cents != 0).then(|| money(calculation.tax_cents)))
        .row("Base: paid, without tax", money(calculation.base_cents))
        .optional("Base after refunds", refunded.then(|| money(calculation.remaining_base_cents)))
        .row("The partner's paying customers, including this one", calculation.paying_customers);
    let rates = Table::of("Rates", &calculation.rates)
        .column("Share of the base", |rate| money(rate.base_cents).text())
        .column("Rate", |rate| match (rate.commission_bps, rate.commission_flat_cents) {
            (Some(points), _) => percent_text(points),
            (None, Some(amount)) => money(amount).text(),
            (None, None) => "–".to_owned(),
        })
        .column("Why", |rate| rate.reason());
    maud! { section.card { h2 { "Calculation" } (facts) @if !rates.is_empty() { (rates) } } }
}

impl CommissionRow {
    /// The amount with its currency.
    pub fn money(&self) -> Money<'_> {
        Money { amount: self.amount_cents, currency: &self.currency }
    }

    fn path(&self) -> String {
        format!("{COMMISSIONS_PATH}/{}", encode(&self.id))
    }

    /// The computation of the amount: `49.00 USD × 20 % = 9.80 USD`. An amount that is no share of the sale is flat,
    /// capped, or of several rates.
    pub fn formula(&self) -> String {
        let total = self.money().text();
        if self.sale_amount_cents == 0 {
            return format!("{total} for a lead");
        }
        let sale = Money { amount: self.sale_amount_cents, currency: &self.currency }.text();
        let share = if self.tier == 2 { ", the recruiter's share" } else { "" };
        match rate_of(self.amount_cents, self.sale_amount_cents) {
            Some(points) => format!("{sale} × {} = {total}{share}", percent_text(points)),
            None => format!("{total} for a sale of {sale}{share}"),
        }
    }

    /// The word of its status; a line in a payout is still earned.
    pub fn badge(&self) -> Badge {
        match (self.status.as_str(), &self.payout_id) {
            ("earned", Some(_)) => Badge::new("In a payout", Tone::Active),
            ("pending", _) => Badge::new(filter_label("pending"), Tone::Active),
            (word, _) => Badge::of(word),
        }
    }
}

/// The label of a status in the filter: a line in a payout is found as earned.
fn filter_label(status: &str) -> String {
    match status {
        "pending" => "On hold".into(),
        "earned" => "Earned, or in a payout".into(),
        word => sentence_case(word),
    }
}

/// The time of a status: until when it is held, or since when it is final.
fn status_time(line: &CommissionRow) -> impl Renderable {
    let (word, time) = match line.status.as_str() {
        "pending" => ("until", &line.earns_at),
        "paid" => ("on", &line.paid_at),
        "reversed" => ("on", &line.reversed_at),
        _ => ("since", &line.earned_at),
    };
    maud! { span.small.soft.nowrap { (word) " " (time_or_dash(time.as_deref())) } }
}

/// The table of commissions; `by_referral` links each line to its referral.
pub fn commission_table(lines: &[CommissionRow], partners: &PartnerNames, by_referral: bool) -> Table {
    Table::of("Commissions", lines)
        .column("Amount", |line| maud! { a.nowrap href=(line.path()) { (line.money().text()) } })
        .column("Formula", |line| line.formula())
        .column("Partner", |line| partners.link(&line.affiliate_id))
        .column("Status", |line| maud! { (line.badge()) br; (status_time(line)) })
        .column("For", |line| {
            maud! {
                @if by_referral { a href=(referral_path(&line.referral_id)) { (line.description) } }
                @else { (line.description) }
            }
        })
        .column("Created", |line| time_or_dash(line.created_at.as_deref()))
        .into()
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [
        Filter::labelled("status", "Status", STATUSES, filter_label),
        Filter::text("affiliate_id", "Partner", "aff_…"),
        Filter::text("referral_id", "Referral", "ref_…"),
        Filter::text("payout_id", "Payout", "pay_…"),
        Filter::text("currency", "Currency", "usd"),
        Filter::date("created_after", "From"),
        Filter::date("created_before", "Before"),
    ];
    let query = context.query();
    let call = Call::new("list_affiliate_commissions")
        .filters(query, &["status", "affiliate_id", "referral_id", "payout_id", "currency", "cursor"]);
    let call = ["created_after", "created_before"]
        .iter()
        .fold(call, |call, name| call.query(*name, start_of_day(query.get(name))));
    let Some(found) = &if_found(context.read_filtered::<CommissionRow>("data", &call).await)? else {
        return Ok(set_up_first("Commissions"));
    };
    let partners = PartnerNames::load(context, found.entries.iter().map(|line| line.affiliate_id.as_str())).await;
    let table = commission_table(&found.entries, &partners, true);
    let bar = FilterBar { context, filters: &filters };
    let empty = EmptyState {
        title: if bar.is_active() { "No matching commissions" } else { "No commissions yet" },
        text: "Each paid invoice of a referred customer becomes a commission here. It is held for refunds, then \
            earned, and paid in a payout run.",
        action: None,
    };
    let body = bar.with_list(found, &table, empty);
    Ok(Page::new("Commissions", body).same_as(call).live().into())
}

fn get_call(context: &Context<'_>) -> Call {
    Call::new("get_affiliate_commission").id(context.id())
}

async fn load(context: &Context<'_>) -> Result<CommissionRow, Failure> {
    let found: CommissionAnswer = context.read(&get_call(context)).await?;
    Ok(found.commission)
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let CommissionAnswer { commission, formula, calculation } = context.read(&get_call(context)).await?;
    let line = &commission;
    let partners = PartnerNames::load(context, [line.affiliate_id.as_str()].into_iter()).await;
    let referral: Result<ReferralAnswer, _> =
        context.read(&Call::new("get_affiliate_referral").id(&line.referral_id)).await;
    let person = referral.map_or_else(|_| line.referral_id.clone(), |found| found.referral.name().to_owned());
    let payout = line.payout_id.clone();
    let is_open = matches!(line.status.as_str(), "pending" | "earned") && line.payout_id.is_none();
    let may_reverse = is_open && context.allows("reverse_affiliate_commission");
    let may_reinstate = line.status == "reversed" && context.allows("reinstate_affiliate_commission");
    let facts = Facts::new()
        .row("Status", line.badge())
        .row("Partner", partners.link(&line.affiliate_id))
        .row("Referral", maud! { a href=(referral_path(&line.referral_id)) { (person) } })
        .row("Currency", line.currency.to_uppercase())
        .row("On hold until", time_or_dash(line.earns_at.as_deref()))
        .row("Earned", time_or_dash(line.earned_at.as_deref()))
        .optional("Paid", line.paid_at.as_deref().map(|at| time_or_dash(Some(at))))
        .optional("Reversed", line.reversed_at.as_deref().map(|at| time_or_dash(Some(at))))
        .optional("Reversal reason", line.reverse_reason.as_deref().map(reason_text))
        .optional("Payout", payout.map(|id| maud! { a href={ (PATH) "/payouts/" (encode(&id)) } { (id) } }))
        .optional("Invoice", line.processor_invoice_id.clone())
        .optional("Charge", line.processor_charge_id.clone())
        .row("Created", time_or_dash(line.created_at.as_deref()))
        .row("Id", maud! { code { (line.id) } });
    let body = maud! {
        p.formula { @if formula.is_empty() { (line.formula()) } @else { (formula) } }
        p.soft { (line.description) }
        section.card { (facts) }
        @if let Some(calculation) = &calculation { (calculation_card(calculation)) }
    };
    let path = line.path();
    let page = Page::new(line.money().text(), body).below(COMMISSIONS_PATH, "Commissions").actions(maud! {
        @if may_reverse { a.button href={ (path) "/reverse" } { "Reverse" } }
        @if may_reinstate { a.button href={ (path) "/reinstate" } { "Reinstate" } }
    });
    Ok(page.same_as(get_call(context)).live().into())
}

/// The reason of a reversal, for people.
fn reason_text(reason: &str) -> &str {
    match reason {
        "refund" => "The sale was refunded",
        "dispute" => "The payment was disputed",
        "fraud" => "Fraud",
        "manual" => "Your team's decision",
        "partner_deleted" => "The partner was deleted",
        "blocked" => "The referral cannot earn",
        "expired" => "The referral expired",
        "excluded" => "Your metadata flag excludes the sale",
        other => other,
    }
}

fn reverse_form() -> Form<'static> {
    let reasons = choices(&[
        ("manual", "Your team's decision"),
        ("fraud", "Fraud: also reverses the recruiter's share of the sale"),
    ]);
    let fields = vec![
        Field::new("reason", "Reason", Control::Radio(reasons)).value("manual"),
        Field::new("note", "Note", Control::Area { rows: 2 })
            .help("For your team; it is included in the webhook event."),
    ];
    Form::new("reverse", "Reverse the commission", fields).danger()
}

/// A page below a commission that changes it.
fn change_page(title: &str, line: &CommissionRow, body: impl Renderable, call: Call) -> View {
    let page = Page::new(title, body).below(COMMISSIONS_PATH, "Commissions").below(line.path(), line.money().text());
    page.same_as(call).into()
}

async fn reverse_page(context: &Context<'_>) -> Result<View, Failure> {
    let line = &load(context).await?;
    let partners = PartnerNames::load(context, [line.affiliate_id.as_str()].into_iter()).await;
    let form = reverse_form();
    let body = maud! {
        section.card {
            p.formula { (line.formula()) }
            ul {
                li { (partners.link(&line.affiliate_id)) " loses " strong { (line.money()) } "." }
                li { "The commission stays in the ledger as reversed, and is not included in any later payout run." }
                li { "The partner sees it in the portal, and your webhooks get commission.reversed." }
                li { "You can reinstate it." }
            }
            (form.within(context))
        }
    };
    let call = Call::new("reverse_affiliate_commission").id(&line.id).json(object([("status", "reversed".into())]));
    Ok(change_page("Reverse the commission", line, body, call))
}

async fn reverse(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = reverse_form().read(context.form())?;
    body["status"] = "reversed".into();
    let call = Call::new("reverse_affiliate_commission").id(context.id()).json(body);
    context.act(&call, format!("{COMMISSIONS_PATH}/{}", encode(context.id())), "reversed").await
}

async fn reinstate_page(context: &Context<'_>) -> Result<View, Failure> {
    let line = &load(context).await?;
    let partners = PartnerNames::load(context, [line.affiliate_id.as_str()].into_iter()).await;
    let form = Form::new("reinstate", "Reinstate the commission", Vec::new());
    let body = maud! {
        section.card {
            p.formula { (line.formula()) }
            ul {
                li { (partners.link(&line.affiliate_id)) " gets " strong { (line.money()) } " back." }
                li { "The commission is on hold again until " (time_or_dash(line.earns_at.as_deref())) ", or is earned at once if that time has passed." }
                li { "Refunds and disputes known so far are waived. A new one reverses it again." }
            }
            (form.within(context))
        }
    };
    let call = Call::new("reinstate_affiliate_commission").id(&line.id);
    Ok(change_page("Reinstate the commission", line, body, call))
}

async fn reinstate(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("reinstate_affiliate_commission").id(context.id());
    context.act(&call, format!("{COMMISSIONS_PATH}/{}", encode(context.id())), "reinstated").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_explained() {
        let line = |amount_cents, sale_amount_cents, tier| CommissionRow {
            amount_cents,
            sale_amount_cents,
            tier,
            currency: "usd".into(),
            ..CommissionRow::default()
        };
        let plain = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(plain(line(980, 4_900, 1).formula()), "49.00 USD × 20 % = 9.80 USD");
        assert_eq!(plain(line(495, 9_900, 2).formula()), "99.00 USD × 5 % = 4.95 USD, the recruiter's share");
        assert_eq!(line(250, 0, 1).formula(), "2.50 USD for a lead");
        assert_eq!(line(5_000, 4_900, 1).formula(), "50.00 USD for a sale of 49.00 USD");
    }
}
