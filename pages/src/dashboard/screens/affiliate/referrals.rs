//! Referrals: the people whom partners brought, each with its history.

use super::commissions::{CommissionRow, commission_table};
use super::{PATH, PartnerNames, filled, set_up_first, start_of_day};
use crate::dashboard::prelude::*;

const REFERRALS_PATH: &str = "/dashboard/affiliate/referrals";
const STATUSES: &[&str] = &["lead", "trialing", "active", "cancelled", "refunded", "rejected"];
const SOURCES: &[&str] = &["api", "signup", "checkout", "metadata"];

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/referrals" => list, reads ["list_affiliate_referrals"];
    "/affiliate/referrals/new" => new_page, reads ["create_affiliate_referral"], forms {
        "create" => create, calls "create_affiliate_referral";
    };
    "/affiliate/referrals/{id}" => detail, reads ["get_affiliate_referral"];
};

/// A referral of the API.
#[answer]
pub struct ReferralRow {
    pub id: String,
    pub affiliate_id: String,
    pub status: String,
    pub source: String,
    pub email: Option<String>,
    pub processor_customer_id: Option<String>,
    pub sub_id: Option<String>,
    pub blocked_reason: Option<String>,
    pub revenue_cents: i64,
    pub currency: Option<String>,
    pub converted_at: Option<String>,
    pub expires_at: Option<String>,
    pub created_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct ReferralAnswer {
    pub referral: ReferralRow,
    #[serde(default)]
    created: bool,
}

impl ReferralRow {
    /// The email address, or else the customer's or the referral's id.
    pub fn name(&self) -> &str {
        self.email.as_deref().or(self.processor_customer_id.as_deref()).unwrap_or(&self.id)
    }

    /// The revenue, if there was a payment.
    pub fn revenue(&self) -> Option<Money<'_>> {
        self.currency.as_deref().map(|currency| Money { amount: self.revenue_cents, currency })
    }
}

/// The path of a referral's page.
pub fn referral_path(id: &str) -> String {
    format!("{REFERRALS_PATH}/{}", encode(id))
}

/// The reason why a referral earns nothing, for people.
fn blocked_text(reason: &str) -> &'static str {
    match reason {
        "self_referral" => "The partner referred itself. This referral never earns a commission.",
        "existing_customer" => {
            "The customer had already paid before being referred. This referral never earns a commission."
        }
        _ => "This referral earns no commission.",
    }
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [
        Filter::text("email", "Email address", "grace@example.net"),
        Filter::words("status", "Status", STATUSES),
        Filter::labelled("source", "Source", SOURCES, source_text),
        Filter::text("affiliate_id", "Partner", "aff_…"),
        Filter::date("created_after", "From"),
        Filter::date("created_before", "Before"),
    ];
    let query = context.query();
    let call =
        Call::new("list_affiliate_referrals").filters(query, &["email", "status", "source", "affiliate_id", "cursor"]);
    let call = ["created_after", "created_before"]
        .iter()
        .fold(call, |call, name| call.query(*name, start_of_day(query.get(name))));
    let Some(found) = &if_found(context.read_filtered::<ReferralRow>("data", &call).await)? else {
        return Ok(set_up_first("Referrals"));
    };
    let partners = PartnerNames::load(context, found.entries.iter().map(|row| row.affiliate_id.as_str())).await;
    let bar = FilterBar { context, filters: &filters };
    let table = Table::of("Referrals", &found.entries)
        .column("Person", |referral| {
            maud! { span.address { a href=(referral_path(&referral.id)) { (referral.name()) } } }
        })
        .column("Partner", |referral| partners.link(&referral.affiliate_id))
        .column("Status", |referral| {
            maud! {
                (Badge::of(&referral.status))
                @if referral.blocked_reason.is_some() { " " (Badge::new("Earns nothing", Tone::Bad)) }
            }
        })
        .column("Source", |referral| source_text(&referral.source))
        .number("Revenue", |referral| or_dash(referral.revenue()))
        .column("Referred", |referral| time_or_dash(referral.created_at.as_deref()));
    let may_create = context.allows("create_affiliate_referral");
    let empty = EmptyState {
        title: if bar.is_active() { "No matching referrals" } else { "No referrals yet" },
        text: "A referral is a person referred by a partner. The script and the checkout record referrals; you or \
            your server can add them too.",
        action: may_create.then_some(("/dashboard/affiliate/referrals/new", "Add a referral")),
    };
    let body = bar.with_list(found, &table, empty);
    let page = Page::new("Referrals", body).actions(maud! {
        @if context.allows("list_affiliate_reviews") { a.button href={ (PATH) "/reviews" } { "Reviews" } }
        @if may_create { a.button.primary href={ (REFERRALS_PATH) "/new" } { "Add a referral" } }
    });
    Ok(page.same_as(call).live().into())
}

/// How a referral came about.
fn source_text(source: &str) -> String {
    match source {
        "api" => "API or dashboard".into(),
        "signup" => "Sign-up".into(),
        other => sentence_case(other),
    }
}

/// An entry of a referral's history.
#[derive(Debug, PartialEq, Eq)]
struct HistoryEntry {
    at: String,
    text: String,
}

/// The history of a referral, oldest first, from its own times and those of its commissions.
fn history(referral: &ReferralRow, lines: &[CommissionRow]) -> Vec<HistoryEntry> {
    let mut entries = Vec::new();
    let mut add = |at: &Option<String>, text: String| {
        if let Some(at) = at {
            entries.push(HistoryEntry { at: at.clone(), text });
        }
    };
    add(&referral.created_at, format!("Referred ({})", source_text(&referral.source)));
    add(&referral.converted_at, "Paid for the first time".into());
    for line in lines {
        let money = line.money().text();
        add(&line.created_at, format!("{}: {money}", line.description));
        add(&line.earned_at, format!("{money} earned"));
        add(&line.paid_at, format!("{money} paid out"));
        let reason =
            line.reverse_reason.as_deref().map_or_else(String::new, |word| format!(": {}", word.replace('_', " ")));
        add(&line.reversed_at, format!("{money} reversed{reason}"));
    }
    // The sort is stable: what happened at the same time stays in its order.
    entries.sort_by(|a, b| a.at.cmp(&b.at));
    entries
}

fn history_view(entries: Vec<HistoryEntry>) -> impl Renderable {
    maud! {
        ol.history { @for entry in &entries { li { (time_or_dash(Some(&entry.at))) " " span { (entry.text) } } } }
    }
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_affiliate_referral").id(context.id());
    let found: ReferralAnswer = context.read(&call).await?;
    let referral = &found.referral;
    let lines_call = Call::new("list_affiliate_commissions").query("referral_id", &referral.id).query("limit", "100");
    let lines: List<CommissionRow> = context.read_list("data", &lines_call).await?;
    let ids = lines.entries.iter().map(|line| line.affiliate_id.as_str()).chain([referral.affiliate_id.as_str()]);
    let partners = PartnerNames::load(context, ids).await;
    let is_paying = referral.converted_at.is_some();
    let facts = Facts::new()
        .row("Status", Badge::of(&referral.status))
        .row("Partner", partners.link(&referral.affiliate_id))
        .row("Source", source_text(&referral.source))
        .optional("Revenue", referral.revenue())
        .optional("Customer at the processor", referral.processor_customer_id.clone())
        .optional("Partner's tag", referral.sub_id.clone())
        .row("First payment", time_or_dash(referral.converted_at.as_deref()))
        .optional("Must pay before", (!is_paying).then(|| time_or_dash(referral.expires_at.as_deref())))
        .row("Id", maud! { code { (referral.id) } });
    let table = commission_table(&lines.entries, &partners, false);
    let may_decide = context.allows("allow_affiliate_referral");
    let body = maud! {
        @if let Some(reason) = &referral.blocked_reason { (Notice { tone: Tone::Bad, text: blocked_text(reason) }) }
        section.card { (facts) }
        section {
            h2 { "Commissions" }
            @if table.is_empty() { p.soft { "None yet. Each invoice that this person pays becomes a \
                commission." } } @else { (table) }
        }
        section.card { h2 { "History" } (history_view(history(referral, &lines.entries))) }
    };
    let page = Page::new(referral.name(), body).below(REFERRALS_PATH, "Referrals").actions(maud! {
        @if may_decide { a.button href={ (PATH) "/reviews/" (encode(&referral.id)) } { "Review" } }
    });
    Ok(page.same_as(call).same_as(lines_call).live().into())
}

fn create_form(context: &Context<'_>) -> Form<'static> {
    let fields = vec![
        Field::text("partner", "Partner")
            .required()
            .value(context.query().get("affiliate_id"))
            .placeholder("ada")
            .help("The token of one of the partner's links, or the partner's id (aff_…).")
            .ignored(),
        Field::new("email", "Person's email address", Control::Email).required(),
        Field::text("processor_customer_id", "Customer at the processor")
            .placeholder("cus_…")
            .help("Links this customer's later payments to the referral. Without it, the email address does."),
        Field::text("sub_id", "Tag for the partner's reports"),
    ];
    Form::new("create", "Add the referral", fields)
}

async fn new_page(context: &Context<'_>) -> Result<View, Failure> {
    let form = create_form(context);
    let body = maud! {
        section.card {
            p { "From now on, this person's payments earn the partner a commission. The first partner to refer a \
                person keeps the referral." }
            (form.within(context))
        }
    };
    Ok(Page::new("Add a referral", body)
        .below(REFERRALS_PATH, "Referrals")
        .same_as(Call::new("create_affiliate_referral"))
        .into())
}

async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = create_form(context).read(context.form())?;
    let partner = filled(context.form(), "partner").unwrap_or_default();
    let name = if partner.starts_with("aff_") { "affiliate_id" } else { "token" };
    body[name] = partner.into();
    let answer: Result<ReferralAnswer, Failure> =
        context.read(&Call::new("create_affiliate_referral").json(body)).await;
    let answer = answer.map_err(|mut failure| {
        if failure.status == 404 {
            failure.message = "No active partner has this link token or id".into();
        }
        if let Some(message) = failure.fields.remove(name) {
            failure.fields.insert("partner".into(), message);
        } else if failure.status == 404 {
            failure.fields.insert("partner".into(), failure.message.clone());
        }
        failure
    })?;
    let done = if answer.created { "created" } else { "referred_before" };
    Ok(Outcome::done(referral_path(&answer.referral.id), done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_in_order() {
        let at = |day: u8| Some(format!("2026-01-{day:02}T00:00:00.000Z"));
        let referral =
            ReferralRow { created_at: at(1), converted_at: at(3), source: "api".into(), ..ReferralRow::default() };
        let line = CommissionRow {
            description: "Commission on invoice in_1".into(),
            amount_cents: 980,
            currency: "usd".into(),
            created_at: at(3),
            reversed_at: at(9),
            reverse_reason: Some("partner_deleted".into()),
            ..CommissionRow::default()
        };
        let texts: Vec<_> = history(&referral, &[line]).into_iter().map(|entry| entry.text).collect();
        let expected = [
            "Referred (API or dashboard)",
            "Paid for the first time",
            "Commission on invoice in_1: 9.80 USD",
            "9.80 USD reversed: partner deleted",
        ];
        assert_eq!(texts, expected);
    }
}
