//! Payout results: parses the result file of PayPal, Wise or another payment system with a header line.
//!
//! A row is matched to a payout by any cell that holds a payout id. Payout files ([`super::PayoutFileFormat`]) write
//! this id as the reference, and payment systems return it in columns of different names. The other columns are found
//! by their names, without regard to case.

use crate::csv::{CsvReader, CsvRecord};
use crate::id::PayoutId;

/// Maximum number of rows in a file.
pub const ROWS_MAX: usize = 20_000;
/// Longest proof of payment in characters; longer text is truncated.
const REFERENCE_CHARS_MAX: usize = 200;
/// Longest failure reason in characters; longer text is truncated.
const REASON_CHARS_MAX: usize = 500;

/// Names of the status column, in order of preference.
const STATUS: &[&str] = &["status", "transaction status", "payout item status", "transfer status"];
/// Names of the column with the proof of payment: the payment system's own id.
const REFERENCE: &[&str] = &["reference", "transaction id", "payout item id", "transfer id", "transferwise id", "id"];
/// Names of the failure reason column.
const REASON: &[&str] =
    &["reason", "failure reason", "error", "error message", "errors", "error description", "reason code"];

/// Status words that mean paid; those for failed and in progress follow.
const PAID: &[&str] =
    &["paid", "success", "successful", "succeeded", "complete", "completed", "sent", "outgoing payment sent"];
const FAILED: &[&str] = &[
    "failed",
    "denied",
    "returned",
    "refunded",
    "reversed",
    "blocked",
    "cancelled",
    "canceled",
    "bounced back",
    "funds refunded",
    "rejected",
];
const UNDER_WAY: &[&str] = &[
    "pending",
    "processing",
    "unclaimed",
    "onhold",
    "on hold",
    "new",
    "created",
    "scheduled",
    "incoming payment waiting",
    "funds converted",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutResult {
    /// Paid, with the proof of payment.
    Paid(String),
    /// Failed, with the reason.
    Failed(String),
    /// In progress: neither paid nor failed yet.
    UnderWay,
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutResultRow {
    /// Row number from 1; the header is not counted.
    pub number: usize,
    /// `None` if no cell holds a payout id.
    pub payout: Option<PayoutId>,
    /// The result, or the invalid part: `id`, `status` or `reference`.
    pub result: Result<PayoutResult, &'static str>,
}

/// A text is not a valid results file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PayoutResultsError {
    /// The header has no status column.
    #[error("has no column `status`")]
    NoStatus,
    /// There are more than [`ROWS_MAX`] rows.
    #[error("has more than {ROWS_MAX} rows; split the file")]
    TooLong,
}

fn normalize_name(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '-'], " ")
}

/// Positions of the columns with these names, in order of preference.
fn column_positions(names: &CsvRecord, known: &[&str]) -> Vec<usize> {
    let names: Vec<String> = names.fields.iter().flatten().map(|name| normalize_name(name)).collect();
    known.iter().filter_map(|known| names.iter().position(|name| name == known)).collect()
}

/// Parses a results file. An invalid row does not fail the file: its entry names the invalid part.
pub fn parse(text: &str) -> Result<Vec<PayoutResultRow>, PayoutResultsError> {
    let mut records = CsvReader::new(text);
    let names = records.next().ok_or(PayoutResultsError::NoStatus)?;
    let status = *column_positions(&names, STATUS).first().ok_or(PayoutResultsError::NoStatus)?;
    let columns = ResultColumns {
        status,
        references: column_positions(&names, REFERENCE),
        reasons: column_positions(&names, REASON),
    };
    let mut rows = Vec::new();
    for record in records {
        if rows.len() == ROWS_MAX {
            return Err(PayoutResultsError::TooLong);
        }
        rows.push(parse_row(rows.len() + 1, &record, &columns));
    }
    Ok(rows)
}

/// Positions of a results file's columns; of references and reasons the first that is filled in counts.
struct ResultColumns {
    status: usize,
    references: Vec<usize>,
    reasons: Vec<usize>,
}

fn parse_row(number: usize, record: &CsvRecord, columns: &ResultColumns) -> PayoutResultRow {
    let id = |text: &str| text.trim().parse::<PayoutId>().ok();
    let payout = record.fields.iter().flatten().find_map(|text| id(text));
    // Without control characters, truncated to `chars_max`.
    let first_text = |positions: &[usize], chars_max: usize| {
        let texts = positions.iter().map(|position| record.field(*position).trim());
        let found = texts.into_iter().find(|text| !text.is_empty() && id(text).is_none());
        found.map(|text| text.chars().filter(|c| !c.is_control()).take(chars_max).collect::<String>())
    };
    let status = normalize_name(record.field(columns.status));
    let is_any = |words: &[&str]| words.contains(&status.as_str());
    let result = if payout.is_none() {
        Err("id")
    } else if is_any(PAID) {
        first_text(&columns.references, REFERENCE_CHARS_MAX).map(PayoutResult::Paid).ok_or("reference")
    } else if is_any(FAILED) {
        Ok(PayoutResult::Failed(first_text(&columns.reasons, REASON_CHARS_MAX).unwrap_or(status)))
    } else if is_any(UNDER_WAY) {
        Ok(PayoutResult::UnderWay)
    } else {
        Err("status")
    };
    PayoutResultRow { number, payout, result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn columns_of_each_payment_system_are_found_by_name() {
        let id = PayoutId::new(Timestamp::UNIX_EPOCH, 1);
        for (text, expected) in [
            (format!("id,status,reference,reason\n{id},paid,PP-1,\n"), Ok(PayoutResult::Paid("PP-1".into()))),
            (format!("id,status,reason\n{id},failed,closed\n"), Ok(PayoutResult::Failed("closed".into()))),
            // PayPal
            (
                format!("Transaction ID,Recipient,Transaction Status,Unique ID\n8AB,a@b.example,Completed,{id}\n"),
                Ok(PayoutResult::Paid("8AB".into())),
            ),
            (format!("Payout_Item_Status;Sender_Item_ID\nUNCLAIMED;{id}\n"), Ok(PayoutResult::UnderWay)),
            (format!("Status,Unique ID\nReturned,{id}\n"), Ok(PayoutResult::Failed("returned".into()))),
            // Wise
            (
                format!("ID,Status,Reference,Source amount\nTRANSFER-7,COMPLETED,{id},5\n"),
                Ok(PayoutResult::Paid("TRANSFER-7".into())),
            ),
            (
                format!("TransferWise ID,Status,Payment Reference\n7,bounced_back,{id}\n"),
                Ok(PayoutResult::Failed("bounced back".into())),
            ),
            (format!("id,status\n{id},paid\n"), Err("reference")),
            (format!("id,status\n{id},maybe\n"), Err("status")),
            ("id,status\npay_1,paid\n".to_owned(), Err("id")),
        ] {
            let rows = parse(&text).unwrap();
            assert_eq!((rows.len(), &rows[0].result), (1, &expected), "{text}");
            assert_eq!(rows[0].payout, (expected != Err("id")).then_some(id), "{text}");
        }
        assert_eq!(parse("id,reference\n"), Err(PayoutResultsError::NoStatus));
        assert_eq!(parse(""), Err(PayoutResultsError::NoStatus));
    }
}
