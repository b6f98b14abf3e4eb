//! `POST /suppressions/import/dry-run`: what an import of the list would do. Nothing is written.

use accounts::suppression_import::forecast::{ImportForecast, LineForecast, LineOutcome};
use model::import::ImportCounts;
use model::suppression::SuppressionReason;

use super::import::ImportSuppressions;
use crate::prelude::*;

const RESULTS: &[&str] = &["created", "exists", "repeated", "invalid"];

/// A line with the result that an import would have
#[derive(Debug, Serialize, ToSchema)]
struct LineForecastView {
    /// Line number, from 1
    line: u64,
    /// The address or domain; null if the line is invalid
    email: Option<String>,
    /// The reason in the list; null if the line is invalid
    reason: Option<SuppressionReason>,
    /// `created`: a suppression would be created or get this reason; `exists`: the address is already suppressed; `repeated`: an earlier line has the address; `invalid`: the line would be skipped
    #[schema(enum = RESULTS)]
    result: &'static str,
    /// The reason of the suppression that exists
    existing_reason: Option<SuppressionReason>,
    /// Why the line would be skipped
    message: Option<String>,
}

impl LineForecastView {
    fn from_line(line: LineForecast) -> Self {
        let LineForecast { line, address, reason, outcome } = line;
        let (result, existing_reason, message) = match outcome {
            LineOutcome::Created => ("created", None, None),
            LineOutcome::Exists(reason) => ("exists", Some(reason), None),
            LineOutcome::Repeated => ("repeated", None, None),
            LineOutcome::Invalid(message) => ("invalid", None, Some(message)),
        };
        let email = Some(address).filter(|address| !address.is_empty());
        Self { line, email, reason, result, existing_reason, message }
    }
}

/// The number of lines by result
#[derive(Debug, Serialize, ToSchema)]
struct ForecastCountsView {
    /// Records in the list
    total: u64,
    /// Suppressions that would be created or changed
    created: u64,
    /// Records whose address is already suppressed, or is on an earlier line
    exists: u64,
    /// Records whose address is on an earlier line
    repeated: u64,
    /// Invalid records
    invalid: u64,
    /// Records that the plan has no room for
    refused: u64,
}

/// The result that an import would have
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SuppressionImportForecast")]
pub struct ForecastView {
    counts: ForecastCountsView,
    /// The first 100 lines that would be skipped
    left_out: Vec<LineForecastView>,
    /// The first 100 other lines
    lines: Vec<LineForecastView>,
}

object_response! { "A response with the result that an import would have", pub DryRunImportResponse { dry_run: ForecastView } }

/// `POST /suppressions/import/dry-run`.
///
/// # Errors
/// The list is invalid; the store cannot be read.
pub async fn dry_run(state: State, tenant: Tenant, list: ImportSuppressions) -> Result<DryRunImportResponse> {
    let text = std::str::from_utf8(&list.text).map_err(Problem::internal)?;
    let forecast = state.accounts.suppression_importer.forecast(tenant.account(), text, &list.columns).await?;
    let ImportForecast { counts, repeated, left_out, others } = forecast;
    let ImportCounts { total, created, exists, invalid, refused, .. } = counts;
    let views = |lines: Vec<LineForecast>| lines.into_iter().map(LineForecastView::from_line).collect();
    Ok(DryRunImportResponse {
        dry_run: ForecastView {
            counts: ForecastCountsView { total, created, exists, repeated, invalid, refused },
            left_out: views(left_out),
            lines: views(others),
        },
    })
}
