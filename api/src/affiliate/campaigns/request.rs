//! Request bodies for campaigns.
//!
//! A new campaign is built from the given fields and defaults; an update changes the given fields. Both validate the
//! complete result: each tier has the rate that `commission_type` selects, and `recurring_months` requires `recurring`.
//! Both numbers of a rate (percent and flat) are stored. The unused one applies again when the type changes.

use ::affiliate::api_objects::TierObject;
use ::affiliate::campaigns::CampaignDraft;
use ::affiliate::error::AffiliateError;
use jiff::Timestamp;
use mail::affiliate::campaign::{
    Campaign, CommissionDuration, CommissionRate, CommissionTerms, ProductRate, RateTier, Visibility,
};
use mail::affiliate::money::{BasisPoints, CENTS_MAX};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::fields::{
    BodyFieldReader, bps_schema, cents_schema, integer_schema, nullable_text_schema, parse_basis_points, parse_cents,
    parse_integer, parse_time, parse_word, text_schema,
};
use crate::affiliate::path::CampaignPath;
use crate::fields::{self, FieldDiagnostics, FieldNames};
use crate::problem::{FieldErrors, Problem};
use crate::request::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas, ToSchema};

const NAME_BYTES_MAX: usize = 200;
/// Maximum length of an id of the payment processor.
const PROCESSOR_ID_BYTES_MAX: usize = 255;
const TIERS_MAX: usize = 20;
/// Maximum number of products and prices with their own rate.
const PRODUCTS_MAX: usize = 200;
/// Default commission rate: 20 %.
const BPS_DEFAULT: u16 = 2_000;
/// Default time in which a visit can be credited to a partner, in days.
const COOKIE_DAYS_DEFAULT: u16 = 60;
/// Default hold period of a commission, in days.
const HOLD_DAYS_DEFAULT: u16 = 30;

/// Selects the number of a rate that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommissionType {
    Percent,
    Flat,
}

impl CommissionType {
    const WORDS: &'static [&'static str] = &["percent", "flat"];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "percent" => Some(Self::Percent),
            "flat" => Some(Self::Flat),
            _ => None,
        }
    }

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
    fn read(reader: &mut BodyFieldReader<'_>) -> Self {
        Self {
            bps: reader.read_optional("commission_bps", parse_basis_points),
            flat: reader.read_optional("commission_flat_cents", parse_cents),
        }
    }

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
#[derive(Debug, Default)]
pub struct CampaignFields {
    name: Option<String>,
    visibility: Option<Visibility>,
    auto_approve: Option<bool>,
    kind: Option<CommissionType>,
    numbers: RateNumbers,
    is_recurring: Option<bool>,
    months: Option<Option<u16>>,
    max_commission: Option<Option<i64>>,
    tiers: Option<Vec<(u32, RateNumbers)>>,
    products: Option<Vec<ProductRate>>,
    second_tier: Option<BasisPoints>,
    lead_bounty: Option<i64>,
    cookie_days: Option<u16>,
    hold_days: Option<u16>,
    archived_at: Option<Option<Timestamp>>,
    make_default: Option<bool>,
}

const NAMES: FieldNames = names!(
    "name",
    "visibility",
    "auto_approve",
    "commission_type",
    "commission_bps",
    "commission_flat_cents",
    "commission_duration",
    "recurring_months",
    "max_commission_cents",
    "tiers",
    "product_rates",
    "second_tier_bps",
    "lead_bounty_cents",
    "cookie_days",
    "hold_days",
    "archived_at",
    "make_default",
);

impl CampaignFields {
    fn read(reader: &mut BodyFieldReader<'_>) -> Self {
        let duration = |text: &str| match text {
            "once" => Some(false),
            "recurring" => Some(true),
            _ => None,
        };
        Self {
            name: reader.read_optional("name", |value| {
                let name = fields::parse_header_line(value, NAME_BYTES_MAX)?.trim().to_owned();
                if name.is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
            }),
            visibility: reader
                .read_optional("visibility", |value| parse_word(Visibility::WORDS, Visibility::from_word, value)),
            auto_approve: reader.read_optional("auto_approve", fields::parse_bool),
            kind: reader.read_optional("commission_type", |value| {
                parse_word(CommissionType::WORDS, CommissionType::from_word, value)
            }),
            numbers: RateNumbers::read(reader),
            is_recurring: reader
                .read_optional("commission_duration", |value| parse_word(&["once", "recurring"], duration, value)),
            months: reader.read_nullable("recurring_months", |value| parse_integer(value, 1..=u16::MAX)),
            max_commission: reader.read_nullable("max_commission_cents", |value| parse_integer(value, 1..=CENTS_MAX)),
            tiers: read_list(reader, "tiers", TIERS_MAX, read_tier),
            products: read_list(reader, "product_rates", PRODUCTS_MAX, read_product_rate),
            second_tier: reader.read_optional("second_tier_bps", parse_basis_points),
            lead_bounty: reader.read_optional("lead_bounty_cents", parse_cents),
            cookie_days: reader.read_optional("cookie_days", |value| parse_integer(value, 1..=365)),
            hold_days: reader.read_optional("hold_days", |value| parse_integer(value, 0..=365)),
            archived_at: reader.read_nullable("archived_at", parse_time),
            make_default: reader.read_optional("make_default", fields::parse_bool),
        }
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
            unused: self.numbers.or_defaults(stored).unused_number(CommissionType::from_rate(base)),
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
        if self.kind.is_none() && self.numbers.has_only_unused(kind) {
            errors.push((
                "commission_type".to_owned(),
                "is required: it selects which of the two rates applies".to_owned(),
            ));
            return before;
        }
        self.numbers.or_defaults(stored).to_rate(kind).unwrap_or_else(|| {
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
        for (n, (min_paid_customers, numbers)) in new_tiers.iter().enumerate() {
            match numbers.to_rate(kind) {
                Some(rate) => {
                    let (min_paid_customers, unused) = (*min_paid_customers, numbers.unused_number(kind));
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

/// Parses one object of a list.
type ReadListEntry<T> = fn(&mut BodyFieldReader<'_>) -> Option<T>;

/// Field names of a list's objects.
trait NamedListItem {
    const NAMES: FieldNames;
}

/// Parses a list of objects; errors name the index.
fn read_list<T: NamedListItem>(
    reader: &mut BodyFieldReader<'_>,
    name: &'static str,
    entries_max: usize,
    parse: ReadListEntry<T>,
) -> Option<Vec<T>> {
    let entries: Vec<&RawValue> = reader.read_optional(name, |value| fields::parse_list(value, entries_max))?;
    let mut items = Vec::with_capacity(entries.len());
    for (n, entry) in entries.into_iter().enumerate() {
        let path = format!("{name}[{n}]");
        let mut notes: FieldDiagnostics = std::mem::take(reader.diagnostics_mut());
        let entry_reader = BodyFieldReader::from_nested_object(entry, &T::NAMES, &path, &mut notes);
        *reader.diagnostics_mut() = notes;
        if let Some(mut entry_reader) = entry_reader {
            items.extend(parse(&mut entry_reader));
            *reader.diagnostics_mut() = entry_reader.into_diagnostics();
        }
    }
    Some(items)
}

impl NamedListItem for (u32, RateNumbers) {
    const NAMES: FieldNames = names!("min_paid_customers", "commission_bps", "commission_flat_cents");
}

fn read_tier(reader: &mut BodyFieldReader<'_>) -> Option<(u32, RateNumbers)> {
    reader.require("min_paid_customers");
    let min = reader.read_optional("min_paid_customers", |value| parse_integer(value, 1..=u32::MAX));
    let numbers = RateNumbers::read(reader);
    Some((min?, numbers))
}

impl NamedListItem for ProductRate {
    const NAMES: FieldNames =
        names!("product_id", "price_id", "commission_type", "commission_bps", "commission_flat_cents", "label",);
}

fn read_product_rate(reader: &mut BodyFieldReader<'_>) -> Option<ProductRate> {
    let product = reader.read_nullable_text("product_id", PROCESSOR_ID_BYTES_MAX).flatten();
    if product.is_none() {
        reader.add_error("product_id", "is required");
    }
    let price = reader.read_nullable_text("price_id", PROCESSOR_ID_BYTES_MAX).flatten();
    reader.require("commission_type");
    let kind = reader.read_optional("commission_type", |value| {
        let read = |text: &str| if text == "none" { Some(None) } else { CommissionType::from_word(text).map(Some) };
        parse_word(&["percent", "flat", "none"], read, value)
    });
    let numbers = RateNumbers::read(reader);
    let label = reader.read_nullable_text("label", NAME_BYTES_MAX).flatten();
    let rate = match kind? {
        None => None,
        Some(kind) => {
            let rate = numbers.to_rate(kind);
            if rate.is_none() {
                reader.add_error(kind.number(), "is required with this `commission_type`");
            }
            Some(rate?)
        }
    };
    let unused = rate.map_or(0, |rate| numbers.unused_number(CommissionType::from_rate(rate)));
    Some(ProductRate { product: product?, price, rate, unused, label })
}

/// Parses the fields of a campaign and reports the errors that do not depend on the stored campaign.
fn read_campaign_fields(call: &Request, needs_name: bool) -> Result<CampaignFields, Problem> {
    let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
    if needs_name {
        reader.require("name");
    }
    let fields = CampaignFields::read(&mut reader);
    if let Some(products) = &fields.products {
        let has_duplicate = products.iter().enumerate().any(|(n, product)| {
            let is_same_product =
                |other: &ProductRate| (&other.product, &other.price) == (&product.product, &product.price);
            products.iter().skip(n + 1).any(is_same_product)
        });
        if has_duplicate {
            reader.add_error("product_rates", "has more than one rate for a product or price");
        }
    }
    reader.finish()?;
    Ok(fields)
}

fn product_rate_schema() -> Value {
    schema::object_with(
        "The rate of a product or of one of its prices",
        &["product_id", "commission_type"],
        [
            ("product_id", text_schema(PROCESSOR_ID_BYTES_MAX, "The payment processor's product id")),
            (
                "price_id",
                nullable_text_schema(
                    PROCESSOR_ID_BYTES_MAX,
                    "The payment processor's price id; null applies to all prices of the product",
                ),
            ),
            (
                "commission_type",
                schema::string_enum(&["percent", "flat", "none"], "Which rate applies; `none` earns nothing"),
            ),
            ("commission_bps", bps_schema("The percentage in basis points, with `percent`")),
            ("commission_flat_cents", cents_schema("The amount in minor units, with `flat`")),
            ("label", nullable_text_schema(NAME_BYTES_MAX, "A label for your own use")),
        ],
    )
}

fn fields_schema() -> Vec<(&'static str, Value)> {
    let bounded_list = |items, items_max: usize, description: &str| {
        let mut schema = schema::list(items, description);
        schema["maxItems"] = json!(items_max);
        schema
    };
    let nullable = |range, description: &str| {
        let mut schema = integer_schema(range, description);
        schema::allow_null(&mut schema);
        schema
    };
    let default = |mut schema: Value, value: Value| {
        schema["default"] = value;
        schema
    };
    vec![
        ("name", text_schema(NAME_BYTES_MAX, "The unique name of the campaign")),
        ("visibility", schema::string_enum(Visibility::WORDS, "Who can see the campaign; defaults to `public`")),
        (
            "auto_approve",
            schema::boolean(
                "Whether partners who apply by the program's form are approved automatically; defaults to false",
            ),
        ),
        ("commission_type", schema::string_enum(CommissionType::WORDS, "Which rate applies; defaults to `percent`")),
        (
            "commission_bps",
            default(bps_schema("The percentage of a sale in basis points, with `percent`"), json!(BPS_DEFAULT)),
        ),
        ("commission_flat_cents", cents_schema("The amount per sale in minor units, with `flat`")),
        (
            "commission_duration",
            schema::string_enum(
                &["once", "recurring"],
                "Whether the first sale or all sales earn a commission; defaults to `recurring`",
            ),
        ),
        (
            "recurring_months",
            nullable(1..=u16::MAX.into(), "For how many months sales earn a commission; null is unlimited"),
        ),
        ("max_commission_cents", nullable(1..=CENTS_MAX, "Maximum commission per sale")),
        (
            "tiers",
            bounded_list(TierObject::schema(&mut Schemas::default()), TIERS_MAX, "Rates by number of paying customers"),
        ),
        ("product_rates", bounded_list(product_rate_schema(), PRODUCTS_MAX, "Rates of products and prices")),
        (
            "second_tier_bps",
            bps_schema("The recruiting partner's percentage of the same sale in basis points; defaults to 0"),
        ),
        ("lead_bounty_cents", cents_schema("The amount per lead in minor units; defaults to 0")),
        (
            "cookie_days",
            default(
                integer_schema(1..=365, "For how many days a visit is credited to the partner"),
                json!(COOKIE_DAYS_DEFAULT),
            ),
        ),
        (
            "hold_days",
            default(
                integer_schema(0..=365, "For how many days a commission is held for refunds"),
                json!(HOLD_DAYS_DEFAULT),
            ),
        ),
        (
            "archived_at",
            schema::nullable_time("When the campaign was archived and stopped accepting partners; null restores it"),
        ),
        ("make_default", schema::boolean("Whether it becomes the default campaign")),
    ]
}

fn example(schema: &mut Value) {
    schema["examples"] = json!([{
        "name": "Friends", "commission_type": "percent", "commission_bps": 2500,
        "commission_duration": "recurring", "recurring_months": 12, "hold_days": 30,
        "tiers": [{"min_paid_customers": 21, "commission_bps": 3000, "commission_flat_cents": 0}],
    }]);
}

/// Body of `POST /affiliate-campaigns`.
#[derive(Debug)]
pub struct CreateCampaign(pub(super) CampaignDraft);

impl FromRequest for CreateCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliateCampaign", |_| {
            let mut schema = schema::object_with("A new campaign", &["name"], fields_schema());
            example(&mut schema);
            schema
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        match read_campaign_fields(call, true)?.create_draft("") {
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
pub struct UpdateCampaign(pub(super) CampaignPath, pub(super) CampaignFields);

impl FromRequest for UpdateCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("UpdateAffiliateCampaign", |_| {
            let mut schema = schema::object_with("The fields of a campaign to change", &[], fields_schema());
            example(&mut schema);
            schema
        });
        let parameters = vec![CampaignPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(CampaignPath::of(call), read_campaign_fields(call, false)?))
    }
}

/// Body of `PUT …/campaigns/default`.
#[derive(Debug)]
pub struct SetDefaultCampaign(pub(super) CampaignFields);

impl FromRequest for SetDefaultCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("DefaultAffiliateCampaign", |_| {
            let mut schema = schema::object_with("The fields of the default campaign", &[], fields_schema());
            example(&mut schema);
            schema
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(read_campaign_fields(call, false)?))
    }
}
