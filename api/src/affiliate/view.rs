//! Response objects of the affiliate program and their schemas. The objects are from `affiliate::api_objects`, which
//! webhooks use as well.

use ::affiliate::api_objects::{
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

use super::fields::{bps_schema, cents_schema, integer_schema};
use super::response::ResponseObject;
use crate::response::ExtraResponse;
use crate::schema::{self, Schemas, ToSchema};

/// Like `T`, answered with 201.
#[derive(Debug)]
pub struct CreatedResponse<T>(std::marker::PhantomData<T>);

impl<T: ToSchema> ToSchema for CreatedResponse<T> {
    const SUCCESS_STATUS: StatusCode = StatusCode::CREATED;

    fn schema(schemas: &mut Schemas) -> Value {
        T::schema(schemas)
    }
}

impl<T: ResponseObject> ResponseObject for CreatedResponse<T> {}

/// One page of a list.
#[derive(Debug, Serialize)]
pub struct ListResponse<T> {
    data: Vec<T>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl<T> ListResponse<T> {
    /// `next_cursor` is `None` on the last page.
    pub(super) fn new(data: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { data, has_more: next_cursor.is_some(), next_cursor }
    }
}

impl<T: ToSchema> ToSchema for ListResponse<T> {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::list_page("data", T::schema(schemas))
    }
}

/// Defines a response with a single object under its name.
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
                let fields = [(stringify!($field), object)];
                schemas.component($schema, |_| schema::object("A response with a single object", fields))
            }
        }

        impl ResponseObject for $name {}
    };
}

/// A response with a single object
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OneAffiliate")]
pub struct PartnerResponse {
    pub(super) affiliate: PartnerObject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(skip)]
    pub(super) warnings: Vec<String>,
}

impl PartnerResponse {
    pub(super) fn from_partner(view: &PartnerView) -> Self {
        let warnings = view.warning.iter().map(ToString::to_string).collect();
        Self { affiliate: view.object(), warnings }
    }
}

impl ResponseObject for PartnerResponse {}

single_object_response! {
    PartnerLinkResponse { link: LinkObject } as "OneAffiliateLink"
}
single_object_response! {
    CampaignResponse { campaign: CampaignObject } as "OneAffiliateCampaign"
}
single_object_response! {
    ReferralResponse { referral: ReferralObject } as "OneAffiliateReferral"
}
single_object_response! {
    CommissionResponse { commission: CommissionObject } as "OneAffiliateCommission"
}
single_object_response! {
    ProgramResponse { program: ProgramObject } as "OneAffiliateProgram"
}
single_object_response! {
    ProcessorResponse { processor: ProcessorObject } as "OneAffiliateProcessor"
}

fn object_kind_schema(word: &str) -> Value {
    json!({"type": "string", "const": word, "description": "The object type"})
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
        let mut url = schema::string("The URL with the token");
        url["examples"] = json!(["https://shop.example/?via=ada"]);
        let mut token = schema::string("The value of the `via` parameter");
        token["examples"] = json!(["ada"]);
        let fields = [
            ("object", object_kind_schema("affiliate_link")),
            ("id", schema::string("The link's id (`afl_…`)")),
            ("affiliate_id", schema::string("The partner (`aff_…`)")),
            ("token", token),
            ("url", url),
            ("destination_url", schema::nullable_string("The destination: a path or a URL on the website")),
            ("label", schema::nullable_string("The label")),
            ("is_primary", schema::boolean("Whether this is the primary link")),
            ("created_at", schema::time("When it was created")),
        ];
        schemas.component("AffiliateLink", |_| schema::object("A link of a partner", fields))
    }
}

impl ToSchema for PartnerObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut links =
            schema::list(LinkObject::schema(schemas), "All links of the partner; in a list, only the primary link");
        links["maxItems"] = json!(2 * LINKS_MAX);
        let mut tags = schema::list(json!({"type": "string"}), "Tags for the owner's use");
        tags["maxItems"] = json!(TAGS_MAX);
        let fields = [
            ("object", object_kind_schema("affiliate")),
            ("id", schema::string("The partner's id (`aff_…`)")),
            ("email", schema::string("The unique email address")),
            ("first_name", schema::nullable_string("The given name")),
            ("last_name", schema::nullable_string("The family name")),
            ("company", schema::nullable_string("The company")),
            ("website", schema::nullable_string("The website")),
            ("country", schema::nullable_string("Two letters (ISO 3166-1)")),
            ("status", schema::string_enum(PartnerStatus::WORDS, "The status")),
            ("source", schema::string_enum(PartnerSource::WORDS, "The source")),
            ("campaign_id", schema::string("The campaign (`cmp_…`)")),
            ("parent_affiliate_id", schema::nullable_string("The partner that recruited this one (`aff_…`)")),
            ("tags", tags),
            ("payout_method", nullable_words(PayoutMethod::WORDS, "The payout method")),
            ("payout_ready", schema::boolean("Whether a payout destination with an allowed method is set")),
            ("approved_at", schema::nullable_time("When the partner was first approved")),
            ("links", links),
            ("created_at", schema::time("When it was created")),
            ("updated_at", schema::time("When it was last changed")),
        ];
        schemas.component("Affiliate", |_| schema::object("A partner", fields))
    }
}

/// Schema of a tier, in requests and responses.
pub(super) fn tier_schema() -> Value {
    schema::object(
        "A rate that applies from a number of paying customers; `commission_type` selects one of the two rates",
        [
            (
                "min_paid_customers",
                integer_schema(1..=u32::MAX.into(), "Number of paying customers, including the current one"),
            ),
            ("commission_bps", bps_schema("The percentage in basis points")),
            ("commission_flat_cents", cents_schema("The amount in minor units")),
        ],
    )
}

impl ToSchema for CampaignObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let product = schema::object(
            "The rate of a product or of one of its prices",
            [
                ("product_id", schema::string("The payment processor's product id")),
                ("price_id", schema::nullable_string("The payment processor's price id")),
                (
                    "commission_type",
                    schema::string_enum(&["percent", "flat", "none"], "Which rate applies; `none` earns nothing"),
                ),
                ("commission_bps", bps_schema("The percentage in basis points")),
                ("commission_flat_cents", cents_schema("The amount in minor units")),
                ("label", schema::nullable_string("A label for your own use")),
            ],
        );
        let integer = |range, description| {
            let mut schema = integer_schema(range, description);
            schema::allow_null(&mut schema);
            schema
        };
        let mut fields = vec![
            ("object", object_kind_schema("affiliate_campaign")),
            ("id", schema::string("The campaign's id (`cmp_…`)")),
            ("name", schema::string("The unique name of the campaign")),
            ("is_default", schema::boolean("Whether this is the default campaign")),
            ("visibility", schema::string_enum(Visibility::WORDS, "Who can see the campaign")),
            ("auto_approve", schema::boolean("Whether applications are approved automatically")),
            ("commission_type", schema::string_enum(&["percent", "flat"], "Which rate applies")),
            ("commission_bps", bps_schema("The percentage of a sale in basis points")),
            ("commission_flat_cents", cents_schema("The amount per sale, in minor units of the program's currency")),
            (
                "commission_duration",
                schema::string_enum(&["once", "recurring"], "Whether the first sale or all sales earn a commission"),
            ),
            (
                "recurring_months",
                integer(1..=u16::MAX.into(), "For how many months sales earn a commission; null is unlimited"),
            ),
            ("max_commission_cents", integer(0..=super::fields::CENTS_MAX, "Maximum commission per sale")),
            ("tiers", schema::list(tier_schema(), "Rates by number of paying customers")),
            ("product_rates", schema::list(product, "Rates of products and prices")),
            ("second_tier_bps", bps_schema("The recruiting partner's percentage of the same sale in basis points")),
            ("lead_bounty_cents", cents_schema("The amount per lead in minor units")),
            ("cookie_days", integer_schema(1..=365, "For how many days a visit is credited to the partner")),
            ("hold_days", integer_schema(0..=365, "For how many days a commission is held for refunds")),
            ("archived_at", schema::nullable_time("When the campaign was archived and stopped accepting partners")),
            ("created_at", schema::time("When it was created")),
            ("updated_at", schema::time("When it was last changed")),
        ];
        let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        fields.push(("affiliate_count", schema::count("Number of partners; only in lists")));
        schemas.component("AffiliateCampaign", |_| {
            schema::object_with("The commission terms of partners", &required, fields)
        })
    }
}

impl ToSchema for ReferralObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut currency = currency_schema("The currency of the first payment");
        schema::allow_null(&mut currency);
        let fields = [
            ("object", object_kind_schema("affiliate_referral")),
            ("id", schema::string("The referral's id (`ref_…`)")),
            ("affiliate_id", schema::string("The partner (`aff_…`)")),
            ("status", schema::string_enum(ReferralStatus::WORDS, "The status")),
            ("source", schema::string_enum(ReferralSource::WORDS, "The source")),
            ("email", schema::nullable_string("The person's email address")),
            ("processor_customer_id", schema::nullable_string("The payment processor's customer id")),
            ("sub_id", schema::nullable_string("The partner's own tag")),
            ("blocked_reason", nullable_words(ReferralBlock::WORDS, "Why the referral earns no commission")),
            (
                "revenue_cents",
                json!({"type": "integer", "description": "Payments minus refunds, without tax, in minor units"}),
            ),
            ("currency", currency),
            ("converted_at", schema::nullable_time("When the customer first paid")),
            ("expires_at", schema::time("The customer must pay before this time to be credited to the partner")),
            ("created_at", schema::time("When it was created")),
            ("updated_at", schema::time("When it was last changed")),
        ];
        schemas.component("AffiliateReferral", |_| schema::object("A person referred by a partner", fields))
    }
}

impl ToSchema for CommissionObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut tier =
            integer_schema(1..=2, "1: earned by the referring partner; 2: earned by the partner that recruited it");
        tier["examples"] = json!([1]);
        let fields = [
            ("object", object_kind_schema("affiliate_commission")),
            ("id", schema::string("The commission's id (`com_…`)")),
            ("affiliate_id", schema::string("The partner (`aff_…`)")),
            ("referral_id", schema::string("The referral (`ref_…`)")),
            ("tier", tier),
            ("status", schema::string_enum(CommissionStatus::WORDS, "The status; `earned` while it is in a payout")),
            ("amount_cents", integer_schema(1..=i64::MAX, "The amount in minor units")),
            (
                "sale_amount_cents",
                json!({"type": "integer", "description": "The sale amount that the commission is based on; 0 for a bounty"}),
            ),
            ("currency", currency_schema("The currency of `amount_cents`")),
            ("description", schema::string("What the commission is for")),
            ("processor_invoice_id", schema::nullable_string("The payment processor's invoice id")),
            ("processor_charge_id", schema::nullable_string("The payment processor's charge id")),
            ("earns_at", schema::time("When the hold period ends")),
            ("earned_at", schema::nullable_time("When the commission was earned")),
            ("paid_at", schema::nullable_time("When it was paid out")),
            ("reversed_at", schema::nullable_time("When it was reversed")),
            ("reverse_reason", nullable_words(ReversalReason::WORDS, "Why it was reversed")),
            ("payout_id", schema::nullable_string("The payout (`pay_…`)")),
            ("created_at", schema::time("When it was created")),
            ("updated_at", schema::time("When it was last changed")),
        ];
        schemas.component("AffiliateCommission", |_| schema::object("A line of the ledger", fields))
    }
}

/// A created or existing referral
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ToldAffiliateReferral", status = CREATED)]
pub struct CreateReferralResponse {
    pub(super) referral: ReferralObject,
    /// Whether the request created the referral; false if the person was referred before
    pub(super) created: bool,
}

impl ResponseObject for CreateReferralResponse {
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse {
        status: 200,
        media_type: Some("application/json"),
        description: "The person was referred before; the existing referral is returned",
    }];
}

impl ToSchema for ProgramObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let min_payout = json!({
            "type": "object", "additionalProperties": {"type": "integer", "minimum": 0},
            "examples": [{"usd": 5000}], "description": "The minimum payout in minor units, by currency",
        });
        let per = |description| integer_schema(1..=super::program_fields::REVIEW_THRESHOLD_MAX.into(), description);
        let texts = |description: &str| schema::list(json!({"type": "string"}), description);
        let fields = [
            ("object", object_kind_schema("affiliate_program")),
            ("id", schema::string("The program's id (`prog_…`)")),
            ("status", schema::string_enum(ProgramStatus::WORDS, "The status")),
            ("mode", schema::string_enum(ProcessorMode::WORDS, "Whether live or test payments count")),
            ("website_url", schema::string("The website that partner links lead to")),
            ("currency", currency_schema("The currency of flat amounts, bounties and caps")),
            (
                "attribution",
                schema::string_enum(Attribution::WORDS, "Which link gets the credit if a visitor came by several"),
            ),
            (
                "new_customers_only",
                schema::boolean("Whether customers who paid before they were referred earn nothing"),
            ),
            ("metadata_key", schema::string("The metadata key that names the referral in the payment processor")),
            ("exclude_key", schema::string("The metadata key that excludes a payment if its value is `false`")),
            ("default_campaign_id", schema::nullable_string("The default campaign (`cmp_…`)")),
            ("min_payout", min_payout),
            (
                "allowed_methods",
                schema::list(
                    schema::string_enum(PayoutMethod::WORDS, "A payout method"),
                    "Payout methods that partners can choose",
                ),
            ),
            (
                "payout_after_refund",
                schema::string_enum(AfterPayout::WORDS, "What happens if a sale is refunded after the payout"),
            ),
            ("count_invoiceless_payments", schema::boolean("Whether checkouts without an invoice earn commissions")),
            (
                "share_customer_email",
                schema::boolean("Whether partners see the email addresses of customers they referred"),
            ),
            (
                "suspended_accrue",
                schema::boolean("Whether suspended partners continue to earn from existing referrals"),
            ),
            ("allowed_origins", texts("Web origins that may record visits; if empty, the website's origin")),
            ("publishable_key", schema::string("The public key for web pages")),
            ("banned_referrers", texts("Referrals from pages of these hosts are held for review")),
            ("portal_domain", schema::nullable_string("The host name of the partner portal")),
            (
                "portal_domain_error",
                schema::nullable_string(
                    "Why the portal is not available at its own host, and how to fix it; null if it is",
                ),
            ),
            ("terms_url", schema::nullable_string("URL of the program's terms")),
            (
                "mail_from",
                schema::nullable_string(
                    "Sender address of partner email; without it, only email that a partner requested is sent",
                ),
            ),
            (
                "mail_error",
                schema::nullable_string("Why email to partners is not sent, and how to fix it; null if it is"),
            ),
            ("velocity_per_hour", per("Referrals of a partner per hour above which they are held for review")),
            ("max_bounties_per_day", per("Bounties of a partner per day above which they are held for review")),
            ("rev", schema::count("Version number; increases with each change")),
            ("created_at", schema::time("When it was enabled")),
            ("updated_at", schema::time("When it was last changed")),
        ];
        schemas.component("AffiliateProgram", |_| schema::object("An affiliate program", fields))
    }
}

impl ToSchema for ProcessorObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut livemode = schema::boolean("Whether payments are live; null if unknown");
        schema::allow_null(&mut livemode);
        let fields = [
            ("kind", object_kind_schema("stripe")),
            ("api_base", schema::string("The base URL of the payment processor's API")),
            (
                "account_id",
                schema::nullable_string("The payment processor's account id; events of other accounts are ignored"),
            ),
            ("livemode", livemode),
            ("has_key", schema::boolean("Whether an API key is set; without one only events are received")),
            ("webhook_secrets_count", integer_schema(1..=2, "Number of accepted signing secrets")),
            ("webhook_url", schema::string("The webhook URL for the payment processor's events")),
            ("last_event_at", schema::nullable_time("When the last event was received")),
            ("failed_events", schema::count("Number of events that could not be processed")),
        ];
        schemas.component("AffiliateProcessor", |_| schema::object("The payment processor", fields))
    }
}

/// An affiliate program with its payment processor and missing set-up steps
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "WholeAffiliateProgram")]
pub struct ProgramDetailResponse {
    pub(super) program: ProgramObject,
    pub(super) processor: Option<ProcessorObject>,
    /// Set-up steps that are missing before the program can go live
    #[schema(items = {"type": "string", "enum": MissingStep::WORDS, "description": "A set-up step"})]
    pub(super) missing: Vec<MissingStep>,
}

impl ResponseObject for ProgramDetailResponse {}

/// The payment processor's key is valid, or no key is set
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TestedAffiliateProcessor")]
pub struct TestProcessorResponse {
    #[schema(const = true)]
    pub(super) ok: bool,
    /// The payment processor's account id
    pub(super) account_id: Option<String>,
    /// Whether payments are live; null if unknown
    pub(super) livemode: Option<bool>,
    /// When the last event was received
    pub(super) last_event_at: Option<::affiliate::api_objects::ApiTimestamp>,
}

/// A partner including its write-only fields
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliateInside")]
pub struct OwnerPartnerDetail {
    pub(super) affiliate: PartnerObject,
    /// The owner's notes
    pub(super) notes: Option<String>,
    /// The payout destination
    pub(super) payout_destination: Option<String>,
    /// The URL that receives the partner's own events
    pub(super) postback_url: Option<String>,
    /// The secret that signs the postbacks
    pub(super) postback_secret: Option<String>,
    /// Whether the partner has opted out of email, except security email and email it requests
    pub(super) email_opt_out: bool,
    pub(super) commission_override: Option<CommissionOverride>,
}

/// The partner's own rate; takes precedence over the campaign's
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct CommissionOverride {
    #[schema(const = "percent")]
    pub(super) commission_type: &'static str,
    /// The percentage of a sale in basis points
    #[schema(maximum = mail::affiliate::money::BasisPoints::ALL.get())]
    pub(super) commission_bps: u16,
}

/// Schema of [`CommissionOverride`].
pub(super) fn override_schema() -> Value {
    schema::object(
        "The partner's own rate; takes precedence over the campaign's",
        [
            ("commission_type", json!({"type": "string", "const": "percent"})),
            ("commission_bps", bps_schema("The percentage of a sale in basis points")),
        ],
    )
}

impl ResponseObject for OwnerPartnerDetail {}
