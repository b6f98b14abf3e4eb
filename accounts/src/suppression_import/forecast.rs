//! Forecast of an import: the result for each line of a list, without writing anything.

use std::collections::BTreeSet;

use model::account::Account;
use model::csv::{CsvReader, CsvRecord};
use model::import::{ImportColumns, ImportCounts};
use model::quota::Noun;
use model::suppression::{SuppressionCause, SuppressionReason};
use store::engine::ReadError;

use super::{BATCH_RECORDS, SuppressionImporter};

/// Maximum number of lines that a forecast lists, of those left out and of the others.
pub const LINES_MAX: usize = 100;

/// The result that an import would have for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOutcome {
    /// A suppression is created, or its reason changes.
    Created,
    /// Nothing changes: the address is suppressed already, for this reason.
    Exists(SuppressionReason),
    /// Nothing changes: an earlier line has the address.
    Repeated,
    /// The line is invalid, for this reason.
    Invalid(String),
}

/// A line of a list with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineForecast {
    /// Line number, from 1.
    pub line: u64,
    /// The address or domain; empty if the line is invalid.
    pub address: String,
    /// The reason in the list.
    pub reason: Option<SuppressionReason>,
    pub outcome: LineOutcome,
}

/// The result that an import would have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportForecast {
    /// `refused` counts the new suppressions that the plan has no room for; `created` does not include them.
    pub counts: ImportCounts,
    /// Lines with an address of an earlier line; `exists` includes them.
    pub repeated: u64,
    /// The first lines that would be left out.
    pub left_out: Vec<LineForecast>,
    /// The first other lines.
    pub others: Vec<LineForecast>,
}

impl ImportForecast {
    fn add(&mut self, line: LineForecast) {
        let list = match &line.outcome {
            LineOutcome::Created => {
                self.counts.created += 1;
                &mut self.others
            }
            LineOutcome::Exists(_) => {
                self.counts.exists += 1;
                &mut self.others
            }
            LineOutcome::Repeated => {
                (self.counts.exists, self.repeated) = (self.counts.exists + 1, self.repeated + 1);
                &mut self.others
            }
            LineOutcome::Invalid(_) => {
                self.counts.invalid += 1;
                &mut self.left_out
            }
        };
        if list.len() < LINES_MAX {
            list.push(line);
        }
    }
}

impl SuppressionImporter {
    /// Reads a list as an import would, and changes nothing.
    pub async fn forecast(
        &self,
        account: &Account,
        text: &str,
        columns: &ImportColumns,
    ) -> Result<ImportForecast, ReadError> {
        let (service, now) = (&self.suppressions, self.services.clock.now());
        let mut records = CsvReader::new(text).skip(usize::from(columns.has_header));
        let (mut forecast, mut seen, mut added) = (ImportForecast::default(), BTreeSet::new(), 0);
        loop {
            let slice: Vec<CsvRecord> = records.by_ref().take(BATCH_RECORDS).collect();
            if slice.is_empty() {
                break;
            }
            let parsed: Vec<Result<SuppressionCause, String>> =
                slice.iter().map(|record| columns.parse_record(record, now)).collect();
            let causes: Vec<SuppressionCause> = parsed.iter().flatten().cloned().collect();
            let results = service.forecast(account.id, &causes).await?;
            let mut expected = results.into_iter().zip(service.would_add(account.id, &causes).await?);
            for (record, cause) in slice.iter().zip(parsed) {
                let line = record.line;
                let forecast_line = match cause {
                    Err(message) => {
                        let outcome = LineOutcome::Invalid(message);
                        LineForecast { line, address: String::new(), reason: None, outcome }
                    }
                    Ok(cause) => {
                        let Some((result, adds_row)) = expected.next() else { continue };
                        let (address, reason) = (cause.target.key(), Some(cause.reason));
                        let outcome = match (seen.insert(address.clone()), result.is_new) {
                            (false, _) => LineOutcome::Repeated,
                            (true, true) => {
                                added += u64::from(adds_row);
                                LineOutcome::Created
                            }
                            (true, false) => LineOutcome::Exists(result.suppression.reason),
                        };
                        LineForecast { line, address, reason, outcome }
                    }
                };
                forecast.counts.processed += 1;
                forecast.add(forecast_line);
            }
        }
        forecast.counts.total = forecast.counts.processed;
        // The reservation ends here: it only shows how much room the plan has.
        let room = self.quotas.reserve_up_to(account, Noun::Suppressions, added, now).await?.amount();
        forecast.counts.refused = added.saturating_sub(room);
        forecast.counts.created -= forecast.counts.refused;
        Ok(forecast)
    }
}
