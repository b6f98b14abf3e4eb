//! Settings of a program in the body of `PATCH …`. All given settings are applied, or none if one is invalid.

use std::collections::BTreeMap;

use ::affiliate::program::onboarding::parse_origin;
use httpd::request_object::{RequestValue, bounded_text_schema, read_strict_body};
use httpd::request_value::Integer;
use message::address::{DomainName, NAME_TEXT_BYTES_MAX};
use model::affiliate::money::Currency;
use model::affiliate::program::{
    AfterPayout, Attribution, PayoutMethod, ProcessorMode, ProgramSettings, REVIEW_THRESHOLD_MAX,
};

use super::fields::{Cents, CurrencyCode, EmailAddress, parse_currency_text, parse_word};
use super::program_fields::PageUrl;
use crate::prelude::*;

/// Maximum length of a metadata key (Stripe's limit).
const METADATA_KEY_BYTES_MAX: usize = 40;
/// Maximum number of currencies with a minimum payout.
const MINIMA_MAX: usize = 50;
/// Maximum number of origins whose pages may record visits.
const ORIGINS_MAX: usize = 50;
/// Maximum number of banned referrer hosts.
const BANNED_MAX: usize = 200;

/// Settings of a program; unknown keys are rejected
// `None` leaves a setting unchanged.
#[derive(Debug, Default, RequestObject)]
#[schema(
    name = "SetAffiliateProgram",
    additionalProperties = false,
    examples = [{"min_payout": {"usd": 5000}, "attribution": "last_click"}],
)]
pub struct UpdateProgramSettings {
    /// The website that partner links lead to
    #[field(reader = PageUrl)]
    website_url: Option<String>,
    /// The program's currency; can be changed only during setup
    #[field(reader = CurrencyCode)]
    currency: Option<Currency>,
    /// Whether live or test payments count; can be changed only during setup
    mode: Option<ProcessorMode>,
    /// The link that gets the credit if a visitor used several
    attribution: Option<Attribution>,
    /// Whether customers who paid before they were referred earn nothing
    new_customers_only: Option<bool>,
    /// The metadata key that names the referral in the payment processor
    #[field(reader = MetadataKey)]
    metadata_key: Option<String>,
    /// The metadata key that excludes a payment if its value is `false`
    #[field(reader = MetadataKey)]
    exclude_key: Option<String>,
    /// The minimum payout in minor units, by currency
    #[field(parse = parse_payout_minimums, schema = payout_minimums_schema)]
    min_payout: Option<BTreeMap<Currency, i64>>,
    /// Payout methods that partners can choose
    #[field(parse = parse_payout_methods, schema = payout_methods_schema)]
    allowed_methods: Option<Vec<PayoutMethod>>,
    /// The consequence if a sale is refunded after the payout
    payout_after_refund: Option<AfterPayout>,
    /// Whether checkouts without an invoice earn commissions
    count_invoiceless_payments: Option<bool>,
    /// Whether partners see the email addresses of customers they referred
    share_customer_email: Option<bool>,
    /// Whether suspended partners continue to earn from existing referrals
    suspended_accrue: Option<bool>,
    /// Web origins that may record visits; defaults to the website's origin
    #[field(parse = parse_origins, schema = origins_schema)]
    allowed_origins: Option<Vec<String>>,
    /// Referrals from pages of these hosts are held for review
    #[field(parse = parse_hosts, schema = hosts_schema)]
    banned_referrers: Option<Vec<DomainName>>,
    /// The host name of the partner portal
    #[field(parse = parse_host, schema = host_schema)]
    portal_domain: Option<Option<DomainName>>,
    /// URL of the program's terms
    #[field(reader = PageUrl)]
    terms_url: Option<Option<String>>,
    /// Sender address of partner email, on a verified domain; defaults to the sandbox sender
    #[field(reader = EmailAddress)]
    mail_from: Option<Option<Address>>,
    /// Referrals of a partner per hour above which they are held for review
    #[field(reader = ReviewThreshold)]
    velocity_per_hour: Option<u32>,
    /// Bounties of a partner per day above which they are held for review
    #[field(reader = ReviewThreshold)]
    max_bounties_per_day: Option<u32>,
}

type ReviewThreshold = Integer<u32, 1, REVIEW_THRESHOLD_MAX>;

impl UpdateProgramSettings {
    /// The new sender address of partner email, if it is changed.
    pub(super) fn mail_from(&self) -> Option<Option<&Address>> {
        self.mail_from.as_ref().map(Option::as_ref)
    }

    /// Applies the given settings.
    pub(super) fn apply(&self, settings: &mut ProgramSettings) {
        set_given(&mut settings.website_url, &self.website_url);
        set_given(&mut settings.currency, &self.currency);
        set_given(&mut settings.mode, &self.mode);
        set_given(&mut settings.attribution, &self.attribution);
        set_given(&mut settings.new_customers_only, &self.new_customers_only);
        set_given(&mut settings.metadata_key, &self.metadata_key);
        set_given(&mut settings.exclude_key, &self.exclude_key);
        set_given(&mut settings.min_payout, &self.min_payout);
        set_given(&mut settings.allowed_methods, &self.allowed_methods);
        set_given(&mut settings.payout_after_refund, &self.payout_after_refund);
        set_given(&mut settings.count_invoiceless_payments, &self.count_invoiceless_payments);
        set_given(&mut settings.share_customer_email, &self.share_customer_email);
        set_given(&mut settings.suspended_accrue, &self.suspended_accrue);
        set_given(&mut settings.allowed_origins, &self.allowed_origins);
        set_given(&mut settings.banned_referrers, &self.banned_referrers);
        set_given(&mut settings.portal_domain, &self.portal_domain);
        set_given(&mut settings.terms_url, &self.terms_url);
        set_given(&mut settings.mail_from, &self.mail_from);
        set_given(&mut settings.velocity_per_hour, &self.velocity_per_hour);
        set_given(&mut settings.max_bounties_per_day, &self.max_bounties_per_day);
    }
}

/// A metadata key of the payment processor.
struct MetadataKey;

impl RequestValue for MetadataKey {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        let mut schema = bounded_text_schema(1, METADATA_KEY_BYTES_MAX);
        schema["pattern"] = json!("^[A-Za-z0-9_.-]+$");
        schema
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let text = fields::parse_text(value)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if (1..=METADATA_KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed) {
            return Ok(text.into_owned());
        }
        Err(format!("must be 1 to {METADATA_KEY_BYTES_MAX} letters, digits, dashes, dots and underscores"))
    }
}

fn payout_minimums_schema(schemas: &mut Schemas) -> Value {
    json!({
        "type": "object", "maxProperties": MINIMA_MAX, "propertyNames": {"pattern": "^[A-Za-z]{3}$"},
        "additionalProperties": Cents::schema(schemas),
    })
}

fn payout_methods_schema(_: &mut Schemas) -> Value {
    let method = schema::string_enum(PayoutMethod::WORDS, "A payout method");
    json!({"type": "array", "items": method, "minItems": 1, "maxItems": PayoutMethod::ALL.len()})
}

fn origins_schema(schemas: &mut Schemas) -> Value {
    let origin = schema::describe(PageUrl::schema(schemas), Some("An origin"));
    json!({"type": "array", "items": origin, "maxItems": ORIGINS_MAX})
}

fn host_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "format": "hostname", "maxLength": NAME_TEXT_BYTES_MAX})
}

fn hosts_schema(schemas: &mut Schemas) -> Value {
    let host = schema::describe(host_schema(schemas), Some("A host name; subdomains are included"));
    json!({"type": "array", "items": host, "maxItems": BANNED_MAX})
}

/// Parses the minimum payouts: `{currency: minor units}`.
fn parse_payout_minimums(value: &RawValue) -> Result<BTreeMap<Currency, i64>, String> {
    let fields::JsonObject(entries) = fields::parse_object(value)?;
    if entries.len() > MINIMA_MAX {
        return Err(format!("has more than {MINIMA_MAX} currencies"));
    }
    let mut minimums = BTreeMap::new();
    for (code, amount) in entries {
        let code =
            parse_currency_text(&code).map_err(|error| format!("`{}`: {error}", fields::printable_name(&code)))?;
        let amount = Cents::parse(amount).map_err(|error| format!("`{code}` {error}"))?;
        if minimums.insert(code, amount).is_some() {
            return Err(format!("has `{code}` twice"));
        }
    }
    Ok(minimums)
}

fn parse_payout_methods(value: &RawValue) -> Result<Vec<PayoutMethod>, String> {
    let mut methods = Vec::new();
    for entry in fields::parse_list(value, PayoutMethod::ALL.len())? {
        let method = parse_word(PayoutMethod::WORDS, PayoutMethod::from_word, entry)?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    if methods.is_empty() { Err("must contain at least one method".to_owned()) } else { Ok(methods) }
}

fn parse_origins(value: &RawValue) -> Result<Vec<String>, String> {
    let mut origins: Vec<String> = Vec::new();
    for entry in fields::parse_list(value, ORIGINS_MAX)? {
        let text = fields::parse_text(entry)?;
        let origin =
            parse_origin(text.trim()).map_err(|error| format!("`{}` {error}", fields::printable_name(&text)))?;
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Ok(origins)
}

fn parse_hosts(value: &RawValue) -> Result<Vec<DomainName>, String> {
    let mut hosts: Vec<DomainName> = Vec::new();
    for entry in fields::parse_list(value, BANNED_MAX)? {
        let name = parse_host(entry).map_err(|error| format!("`{}` {error}", fields::printable_name(entry.get())))?;
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    Ok(hosts)
}

fn parse_host(value: &RawValue) -> Result<DomainName, String> {
    fields::parse_text(value)?.trim().parse().map_err(|_| "is not a host name".to_owned())
}

impl FromRequest for UpdateProgramSettings {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(Self::schema);

    fn read(call: &Request) -> Result<Self> {
        read_strict_body(call)
    }
}
