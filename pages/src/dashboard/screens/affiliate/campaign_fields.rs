//! The fields of a campaign. Tiers and product rates are lines of text: `21: 25 %`, `prod_course: 50 % # Course`.

use super::terms::{Campaign, CampaignTier, ProductRate};
use crate::dashboard::kit::money::{amount_value, parse_amount, parse_percent, percent_value};
use crate::dashboard::prelude::*;

const TIERS: &str = "tiers";
const PRODUCT_RATES: &str = "product_rates";

/// A value of a control that is empty for zero.
fn unless_zero(number: i64, text: impl Fn(i64) -> String) -> String {
    if number == 0 { String::new() } else { text(number) }
}

/// The fields, with the values of a campaign.
pub fn campaign_fields(currency: &str, campaign: &Campaign) -> Vec<Field> {
    let mut fields = rate_fields(currency, campaign);
    fields.extend(time_fields(campaign));
    fields.extend(further_fields(currency, campaign));
    fields
}

fn rate_fields(currency: &str, campaign: &Campaign) -> Vec<Field> {
    let money = || Control::Money { currency: currency.to_owned() };
    let kinds = choices(&[("percent", "A share of each payment"), ("flat", "A flat amount for each payment")]);
    let durations = choices(&[("once", "Only a customer's first payment"), ("recurring", "Later payments too")]);
    vec![
        Field::text("name", "Name").required().value(&campaign.name),
        Field::new("commission_type", "Commission", Control::Radio(kinds)).value(&campaign.commission_type),
        Field::new("commission_bps", "Share in percent", Control::Percent)
            .value(unless_zero(campaign.commission_bps, percent_value))
            .help("Of the amount actually paid, without tax."),
        Field::new("commission_flat_cents", format!("Flat amount in {}", currency.to_uppercase()), money())
            .value(unless_zero(campaign.commission_flat_cents, |amount| amount_value(amount, currency))),
        Field::new("commission_duration", "Payments that earn a commission", Control::Radio(durations))
            .value(&campaign.commission_duration),
        Field::new("recurring_months", "For how many months", Control::Number { min: Some(1), max: None })
            .value(campaign.recurring_months.map_or_else(String::new, |months| months.to_string()))
            .help("Counted from the first payment. Leave empty for no limit.")
            .empty(Empty::Null),
    ]
}

fn time_fields(campaign: &Campaign) -> Vec<Field> {
    let days = || Control::Number { min: Some(0), max: None };
    vec![
        Field::new("hold_days", "Days held for refunds", days())
            .required()
            .value(campaign.hold_days.to_string())
            .help("A commission stays pending for this long. A refund during this time reverses it."),
        Field::new("cookie_days", "Cookie lifetime in days", days()).required().value(campaign.cookie_days.to_string()),
    ]
}

fn further_fields(currency: &str, campaign: &Campaign) -> Vec<Field> {
    let money = || Control::Money { currency: currency.to_owned() };
    let visibilities = choices(&[
        ("public", "Public: partners can find it and apply"),
        ("unlisted", "Unlisted: partners who have its address can apply"),
        ("private", "Private: only you add partners"),
    ]);
    let tiers: Vec<_> =
        campaign.tiers.iter().map(|tier| tier_line(tier, &campaign.commission_type, currency)).collect();
    let products: Vec<_> = campaign.product_rates.iter().map(|rate| product_line(rate, currency)).collect();
    let code = currency.to_uppercase();
    vec![
        Field::new("max_commission_cents", format!("Largest commission for one sale in {code}"), money())
            .value(campaign.max_commission_cents.map_or_else(String::new, |amount| amount_value(amount, currency)))
            .help("Leave empty for no limit.")
            .empty(Empty::Null),
        Field::new(TIERS, "Higher rates for partners with many customers", Control::Code { rows: 3 })
            .value(tiers.join("\n"))
            .help(
                "One per line: the number of paying customers, then the rate. 21: 25 % means 25 % from the 21st \
                paying customer on.",
            )
            .ignored(),
        Field::new(PRODUCT_RATES, "Rates for products", Control::Code { rows: 3 })
            .value(products.join("\n"))
            .help(
                "One per line: prod_course: 50 %, or prod_basic/price_yearly: 12.00, or prod_hardware: none. You \
                can add a label after #.",
            )
            .ignored(),
        Field::new("second_tier_bps", "Recruiting partner's share in percent", Control::Percent)
            .value(percent_value(campaign.second_tier_bps))
            .help("A share of the same sale, paid in addition to the partner who recruited the seller."),
        Field::new("lead_bounty_cents", format!("Bounty for a lead in {code}"), money())
            .value(amount_value(campaign.lead_bounty_cents, currency))
            .help("Paid for each new lead, whether or not it pays later."),
        Field::new("visibility", "Who can join", Control::Select(visibilities)).value(&campaign.visibility),
        Field::new("auto_approve", "Approve applications automatically", Control::Checkbox)
            .value(if campaign.auto_approve { "true" } else { "" }),
    ]
}

fn tier_line(tier: &CampaignTier, kind: &str, currency: &str) -> String {
    let rate = match kind {
        "flat" => amount_value(tier.commission_flat_cents, currency),
        _ => format!("{} %", percent_value(tier.commission_bps)),
    };
    format!("{}: {rate}", tier.min_paid_customers)
}

fn product_line(product: &ProductRate, currency: &str) -> String {
    let rate = match product.commission_type.as_str() {
        "flat" => amount_value(product.commission_flat_cents, currency),
        "none" => "none".into(),
        _ => format!("{} %", percent_value(product.commission_bps)),
    };
    let price = product.price_id.as_ref().map_or_else(String::new, |price| format!("/{price}"));
    let label = product.label.as_ref().map_or_else(String::new, |label| format!(" # {label}"));
    format!("{}{price}: {rate}{label}", product.product_id)
}

/// Reads the body of a campaign from a form with some of the fields.
///
/// # Errors
/// A value cannot be read; the failure names its field.
pub fn read_campaign(form: &Form<'_>, fields: &Fields, currency: &str) -> Result<Value, Failure> {
    let mut body = form.read(fields)?;
    for name in ["second_tier_bps", "lead_bounty_cents"] {
        if form.fields.iter().any(|field| field.name == name) && body.get(name).is_none() {
            body[name] = Value::from(0);
        }
    }
    if form.fields.iter().any(|field| field.name == TIERS) {
        body[TIERS] = read_lines(TIERS, fields, |line| read_tier(line, currency))?;
        body[PRODUCT_RATES] = read_lines(PRODUCT_RATES, fields, |line| read_product(line, currency))?;
    }
    Ok(body)
}

fn read_lines(
    name: &'static str,
    fields: &Fields,
    read: impl Fn(&str) -> Result<Value, String>,
) -> Result<Value, Failure> {
    let lines = fields.get(name).lines().map(str::trim).filter(|line| !line.is_empty());
    let values: Result<Vec<_>, _> = lines
        .map(|line| read(line).map_err(|reason| Failure::field(name, format!("\u{201c}{line}\u{201d}: {reason}"))))
        .collect();
    Ok(Value::from(values?))
}

#[derive(Debug, PartialEq, Eq)]
enum LineRate {
    Percent(i64),
    Flat(i64),
    Excluded,
}

fn read_rate(text: &str, currency: &str) -> Result<LineRate, String> {
    match text.trim() {
        "none" => Ok(LineRate::Excluded),
        text if text.ends_with('%') => parse_percent(text).map(LineRate::Percent),
        text => parse_amount(text, currency).map(LineRate::Flat),
    }
}

fn read_tier(line: &str, currency: &str) -> Result<Value, String> {
    let (customers, rate) = line.split_once(':').ok_or("enter a number of customers, a colon and a rate")?;
    let customers: i64 = customers.trim().parse().map_err(|_| "the number of customers is no whole number")?;
    let (basis_points, flat) = match read_rate(rate, currency)? {
        LineRate::Percent(points) => (points, 0),
        LineRate::Flat(amount) => (0, amount),
        LineRate::Excluded => return Err("enter a rate such as 25 % or 15.00".into()),
    };
    Ok(json!({"min_paid_customers": customers, "commission_bps": basis_points, "commission_flat_cents": flat}))
}

fn read_product(line: &str, currency: &str) -> Result<Value, String> {
    let (line, label) = match line.split_once('#') {
        Some((line, label)) => (line, Some(label.trim()).filter(|label| !label.is_empty())),
        None => (line, None),
    };
    let (ids, rate) = line.split_once(':').ok_or("enter the product's id, a colon and a rate")?;
    let (product, price) = match ids.trim().split_once('/') {
        Some((product, price)) => (product, Some(price)),
        None => (ids.trim(), None),
    };
    let (kind, basis_points, flat) = match read_rate(rate, currency)? {
        LineRate::Percent(points) => ("percent", points, 0),
        LineRate::Flat(amount) => ("flat", 0, amount),
        LineRate::Excluded => ("none", 0, 0),
    };
    Ok(json!({
        "product_id": product, "price_id": price, "commission_type": kind, "commission_bps": basis_points,
        "commission_flat_cents": flat, "label": label,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let tier = CampaignTier { min_paid_customers: 21, commission_bps: 2_550, commission_flat_cents: 0 };
        assert_eq!(tier_line(&tier, "percent", "usd"), "21: 25.5 %");
        let expected = json!({"min_paid_customers": 21, "commission_bps": 2550, "commission_flat_cents": 0});
        assert_eq!(read_tier("21: 25.5 %", "usd").unwrap(), expected);
        assert_eq!(read_tier("3:15", "jpy").unwrap()["commission_flat_cents"], 15);
        for line in ["21", "x: 5 %", "2: none", "2: 101 %"] {
            assert!(read_tier(line, "usd").is_err(), "{line}");
        }
        let product = read_product("prod_1/price_2: 12.50 # A course: basic", "usd").unwrap();
        assert_eq!((&product["product_id"], &product["price_id"]), (&json!("prod_1"), &json!("price_2")));
        assert_eq!((&product["commission_flat_cents"], &product["label"]), (&json!(1250), &json!("A course: basic")));
        let written = ProductRate {
            product_id: "prod_1".into(),
            price_id: Some("price_2".into()),
            commission_type: "flat".into(),
            commission_flat_cents: 1_250,
            label: Some("A course: basic".into()),
            ..ProductRate::default()
        };
        assert_eq!(product_line(&written, "usd"), "prod_1/price_2: 12.50 # A course: basic");
        assert_eq!(read_product("prod_1: none", "usd").unwrap()["commission_type"], "none");
    }

    #[test]
    fn forms_become_campaigns() {
        let form = Form::new("campaign", "Save", campaign_fields("usd", &Campaign::default()));
        let fields = Fields::parse(b"name=A&commission_type=percent&commission_bps=12.5&recurring_months=&hold_days=30&cookie_days=60&tiers=5%3A+30+%25&lead_bounty_cents=");
        let body = read_campaign(&form, &fields, "usd").unwrap();
        assert_eq!((&body["commission_bps"], &body["recurring_months"]), (&json!(1250), &Value::Null));
        assert_eq!((&body["lead_bounty_cents"], &body["tiers"][0]["commission_bps"]), (&json!(0), &json!(3000)));
        assert!(body.get("commission_flat_cents").is_none());
        let fields = Fields::parse(b"name=A&commission_bps=x&hold_days=1&cookie_days=1");
        assert!(read_campaign(&form, &fields, "usd").unwrap_err().fields.contains_key("commission_bps"));
    }
}
