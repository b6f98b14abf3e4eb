//! JSON objects and schemas of payouts and payout runs.

use ::affiliate::api_objects::{DraftPayoutObject, PayoutObject, PayoutRunObject, SkippedPartnerObject};
use ::affiliate::payouts::PayoutFile;
use mail::affiliate::payout::{PayoutFileFormat, PayoutRunStatus, PayoutStatus, SkipReason};
use mail::affiliate::program::PayoutMethod;
use serde::Serialize;
use serde_json::{Value, json};

use super::response::ResponseObject;
use crate::schema::{self, Schemas, ToSchema};

/// A response with a single object
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OneAffiliatePayout")]
pub struct PayoutResponse {
    pub(super) payout: PayoutObject,
}

impl ResponseObject for PayoutResponse {}

/// A response with a single object
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "OneAffiliatePayoutRun")]
pub struct PayoutRunResponse {
    pub(super) run: PayoutRunObject,
}

impl ResponseObject for PayoutRunResponse {}

fn object_kind_schema(word: &str) -> Value {
    json!({"type": "string", "const": word, "description": "The object type"})
}

fn currency_schema(description: &str) -> Value {
    json!({"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"], "description": description})
}

fn payout_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("object", object_kind_schema("affiliate_payout")),
        ("id", schema::string("The payout's id (`pay_…`)")),
        ("affiliate_id", schema::string("The partner (`aff_…`)")),
        ("run_id", schema::string("The payout run (`prn_…`)")),
        ("amount_cents", json!({"type": "integer", "minimum": 0, "description": "The amount in minor units"})),
        ("currency", currency_schema("The currency")),
        ("method", schema::string_enum(PayoutMethod::WORDS, "The payout method")),
        ("status", schema::string_enum(PayoutStatus::WORDS, "The status")),
        ("processor_transfer_id", schema::nullable_string("The payment processor's transfer id")),
        ("external_reference", schema::nullable_string("Reference of the payment, as proof")),
        (
            "failure_reason",
            schema::nullable_string(
                "Why the payout failed; while it is `processing`, why the transfer has not been made yet",
            ),
        ),
        ("paid_at", schema::nullable_time("When it was paid")),
        ("created_at", schema::time("When it was drafted")),
        ("updated_at", schema::time("When it was last changed")),
    ]
}

impl ToSchema for PayoutObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let description = "A payout to one partner in one currency";
        schemas.component("AffiliatePayout", |_| schema::object(description, payout_fields()))
    }
}

impl ToSchema for DraftPayoutObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut fields = payout_fields();
        fields.push(("destination", schema::string("The payout destination")));
        let description = "A payout to one partner in one currency, with its destination";
        schemas.component("AffiliatePayoutOfRun", |_| schema::object(description, fields))
    }
}

impl ToSchema for PayoutRunObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let totals = json!({
            "type": "object", "additionalProperties": {"type": "integer"},
            "examples": [{"usd": 5000}], "description": "The sum of the payouts by currency",
        });
        let fields = [
            ("object", object_kind_schema("affiliate_payout_run")),
            ("id", schema::string("The payout run's id (`prn_…`)")),
            ("status", schema::string_enum(PayoutRunStatus::WORDS, "The status")),
            ("partial", schema::boolean("Whether some payouts of the run failed")),
            ("rev", schema::count("Version number; increases with each change")),
            ("cutoff", schema::time("The run includes commissions earned until this time")),
            ("totals", totals),
            ("payouts_count", schema::count("Number of payouts")),
            (
                "comparing",
                schema::boolean(
                    "Whether charges are still being compared with the payment processor, which blocks the approval",
                ),
            ),
            (
                "uncompared_count",
                schema::count(
                    "Commissions whose charges could not be compared because the payment processor did not respond",
                ),
            ),
            ("created_at", schema::time("When it was drafted")),
            ("approved_at", schema::nullable_time("When it was approved")),
            ("completed_at", schema::nullable_time("When its last payout was settled")),
        ];
        schemas
            .component("AffiliatePayoutRun", |_| schema::object("A set of payouts that are approved together", fields))
    }
}

impl ToSchema for SkippedPartnerObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("affiliate_id", schema::string("The partner (`aff_…`)")),
            ("currency", currency_schema("The currency")),
            (
                "amount_cents",
                json!({"type": "integer", "minimum": 0, "description": "The amount that is not paid, in minor units"}),
            ),
            ("reason", schema::string_enum(SkipReason::WORDS, "Why")),
        ];
        schemas.component("SkippedAffiliate", |_| schema::object("A partner that is skipped in a run", fields))
    }
}

/// Schema of a run with its payouts and skipped partners.
pub(super) fn whole_run_schema(schemas: &mut Schemas, is_nullable: bool) -> Value {
    let mut run = PayoutRunObject::schema(schemas);
    if is_nullable {
        schema::allow_null(&mut run);
    }
    let payouts = schema::list(DraftPayoutObject::schema(schemas), "All payouts of the run, oldest first");
    let skipped = schema::list(SkippedPartnerObject::schema(schemas), "Skipped partners with the reason");
    let fields = [("run", run), ("payouts", payouts), ("skipped", skipped)];
    let name = if is_nullable { "DraftedAffiliatePayoutRun" } else { "WholeAffiliatePayoutRun" };
    schemas.component(name, |_| schema::object("A payout run with its payouts and skipped partners", fields))
}

/// A payment file
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliatePayoutFile")]
pub struct PayoutFileObject {
    /// The suggested file name
    name: String,
    /// The payout method
    method: PayoutMethod,
    /// The currency
    #[schema(pattern = "^[a-z]{3}$", examples = ["usd"])]
    currency: mail::affiliate::money::Currency,
    /// The file format
    format: PayoutFileFormat,
    /// Number of payouts
    rows: usize,
    /// The file: CSV, lines end in CRLF
    content: String,
}

impl From<PayoutFile> for PayoutFileObject {
    fn from(file: PayoutFile) -> Self {
        let PayoutFile { name, method, currency, format, rows, content } = file;
        Self { name, method, currency, format, rows, content }
    }
}

/// All payment files of a run
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliatePayoutFiles")]
pub struct PayoutFilesResponse {
    /// One file per method, currency and part
    pub(super) files: Vec<PayoutFileObject>,
}
