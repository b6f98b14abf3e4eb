//! Settings of the program: one form for each subject.

use std::collections::BTreeMap;

use serde_json::Map;

use super::program::{AffiliateProgram, ProgramState, program_call};
use super::{PATH, method_choices, sentence, set_up_first};
use crate::dashboard::kit::money::{amount_value, parse_amount};
use crate::dashboard::prelude::*;
use crate::dashboard::table::{FormRow, PageAccess};

const SETTINGS_PATH: &str = "/dashboard/affiliate/settings";

macro_rules! form_rows {
    ($($name:literal),*) => {
        &[$(FormRow {
            name: $name,
            operation: "update_affiliate_program",
            submit: |context| Box::pin(save(context)),
        }),*]
    };
}

pub const PAGES: &[PageRow] = &[PageRow {
    path: "/affiliate/settings",
    access: PageAccess::SignedIn,
    reads: &["get_affiliate_program", "update_affiliate_program"],
    show: |context| Box::pin(show(context)),
    forms: form_rows!("tracking", "payments", "payouts", "partners", "review", "currency"),
}];

fn yes_or_no(name: &'static str, label: &'static str, value: bool) -> Field {
    Field::new(name, label, Control::Checkbox).value(if value { "true" } else { "" })
}

fn tracking_form(program: &AffiliateProgram) -> Form<'static> {
    let attribution = choices(&[
        ("first_click", "The first link that a visitor used"),
        ("last_click", "The last link that a visitor used"),
    ]);
    let fields = vec![
        Field::new("website_url", "Website", Control::Url).required().value(&program.website_url),
        Field::new("attribution", "Credit goes to", Control::Radio(attribution)).value(&program.attribution),
        Field::new("allowed_origins", "Pages that can record visits", Control::Lines { rows: 3 })
            .value(program.allowed_origins.join("\n"))
            .placeholder("https://www.shop.example")
            .help("One origin per line. Leave empty for only the website's own origin.")
            .empty(Empty::Kept),
    ];
    Form::new("tracking", "Save", fields)
}

fn payments_form(program: &AffiliateProgram) -> Form<'static> {
    let fields = vec![
        yes_or_no("new_customers_only", "Only new customers count", program.new_customers_only)
            .help("A customer who had already paid before being referred earns nothing."),
        yes_or_no(
            "count_invoiceless_payments",
            "Count checkouts without an invoice",
            program.count_invoiceless_payments,
        ),
        yes_or_no(
            "suspended_accrue",
            "Suspended partners keep earning from existing customers",
            program.suspended_accrue,
        ),
        Field::text("metadata_key", "Metadata key for the referral")
            .required()
            .value(&program.metadata_key)
            .help("The processor's objects hold the referral under this key."),
        Field::text("exclude_key", "Metadata key that excludes a payment")
            .required()
            .value(&program.exclude_key)
            .help("A customer, subscription or invoice with the value false under this key earns nothing."),
    ];
    Form::new("payments", "Save", fields)
}

fn payouts_form(program: &AffiliateProgram) -> Form<'static> {
    let after_refund = choices(&[
        ("absorb", "You bear it: the partner keeps the commission"),
        ("offset", "It is deducted from the partner's next payouts"),
    ]);
    let minima: Vec<_> = program
        .min_payout
        .iter()
        .map(|(currency, amount)| format!("{currency} {}", amount_value(*amount, currency)))
        .collect();
    let fields = vec![
        Field::new("allowed_methods", "Payout methods", Control::Checkboxes(method_choices()))
            .value(program.allowed_methods.join("\n"))
            .help("You make PayPal, Wise, bank and other payments yourself; the processor makes Stripe transfers.")
            .empty(Empty::Kept),
        Field::new("min_payout", "Minimum payouts", Control::Area { rows: 3 })
            .value(minima.join("\n"))
            .placeholder("usd 50.00")
            .help("One currency per line, with its amount: usd 50.00. Other currencies have no minimum.")
            .ignored(),
        Field::new("payout_after_refund", "When a sale is refunded after its payout", Control::Radio(after_refund))
            .value(&program.payout_after_refund),
    ];
    Form::new("payouts", "Save", fields)
}

fn partners_form(program: &AffiliateProgram) -> Form<'static> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let error = |error: &Option<String>, help: &str| match error {
        Some(error) => format!("{help} {}", sentence(error)),
        None => help.to_owned(),
    };
    let fields = vec![
        Field::text("portal_domain", "Host of the partner portal")
            .value(text(&program.portal_domain))
            .placeholder("partners.shop.example")
            .help(error(&program.portal_domain_error, "Partners sign in there and see their links and earnings."))
            .empty(Empty::Null),
        Field::new("terms_url", "URL of the terms", Control::Url).value(text(&program.terms_url)).empty(Empty::Null),
        Field::new("mail_from", "Sender of partner emails", Control::Email)
            .value(text(&program.mail_from))
            .help(error(&program.mail_error, "An address on a verified domain of the account."))
            .empty(Empty::Null),
        yes_or_no(
            "share_customer_email",
            "Partners see the email addresses of their customers",
            program.share_customer_email,
        )
        .help("Otherwise they are masked: g***@example.net."),
    ];
    Form::new("partners", "Save", fields)
}

fn review_form(program: &AffiliateProgram) -> Form<'static> {
    let count = || Control::Number { min: Some(1), max: None };
    let fields = vec![
        Field::new("velocity_per_hour", "Referrals per hour", count())
            .required()
            .value(program.velocity_per_hour.to_string())
            .help("If one partner brings more in an hour, they are held for your review."),
        Field::new("max_bounties_per_day", "Bounties per day", count())
            .required()
            .value(program.max_bounties_per_day.to_string())
            .help("If one partner earns more in a day, they are held for your review."),
        Field::new("banned_referrers", "Referring sites to review", Control::Lines { rows: 3 })
            .value(program.banned_referrers.join("\n"))
            .placeholder("coupons.example")
            .help("One host per line. Referrals from pages on these hosts are held for your review.")
            .empty(Empty::Kept),
    ];
    Form::new("review", "Save", fields)
}

fn currency_form(program: &AffiliateProgram) -> Form<'static> {
    let modes = choices(&[("live", "Live payments"), ("test", "Test payments")]);
    let fields = vec![
        Field::text("currency", "Currency").required().value(&program.currency).help("Three letters, such as usd."),
        Field::new("mode", "Payments that count", Control::Radio(modes)).value(&program.mode),
    ];
    Form::new("currency", "Save", fields)
}

fn form_of(name: &str, program: &AffiliateProgram) -> Option<Form<'static>> {
    Some(match name {
        "tracking" => tracking_form(program),
        "payments" => payments_form(program),
        "payouts" => payouts_form(program),
        "partners" => partners_form(program),
        "review" => review_form(program),
        "currency" => currency_form(program),
        _ => return None,
    })
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let Some((state, version)) = if_found(context.read_version::<ProgramState>(&program_call()).await)? else {
        return Ok(set_up_first("Program settings"));
    };
    let program = &state.program;
    let mut sections = vec![
        ("Links and visits", tracking_form(program)),
        ("Payments that count", payments_form(program)),
        ("Payouts", payouts_form(program)),
        ("Partner portal and email", partners_form(program)),
        ("Held for review", review_form(program)),
    ];
    let is_setup = program.status == "setup";
    if is_setup {
        sections.insert(0, ("Currency and mode", currency_form(program)));
    }
    sections.iter_mut().for_each(|(_, form)| form.fields.push(seen_version::field(&version)));
    let body = maud! {
        @for (title, form) in &sections { section.card { h2 { (title) } (form.within(context)) } }
        @if !is_setup {
            section.card {
                h2 { "Currency and mode" }
                p { "The currency is " (program.currency.to_uppercase()) ", and " (program.mode) " payments count. Neither can change once the program has been live." }
            }
        }
    };
    let page = Page::new("Program settings", body).below(PATH, "Affiliate program");
    Ok(page.same_as(program_call()).same_as(Call::new("update_affiliate_program")).into())
}

async fn save(context: &Context<'_>) -> Result<Outcome, Failure> {
    let name = context.form().get("form");
    let form = form_of(name, &AffiliateProgram::default()).ok_or_else(Failure::not_found)?;
    let mut body = form.read(context.form())?;
    if name == "payouts" {
        body["min_payout"] = read_minima(context.form().get("min_payout"))?;
    }
    context.change_seen(Call::new("update_affiliate_program").json(body)).await?;
    Ok(Outcome::done(SETTINGS_PATH, "changed"))
}

/// Reads lines of a currency and an amount.
fn read_minima(text: &str) -> Result<Value, Failure> {
    let refuse = |line: &str, reason: &str| Failure::field("min_payout", format!("\u{201c}{line}\u{201d}: {reason}"));
    let mut minima = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (currency, amount) =
            line.split_once(char::is_whitespace).ok_or_else(|| refuse(line, "write a currency and an amount"))?;
        let currency = currency.trim_end_matches(':').to_lowercase();
        let amount = parse_amount(amount, &currency).map_err(|reason| refuse(line, &reason))?;
        if minima.insert(currency, amount).is_some() {
            return Err(refuse(line, "the currency is listed twice"));
        }
    }
    Ok(Value::Object(
        minima.into_iter().map(|(currency, amount)| (currency, Value::from(amount))).collect::<Map<_, _>>(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::request::Fields;

    #[test]
    fn minima_are_read_exactly() {
        assert_eq!(read_minima("usd 50.00\n\n JPY: 1000").unwrap(), serde_json::json!({"usd": 5000, "jpy": 1000}));
        for text in ["usd", "usd x", "jpy 1.5", "usd 1\nUSD 2"] {
            assert!(read_minima(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_form_has_its_row() {
        let program = AffiliateProgram::default();
        for row in PAGES[0].forms {
            let form = form_of(row.name, &program).unwrap();
            assert_eq!(form.name, row.name);
            form.read(&Fields::parse(b"velocity_per_hour=1&max_bounties_per_day=2")).unwrap();
        }
    }
}
