//! What the owner sets of a program: the keys of `PATCH …`, all that are given or none.

use std::collections::BTreeMap;

use ::affiliate::set_up::origin;
use mail::address::{Address, Name};
use mail::affiliate::money::Currency;
use mail::affiliate::program::{AfterPayout, Attribution, Mode, PayoutMethod, Settings};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fields::{CENTS_MAX, Fields, cents, currency, in_use, parsed, whole, whole_schema, word};
use super::program::{REVIEWED_MAX, currency_schema, page, page_schema};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Names};
use crate::problem::Problem;
use crate::schema::{self, Schemas};

/// The longest key of the processor's metadata (Stripe's bound).
const KEY_BYTES_MAX: usize = 40;
/// Currencies that may have a minimum.
const MINIMA_MAX: usize = 50;
/// Origins whose pages may capture visits.
const ORIGINS_MAX: usize = 50;
/// Hosts whose links are not wanted.
const BANNED_MAX: usize = 200;

const NAMES: Names = names!(
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

/// What is set; `None` stays as it is.
#[derive(Debug, Default)]
pub struct SetSettings {
    website_url: Option<String>,
    currency: Option<Currency>,
    mode: Option<Mode>,
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
    banned_referrers: Option<Vec<Name>>,
    portal_domain: Option<Option<Name>>,
    terms_url: Option<Option<String>>,
    mail_from: Option<Option<Address>>,
    velocity_per_hour: Option<u32>,
    max_bounties_per_day: Option<u32>,
}

impl SetSettings {
    /// Who is to write to partners, if that is set.
    pub(super) fn mail_from(&self) -> Option<Option<&Address>> {
        self.mail_from.as_ref().map(Option::as_ref)
    }

    /// Sets what is given.
    pub(super) fn apply(&self, settings: &mut Settings) {
        fn set<T: Clone>(field: &mut T, given: Option<&T>) {
            if let Some(new) = given {
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

/// A key of the processor's metadata.
fn metadata_key(value: &RawValue) -> Result<String, String> {
    let text = fields::text(value)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.into_owned());
    }
    Err(format!("must be 1 to {KEY_BYTES_MAX} letters, digits, dashes, dots and underscores"))
}

/// The least that is paid out: `{currency: cents}`.
fn minima(value: &RawValue) -> Result<BTreeMap<Currency, i64>, String> {
    let fields::Object(entries) = fields::object(value)?;
    if entries.len() > MINIMA_MAX {
        return Err(format!("has more than {MINIMA_MAX} currencies"));
    }
    let mut minima = BTreeMap::new();
    for (code, amount) in entries {
        let code = in_use(&code).map_err(|why| format!("`{}`: {why}", fields::show(&code)))?;
        let amount = cents(amount).map_err(|why| format!("`{code}` {why}"))?;
        if minima.insert(code, amount).is_some() {
            return Err(format!("has `{code}` twice"));
        }
    }
    Ok(minima)
}

fn methods(value: &RawValue) -> Result<Vec<PayoutMethod>, String> {
    let mut methods = Vec::new();
    for entry in fields::list(value, PayoutMethod::ALL.len())? {
        let method = word(PayoutMethod::WORDS, PayoutMethod::of_word, entry)?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    if methods.is_empty() { Err("must name one at least".to_owned()) } else { Ok(methods) }
}

fn origins(value: &RawValue) -> Result<Vec<String>, String> {
    let mut origins: Vec<String> = Vec::new();
    for entry in fields::list(value, ORIGINS_MAX)? {
        let text = fields::text(entry)?;
        let origin = origin(text.trim()).map_err(|why| format!("`{}` {why}", fields::show(&text)))?;
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Ok(origins)
}

fn hosts(value: &RawValue) -> Result<Vec<Name>, String> {
    let mut hosts: Vec<Name> = Vec::new();
    for entry in fields::list(value, BANNED_MAX)? {
        let name = host(entry).map_err(|why| format!("`{}` {why}", fields::show(entry.get())))?;
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    Ok(hosts)
}

fn host(value: &RawValue) -> Result<Name, String> {
    fields::text(value)?.trim().parse().map_err(|_| "is no name of a host".to_owned())
}

impl Input for SetSettings {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("SetAffiliateProgram", |_| {
            let mut schema =
                schema::object_with("What is set of a program; no other keys", &[], settings_schema());
            schema["additionalProperties"] = json!(false);
            schema["examples"] = json!([{"min_payout": {"usd": 5000}, "attribution": "last_click"}]);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut given = Fields::of_these_only(call, &NAMES)?;
        let reviewed = |value: &RawValue| whole(value, 1..=REVIEWED_MAX);
        let set = Self {
            website_url: given.take("website_url", page),
            currency: given.take("currency", currency),
            mode: given.take("mode", |value| word(Mode::WORDS, Mode::of_word, value)),
            attribution: given
                .take("attribution", |value| word(Attribution::WORDS, Attribution::of_word, value)),
            new_customers_only: given.take("new_customers_only", fields::boolean),
            metadata_key: given.take("metadata_key", metadata_key),
            exclude_key: given.take("exclude_key", metadata_key),
            min_payout: given.take("min_payout", minima),
            allowed_methods: given.take("allowed_methods", methods),
            payout_after_refund: given
                .take("payout_after_refund", |value| word(AfterPayout::WORDS, AfterPayout::of_word, value)),
            count_invoiceless_payments: given.take("count_invoiceless_payments", fields::boolean),
            share_customer_email: given.take("share_customer_email", fields::boolean),
            suspended_accrue: given.take("suspended_accrue", fields::boolean),
            allowed_origins: given.take("allowed_origins", origins),
            banned_referrers: given.take("banned_referrers", hosts),
            portal_domain: given.change("portal_domain", host),
            terms_url: given.change("terms_url", page),
            mail_from: given.change("mail_from", parsed::<Address>),
            velocity_per_hour: given.take("velocity_per_hour", reviewed),
            max_bounties_per_day: given.take("max_bounties_per_day", reviewed),
        };
        given.end()?;
        Ok(set)
    }
}

fn banned_schema() -> Value {
    let host = json!({"type": "string", "format": "hostname", "description": "A host, with all below it"});
    let mut list = schema::list(host, "Who comes from a page there is looked at before it earns");
    list["maxItems"] = json!(BANNED_MAX);
    list
}

fn settings_schema() -> Vec<(&'static str, Value)> {
    let bounded = |mut list: Value, most: usize| {
        list["maxItems"] = json!(most);
        list
    };
    let metadata = |about: &str| {
        json!({
            "type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "pattern": "^[A-Za-z0-9_.-]+$",
            "description": about,
        })
    };
    let nullable = |mut schema: Value| {
        schema::or_null(&mut schema);
        schema
    };
    let per = |about: &str| whole_schema(1..=REVIEWED_MAX.into(), about);
    let mut methods = bounded(
        schema::list(schema::words(PayoutMethod::WORDS, "A way"), "How partners may be paid"),
        PayoutMethod::ALL.len(),
    );
    methods["minItems"] = json!(1);
    vec![
        ("website_url", page_schema("Where links lead")),
        ("currency", currency_schema("The program's currency; only while it is being set up")),
        ("mode", schema::words(Mode::WORDS, "Whose money it is about; only while it is being set up")),
        ("attribution", schema::words(Attribution::WORDS, "Whose a visitor is who came by two links")),
        ("new_customers_only", schema::boolean("Who paid before it was referred never earns")),
        ("metadata_key", metadata("The processor's metadata that names a referral")),
        ("exclude_key", metadata("The processor's metadata that excludes when it is `false`")),
        (
            "min_payout",
            json!({
                "type": "object", "maxProperties": MINIMA_MAX, "propertyNames": {"pattern": "^[A-Za-z]{3}$"},
                "additionalProperties": {"type": "integer", "minimum": 0, "maximum": CENTS_MAX},
                "description": "The least that is paid out, by currency",
            }),
        ),
        ("allowed_methods", methods),
        ("payout_after_refund", schema::words(AfterPayout::WORDS, "What a refund does after a payout")),
        ("count_invoiceless_payments", schema::boolean("Whether checkouts without an invoice count")),
        ("share_customer_email", schema::boolean("Whether partners see whom they brought")),
        ("suspended_accrue", schema::boolean("Whether suspended partners go on earning by those they have")),
        (
            "allowed_origins",
            bounded(
                schema::list(page_schema("An origin"), "Web origins that may capture visits; the website's"),
                ORIGINS_MAX,
            ),
        ),
        ("banned_referrers", banned_schema()),
        (
            "portal_domain",
            nullable(
                json!({"type": "string", "format": "hostname", "description": "The host of the portal"}),
            ),
        ),
        ("terms_url", nullable(page_schema("Where the program's terms stand"))),
        (
            "mail_from",
            nullable(json!({
                "type": "string", "format": "email",
                "description": "Who writes to partners: on a verified domain; else the sandbox's sender",
            })),
        ),
        ("velocity_per_hour", per("New referrals of a partner in an hour before they are looked at")),
        ("max_bounties_per_day", per("Bounties of a partner in a day before they are looked at")),
    ]
}
