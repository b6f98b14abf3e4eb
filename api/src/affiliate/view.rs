//! What callers see of the program, described. The objects themselves are `affiliate::object`'s, the same in webhooks.

use ::affiliate::object::{
    CampaignObject, CommissionObject, LinkObject, PartnerObject, ProcessorObject, ProgramObject,
    ReferralObject,
};
use ::affiliate::partners::Shown;
use http::StatusCode;
use mail::affiliate::campaign::Visibility;
use mail::affiliate::commission::Reason;
use mail::affiliate::partner::{LINKS_MAX, PartnerSource, PartnerStatus, TAGS_MAX};
use mail::affiliate::program::{AfterPayout, Attribution, MissingStep, Mode, PayoutMethod, ProgramStatus};
use mail::affiliate::referral::{Blocked, ReferralSource, ReferralStatus};
use serde::Serialize;
use serde_json::{Value, json};
use store::affiliate::commission::CommissionStatus;

use super::answer::Shape;
use super::fields::{bps_schema, cents_schema, whole_schema};
use crate::call::Also;
use crate::schema::{self, Describe, Schemas};

/// The same as what was made.
#[derive(Debug)]
pub struct Made<T>(std::marker::PhantomData<T>);

impl<T: Describe> Describe for Made<T> {
    const DONE: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }
}

impl<T: Shape> Shape for Made<T> {}

/// A page.
#[derive(Debug, Serialize)]
pub struct Listed<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl<T> Listed<T> {
    /// These, and where the next page begins.
    pub(super) fn of(data: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { data, has_more: next_cursor.is_some(), next_cursor }
    }
}

impl<T: Describe> Describe for Listed<T> {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::page("data", T::schema(schemas))
    }
}

/// Makes the answer that holds one object under its name.
macro_rules! one {
    ($(#[$doc:meta])* $name:ident { $field:ident: $object:ty } as $schema:literal) => {
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        pub struct $name {
            pub(super) $field: $object,
        }

        impl Describe for $name {
            fn schema(schemas: &mut Schemas) -> Value {
                let object = <$object>::schema(schemas);
                schemas.named($schema, |_| schema::object("One of them", [(stringify!($field), object)]))
            }
        }

        impl Shape for $name {}
    };
}

/// A partner, and what was not done of what was asked for.
#[derive(Debug, Serialize)]
pub struct OnePartner {
    pub(super) affiliate: PartnerObject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl OnePartner {
    pub(super) fn of(shown: &Shown) -> Self {
        let warnings = shown.warning.iter().map(ToString::to_string).collect();
        Self { affiliate: shown.object(), warnings }
    }
}

impl Describe for OnePartner {
    fn schema(schemas: &mut Schemas) -> Value {
        let object = PartnerObject::schema(schemas);
        schemas.named("OneAffiliate", |_| schema::object("One of them", [("affiliate", object)]))
    }
}

impl Shape for OnePartner {}

one! {
    /// A link.
    OneLink { link: LinkObject } as "OneAffiliateLink"
}
one! {
    /// A campaign.
    OneCampaign { campaign: CampaignObject } as "OneAffiliateCampaign"
}
one! {
    /// A referral.
    OneReferral { referral: ReferralObject } as "OneAffiliateReferral"
}
one! {
    /// A commission.
    OneCommission { commission: CommissionObject } as "OneAffiliateCommission"
}
one! {
    /// A program.
    OneProgram { program: ProgramObject } as "OneAffiliateProgram"
}
one! {
    /// The processor.
    OneProcessor { processor: ProcessorObject } as "OneAffiliateProcessor"
}

fn kind(word: &str) -> Value {
    json!({"type": "string", "const": word, "description": "What it is"})
}

fn nullable_words(words: &[&str], description: &str) -> Value {
    let mut schema = schema::words(words, description);
    schema::or_null(&mut schema);
    schema
}

fn currency(description: &str) -> Value {
    json!({"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"], "description": description})
}

impl Describe for LinkObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut url = schema::string("The address with the token");
        url["examples"] = json!(["https://shop.example/?via=ada"]);
        let mut token = schema::string("What its visitors bring, as the parameter `via`");
        token["examples"] = json!(["ada"]);
        let fields = [
            ("object", kind("affiliate_link")),
            ("id", schema::string("Its id (`afl_…`)")),
            ("affiliate_id", schema::string("Whose it is (`aff_…`)")),
            ("token", token),
            ("url", url),
            (
                "destination_url",
                schema::nullable_string("Where it leads: a path or an address on the website"),
            ),
            ("label", schema::nullable_string("What its owner calls it")),
            ("is_primary", schema::boolean("Whether it is the one that is shown first")),
            ("created_at", schema::time("When it was made")),
        ];
        schemas.named("AffiliateLink", |_| schema::object("A link of a partner", fields))
    }
}

impl Describe for PartnerObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut links = schema::list(LinkObject::schema(schemas), "All its links; in a list the primary one");
        links["maxItems"] = json!(2 * LINKS_MAX);
        let mut tags = schema::list(json!({"type": "string"}), "The owner's words for it");
        tags["maxItems"] = json!(TAGS_MAX);
        let fields = [
            ("object", kind("affiliate")),
            ("id", schema::string("Its id (`aff_…`)")),
            ("email", schema::string("Its address; no two partners have the same")),
            ("first_name", schema::nullable_string("The given name")),
            ("last_name", schema::nullable_string("The family name")),
            ("company", schema::nullable_string("The company")),
            ("website", schema::nullable_string("The website")),
            ("country", schema::nullable_string("Two letters (ISO 3166-1)")),
            ("status", schema::words(PartnerStatus::WORDS, "Where it stands")),
            ("source", schema::words(PartnerSource::WORDS, "By which way it came")),
            ("campaign_id", schema::string("What it is paid by (`cmp_…`)")),
            ("parent_affiliate_id", schema::nullable_string("Who recruited it (`aff_…`)")),
            ("tags", tags),
            ("payout_method", nullable_words(PayoutMethod::WORDS, "How it is paid")),
            ("payout_ready", schema::boolean("Whether it can be paid")),
            ("approved_at", schema::nullable_time("When it became active first")),
            ("links", links),
            ("created_at", schema::time("When it was made")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.named("Affiliate", |_| schema::object("A partner", fields))
    }
}

/// The rate of a tier, as it is shown and given.
pub(super) fn tier_schema() -> Value {
    schema::object(
        "A rate from a number of paying customers on; the number counts that the campaign's `commission_type` says",
        [
            (
                "min_paid_customers",
                whole_schema(1..=u32::MAX.into(), "With this many, the one that converts now among them"),
            ),
            ("commission_bps", bps_schema("The share, in basis points")),
            ("commission_flat_cents", cents_schema("The amount")),
        ],
    )
}

impl Describe for CampaignObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let product = schema::object(
            "A rate of a product or of one of its prices",
            [
                ("product_id", schema::string("The processor's id of the product")),
                ("price_id", schema::nullable_string("The processor's id of one price of it")),
                (
                    "commission_type",
                    schema::words(&["percent", "flat", "none"], "What counts; nothing is earned with `none`"),
                ),
                ("commission_bps", bps_schema("The share, in basis points")),
                ("commission_flat_cents", cents_schema("The amount")),
                ("label", schema::nullable_string("What people call it")),
            ],
        );
        let whole = |range, description| {
            let mut schema = whole_schema(range, description);
            schema::or_null(&mut schema);
            schema
        };
        let mut fields = vec![
            ("object", kind("affiliate_campaign")),
            ("id", schema::string("Its id (`cmp_…`)")),
            ("name", schema::string("What people call it")),
            ("is_default", schema::boolean("Whether it takes partners who name none")),
            ("visibility", schema::words(Visibility::WORDS, "Who may see it")),
            ("auto_approve", schema::boolean("Whether who joins is active at once")),
            ("commission_type", schema::words(&["percent", "flat"], "Which of the two counts")),
            ("commission_bps", bps_schema("The share of a sale, in basis points")),
            ("commission_flat_cents", cents_schema("The amount for a sale, in the program's currency")),
            ("commission_duration", schema::words(&["once", "recurring"], "For which sales")),
            (
                "recurring_months",
                whole(1..=u16::MAX.into(), "For how many months; null for as long as they pay"),
            ),
            ("max_commission_cents", whole(0..=super::fields::CENTS_MAX, "The most that one sale earns")),
            ("tiers", schema::list(tier_schema(), "Rates that rise with paying customers")),
            ("product_rates", schema::list(product, "Rates of products and prices")),
            ("second_tier_bps", bps_schema("The recruiter's share of the same sale")),
            ("lead_bounty_cents", cents_schema("What a lead earns")),
            ("cookie_days", whole_schema(1..=365, "For how many days a visit binds")),
            ("hold_days", whole_schema(0..=365, "For how many days a commission waits for refunds")),
            ("archived_at", schema::nullable_time("Since when it takes no new partners")),
            ("created_at", schema::time("When it was made")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        fields.push(("affiliate_count", schema::count("In the list: how many partners it has")));
        schemas
            .named("AffiliateCampaign", |_| schema::object_with("What partners earn by", &required, fields))
    }
}

impl Describe for ReferralObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut currency = currency("The currency of the first payment");
        schema::or_null(&mut currency);
        let fields = [
            ("object", kind("affiliate_referral")),
            ("id", schema::string("Its id (`ref_…`)")),
            ("affiliate_id", schema::string("Who brought the person (`aff_…`)")),
            ("status", schema::words(ReferralStatus::WORDS, "Where it stands")),
            ("source", schema::words(ReferralSource::WORDS, "By which way it came")),
            ("email", schema::nullable_string("Who it is")),
            ("processor_customer_id", schema::nullable_string("The processor's id of the customer")),
            ("sub_id", schema::nullable_string("The partner's own tag")),
            ("blocked_reason", nullable_words(Blocked::WORDS, "Why it never earns")),
            (
                "revenue_cents",
                json!({"type": "integer", "description": "What came in less what went back, without tax"}),
            ),
            ("currency", currency),
            ("converted_at", schema::nullable_time("When it paid first")),
            ("expires_at", schema::time("Until when it must pay to be the partner's")),
            ("created_at", schema::time("When it was made")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.named("AffiliateReferral", |_| schema::object("A person whom a partner brought", fields))
    }
}

impl Describe for CommissionObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut tier = whole_schema(1..=2, "1: the partner's who brought the customer; 2: its recruiter's");
        tier["examples"] = json!([1]);
        let fields = [
            ("object", kind("affiliate_commission")),
            ("id", schema::string("Its id (`com_…`)")),
            ("affiliate_id", schema::string("Whose it is (`aff_…`)")),
            ("referral_id", schema::string("By whom it came (`ref_…`)")),
            ("tier", tier),
            ("status", schema::words(CommissionStatus::WORDS, "Where it stands; in a payout it is `earned`")),
            ("amount_cents", whole_schema(1..=i64::MAX, "What it comes to, in minor units")),
            (
                "sale_amount_cents",
                json!({"type": "integer", "description": "The part of the sale that it is of; 0 of a bounty"}),
            ),
            ("currency", currency("The currency of `amount_cents`")),
            ("description", schema::string("What it is for")),
            ("processor_invoice_id", schema::nullable_string("The processor's id of the invoice")),
            ("processor_charge_id", schema::nullable_string("The processor's id of the charge")),
            ("earns_at", schema::time("When its hold ends")),
            ("earned_at", schema::nullable_time("When it became the partner's")),
            ("paid_at", schema::nullable_time("When its payout went out")),
            ("reversed_at", schema::nullable_time("When it was taken back")),
            ("reverse_reason", nullable_words(Reason::WORDS, "Why it was taken back")),
            ("payout_id", schema::nullable_string("The payout that it is in (`pay_…`)")),
            ("created_at", schema::time("When it was written")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.named("AffiliateCommission", |_| schema::object("A line of the ledger", fields))
    }
}

/// A referral that was told of.
#[derive(Debug, Serialize)]
pub struct ToldReferral {
    pub(super) referral: ReferralObject,
    pub(super) created: bool,
}

impl Describe for ToldReferral {
    const DONE: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        let referral = ReferralObject::schema(schemas);
        schemas.named("ToldAffiliateReferral", |_| {
            let created = schema::boolean("Whether it is new; else the one that stood, whoever's it is");
            schema::object("A referral that was told of", [("referral", referral), ("created", created)])
        })
    }
}

impl Shape for ToldReferral {
    const ALSO: &'static [Also] = &[Also {
        status: 200,
        media_type: Some("application/json"),
        about: "The person was referred before: the first partner keeps it",
    }];
}

impl Describe for ProgramObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let min_payout = json!({
            "type": "object", "additionalProperties": {"type": "integer", "minimum": 0},
            "examples": [{"usd": 5000}], "description": "The least that is paid out, by currency",
        });
        let per = |description| whole_schema(1..=super::program::REVIEWED_MAX.into(), description);
        let texts = |description: &str| schema::list(json!({"type": "string"}), description);
        let fields = [
            ("object", kind("affiliate_program")),
            ("id", schema::string("Its id (`prog_…`)")),
            ("status", schema::words(ProgramStatus::WORDS, "Where it stands")),
            ("mode", schema::words(Mode::WORDS, "Whose money it is about")),
            ("website_url", schema::string("Where links lead")),
            ("currency", currency("The currency of flat amounts, bounties and caps")),
            ("attribution", schema::words(Attribution::WORDS, "Whose a visitor is who came by two links")),
            ("new_customers_only", schema::boolean("Who paid before it was referred never earns")),
            ("metadata_key", schema::string("The processor's metadata that names a referral")),
            ("exclude_key", schema::string("The processor's metadata that excludes when it is `false`")),
            ("default_campaign_id", schema::nullable_string("What takes partners who name none (`cmp_…`)")),
            ("min_payout", min_payout),
            (
                "allowed_methods",
                schema::list(schema::words(PayoutMethod::WORDS, "A way"), "How partners may be paid"),
            ),
            ("payout_after_refund", schema::words(AfterPayout::WORDS, "What a refund does after a payout")),
            ("count_invoiceless_payments", schema::boolean("Whether checkouts without an invoice count")),
            ("share_customer_email", schema::boolean("Whether partners see whom they brought")),
            (
                "suspended_accrue",
                schema::boolean("Whether suspended partners go on earning by those they have"),
            ),
            ("allowed_origins", texts("Web origins that may capture visits; the website's when empty")),
            ("publishable_key", schema::string("The key that web pages bring; no secret")),
            (
                "banned_referrers",
                texts("Hosts of pages that are not wanted: who comes from there is looked at"),
            ),
            ("portal_domain", schema::nullable_string("The host of the partner portal")),
            (
                "portal_domain_error",
                schema::nullable_string(
                    "Why the portal is not at its own host, and what to do; null when it is",
                ),
            ),
            ("terms_url", schema::nullable_string("Where the program's terms stand")),
            (
                "mail_from",
                schema::nullable_string(
                    "Who writes to partners; without it only who asked for mail is written to",
                ),
            ),
            (
                "mail_error",
                schema::nullable_string(
                    "Why partners are not written to, and what to do; null when they are",
                ),
            ),
            ("velocity_per_hour", per("New referrals of a partner in an hour before they are looked at")),
            ("max_bounties_per_day", per("Bounties of a partner in a day before they are looked at")),
            ("rev", schema::count("Grows with each change")),
            ("created_at", schema::time("When it was enabled")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.named("AffiliateProgram", |_| schema::object("An affiliate program", fields))
    }
}

impl Describe for ProcessorObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut livemode = schema::boolean("Whether its money is real, as far as that is known");
        schema::or_null(&mut livemode);
        let fields = [
            ("kind", kind("stripe")),
            ("api_base", schema::string("The address of its API")),
            ("account_id", schema::nullable_string("The account there; events of others are ignored")),
            ("livemode", livemode),
            ("has_key", schema::boolean("Whether it can be asked; else it is only listened to")),
            ("webhook_secrets_count", whole_schema(1..=2, "Secrets that its events may be signed with")),
            ("webhook_url", schema::string("Where it is to send its events")),
            ("last_event_at", schema::nullable_time("When its last event came")),
            ("failed_events", schema::count("Events that could not be worked with")),
        ];
        schemas.named("AffiliateProcessor", |_| schema::object("The payment processor", fields))
    }
}

/// A program with its processor and what is missing.
#[derive(Debug, Serialize)]
pub struct WholeProgram {
    pub(super) program: ProgramObject,
    pub(super) processor: Option<ProcessorObject>,
    pub(super) missing: Vec<MissingStep>,
}

impl Describe for WholeProgram {
    fn schema(schemas: &mut Schemas) -> Value {
        let (program, mut processor) = (ProgramObject::schema(schemas), ProcessorObject::schema(schemas));
        schema::or_null(&mut processor);
        let step = schema::words(MissingStep::WORDS, "A step");
        let missing = schema::list(step, "What is missing before it can go live");
        schemas.named("WholeAffiliateProgram", |_| {
            schema::object(
                "An affiliate program, and how far it is",
                [("program", program), ("processor", processor), ("missing", missing)],
            )
        })
    }
}

impl Shape for WholeProgram {}

/// What the processor said when it was asked.
#[derive(Debug, Serialize)]
pub struct Tested {
    pub(super) ok: bool,
    pub(super) account_id: Option<String>,
    pub(super) livemode: Option<bool>,
    pub(super) last_event_at: Option<::affiliate::object::Moment>,
}

impl Describe for Tested {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("TestedAffiliateProcessor", |_| {
            let mut livemode = schema::boolean("Whether its money is real, as far as that is known");
            schema::or_null(&mut livemode);
            schema::object(
                "The processor answers, or needs not be asked",
                [
                    ("ok", json!({"type": "boolean", "const": true})),
                    ("account_id", schema::nullable_string("The account there")),
                    ("livemode", livemode),
                    ("last_event_at", schema::nullable_time("When its last event came")),
                ],
            )
        })
    }
}

/// What the owner has written of a partner, and the API never shows.
#[derive(Debug, Serialize)]
pub struct PartnerInside {
    pub(super) affiliate: PartnerObject,
    pub(super) notes: Option<String>,
    pub(super) payout_destination: Option<String>,
    pub(super) postback_url: Option<String>,
    pub(super) postback_secret: Option<String>,
    pub(super) email_opt_out: bool,
    pub(super) commission_override: Option<Override>,
}

/// A rate of a partner's own.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Override {
    pub(super) commission_type: &'static str,
    pub(super) commission_bps: u16,
}

/// The schema of [`Override`].
pub(super) fn override_schema() -> Value {
    schema::object(
        "A rate of the partner's own, before any campaign's",
        [
            ("commission_type", json!({"type": "string", "const": "percent"})),
            ("commission_bps", bps_schema("The share of a sale, in basis points")),
        ],
    )
}

impl Describe for PartnerInside {
    fn schema(schemas: &mut Schemas) -> Value {
        let affiliate = PartnerObject::schema(schemas);
        let mut own_rate = override_schema();
        schema::or_null(&mut own_rate);
        schemas.named("AffiliateInside", |_| {
            schema::object(
                "A partner with what the API writes and never shows",
                [
                    ("affiliate", affiliate),
                    ("notes", schema::nullable_string("The owner's notes")),
                    ("payout_destination", schema::nullable_string("Where its money goes")),
                    ("postback_url", schema::nullable_string("Where its own events are posted to")),
                    ("postback_secret", schema::nullable_string("What they are signed with")),
                    ("email_opt_out", schema::boolean("Whether it wants no mail but what it asks for")),
                    ("commission_override", own_rate),
                ],
            )
        })
    }
}

impl Shape for PartnerInside {}
