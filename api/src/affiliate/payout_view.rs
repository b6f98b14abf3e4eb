//! What callers see of payouts and runs, described.

use ::affiliate::object::{DraftPayoutObject, PayoutObject, PayoutRunObject, SkippedPartnerObject};
use ::affiliate::payouts::PayoutFile;
use mail::affiliate::payout::{PayoutFileFormat, PayoutRunStatus, PayoutStatus, SkipReason};
use mail::affiliate::program::PayoutMethod;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::ResponseObject;
use crate::schema::{self, Schemas, ToSchema};

/// A payout.
#[derive(Debug, Serialize)]
pub struct PayoutResponse {
    pub(super) payout: PayoutObject,
}

impl ToSchema for PayoutResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let payout = PayoutObject::schema(schemas);
        schemas.component("OneAffiliatePayout", |_| schema::object("One of them", [("payout", payout)]))
    }
}

impl ResponseObject for PayoutResponse {}

/// A run.
#[derive(Debug, Serialize)]
pub struct PayoutRunResponse {
    pub(super) run: PayoutRunObject,
}

impl ToSchema for PayoutRunResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let run = PayoutRunObject::schema(schemas);
        schemas.component("OneAffiliatePayoutRun", |_| schema::object("One of them", [("run", run)]))
    }
}

impl ResponseObject for PayoutRunResponse {}

fn object_kind_schema(word: &str) -> Value {
    json!({"type": "string", "const": word, "description": "What it is"})
}

fn currency_schema(description: &str) -> Value {
    json!({"type": "string", "pattern": "^[a-z]{3}$", "examples": ["usd"], "description": description})
}

fn payout_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("object", object_kind_schema("affiliate_payout")),
        ("id", schema::string("Its id (`pay_…`)")),
        ("affiliate_id", schema::string("Who gets it (`aff_…`)")),
        ("run_id", schema::string("The run that it is in (`prn_…`)")),
        ("amount_cents", json!({"type": "integer", "minimum": 0, "description": "How much, in minor units"})),
        ("currency", currency_schema("Of what")),
        ("method", schema::string_enum(PayoutMethod::WORDS, "In which way")),
        ("status", schema::string_enum(PayoutStatus::WORDS, "Where it stands")),
        ("processor_transfer_id", schema::nullable_string("The processor's id of the transfer")),
        ("external_reference", schema::nullable_string("What proves that it was paid")),
        (
            "failure_reason",
            schema::nullable_string(
                "Why it failed; while it is `processing`, why the processor has not made the transfer yet",
            ),
        ),
        ("paid_at", schema::nullable_time("When it was paid")),
        ("created_at", schema::time("When it was drafted")),
        ("updated_at", schema::time("When it was changed last")),
    ]
}

impl ToSchema for PayoutObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let about = "What one partner gets in one currency";
        schemas.component("AffiliatePayout", |_| schema::object(about, payout_fields()))
    }
}

impl ToSchema for DraftPayoutObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut fields = payout_fields();
        fields.push(("destination", schema::string("Where it goes")));
        let about = "What one partner gets in one currency, and where";
        schemas.component("AffiliatePayoutOfRun", |_| schema::object(about, fields))
    }
}

impl ToSchema for PayoutRunObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let totals = json!({
            "type": "object", "additionalProperties": {"type": "integer"},
            "examples": [{"usd": 5000}], "description": "What its payouts come to, by currency",
        });
        let fields = [
            ("object", object_kind_schema("affiliate_payout_run")),
            ("id", schema::string("Its id (`prn_…`)")),
            ("status", schema::string_enum(PayoutRunStatus::WORDS, "Where it stands")),
            ("partial", schema::boolean("Whether payouts of it failed")),
            ("rev", schema::count("Grows with each change")),
            ("cutoff", schema::time("Until when what is in it was earned")),
            ("totals", totals),
            ("payouts_count", schema::count("Payouts in it")),
            (
                "comparing",
                schema::boolean("Whether the processor is still asked about charges in it: then it cannot be approved"),
            ),
            ("uncompared_count", schema::count("Commissions in it about whose charges the processor did not answer")),
            ("created_at", schema::time("When it was drafted")),
            ("approved_at", schema::nullable_time("When it was approved")),
            ("completed_at", schema::nullable_time("When its last payout was settled")),
        ];
        schemas.component("AffiliatePayoutRun", |_| schema::object("Payouts that are approved together", fields))
    }
}

impl ToSchema for SkippedPartnerObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("affiliate_id", schema::string("Who (`aff_…`)")),
            ("currency", currency_schema("Of what")),
            (
                "amount_cents",
                json!({"type": "integer", "minimum": 0, "description": "How much is not paid, in minor units"}),
            ),
            ("reason", schema::string_enum(SkipReason::WORDS, "Why")),
        ];
        schemas.component("SkippedAffiliate", |_| schema::object("A partner who is not in a run", fields))
    }
}

/// The schema of a run with all that belongs to it.
pub(super) fn whole_run_schema(schemas: &mut Schemas, is_nullable: bool) -> Value {
    let mut run = PayoutRunObject::schema(schemas);
    if is_nullable {
        schema::allow_null(&mut run);
    }
    let payouts = schema::list(DraftPayoutObject::schema(schemas), "Its payouts, oldest first, all of them");
    let skipped = schema::list(SkippedPartnerObject::schema(schemas), "Who is not in it, and why");
    let fields = [("run", run), ("payouts", payouts), ("skipped", skipped)];
    let name = if is_nullable { "DraftedAffiliatePayoutRun" } else { "WholeAffiliatePayoutRun" };
    schemas.component(name, |_| schema::object("A payout run, whole", fields))
}

/// A file of payouts.
#[derive(Debug, Serialize)]
pub struct PayoutFileObject {
    name: String,
    method: PayoutMethod,
    currency: mail::affiliate::money::Currency,
    format: PayoutFileFormat,
    rows: usize,
    content: String,
}

impl From<PayoutFile> for PayoutFileObject {
    fn from(file: PayoutFile) -> Self {
        let PayoutFile { name, method, currency, format, rows, content } = file;
        Self { name, method, currency, format, rows, content }
    }
}

/// All files of a run.
#[derive(Debug, Serialize)]
pub struct PayoutFilesResponse {
    pub(super) files: Vec<PayoutFileObject>,
}

impl ToSchema for PayoutFilesResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("name", schema::string("What it may be called")),
            ("method", schema::string_enum(PayoutMethod::WORDS, "By which way its payouts are paid")),
            ("currency", currency_schema("Of what")),
            ("format", schema::string_enum(PayoutFileFormat::WORDS, "What it is for")),
            ("rows", schema::count("Payouts in it")),
            ("content", schema::string("The file: CSV, lines end in CRLF")),
        ];
        let file = schemas.component("AffiliatePayoutFile", |_| schema::object("A file of payouts", fields));
        schemas.component("AffiliatePayoutFiles", |_| {
            schema::object(
                "All files of a run",
                [("files", schema::list(file, "One for each method, currency and part"))],
            )
        })
    }
}
