//! What callers say of campaigns.
//!
//! A campaign is made of what is given and of defaults, and changed by what is given; both ways the whole is looked at:
//! a tier has the rate that the campaign's `commission_type` counts, `recurring_months` goes with `recurring`. Of a rate's two
//! numbers both are kept, and the one that does not count is there when the type changes.

use ::affiliate::campaigns::CampaignDraft;
use ::affiliate::refusal::Refusal;
use jiff::Timestamp;
use mail::affiliate::campaign::{Campaign, Duration, ProductRate, Rate, Terms, Tier, Visibility};
use mail::affiliate::money::BasisPoints;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::OfCampaign;
use super::super::fields::{
    CENTS_MAX, Fields, bps, bps_schema, cents, cents_schema, nullable_text_schema, text_schema, time, whole,
    whole_schema, word,
};
use super::super::view::tier_schema;
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Names, Notes};
use crate::problem::{FieldErrors, Problem};
use crate::schema::{self, Schemas};

/// The longest name.
const NAME_BYTES_MAX: usize = 200;
/// The longest id of the processor's.
const PROCESSOR_ID_BYTES_MAX: usize = 255;
/// Tiers of a campaign.
const TIERS_MAX: usize = 20;
/// Products and prices that have a rate of their own.
const PRODUCTS_MAX: usize = 200;
/// What a sale earns when nothing is said: a fifth.
const BPS_DEFAULT: u16 = 2_000;
/// For how many days a visit binds when nothing is said.
const COOKIE_DAYS_DEFAULT: u16 = 60;
/// For how many days a commission waits when nothing is said.
const HOLD_DAYS_DEFAULT: u16 = 30;

/// Which number of a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Percent,
    Flat,
}

impl Kind {
    const WORDS: &'static [&'static str] = &["percent", "flat"];

    fn of_word(word: &str) -> Option<Self> {
        match word {
            "percent" => Some(Self::Percent),
            "flat" => Some(Self::Flat),
            _ => None,
        }
    }

    fn of(rate: Rate) -> Self {
        match rate {
            Rate::Percent(_) => Self::Percent,
            Rate::Flat(_) => Self::Flat,
        }
    }

    const fn number(self) -> &'static str {
        match self {
            Self::Percent => "commission_bps",
            Self::Flat => "commission_flat_cents",
        }
    }
}

/// The two numbers of a rate, as far as they were given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Numbers {
    bps: Option<BasisPoints>,
    flat: Option<i64>,
}

impl Numbers {
    fn read(given: &mut Fields<'_>) -> Self {
        Self { bps: given.take("commission_bps", bps), flat: given.take("commission_flat_cents", cents) }
    }

    /// Those that are kept of a rate.
    fn of(rate: Rate, unused: i64) -> Self {
        let unused = Some(unused).filter(|unused| *unused != 0);
        match rate {
            Rate::Percent(points) => Self { bps: Some(points), flat: unused },
            Rate::Flat(cents) => {
                let points = unused.and_then(|unused| u16::try_from(unused).ok());
                Self { bps: points.and_then(|points| BasisPoints::try_from(points).ok()), flat: Some(cents) }
            }
        }
    }

    /// These, and where one is missing that of others.
    fn or(self, others: Self) -> Self {
        Self { bps: self.bps.or(others.bps), flat: self.flat.or(others.flat) }
    }

    /// The number that does not count; zero for none.
    fn unused(self, kind: Kind) -> i64 {
        match kind {
            Kind::Percent => self.flat.unwrap_or_default(),
            Kind::Flat => self.bps.map_or(0, |points| points.get().into()),
        }
    }

    fn rate(self, kind: Kind) -> Option<Rate> {
        match kind {
            Kind::Percent => self.bps.map(Rate::Percent),
            Kind::Flat => self.flat.map(Rate::Flat),
        }
    }

    /// Whether the number is given that does not count.
    fn misses(self, kind: Kind) -> bool {
        match kind {
            Kind::Percent => self.flat.is_some_and(|cents| cents != 0) && self.bps.is_none(),
            Kind::Flat => self.bps.is_some_and(|points| points.get() != 0) && self.flat.is_none(),
        }
    }
}

/// What was given of a campaign.
#[derive(Debug, Default)]
pub struct CampaignFields {
    name: Option<String>,
    visibility: Option<Visibility>,
    auto_approve: Option<bool>,
    kind: Option<Kind>,
    numbers: Numbers,
    is_recurring: Option<bool>,
    months: Option<Option<u16>>,
    max_commission: Option<Option<i64>>,
    tiers: Option<Vec<(u32, Numbers)>>,
    products: Option<Vec<ProductRate>>,
    second_tier: Option<BasisPoints>,
    lead_bounty: Option<i64>,
    cookie_days: Option<u16>,
    hold_days: Option<u16>,
    archived_at: Option<Option<Timestamp>>,
    make_default: Option<bool>,
}

const NAMES: Names = names!(
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
    fn read(given: &mut Fields<'_>) -> Self {
        let duration = |text: &str| match text {
            "once" => Some(false),
            "recurring" => Some(true),
            _ => None,
        };
        Self {
            name: given.take("name", |value| {
                let name = fields::line(value, NAME_BYTES_MAX)?.trim().to_owned();
                if name.is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
            }),
            visibility: given.take("visibility", |value| word(Visibility::WORDS, Visibility::of_word, value)),
            auto_approve: given.take("auto_approve", fields::boolean),
            kind: given.take("commission_type", |value| word(Kind::WORDS, Kind::of_word, value)),
            numbers: Numbers::read(given),
            is_recurring: given
                .take("commission_duration", |value| word(&["once", "recurring"], duration, value)),
            months: given.change("recurring_months", |value| whole(value, 1..=u16::MAX)),
            max_commission: given.change("max_commission_cents", |value| whole(value, 1..=CENTS_MAX)),
            tiers: list(given, "tiers", (TIERS_MAX, tier)),
            products: list(given, "product_rates", (PRODUCTS_MAX, product)),
            second_tier: given.take("second_tier_bps", bps),
            lead_bounty: given.take("lead_bounty_cents", cents),
            cookie_days: given.take("cookie_days", |value| whole(value, 1..=365)),
            hold_days: given.take("hold_days", |value| whole(value, 0..=365)),
            archived_at: given.change("archived_at", time),
            make_default: given.take("make_default", fields::boolean),
        }
    }

    /// A campaign of these and of defaults; with this name where none was given.
    pub(super) fn make(&self, name: &str) -> Result<CampaignDraft, Refusal> {
        let percent = BasisPoints::try_from(BPS_DEFAULT).unwrap_or_default();
        // The default is a share: it is none beside a fixed amount.
        let kept = if self.kind == Some(Kind::Flat) {
            Numbers::default()
        } else {
            Numbers::of(Rate::Percent(percent), 0)
        };
        let new = CampaignDraft {
            name: name.to_owned(),
            visibility: Visibility::Public,
            auto_approve: false,
            terms: Terms {
                base: Rate::Percent(percent),
                unused: 0,
                tiers: Vec::new(),
                products: Vec::new(),
                duration: Duration::Recurring(None),
                max_commission: None,
                second_tier: BasisPoints::default(),
                lead_bounty: 0,
                cookie_days: COOKIE_DAYS_DEFAULT,
                hold_days: HOLD_DAYS_DEFAULT,
            },
            archived_at: None,
            make_default: false,
        };
        self.apply(new, kept)
    }

    /// A campaign as it is after the change.
    pub(super) fn change(&self, before: &Campaign) -> Result<CampaignDraft, Refusal> {
        let kept = Numbers::of(before.terms.base, before.terms.unused);
        self.apply(CampaignDraft::of(before), kept)
    }

    fn apply(&self, before: CampaignDraft, kept: Numbers) -> Result<CampaignDraft, Refusal> {
        let mut wrong: Vec<(String, String)> = Vec::new();
        let terms = self.terms((before.terms, kept), &mut wrong);
        if !wrong.is_empty() {
            return Err(Refusal::Fields(wrong));
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

    fn terms(&self, (before, kept): (Terms, Numbers), wrong: &mut Vec<(String, String)>) -> Terms {
        let base = self.base((before.base, kept), wrong);
        Terms {
            base,
            unused: self.numbers.or(kept).unused(Kind::of(base)),
            tiers: self.tiers(before.tiers, Kind::of(base), wrong),
            products: self.products.clone().unwrap_or(before.products),
            duration: self.duration(before.duration, wrong),
            max_commission: self.max_commission.unwrap_or(before.max_commission),
            second_tier: self.second_tier.unwrap_or(before.second_tier),
            lead_bounty: self.lead_bounty.unwrap_or(before.lead_bounty),
            cookie_days: self.cookie_days.unwrap_or(before.cookie_days),
            hold_days: self.hold_days.unwrap_or(before.hold_days),
        }
    }

    fn base(&self, (before, kept): (Rate, Numbers), wrong: &mut Vec<(String, String)>) -> Rate {
        let kind = self.kind.unwrap_or(Kind::of(before));
        if self.kind.is_none() && self.numbers.misses(kind) {
            wrong.push((
                "commission_type".to_owned(),
                "says which of the two numbers counts: give it".to_owned(),
            ));
            return before;
        }
        self.numbers.or(kept).rate(kind).unwrap_or_else(|| {
            wrong.push((kind.number().to_owned(), "is required with this `commission_type`".to_owned()));
            before
        })
    }

    fn tiers(&self, before: Vec<Tier>, kind: Kind, wrong: &mut Vec<(String, String)>) -> Vec<Tier> {
        let Some(given) = &self.tiers else {
            let turned = before.iter().map(|tier| {
                let numbers = Numbers::of(tier.rate, tier.unused);
                Some(Tier { rate: numbers.rate(kind)?, unused: numbers.unused(kind), ..*tier })
            });
            return turned.collect::<Option<Vec<_>>>().unwrap_or_else(|| {
                let why = "are of another `commission_type`: give them anew, or an empty list";
                wrong.push(("tiers".to_owned(), why.to_owned()));
                before
            });
        };
        let mut tiers = Vec::with_capacity(given.len());
        for (n, (min_paid_customers, numbers)) in given.iter().enumerate() {
            match numbers.rate(kind) {
                Some(rate) => {
                    let (min_paid_customers, unused) = (*min_paid_customers, numbers.unused(kind));
                    tiers.push(Tier { min_paid_customers, rate, unused });
                }
                None => wrong.push((format!("tiers[{n}].{}", kind.number()), "is required".to_owned())),
            }
        }
        tiers.sort_by_key(|tier| tier.min_paid_customers);
        let twice = |pair: &[Tier]| matches!(pair, [one, other] if one.min_paid_customers == other.min_paid_customers);
        if tiers.windows(2).any(twice) {
            wrong.push(("tiers".to_owned(), "has one number of `min_paid_customers` twice".to_owned()));
        }
        tiers
    }

    fn duration(&self, before: Duration, wrong: &mut Vec<(String, String)>) -> Duration {
        let (was_recurring, months) = match before {
            Duration::Once => (false, None),
            Duration::Recurring(months) => (true, months),
        };
        if self.is_recurring.unwrap_or(was_recurring) {
            return Duration::Recurring(self.months.unwrap_or(months));
        }
        if self.months.flatten().is_some() {
            let why = "goes with `commission_duration` `recurring`";
            wrong.push(("recurring_months".to_owned(), why.to_owned()));
        }
        Duration::Once
    }
}

/// How an entry of a list is read, at its place.
type ReadEntry<T> = fn(&mut Fields<'_>) -> Option<T>;

/// The names of a list's entries.
trait Entry {
    const NAMES: Names;
}

/// A list of objects.
fn list<T: Entry>(
    given: &mut Fields<'_>,
    name: &'static str,
    (entries_max, read): (usize, ReadEntry<T>),
) -> Option<Vec<T>> {
    let entries: Vec<&RawValue> = given.take(name, |value| fields::list(value, entries_max))?;
    let mut taken = Vec::with_capacity(entries.len());
    for (n, entry) in entries.into_iter().enumerate() {
        let place = format!("{name}[{n}]");
        let mut notes: Notes = std::mem::take(given.notes());
        let inside = Fields::inside(entry, (&T::NAMES, &place), &mut notes);
        *given.notes() = notes;
        if let Some(mut inside) = inside {
            taken.extend(read(&mut inside));
            *given.notes() = inside.leave();
        }
    }
    Some(taken)
}

impl Entry for (u32, Numbers) {
    const NAMES: Names = names!("min_paid_customers", "commission_bps", "commission_flat_cents");
}

fn tier(given: &mut Fields<'_>) -> Option<(u32, Numbers)> {
    given.need("min_paid_customers");
    let min = given.take("min_paid_customers", |value| whole(value, 1..=u32::MAX));
    let numbers = Numbers::read(given);
    Some((min?, numbers))
}

impl Entry for ProductRate {
    const NAMES: Names = names!(
        "product_id",
        "price_id",
        "commission_type",
        "commission_bps",
        "commission_flat_cents",
        "label",
    );
}

fn product(given: &mut Fields<'_>) -> Option<ProductRate> {
    let product = given.words("product_id", PROCESSOR_ID_BYTES_MAX).flatten();
    if product.is_none() {
        given.wrong("product_id", "is required");
    }
    let price = given.words("price_id", PROCESSOR_ID_BYTES_MAX).flatten();
    given.need("commission_type");
    let kind = given.take("commission_type", |value| {
        let read = |text: &str| if text == "none" { Some(None) } else { Kind::of_word(text).map(Some) };
        word(&["percent", "flat", "none"], read, value)
    });
    let numbers = Numbers::read(given);
    let label = given.words("label", NAME_BYTES_MAX).flatten();
    let rate = match kind? {
        None => None,
        Some(kind) => {
            let rate = numbers.rate(kind);
            if rate.is_none() {
                given.wrong(kind.number(), "is required with this `commission_type`");
            }
            Some(rate?)
        }
    };
    let unused = rate.map_or(0, |rate| numbers.unused(Kind::of(rate)));
    Some(ProductRate { product: product?, price, rate, unused, label })
}

/// What a body says of a campaign, with the errors that need no more than the body.
fn read(call: &Call, needs_name: bool) -> Result<CampaignFields, Problem> {
    let mut given = Fields::of(call, &NAMES)?;
    if needs_name {
        given.need("name");
    }
    let fields = CampaignFields::read(&mut given);
    if let Some(products) = &fields.products {
        let twice = products.iter().enumerate().any(|(n, one)| {
            let same = |other: &ProductRate| (&other.product, &other.price) == (&one.product, &one.price);
            products.iter().skip(n + 1).any(same)
        });
        if twice {
            given.wrong("product_rates", "has two rates for one product or price");
        }
    }
    given.end()?;
    Ok(fields)
}

fn fields_schema() -> Vec<(&'static str, Value)> {
    let product = schema::object_with(
        "A rate of a product or of one of its prices",
        &["product_id", "commission_type"],
        [
            ("product_id", text_schema(PROCESSOR_ID_BYTES_MAX, "The processor's id of the product")),
            (
                "price_id",
                nullable_text_schema(PROCESSOR_ID_BYTES_MAX, "Of one price of it; of all of them otherwise"),
            ),
            (
                "commission_type",
                schema::words(&["percent", "flat", "none"], "What counts; nothing is earned with `none`"),
            ),
            ("commission_bps", bps_schema("The share, with `percent`")),
            ("commission_flat_cents", cents_schema("The amount, with `flat`")),
            ("label", nullable_text_schema(NAME_BYTES_MAX, "What people call it")),
        ],
    );
    let listed = |items, most: usize, about: &str| {
        let mut schema = schema::list(items, about);
        schema["maxItems"] = json!(most);
        schema
    };
    let nullable = |range, about: &str| {
        let mut schema = whole_schema(range, about);
        schema::or_null(&mut schema);
        schema
    };
    let default = |mut schema: Value, value: Value| {
        schema["default"] = value;
        schema
    };
    vec![
        ("name", text_schema(NAME_BYTES_MAX, "What people call it; no two campaigns have the same")),
        ("visibility", schema::words(Visibility::WORDS, "Who may see it; public")),
        ("auto_approve", schema::boolean("Whether who joins by the program's form is active at once; false")),
        ("commission_type", schema::words(Kind::WORDS, "Which of the two counts; percent")),
        ("commission_bps", default(bps_schema("The share of a sale, with `percent`"), json!(BPS_DEFAULT))),
        ("commission_flat_cents", cents_schema("The amount for a sale, with `flat`")),
        ("commission_duration", schema::words(&["once", "recurring"], "For which sales; recurring")),
        (
            "recurring_months",
            nullable(1..=u16::MAX.into(), "For how many months; null for as long as they pay"),
        ),
        ("max_commission_cents", nullable(1..=CENTS_MAX, "The most that one sale earns")),
        ("tiers", listed(tier_schema(), TIERS_MAX, "Rates that rise with paying customers")),
        ("product_rates", listed(product, PRODUCTS_MAX, "Rates of products and prices")),
        ("second_tier_bps", bps_schema("The recruiter's share of the same sale; none")),
        ("lead_bounty_cents", cents_schema("What a lead earns; nothing")),
        (
            "cookie_days",
            default(whole_schema(1..=365, "For how many days a visit binds"), json!(COOKIE_DAYS_DEFAULT)),
        ),
        (
            "hold_days",
            default(
                whole_schema(0..=365, "For how many days a commission waits for refunds"),
                json!(HOLD_DAYS_DEFAULT),
            ),
        ),
        ("archived_at", schema::nullable_time("Since when it takes no new partners; null brings it back")),
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

/// What `POST /affiliate-campaigns` takes.
#[derive(Debug)]
pub struct CreateCampaign(pub(super) CampaignDraft);

impl Input for CreateCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CreateAffiliateCampaign", |_| {
            let mut schema = schema::object_with("A campaign to be made", &["name"], fields_schema());
            example(&mut schema);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        match read(call, true)?.make("") {
            Ok(draft) => Ok(Self(draft)),
            Err(Refusal::Fields(wrong)) => {
                let mut errors = FieldErrors::default();
                wrong.iter().for_each(|(name, why)| errors.add(name, why));
                Err(errors.into())
            }
            Err(other) => Err(Problem::internal(other)),
        }
    }
}

/// What `PATCH /affiliate-campaigns/{id}` takes.
#[derive(Debug)]
pub struct ChangeCampaign(pub(super) OfCampaign, pub(super) CampaignFields);

impl Input for ChangeCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("UpdateAffiliateCampaign", |_| {
            let mut schema = schema::object_with("What changes about a campaign", &[], fields_schema());
            example(&mut schema);
            schema
        });
        let parameters = vec![OfCampaign::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfCampaign::of(call), read(call, false)?))
    }
}

/// What `PUT …/campaigns/default` takes.
#[derive(Debug)]
pub struct DefaultCampaign(pub(super) CampaignFields);

impl Input for DefaultCampaign {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("DefaultAffiliateCampaign", |_| {
            let mut schema =
                schema::object_with("The default campaign, or what changes about it", &[], fields_schema());
            example(&mut schema);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(read(call, false)?))
    }
}
