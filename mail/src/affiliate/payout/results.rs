//! What became of payouts, in a file that who pays them hands out: PayPal, Wise, or anybody whose columns have names.
//!
//! Which payout a row is about says the cell that is a payout's id: in the files that we write ([`super::Format`]) it is the
//! rail's own reference, and comes back under whatever name. Other columns are told by their names, in any case.

use crate::csv::{CsvReader, CsvRecord};
use crate::id::PayoutId;

/// Rows of one file.
pub const ROWS_MAX: usize = 20_000;
/// What proves that it is paid, in characters.
const REFERENCE_CHARS_MAX: usize = 200;
/// Why it failed, in characters.
const REASON_CHARS_MAX: usize = 500;

/// How a column is called that says how a payout stands.
const STATUS: &[&str] = &["status", "transaction status", "payout item status", "transfer status"];
/// What proves it: the rail's own number.
const REFERENCE: &[&str] = &["reference", "transaction id", "payout item id", "transfer id", "transferwise id", "id"];
/// Why it failed.
const REASON: &[&str] =
    &["reason", "failure reason", "error", "error message", "errors", "error description", "reason code"];

/// In the words of those who pay.
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

/// What a row says of a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutResult {
    /// It is paid, and this proves it.
    Paid(String),
    /// It failed, for this reason.
    Failed(String),
    /// Nothing yet.
    UnderWay,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutResultRow {
    /// Its number, from 1; the line of names is none.
    pub number: usize,
    /// The payout.
    pub payout: Option<PayoutId>,
    /// What it says; or what cannot be read: `id`, `status`, `reference`.
    pub result: Result<PayoutResult, &'static str>,
}

/// A text that tells no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PayoutResultsError {
    /// No column says how a payout stands.
    #[error("has no column `status`")]
    NoStatus,
    /// It is too long.
    #[error("has more than {ROWS_MAX} rows")]
    TooLong,
}

fn normalize_name(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '-'], " ")
}

/// The places of columns, the better names first.
fn column_positions(names: &CsvRecord, known: &[&str]) -> Vec<usize> {
    let names: Vec<String> = names.fields.iter().flatten().map(|name| normalize_name(name)).collect();
    known.iter().filter_map(|known| names.iter().position(|name| name == known)).collect()
}

/// Reads results.
///
/// # Errors
/// [`ResultsError`].
pub fn parse(text: &str) -> Result<Vec<PayoutResultRow>, PayoutResultsError> {
    let mut records = CsvReader::new(text);
    let names = records.next().ok_or(PayoutResultsError::NoStatus)?;
    let status = *column_positions(&names, STATUS).first().ok_or(PayoutResultsError::NoStatus)?;
    let columns = (status, column_positions(&names, REFERENCE), column_positions(&names, REASON));
    let mut rows = Vec::new();
    for record in records {
        if rows.len() == ROWS_MAX {
            return Err(PayoutResultsError::TooLong);
        }
        rows.push(parse_row(rows.len() + 1, &record, &columns));
    }
    Ok(rows)
}

fn parse_row(
    number: usize,
    record: &CsvRecord,
    (status, references, reasons): &(usize, Vec<usize>, Vec<usize>),
) -> PayoutResultRow {
    let id = |text: &str| text.trim().parse::<PayoutId>().ok();
    let payout = record.fields.iter().flatten().find_map(|text| id(text));
    // Of characters that can be kept, cut where it is too long.
    let words = |places: &[usize], chars_max: usize| {
        let texts = places.iter().map(|place| record.field(*place).trim());
        let found = texts.into_iter().find(|text| !text.is_empty() && id(text).is_none());
        found.map(|text| text.chars().filter(|c| !c.is_control()).take(chars_max).collect::<String>())
    };
    let said = normalize_name(record.field(*status));
    let is = |words: &[&str]| words.contains(&said.as_str());
    let became = if payout.is_none() {
        Err("id")
    } else if is(PAID) {
        words(references, REFERENCE_CHARS_MAX).map(PayoutResult::Paid).ok_or("reference")
    } else if is(FAILED) {
        Ok(PayoutResult::Failed(words(reasons, REASON_CHARS_MAX).unwrap_or(said)))
    } else if is(UNDER_WAY) {
        Ok(PayoutResult::UnderWay)
    } else {
        Err("status")
    };
    PayoutResultRow { number, payout, result: became }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn each_rails_columns_are_told_by_their_names() {
        let id = PayoutId::new(Timestamp::UNIX_EPOCH, 1);
        for (text, became) in [
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
            assert_eq!((rows.len(), &rows[0].result), (1, &became), "{text}");
            assert_eq!(rows[0].payout, (became != Err("id")).then_some(id), "{text}");
        }
        assert_eq!(parse("id,reference\n"), Err(PayoutResultsError::NoStatus));
        assert_eq!(parse(""), Err(PayoutResultsError::NoStatus));
    }
}
