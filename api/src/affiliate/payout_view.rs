//! JSON objects and schemas of payouts and payout runs.

use ::affiliate::api_objects::{DraftPayoutObject, PayoutObject, PayoutRunObject, SkippedPartnerObject};
use ::affiliate::payouts::files::PayoutFile;
use model::affiliate::payout::PayoutFileFormat;
use model::affiliate::program::PayoutMethod;

use crate::prelude::*;

object_response! { "A response with a single object", pub PayoutResponse { payout: PayoutObject } as "OneAffiliatePayout" }

object_response! { "A response with a single object", pub PayoutRunResponse { run: PayoutRunObject } as "OneAffiliatePayoutRun" }

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
    currency: model::affiliate::money::Currency,
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
