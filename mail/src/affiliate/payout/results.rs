//! What became of payouts, in a file that who pays them hands out: PayPal, Wise, or anybody whose columns have names.
//!
//! Which payout a row is about says the cell that is a payout's id: in the files that we write ([`super::Format`]) it is the
//! rail's own reference, and comes back under whatever name. Other columns are told by their names, in any case.

use crate::csv::{Record, Records};
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
const REFERENCE: &[&str] =
    &["reference", "transaction id", "payout item id", "transfer id", "transferwise id", "id"];
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
pub enum Became {
    /// It is paid, and this proves it.
    Paid(String),
    /// It failed, for this reason.
    Failed(String),
    /// Nothing yet.
    UnderWay,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// Its number, from 1; the line of names is none.
    pub number: usize,
    /// The payout.
    pub payout: Option<PayoutId>,
    /// What it says; or what cannot be read: `id`, `status`, `reference`.
    pub became: Result<Became, &'static str>,
}

/// A text that tells no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// No column says how a payout stands.
    #[error("has no column `status`")]
    NoStatus,
    /// It is too long.
    #[error("has more than {ROWS_MAX} rows")]
    TooLong,
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '-'], " ")
}

/// The places of columns, the better names first.
fn places(names: &Record, known: &[&str]) -> Vec<usize> {
    let names: Vec<String> = names.fields.iter().flatten().map(|name| plain(name)).collect();
    known.iter().filter_map(|known| names.iter().position(|name| name == known)).collect()
}

/// Reads results.
///
/// # Errors
/// [`ResultsError`].
pub fn read(text: &str) -> Result<Vec<ResultRow>, ResultsError> {
    let mut records = Records::new(text);
    let names = records.next().ok_or(ResultsError::NoStatus)?;
    let status = *places(&names, STATUS).first().ok_or(ResultsError::NoStatus)?;
    let columns = (status, places(&names, REFERENCE), places(&names, REASON));
    let mut rows = Vec::new();
    for record in records {
        if rows.len() == ROWS_MAX {
            return Err(ResultsError::TooLong);
        }
        rows.push(row(rows.len() + 1, &record, &columns));
    }
    Ok(rows)
}

fn row(
    number: usize,
    record: &Record,
    (status, references, reasons): &(usize, Vec<usize>, Vec<usize>),
) -> ResultRow {
    let id = |text: &str| text.trim().parse::<PayoutId>().ok();
    let payout = record.fields.iter().flatten().find_map(|text| id(text));
    // Of characters that can be kept, cut where it is too long.
    let words = |places: &[usize], chars_max: usize| {
        let texts = places.iter().map(|place| record.field(*place).trim());
        let found = texts.into_iter().find(|text| !text.is_empty() && id(text).is_none());
        found.map(|text| text.chars().filter(|c| !c.is_control()).take(chars_max).collect::<String>())
    };
    let said = plain(record.field(*status));
    let is = |words: &[&str]| words.contains(&said.as_str());
    let became = if payout.is_none() {
        Err("id")
    } else if is(PAID) {
        words(references, REFERENCE_CHARS_MAX).map(Became::Paid).ok_or("reference")
    } else if is(FAILED) {
        Ok(Became::Failed(words(reasons, REASON_CHARS_MAX).unwrap_or(said)))
    } else if is(UNDER_WAY) {
        Ok(Became::UnderWay)
    } else {
        Err("status")
    };
    ResultRow { number, payout, became }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn each_rails_columns_are_told_by_their_names() {
        let id = PayoutId::new(Timestamp::UNIX_EPOCH, 1);
        for (text, became) in [
            (format!("id,status,reference,reason\n{id},paid,PP-1,\n"), Ok(Became::Paid("PP-1".into()))),
            (format!("id,status,reason\n{id},failed,closed\n"), Ok(Became::Failed("closed".into()))),
            // PayPal
            (
                format!(
                    "Transaction ID,Recipient,Transaction Status,Unique ID\n8AB,a@b.example,Completed,{id}\n"
                ),
                Ok(Became::Paid("8AB".into())),
            ),
            (format!("Payout_Item_Status;Sender_Item_ID\nUNCLAIMED;{id}\n"), Ok(Became::UnderWay)),
            (format!("Status,Unique ID\nReturned,{id}\n"), Ok(Became::Failed("returned".into()))),
            // Wise
            (
                format!("ID,Status,Reference,Source amount\nTRANSFER-7,COMPLETED,{id},5\n"),
                Ok(Became::Paid("TRANSFER-7".into())),
            ),
            (
                format!("TransferWise ID,Status,Payment Reference\n7,bounced_back,{id}\n"),
                Ok(Became::Failed("bounced back".into())),
            ),
            (format!("id,status\n{id},paid\n"), Err("reference")),
            (format!("id,status\n{id},maybe\n"), Err("status")),
            ("id,status\npay_1,paid\n".to_owned(), Err("id")),
        ] {
            let rows = read(&text).unwrap();
            assert_eq!((rows.len(), &rows[0].became), (1, &became), "{text}");
            assert_eq!(rows[0].payout, (became != Err("id")).then_some(id), "{text}");
        }
        assert_eq!(read("id,reference\n"), Err(ResultsError::NoStatus));
        assert_eq!(read(""), Err(ResultsError::NoStatus));
    }
}
