//! What callers see of the program, described. The objects themselves are `affiliate::object`'s, the same in webhooks.

use ::affiliate::object::{
    CampaignObject, CommissionObject, LinkObject, PartnerObject, ProcessorObject, ProgramObject, ReferralObject,
};
use ::affiliate::partners::PartnerView;
use http::StatusCode;
use mail::affiliate::campaign::Visibility;
use mail::affiliate::commission::ReversalReason;
use mail::affiliate::partner::{LINKS_MAX, PartnerSource, PartnerStatus, TAGS_MAX};
use mail::affiliate::program::{AfterPayout, Attribution, MissingStep, PayoutMethod, ProcessorMode, ProgramStatus};
use mail::affiliate::referral::{ReferralBlock, ReferralSource, ReferralStatus};
use serde::Serialize;
use serde_json::{Value, json};
use store::affiliate::commission::CommissionStatus;

use super::answer::ResponseObject;
use super::fields::{bps_schema, cents_schema, integer_schema};
use crate::call::ExtraResponse;
use crate::schema::{self, Schemas, ToSchema};

/// The same as what was made.
#[derive(Debug)]
pub struct CreatedResponse<T>(std::marker::PhantomData<T>);

impl<T: ToSchema> ToSchema for CreatedResponse<T> {
    const SUCCESS_STATUS: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }
}

impl<T: ResponseObject> ResponseObject for CreatedResponse<T> {}

/// A page.
#[derive(Debug, Serialize)]
pub struct ListResponse<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl<T> ListResponse<T> {
    /// These, and where the next page begins.
    pub(super) fn new(data: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { data, has_more: next_cursor.is_some(), next_cursor }
    }
}

impl<T: ToSchema> ToSchema for ListResponse<T> {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::list_page("data", T::schema(schemas))
    }
}

/// Makes the answer that holds one object under its name.
macro_rules! single_object_response {
    ($(#[$doc:meta])* $name:ident { $field:ident: $object:ty } as $schema:literal) => {
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        pub struct $name {
            pub(super) $field: $object,
        }

        impl ToSchema for $name {
            fn schema(schemas: &mut Schemas) -> Value {
                let object = <$object>::schema(schemas);
                schemas.component($schema, |_| schema::object("One of them", [(stringify!($field), object)]))
            }
        }

        impl ResponseObject for $name {}
    };
}

/// A partner, and what was not done of what was asked for.
#[derive(Debug, Serialize)]
pub struct PartnerResponse {
    pub(super) affiliate: PartnerObject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl PartnerResponse {
    pub(super) fn from_partner(shown: &PartnerView) -> Self {
        let warnings = shown.warning.iter().map(ToString::to_string).collect();
        Self { affiliate: shown.object(), warnings }
    }
}

impl ToSchema for PartnerResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let object = PartnerObject::schema(schemas);
        schemas.component("OneAffiliate", |_| schema::object("One of them", [("affiliate", object)]))
    }
}

impl ResponseObject for PartnerResponse {}

single_object_response! {
    /// A link.
    PartnerLinkResponse { link: LinkObject } as "OneAffiliateLink"
}
single_object_response! {
    /// A campaign.
    CampaignResponse { campaign: CampaignObject } as "OneAffiliateCampaign"
}
single_object_response! {
    /// A referral.
    ReferralResponse { referral: ReferralObject } as "OneAffiliateReferral"
}
single_object_response! {
    /// A commission.
    CommissionResponse { commission: CommissionObject } as "OneAffiliateCommission"
}
single_object_response! {
    /// A program.
    ProgramResponse { program: ProgramObject } as "OneAffiliateProgram"
}
single_object_response! {
    /// The processor.
    ProcessorResponse { processor: ProcessorObject } as "OneAffiliateProcessor"
}

fn object_kind_schema(word: &str) -> Value {
    json!({"type": "string", "const": word, "description": "What it is"})
}

fn nullable_words(words: &[&str], description: &str) -> Value {
    let mut schema = schema::string_enum(words, description);
    schema::allow_null(&mut schema);
    schema
}

fn currency_schema(description: &str) -> Value {
    json!({"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"], "description": description})
}

impl ToSchema for LinkObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut url = schema::string("The address with the token");
        url["examples"] = json!(["https://shop.example/?via=ada"]);
        let mut token = schema::string("What its visitors bring, as the parameter `via`");
        token["examples"] = json!(["ada"]);
        let fields = [
            ("object", object_kind_schema("affiliate_link")),
            ("id", schema::string("Its id (`afl_…`)")),
            ("affiliate_id", schema::string("Whose it is (`aff_…`)")),
            ("token", token),
            ("url", url),
            ("destination_url", schema::nullable_string("Where it leads: a path or an address on the website")),
            ("label", schema::nullable_string("What its owner calls it")),
            ("is_primary", schema::boolean("Whether it is the one that is shown first")),
            ("created_at", schema::time("When it was made")),
        ];
        schemas.component("AffiliateLink", |_| schema::object("A link of a partner", fields))
    }
}

impl ToSchema for PartnerObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut links = schema::list(LinkObject::schema(schemas), "All its links; in a list the primary one");
        links["maxItems"] = json!(2 * LINKS_MAX);
        let mut tags = schema::list(json!({"type": "string"}), "The owner's words for it");
        tags["maxItems"] = json!(TAGS_MAX);
        let fields = [
            ("object", object_kind_schema("affiliate")),
            ("id", schema::string("Its id (`aff_…`)")),
            ("email", schema::string("Its address; no two partners have the same")),
            ("first_name", schema::nullable_string("The given name")),
            ("last_name", schema::nullable_string("The family name")),
            ("company", schema::nullable_string("The company")),
            ("website", schema::nullable_string("The website")),
            ("country", schema::nullable_string("Two letters (ISO 3166-1)")),
            ("status", schema::string_enum(PartnerStatus::WORDS, "Where it stands")),
            ("source", schema::string_enum(PartnerSource::WORDS, "By which way it came")),
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
        schemas.component("Affiliate", |_| schema::object("A partner", fields))
    }
}

/// The rate of a tier, as it is shown and given.
pub(super) fn tier_schema() -> Value {
    schema::object(
        "A rate from a number of paying customers on; the number counts that the campaign's `commission_type` says",
        [
            (
                "min_paid_customers",
                integer_schema(1..=u32::MAX.into(), "With this many, the one that converts now among them"),
            ),
            ("commission_bps", bps_schema("The share, in basis points")),
            ("commission_flat_cents", cents_schema("The amount")),
        ],
    )
}

impl ToSchema for CampaignObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let product = schema::object(
            "A rate of a product or of one of its prices",
            [
                ("product_id", schema::string("The processor's id of the product")),
                ("price_id", schema::nullable_string("The processor's id of one price of it")),
                (
                    "commission_type",
                    schema::string_enum(&["percent", "flat", "none"], "What counts; nothing is earned with `none`"),
                ),
                ("commission_bps", bps_schema("The share, in basis points")),
                ("commission_flat_cents", cents_schema("The amount")),
                ("label", schema::nullable_string("What people call it")),
            ],
        );
        let whole = |range, description| {
            let mut schema = integer_schema(range, description);
            schema::allow_null(&mut schema);
            schema
        };
        let mut fields = vec![
            ("object", object_kind_schema("affiliate_campaign")),
            ("id", schema::string("Its id (`cmp_…`)")),
            ("name", schema::string("What people call it")),
            ("is_default", schema::boolean("Whether it takes partners who name none")),
            ("visibility", schema::string_enum(Visibility::WORDS, "Who may see it")),
            ("auto_approve", schema::boolean("Whether who joins is active at once")),
            ("commission_type", schema::string_enum(&["percent", "flat"], "Which of the two counts")),
            ("commission_bps", bps_schema("The share of a sale, in basis points")),
            ("commission_flat_cents", cents_schema("The amount for a sale, in the program's currency")),
            ("commission_duration", schema::string_enum(&["once", "recurring"], "For which sales")),
            ("recurring_months", whole(1..=u16::MAX.into(), "For how many months; null for as long as they pay")),
            ("max_commission_cents", whole(0..=super::fields::CENTS_MAX, "The most that one sale earns")),
            ("tiers", schema::list(tier_schema(), "Rates that rise with paying customers")),
            ("product_rates", schema::list(product, "Rates of products and prices")),
            ("second_tier_bps", bps_schema("The recruiter's share of the same sale")),
            ("lead_bounty_cents", cents_schema("What a lead earns")),
            ("cookie_days", integer_schema(1..=365, "For how many days a visit binds")),
            ("hold_days", integer_schema(0..=365, "For how many days a commission waits for refunds")),
            ("archived_at", schema::nullable_time("Since when it takes no new partners")),
            ("created_at", schema::time("When it was made")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        fields.push(("affiliate_count", schema::count("In the list: how many partners it has")));
        schemas.component("AffiliateCampaign", |_| schema::object_with("What partners earn by", &required, fields))
    }
}

impl ToSchema for ReferralObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut currency = currency_schema("The currency of the first payment");
        schema::allow_null(&mut currency);
        let fields = [
            ("object", object_kind_schema("affiliate_referral")),
            ("id", schema::string("Its id (`ref_…`)")),
            ("affiliate_id", schema::string("Who brought the person (`aff_…`)")),
            ("status", schema::string_enum(ReferralStatus::WORDS, "Where it stands")),
            ("source", schema::string_enum(ReferralSource::WORDS, "By which way it came")),
            ("email", schema::nullable_string("Who it is")),
            ("processor_customer_id", schema::nullable_string("The processor's id of the customer")),
            ("sub_id", schema::nullable_string("The partner's own tag")),
            ("blocked_reason", nullable_words(ReferralBlock::WORDS, "Why it never earns")),
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
        schemas.component("AffiliateReferral", |_| schema::object("A person whom a partner brought", fields))
    }
}

impl ToSchema for CommissionObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut tier = integer_schema(1..=2, "1: the partner's who brought the customer; 2: its recruiter's");
        tier["examples"] = json!([1]);
        let fields = [
            ("object", object_kind_schema("affiliate_commission")),
            ("id", schema::string("Its id (`com_…`)")),
            ("affiliate_id", schema::string("Whose it is (`aff_…`)")),
            ("referral_id", schema::string("By whom it came (`ref_…`)")),
            ("tier", tier),
            ("status", schema::string_enum(CommissionStatus::WORDS, "Where it stands; in a payout it is `earned`")),
            ("amount_cents", integer_schema(1..=i64::MAX, "What it comes to, in minor units")),
            (
                "sale_amount_cents",
                json!({"type": "integer", "description": "The part of the sale that it is of; 0 of a bounty"}),
            ),
            ("currency", currency_schema("The currency of `amount_cents`")),
            ("description", schema::string("What it is for")),
            ("processor_invoice_id", schema::nullable_string("The processor's id of the invoice")),
            ("processor_charge_id", schema::nullable_string("The processor's id of the charge")),
            ("earns_at", schema::time("When its hold ends")),
            ("earned_at", schema::nullable_time("When it became the partner's")),
            ("paid_at", schema::nullable_time("When its payout went out")),
            ("reversed_at", schema::nullable_time("When it was taken back")),
            ("reverse_reason", nullable_words(ReversalReason::WORDS, "Why it was taken back")),
            ("payout_id", schema::nullable_string("The payout that it is in (`pay_…`)")),
            ("created_at", schema::time("When it was written")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.component("AffiliateCommission", |_| schema::object("A line of the ledger", fields))
    }
}

/// A referral that was told of.
#[derive(Debug, Serialize)]
pub struct CreateReferralResponse {
    pub(super) referral: ReferralObject,
    pub(super) created: bool,
}

impl ToSchema for CreateReferralResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        let referral = ReferralObject::schema(schemas);
        schemas.component("ToldAffiliateReferral", |_| {
            let created = schema::boolean("Whether it is new; else the one that stood, whoever's it is");
            schema::object("A referral that was told of", [("referral", referral), ("created", created)])
        })
    }
}

impl ResponseObject for CreateReferralResponse {
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse {
        status: 200,
        media_type: Some("application/json"),
        about: "The person was referred before: the first partner keeps it",
    }];
}

impl ToSchema for ProgramObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let min_payout = json!({
            "type": "object", "additionalProperties": {"type": "integer", "minimum": 0},
            "examples": [{"usd": 5000}], "description": "The least that is paid out, by currency",
        });
        let per = |description| integer_schema(1..=super::program::REVIEW_THRESHOLD_MAX.into(), description);
        let texts = |description: &str| schema::list(json!({"type": "string"}), description);
        let fields = [
            ("object", object_kind_schema("affiliate_program")),
            ("id", schema::string("Its id (`prog_…`)")),
            ("status", schema::string_enum(ProgramStatus::WORDS, "Where it stands")),
            ("mode", schema::string_enum(ProcessorMode::WORDS, "Whose money it is about")),
            ("website_url", schema::string("Where links lead")),
            ("currency", currency_schema("The currency of flat amounts, bounties and caps")),
            ("attribution", schema::string_enum(Attribution::WORDS, "Whose a visitor is who came by two links")),
            ("new_customers_only", schema::boolean("Who paid before it was referred never earns")),
            ("metadata_key", schema::string("The processor's metadata that names a referral")),
            ("exclude_key", schema::string("The processor's metadata that excludes when it is `false`")),
            ("default_campaign_id", schema::nullable_string("What takes partners who name none (`cmp_…`)")),
            ("min_payout", min_payout),
            (
                "allowed_methods",
                schema::list(schema::string_enum(PayoutMethod::WORDS, "A way"), "How partners may be paid"),
            ),
            ("payout_after_refund", schema::string_enum(AfterPayout::WORDS, "What a refund does after a payout")),
            ("count_invoiceless_payments", schema::boolean("Whether checkouts without an invoice count")),
            ("share_customer_email", schema::boolean("Whether partners see whom they brought")),
            ("suspended_accrue", schema::boolean("Whether suspended partners go on earning by those they have")),
            ("allowed_origins", texts("Web origins that may capture visits; the website's when empty")),
            ("publishable_key", schema::string("The key that web pages bring; no secret")),
            ("banned_referrers", texts("Hosts of pages that are not wanted: who comes from there is looked at")),
            ("portal_domain", schema::nullable_string("The host of the partner portal")),
            (
                "portal_domain_error",
                schema::nullable_string("Why the portal is not at its own host, and what to do; null when it is"),
            ),
            ("terms_url", schema::nullable_string("Where the program's terms stand")),
            (
                "mail_from",
                schema::nullable_string("Who writes to partners; without it only who asked for mail is written to"),
            ),
            (
                "mail_error",
                schema::nullable_string("Why partners are not written to, and what to do; null when they are"),
            ),
            ("velocity_per_hour", per("New referrals of a partner in an hour before they are looked at")),
            ("max_bounties_per_day", per("Bounties of a partner in a day before they are looked at")),
            ("rev", schema::count("Grows with each change")),
            ("created_at", schema::time("When it was enabled")),
            ("updated_at", schema::time("When it was changed last")),
        ];
        schemas.component("AffiliateProgram", |_| schema::object("An affiliate program", fields))
    }
}

impl ToSchema for ProcessorObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut livemode = schema::boolean("Whether its money is real, as far as that is known");
        schema::allow_null(&mut livemode);
        let fields = [
            ("kind", object_kind_schema("stripe")),
            ("api_base", schema::string("The address of its API")),
            ("account_id", schema::nullable_string("The account there; events of others are ignored")),
            ("livemode", livemode),
            ("has_key", schema::boolean("Whether it can be asked; else it is only listened to")),
            ("webhook_secrets_count", integer_schema(1..=2, "Secrets that its events may be signed with")),
            ("webhook_url", schema::string("Where it is to send its events")),
            ("last_event_at", schema::nullable_time("When its last event came")),
            ("failed_events", schema::count("Events that could not be worked with")),
        ];
        schemas.component("AffiliateProcessor", |_| schema::object("The payment processor", fields))
    }
}

/// A program with its processor and what is missing.
#[derive(Debug, Serialize)]
pub struct ProgramDetailResponse {
    pub(super) program: ProgramObject,
    pub(super) processor: Option<ProcessorObject>,
    pub(super) missing: Vec<MissingStep>,
}

impl ToSchema for ProgramDetailResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let (program, mut processor) = (ProgramObject::schema(schemas), ProcessorObject::schema(schemas));
        schema::allow_null(&mut processor);
        let step = schema::string_enum(MissingStep::WORDS, "A step");
        let missing = schema::list(step, "What is missing before it can go live");
        schemas.component("WholeAffiliateProgram", |_| {
            schema::object(
                "An affiliate program, and how far it is",
                [("program", program), ("processor", processor), ("missing", missing)],
            )
        })
    }
}

impl ResponseObject for ProgramDetailResponse {}

/// What the processor said when it was asked.
#[derive(Debug, Serialize)]
pub struct TestProcessorResponse {
    pub(super) ok: bool,
    pub(super) account_id: Option<String>,
    pub(super) livemode: Option<bool>,
    pub(super) last_event_at: Option<::affiliate::object::ApiTimestamp>,
}

impl ToSchema for TestProcessorResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("TestedAffiliateProcessor", |_| {
            let mut livemode = schema::boolean("Whether its money is real, as far as that is known");
            schema::allow_null(&mut livemode);
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
pub struct OwnerPartnerDetail {
    pub(super) affiliate: PartnerObject,
    pub(super) notes: Option<String>,
    pub(super) payout_destination: Option<String>,
    pub(super) postback_url: Option<String>,
    pub(super) postback_secret: Option<String>,
    pub(super) email_opt_out: bool,
    pub(super) commission_override: Option<CommissionOverride>,
}

/// A rate of a partner's own.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CommissionOverride {
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

impl ToSchema for OwnerPartnerDetail {
    fn schema(schemas: &mut Schemas) -> Value {
        let affiliate = PartnerObject::schema(schemas);
        let mut own_rate = override_schema();
        schema::allow_null(&mut own_rate);
        schemas.component("AffiliateInside", |_| {
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

impl ResponseObject for OwnerPartnerDetail {}
