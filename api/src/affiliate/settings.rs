//! Settings of a program in the body of `PATCH …`. All given settings are applied, or none if one is invalid.

use std::collections::BTreeMap;

use ::affiliate::onboarding::parse_origin;
use mail::address::{Address, DomainName};
use mail::affiliate::money::{CENTS_MAX, Currency};
use mail::affiliate::program::{
    AfterPayout, Attribution, PayoutMethod, ProcessorMode, ProgramSettings, REVIEW_THRESHOLD_MAX,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fields::{
    BodyFieldReader, integer_schema, parse_cents, parse_currency, parse_currency_text, parse_from_text, parse_integer,
    parse_word,
};
use super::program_fields::{currency_schema, page_url_schema, parse_page_url};
use crate::fields::{self, FieldNames};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};

/// Maximum length of a metadata key (Stripe's limit).
const METADATA_KEY_BYTES_MAX: usize = 40;
/// Maximum number of currencies with a minimum payout.
const MINIMA_MAX: usize = 50;
/// Maximum number of origins whose pages may record visits.
const ORIGINS_MAX: usize = 50;
/// Maximum number of banned referrer hosts.
const BANNED_MAX: usize = 200;

const NAMES: FieldNames = names!(
    "website_url",
    "currency",
    "mode",
    "attribution",
    "new_customers_only",
    "metadata_key",
    "exclude_key",
    "min_payout",
    "allowed_methods",
    "payout_after_refund",
    "count_invoiceless_payments",
    "share_customer_email",
    "suspended_accrue",
    "allowed_origins",
    "banned_referrers",
    "portal_domain",
    "terms_url",
    "mail_from",
    "velocity_per_hour",
    "max_bounties_per_day",
);

/// The settings to change; `None` leaves a setting unchanged.
#[derive(Debug, Default)]
pub struct UpdateProgramSettings {
    website_url: Option<String>,
    currency: Option<Currency>,
    mode: Option<ProcessorMode>,
    attribution: Option<Attribution>,
    new_customers_only: Option<bool>,
    metadata_key: Option<String>,
    exclude_key: Option<String>,
    min_payout: Option<BTreeMap<Currency, i64>>,
    allowed_methods: Option<Vec<PayoutMethod>>,
    payout_after_refund: Option<AfterPayout>,
    count_invoiceless_payments: Option<bool>,
    share_customer_email: Option<bool>,
    suspended_accrue: Option<bool>,
    allowed_origins: Option<Vec<String>>,
    banned_referrers: Option<Vec<DomainName>>,
    portal_domain: Option<Option<DomainName>>,
    terms_url: Option<Option<String>>,
    mail_from: Option<Option<Address>>,
    velocity_per_hour: Option<u32>,
    max_bounties_per_day: Option<u32>,
}

impl UpdateProgramSettings {
    /// The new sender address of partner email, if it is changed.
    pub(super) fn mail_from(&self) -> Option<Option<&Address>> {
        self.mail_from.as_ref().map(Option::as_ref)
    }

    /// Applies the given settings.
    pub(super) fn apply(&self, settings: &mut ProgramSettings) {
        fn set<T: Clone>(field: &mut T, value: Option<&T>) {
            if let Some(new) = value {
                field.clone_from(new);
            }
        }
        set(&mut settings.website_url, self.website_url.as_ref());
        set(&mut settings.currency, self.currency.as_ref());
        set(&mut settings.mode, self.mode.as_ref());
        set(&mut settings.attribution, self.attribution.as_ref());
        set(&mut settings.new_customers_only, self.new_customers_only.as_ref());
        set(&mut settings.metadata_key, self.metadata_key.as_ref());
        set(&mut settings.exclude_key, self.exclude_key.as_ref());
        set(&mut settings.min_payout, self.min_payout.as_ref());
        set(&mut settings.allowed_methods, self.allowed_methods.as_ref());
        set(&mut settings.payout_after_refund, self.payout_after_refund.as_ref());
        set(&mut settings.count_invoiceless_payments, self.count_invoiceless_payments.as_ref());
        set(&mut settings.share_customer_email, self.share_customer_email.as_ref());
        set(&mut settings.suspended_accrue, self.suspended_accrue.as_ref());
        set(&mut settings.allowed_origins, self.allowed_origins.as_ref());
        set(&mut settings.banned_referrers, self.banned_referrers.as_ref());
        set(&mut settings.portal_domain, self.portal_domain.as_ref());
        set(&mut settings.terms_url, self.terms_url.as_ref());
        set(&mut settings.mail_from, self.mail_from.as_ref());
        set(&mut settings.velocity_per_hour, self.velocity_per_hour.as_ref());
        set(&mut settings.max_bounties_per_day, self.max_bounties_per_day.as_ref());
    }
}

/// Parses a metadata key of the payment processor.
fn parse_metadata_key(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=METADATA_KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed) {
        return Ok(text.into_owned());
    }
    Err(format!("must be 1 to {METADATA_KEY_BYTES_MAX} letters, digits, dashes, dots and underscores"))
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
        let amount = parse_cents(amount).map_err(|error| format!("`{code}` {error}"))?;
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

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("SetAffiliateProgram", |_| {
            let mut schema =
                schema::object_with("Settings of a program; unknown keys are rejected", &[], settings_schema());
            schema["additionalProperties"] = json!(false);
            schema["examples"] = json!([{"min_payout": {"usd": 5000}, "attribution": "last_click"}]);
            schema
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut reader = BodyFieldReader::from_strict_body(call, &NAMES)?;
        let parse_threshold = |value: &RawValue| parse_integer(value, 1..=REVIEW_THRESHOLD_MAX);
        let set = Self {
            website_url: reader.read_optional("website_url", parse_page_url),
            currency: reader.read_optional("currency", parse_currency),
            mode: reader
                .read_optional("mode", |value| parse_word(ProcessorMode::WORDS, ProcessorMode::from_word, value)),
            attribution: reader
                .read_optional("attribution", |value| parse_word(Attribution::WORDS, Attribution::from_word, value)),
            new_customers_only: reader.read_optional("new_customers_only", fields::parse_bool),
            metadata_key: reader.read_optional("metadata_key", parse_metadata_key),
            exclude_key: reader.read_optional("exclude_key", parse_metadata_key),
            min_payout: reader.read_optional("min_payout", parse_payout_minimums),
            allowed_methods: reader.read_optional("allowed_methods", parse_payout_methods),
            payout_after_refund: reader.read_optional("payout_after_refund", |value| {
                parse_word(AfterPayout::WORDS, AfterPayout::from_word, value)
            }),
            count_invoiceless_payments: reader.read_optional("count_invoiceless_payments", fields::parse_bool),
            share_customer_email: reader.read_optional("share_customer_email", fields::parse_bool),
            suspended_accrue: reader.read_optional("suspended_accrue", fields::parse_bool),
            allowed_origins: reader.read_optional("allowed_origins", parse_origins),
            banned_referrers: reader.read_optional("banned_referrers", parse_hosts),
            portal_domain: reader.read_nullable("portal_domain", parse_host),
            terms_url: reader.read_nullable("terms_url", parse_page_url),
            mail_from: reader.read_nullable("mail_from", parse_from_text::<Address>),
            velocity_per_hour: reader.read_optional("velocity_per_hour", parse_threshold),
            max_bounties_per_day: reader.read_optional("max_bounties_per_day", parse_threshold),
        };
        reader.finish()?;
        Ok(set)
    }
}

fn banned_schema() -> Value {
    let host = json!({"type": "string", "format": "hostname", "description": "A host name; subdomains are included"});
    let mut list = schema::list(host, "Referrals from pages of these hosts are held for review");
    list["maxItems"] = json!(BANNED_MAX);
    list
}

fn methods_schema() -> Value {
    let method = schema::string_enum(PayoutMethod::WORDS, "A payout method");
    let mut methods = schema::list(method, "Payout methods that partners can choose");
    methods["maxItems"] = json!(PayoutMethod::ALL.len());
    methods["minItems"] = json!(1);
    methods
}

fn nullable(mut schema: Value) -> Value {
    schema::allow_null(&mut schema);
    schema
}

fn settings_schema() -> Vec<(&'static str, Value)> {
    let bounded = |mut list: Value, items_max: usize| {
        list["maxItems"] = json!(items_max);
        list
    };
    let metadata = |description: &str| {
        json!({
            "type": "string", "minLength": 1, "maxLength": METADATA_KEY_BYTES_MAX, "pattern": "^[A-Za-z0-9_.-]+$",
            "description": description,
        })
    };
    let per = |description: &str| integer_schema(1..=REVIEW_THRESHOLD_MAX.into(), description);
    vec![
        ("website_url", page_url_schema("The website that partner links lead to")),
        ("currency", currency_schema("The program's currency; can be changed only during set-up")),
        (
            "mode",
            schema::string_enum(
                ProcessorMode::WORDS,
                "Whether live or test payments count; can be changed only during set-up",
            ),
        ),
        (
            "attribution",
            schema::string_enum(Attribution::WORDS, "Which link gets the credit if a visitor came by several"),
        ),
        ("new_customers_only", schema::boolean("Whether customers who paid before they were referred earn nothing")),
        ("metadata_key", metadata("The metadata key that names the referral in the payment processor")),
        ("exclude_key", metadata("The metadata key that excludes a payment if its value is `false`")),
        (
            "min_payout",
            json!({
                "type": "object", "maxProperties": MINIMA_MAX, "propertyNames": {"pattern": "^[A-Za-z]{3}$"},
                "additionalProperties": {"type": "integer", "minimum": 0, "maximum": CENTS_MAX},
                "description": "The minimum payout in minor units, by currency",
            }),
        ),
        ("allowed_methods", methods_schema()),
        (
            "payout_after_refund",
            schema::string_enum(AfterPayout::WORDS, "What happens if a sale is refunded after the payout"),
        ),
        ("count_invoiceless_payments", schema::boolean("Whether checkouts without an invoice earn commissions")),
        (
            "share_customer_email",
            schema::boolean("Whether partners see the email addresses of customers they referred"),
        ),
        ("suspended_accrue", schema::boolean("Whether suspended partners continue to earn from existing referrals")),
        (
            "allowed_origins",
            bounded(
                schema::list(
                    page_url_schema("An origin"),
                    "Web origins that may record visits; defaults to the website's origin",
                ),
                ORIGINS_MAX,
            ),
        ),
        ("banned_referrers", banned_schema()),
        (
            "portal_domain",
            nullable(
                json!({"type": "string", "format": "hostname", "description": "The host name of the partner portal"}),
            ),
        ),
        ("terms_url", nullable(page_url_schema("URL of the program's terms"))),
        (
            "mail_from",
            nullable(json!({
                "type": "string", "format": "email",
                "description": "Sender address of partner email, on a verified domain; defaults to the sandbox sender",
            })),
        ),
        ("velocity_per_hour", per("Referrals of a partner per hour above which they are held for review")),
        ("max_bounties_per_day", per("Bounties of a partner per day above which they are held for review")),
    ]
}
