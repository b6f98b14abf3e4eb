//! Request bodies for campaigns.
//!
//! A new campaign is built from the given fields and defaults; an update changes the given fields. Both validate the
//! complete result: each tier has the rate that `commission_type` selects, and `recurring_months` requires `recurring`.
//! Both numbers of a rate (percent and flat) are stored. The unused one applies again when the type changes.

use ::affiliate::api_objects::TierObject;
use ::affiliate::error::AffiliateError;
use ::affiliate::program::campaigns::CampaignDraft;
use httpd::request_object::{RequestValue, bounded_text_schema, object_schema, read_nested_list};
use httpd::request_value::{Integer, Name, Time};
use model::affiliate::campaign::{
    Campaign, CommissionDuration, CommissionRate, CommissionTerms, ProductRate, RateTier, Visibility,
};
use model::affiliate::money::{BasisPoints, CENTS_MAX};

use super::super::fields::{Cents, ClearableLine, parse_time, parse_word};
use crate::prelude::*;

const NAME_BYTES_MAX: usize = 200;
/// Maximum length of an id of the payment processor.
const PROCESSOR_ID_BYTES_MAX: usize = 255;
const TIERS_MAX: usize = 20;
/// Largest number of months of a recurring commission: that of a `u16`.
const MONTHS_MAX: i64 = 65_535;
/// Largest number of customers of a tier: that of a `u32`.
const CUSTOMERS_MAX: i64 = 4_294_967_295;
const DURATIONS: &[&str] = &["once", "recurring"];
/// Maximum number of products and prices with their own rate.
const PRODUCTS_MAX: usize = 200;
/// Default commission rate: 20 %.
const BPS_DEFAULT: u16 = 2_000;
/// Default time in which a visit can be credited to a partner, in days.
const COOKIE_DAYS_DEFAULT: u16 = 60;
/// Default hold period of a commission, in days.
const HOLD_DAYS_DEFAULT: u16 = 30;

message::words! {
    /// Selects the number of a rate that applies.
    CommissionType {
        Percent = "percent",
        Flat = "flat",
    }
}

httpd::word_readers!(CommissionType);

impl CommissionType {
    fn from_rate(rate: CommissionRate) -> Self {
        match rate {
            CommissionRate::Percent(_) => Self::Percent,
            CommissionRate::Flat(_) => Self::Flat,
        }
    }

    const fn number(self) -> &'static str {
        match self {
            Self::Percent => "commission_bps",
            Self::Flat => "commission_flat_cents",
        }
    }
}

/// The two numbers of a rate, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RateNumbers {
    bps: Option<BasisPoints>,
    flat: Option<i64>,
}

impl RateNumbers {
    /// Both stored numbers of a rate.
    fn from_rate(rate: CommissionRate, unused: i64) -> Self {
        let unused = Some(unused).filter(|unused| *unused != 0);
        match rate {
            CommissionRate::Percent(points) => Self { bps: Some(points), flat: unused },
            CommissionRate::Flat(cents) => {
                let points = unused.and_then(|unused| u16::try_from(unused).ok());
                Self { bps: points.and_then(|points| BasisPoints::try_from(points).ok()), flat: Some(cents) }
            }
        }
    }

    /// Fills missing numbers from `others`.
    fn or_defaults(self, others: Self) -> Self {
        Self { bps: self.bps.or(others.bps), flat: self.flat.or(others.flat) }
    }

    /// The number that the type does not use; zero if absent.
    fn unused_number(self, kind: CommissionType) -> i64 {
        match kind {
            CommissionType::Percent => self.flat.unwrap_or_default(),
            CommissionType::Flat => self.bps.map_or(0, |points| points.get().into()),
        }
    }

    fn to_rate(self, kind: CommissionType) -> Option<CommissionRate> {
        match kind {
            CommissionType::Percent => self.bps.map(CommissionRate::Percent),
            CommissionType::Flat => self.flat.map(CommissionRate::Flat),
        }
    }

    /// Returns whether only the number is given that the type does not use.
    fn has_only_unused(self, kind: CommissionType) -> bool {
        match kind {
            CommissionType::Percent => self.flat.is_some_and(|cents| cents != 0) && self.bps.is_none(),
            CommissionType::Flat => self.bps.is_some_and(|points| points.get() != 0) && self.flat.is_none(),
        }
    }
}

/// The campaign fields of a request; `None` if absent.
#[derive(Debug, Default, RequestObject)]
pub struct CampaignFields {
    /// The unique name of the campaign
    #[field(reader = Name<NAME_BYTES_MAX>)]
    name: Option<String>,
    /// The people who can see the campaign; defaults to `public`
    visibility: Option<Visibility>,
    /// Whether partners who apply with the program's form are approved automatically; defaults to false
    auto_approve: Option<bool>,
    /// The rate that applies; defaults to `percent`
    #[field(rename = "commission_type")]
    kind: Option<CommissionType>,
    /// The percentage of a sale in basis points, with `percent`
    #[field(rename = "commission_bps", default = BPS_DEFAULT)]
    bps: Option<BasisPoints>,
    /// The amount per sale in minor units, with `flat`
    #[field(rename = "commission_flat_cents", reader = Cents)]
    flat: Option<i64>,
    /// Whether the first sale or all sales earn a commission; defaults to `recurring`
    #[field(
        rename = "commission_duration", parse = parse_duration, schema = json!({"type": "string", "enum": DURATIONS}),
    )]
    is_recurring: Option<bool>,
    /// For how many months sales earn a commission; null is unlimited
    #[field(rename = "recurring_months", reader = Integer<u16, 1, MONTHS_MAX>)]
    months: Option<Option<u16>>,
    /// Maximum commission per sale
    #[field(rename = "max_commission_cents", reader = Integer<i64, 1, CENTS_MAX>)]
    max_commission: Option<Option<i64>>,
    /// Rates by number of paying customers
    #[field(
        read = read_tiers,
        schema = json!({"type": "array", "items": TierObject::schema(schemas), "maxItems": TIERS_MAX}),
    )]
    tiers: Option<Vec<TierFields>>,
    /// Rates of products and prices
    #[field(
        rename = "product_rates", read = read_product_rates,
        schema = json!({"type": "array", "items": ProductRateFields::schema(schemas), "maxItems": PRODUCTS_MAX}),
    )]
    products: Option<Vec<ProductRate>>,
    /// The recruiting partner's percentage of the same sale in basis points; defaults to 0
    #[field(rename = "second_tier_bps")]
    second_tier: Option<BasisPoints>,
    /// The amount per lead in minor units; defaults to 0
    #[field(rename = "lead_bounty_cents", reader = Cents)]
    lead_bounty: Option<i64>,
    /// For how many days a visit is credited to the partner
    #[field(reader = Integer<u16, 1, 365>, default = COOKIE_DAYS_DEFAULT)]
    cookie_days: Option<u16>,
    /// For how many days a commission is held for refunds
    #[field(reader = Integer<u16, 0, 365>, default = HOLD_DAYS_DEFAULT)]
    hold_days: Option<u16>,
    /// When the campaign was archived and stopped accepting partners; null restores it
    #[field(parse = parse_time, schema = Time::schema)]
    archived_at: Option<Option<Timestamp>>,
    /// Whether it becomes the default campaign
    make_default: Option<bool>,
}

fn parse_duration(value: &RawValue) -> Result<bool, String> {
    let is_recurring = |text: &str| match text {
        "once" => Some(false),
        "recurring" => Some(true),
        _ => None,
    };
    parse_word(DURATIONS, is_recurring, value)
}

impl CampaignFields {
    fn numbers(&self) -> RateNumbers {
        RateNumbers { bps: self.bps, flat: self.flat }
    }

    /// Builds a new campaign from the fields and defaults; `name` is used if no name was given.
    pub(super) fn create_draft(&self, name: &str) -> Result<CampaignDraft, AffiliateError> {
        let percent = BasisPoints::try_from(BPS_DEFAULT).unwrap_or_default();
        // The default percentage does not apply to a campaign with a flat amount.
        let default_rate = if self.kind == Some(CommissionType::Flat) {
            RateNumbers::default()
        } else {
            RateNumbers::from_rate(CommissionRate::Percent(percent), 0)
        };
        let new = CampaignDraft {
            name: name.to_owned(),
            visibility: Visibility::Public,
            auto_approve: false,
            terms: CommissionTerms {
                base: CommissionRate::Percent(percent),
                unused: 0,
                tiers: Vec::new(),
                products: Vec::new(),
                duration: CommissionDuration::Recurring(None),
                max_commission: None,
                second_tier: BasisPoints::default(),
                lead_bounty: 0,
                cookie_days: COOKIE_DAYS_DEFAULT,
                hold_days: HOLD_DAYS_DEFAULT,
            },
            archived_at: None,
            make_default: false,
        };
        self.apply(new, default_rate)
    }

    /// Applies the fields to an existing campaign.
    pub(super) fn update_draft(&self, before: &Campaign) -> Result<CampaignDraft, AffiliateError> {
        let stored = RateNumbers::from_rate(before.terms.base, before.terms.unused);
        self.apply(CampaignDraft::from_campaign(before), stored)
    }

    fn apply(&self, before: CampaignDraft, stored: RateNumbers) -> Result<CampaignDraft, AffiliateError> {
        let mut errors: Vec<(String, String)> = Vec::new();
        let terms = self.apply_terms(before.terms, stored, &mut errors);
        if !errors.is_empty() {
            return Err(AffiliateError::Fields(errors));
        }
        Ok(CampaignDraft {
            name: self.name.clone().unwrap_or(before.name),
            visibility: self.visibility.unwrap_or(before.visibility),
            auto_approve: self.auto_approve.unwrap_or(before.auto_approve),
            terms,
            archived_at: self.archived_at.unwrap_or(before.archived_at),
            make_default: self.make_default.unwrap_or(false),
        })
    }

    fn apply_terms(
        &self,
        before: CommissionTerms,
        stored: RateNumbers,
        errors: &mut Vec<(String, String)>,
    ) -> CommissionTerms {
        let base = self.apply_base_rate(before.base, stored, errors);
        CommissionTerms {
            base,
            unused: self.numbers().or_defaults(stored).unused_number(CommissionType::from_rate(base)),
            tiers: self.apply_tiers(before.tiers, CommissionType::from_rate(base), errors),
            products: self.products.clone().unwrap_or(before.products),
            duration: self.apply_duration(before.duration, errors),
            max_commission: self.max_commission.unwrap_or(before.max_commission),
            second_tier: self.second_tier.unwrap_or(before.second_tier),
            lead_bounty: self.lead_bounty.unwrap_or(before.lead_bounty),
            cookie_days: self.cookie_days.unwrap_or(before.cookie_days),
            hold_days: self.hold_days.unwrap_or(before.hold_days),
        }
    }

    fn apply_base_rate(
        &self,
        before: CommissionRate,
        stored: RateNumbers,
        errors: &mut Vec<(String, String)>,
    ) -> CommissionRate {
        let kind = self.kind.unwrap_or(CommissionType::from_rate(before));
        if self.kind.is_none() && self.numbers().has_only_unused(kind) {
            errors.push((
                "commission_type".to_owned(),
                "is required: it selects which of the two rates applies".to_owned(),
            ));
            return before;
        }
        self.numbers().or_defaults(stored).to_rate(kind).unwrap_or_else(|| {
            errors.push((kind.number().to_owned(), "is required with this `commission_type`".to_owned()));
            before
        })
    }

    fn apply_tiers(
        &self,
        before: Vec<RateTier>,
        kind: CommissionType,
        errors: &mut Vec<(String, String)>,
    ) -> Vec<RateTier> {
        let Some(new_tiers) = &self.tiers else {
            let converted = before.iter().map(|tier| {
                let numbers = RateNumbers::from_rate(tier.rate, tier.unused);
                Some(RateTier { rate: numbers.to_rate(kind)?, unused: numbers.unused_number(kind), ..*tier })
            });
            return converted.collect::<Option<Vec<_>>>().unwrap_or_else(|| {
                let reason = "have rates of another `commission_type`: replace them, or send an empty list";
                errors.push(("tiers".to_owned(), reason.to_owned()));
                before
            });
        };
        let mut tiers = Vec::with_capacity(new_tiers.len());
        for (n, tier) in new_tiers.iter().enumerate() {
            let numbers = RateNumbers { bps: tier.bps, flat: tier.flat };
            match numbers.to_rate(kind) {
                Some(rate) => {
                    let (min_paid_customers, unused) = (tier.min_paid_customers, numbers.unused_number(kind));
                    tiers.push(RateTier { min_paid_customers, rate, unused });
                }
                None => errors.push((format!("tiers[{n}].{}", kind.number()), "is required".to_owned())),
            }
        }
        tiers.sort_by_key(|tier| tier.min_paid_customers);
        let is_duplicate = |pair: &[RateTier]| matches!(pair, [a, b] if a.min_paid_customers == b.min_paid_customers);
        if tiers.windows(2).any(is_duplicate) {
            errors.push(("tiers".to_owned(), "has duplicate values of `min_paid_customers`".to_owned()));
        }
        tiers
    }

    fn apply_duration(&self, before: CommissionDuration, errors: &mut Vec<(String, String)>) -> CommissionDuration {
        let (was_recurring, months) = match before {
            CommissionDuration::Once => (false, None),
            CommissionDuration::Recurring(months) => (true, months),
        };
        if self.is_recurring.unwrap_or(was_recurring) {
            return CommissionDuration::Recurring(self.months.unwrap_or(months));
        }
        if self.months.flatten().is_some() {
            let reason = "requires `commission_duration` `recurring`";
            errors.push(("recurring_months".to_owned(), reason.to_owned()));
        }
        CommissionDuration::Once
    }
}

/// A tier, before it is known which of the two rates applies.
#[derive(Debug, RequestObject)]
struct TierFields {
    #[field(reader = Integer<u32, 1, CUSTOMERS_MAX>)]
    min_paid_customers: u32,
    #[field(rename = "commission_bps")]
    bps: Option<BasisPoints>,
    #[field(rename = "commission_flat_cents", reader = Cents)]
    flat: Option<i64>,
}

fn read_tiers(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<TierFields>> {
    read_nested_list(fields, "tiers", TIERS_MAX, notes)
}

/// The rate of a product or of one of its prices
#[derive(Debug, RequestObject)]
struct ProductRateFields {
    /// The payment processor's product id
    #[field(reader = ProductId)]
    product_id: String,
    /// The payment processor's price id; null applies to all prices of the product
    #[field(reader = ClearableLine<PROCESSOR_ID_BYTES_MAX>, null = None)]
    price_id: Option<Option<String>>,
    /// The rate that applies; `none` earns nothing
    #[field(
        rename = "commission_type", parse = parse_product_rate_type,
        schema = json!({"type": "string", "enum": PRODUCT_RATE_TYPES}),
    )]
    kind: ProductRateType,
    /// The percentage in basis points, with `percent`
    #[field(rename = "commission_bps")]
    bps: Option<BasisPoints>,
    /// The amount in minor units, with `flat`
    #[field(rename = "commission_flat_cents", reader = Cents)]
    flat: Option<i64>,
    /// A label for your own use
    #[field(reader = ClearableLine<NAME_BYTES_MAX>, null = None)]
    label: Option<Option<String>>,
}

/// An id of a product; an empty one is as none.
struct ProductId;

impl RequestValue for ProductId {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(1, PROCESSOR_ID_BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        ClearableLine::<PROCESSOR_ID_BYTES_MAX>::parse(value)?.ok_or_else(|| "is required".to_owned())
    }
}

/// `None` earns nothing.
type ProductRateType = std::option::Option<CommissionType>;

const PRODUCT_RATE_TYPES: &[&str] = &["percent", "flat", "none"];

fn parse_product_rate_type(value: &RawValue) -> Result<ProductRateType, String> {
    let read = |text: &str| if text == "none" { Some(None) } else { CommissionType::from_word(text).map(Some) };
    parse_word(PRODUCT_RATE_TYPES, read, value)
}

impl ProductRateFields {
    /// `None`, with an error, if the number that the type selects is missing.
    fn into_rate(self, path: &str, notes: &mut FieldDiagnostics) -> Option<ProductRate> {
        let numbers = RateNumbers { bps: self.bps, flat: self.flat };
        let rate = match self.kind {
            None => None,
            Some(kind) => {
                let rate = numbers.to_rate(kind);
                if rate.is_none() {
                    notes.errors.add(&format!("{path}.{}", kind.number()), "is required with this `commission_type`");
                }
                Some(rate?)
            }
        };
        let unused = rate.map_or(0, |rate| numbers.unused_number(CommissionType::from_rate(rate)));
        let (price, label) = (self.price_id.flatten(), self.label.flatten());
        Some(ProductRate { product: self.product_id, price, rate, unused, label })
    }
}

/// Reads the rates and reports two of one product and price.
fn read_product_rates(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Vec<ProductRate>> {
    const NAME: &str = "product_rates";
    let rates: Vec<ProductRateFields> = read_nested_list(fields, NAME, PRODUCTS_MAX, notes)?;
    let rates = rates.into_iter().enumerate();
    let rates: Vec<ProductRate> =
        rates.filter_map(|(n, rate)| rate.into_rate(&format!("{NAME}[{n}]"), notes)).collect();
    let has_duplicate = rates.iter().enumerate().any(|(n, rate)| {
        let is_same = |other: &ProductRate| (&other.product, &other.price) == (&rate.product, &rate.price);
        rates.iter().skip(n + 1).any(is_same)
    });
    if has_duplicate {
        notes.errors.add(NAME, "has more than one rate for a product or price");
    }
    Some(rates)
}

/// The schema of a body of campaign fields.
fn body_schema(schemas: &mut Schemas, name: &'static str, description: &str, required: &[&str]) -> Value {
    schemas.component(name, |schemas| {
        let mut body = object_schema(schemas, description, CampaignFields::FIELDS);
        if !required.is_empty() {
            body["required"] = json!(required);
        }
        body["examples"] = json!([{
            "name": "Friends", "commission_type": "percent", "commission_bps": 2500,
            "commission_duration": "recurring", "recurring_months": 12, "hold_days": 30,
            "tiers": [{"min_paid_customers": 21, "commission_bps": 3000, "commission_flat_cents": 0}],
        }]);
        body
    })
}

/// Body of `POST /affiliate-campaigns`.
#[derive(Debug)]
pub struct CreateCampaign(pub(super) CampaignDraft);

impl FromRequest for CreateCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> =
        Some(|schemas| body_schema(schemas, "CreateAffiliateCampaign", "A new campaign", &["name"]));

    fn read(call: &Request) -> Result<Self> {
        let fields = read_checked_body(call, |_: &CampaignFields, fields, notes| {
            if !fields.is_present_or_misnamed("name") {
                notes.errors.add("name", "is required");
            }
        })?;
        match fields.create_draft("") {
            Ok(draft) => Ok(Self(draft)),
            Err(AffiliateError::Fields(field_errors)) => {
                let mut errors = FieldErrors::default();
                field_errors.iter().for_each(|(name, reason)| errors.add(name, reason));
                Err(errors.into())
            }
            Err(other) => Err(Problem::internal(other)),
        }
    }
}

/// Body of `PATCH /affiliate-campaigns/{id}`.
#[derive(Debug)]
pub struct UpdateCampaign(pub(super) CampaignFields);

impl FromRequest for UpdateCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> =
        Some(|schemas| body_schema(schemas, "UpdateAffiliateCampaign", "The fields of a campaign to change", &[]));

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(read_body(call)?))
    }
}

/// Body of `PUT …/campaigns/default`.
#[derive(Debug)]
pub struct SetDefaultCampaign(pub(super) CampaignFields);

impl FromRequest for SetDefaultCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> =
        Some(|schemas| body_schema(schemas, "DefaultAffiliateCampaign", "The fields of the default campaign", &[]));

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(read_body(call)?))
    }
}
