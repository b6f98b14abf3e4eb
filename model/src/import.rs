//! Import of suppressions from a CSV list, and its progress.
//!
//! The names in the first line determine the columns. In a list without a header line, the first column that holds an
//! address is the address column. Recognised are the exports of these services, this server's own export, and any list
//! with an address column:
//!
//! - SES: `EmailAddress, Reason, LastUpdateTime`
//! - Postmark: `EmailAddress, SuppressionReason, Origin, CreatedAt`
//! - SendGrid: `status, reason, email, created`; `email, created, ip`
//! - Mailgun: `address, code, error, created_at`; `address, tags, created_at`

use jiff::Timestamp;
use message::reply::{Enhanced, truncate_diagnostic};
use serde::{Deserialize, Serialize};

use crate::csv::{CsvReader, CsvRecord, strip_formula_guard};
use crate::id::{AccountId, ImportId};
use crate::suppression::{SmtpDiagnostic, SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget};

/// Maximum number of line errors stored per import.
pub const ERRORS_MAX: usize = 20;
/// Maximum length of a note, in characters.
pub const NOTE_CHARS_MAX: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// Waiting to be read.
    Queued,
    /// Being read.
    Running,
    /// Read to the end.
    Completed,
    /// Stopped by an error.
    Failed,
}

/// Counts of an import so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportCounts {
    /// Records in the list.
    pub total: u64,
    /// Records read so far.
    pub processed: u64,
    /// Addresses that the import suppressed.
    pub created: u64,
    /// Addresses that were already suppressed.
    pub exists: u64,
    /// Records that are invalid.
    pub invalid: u64,
    /// Records refused because the plan's quota was full.
    #[serde(default)]
    pub refused: u64,
}

/// A line that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportLineError {
    /// Line number, from 1.
    pub line: u64,
    pub message: String,
}

#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressionImport {
    pub id: ImportId,
    pub account: AccountId,
    pub status: ImportStatus,
    pub counts: ImportCounts,
    /// Byte offset and line number of the next record.
    pub place: (u64, u64),
    /// The first [`ERRORS_MAX`] invalid lines.
    pub errors: Vec<ImportLineError>,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportColumns {
    /// The first line holds column names.
    pub has_header: bool,
    email: usize,
    reason: Option<usize>,
    origin: Option<usize>,
    code: Option<usize>,
    status: Option<usize>,
    words: Option<usize>,
    note: Option<usize>,
    expires_at: Option<usize>,
    /// Reason for records that state none.
    default_reason: Option<SuppressionReason>,
}

/// Column names in normalised form: lower case, without punctuation.
const EMAIL: &[&str] = &["email", "emailaddress", "address", "recipient", "recipientaddress", "mail"];
const REASON: &[&str] = &["suppressionreason", "reason", "type", "bouncetype"];

impl ImportColumns {
    /// Detects the columns of a list.
    ///
    /// # Errors
    /// The list is empty or has no address column.
    pub fn detect(text: &str) -> Result<Self, String> {
        let first = CsvReader::new(text).next().ok_or("the list is empty")?;
        let fields = first.fields.clone().unwrap_or_default();
        let names: Vec<String> = fields.iter().map(|field| normalize_name(field)).collect();
        let index_of = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
        if let Some(email) = index_of(EMAIL) {
            let default_reason = if index_of(&["ip"]).is_some() {
                // SendGrid's spam reports.
                Some(SuppressionReason::Complaint)
            } else if index_of(&["tag", "tags"]).is_some() {
                // Mailgun's unsubscribes.
                Some(SuppressionReason::Unsubscribe)
            } else {
                None
            };
            return Ok(Self {
                has_header: true,
                email,
                reason: index_of(REASON),
                origin: index_of(&["origin"]),
                code: index_of(&["code", "smtpcode"]),
                status: index_of(&["status", "enhancedcode"]),
                words: index_of(&["error", "diagnostic"]).or_else(|| index_of(&["reason"])),
                note: index_of(&["note"]),
                expires_at: index_of(&["expiresat"]),
                default_reason,
            });
        }
        match fields.iter().position(|field| SuppressionTarget::parse(strip_formula_guard(field)).is_ok()) {
            Some(email) => Ok(Self { email, ..Self::default() }),
            None => {
                Err(format!("no address column found; the first line is: {}", truncate_diagnostic(&fields.join(", "))))
            }
        }
    }

    /// Parses a record.
    ///
    /// # Errors
    /// Returns why the record is invalid.
    pub fn parse_record(&self, record: &CsvRecord, now: Timestamp) -> Result<SuppressionCause, String> {
        if record.fields.is_none() {
            return Err("unclosed quote, or line too long".to_owned());
        }
        let address_cell = strip_formula_guard(record.field(self.email));
        let target = SuppressionTarget::parse(address_cell).map_err(|_| match address_cell {
            "" => "the address is missing".to_owned(),
            address_cell => format!("`{}` is not an address", address_cell.chars().take(80).collect::<String>()),
        })?;
        let cell = |column: Option<usize>| column.map_or("", |column| record.field(column));
        let detail = self.detail(record);
        let reason = parse_reason(cell(self.reason), cell(self.origin))
            .or_else(|| detail.as_ref().filter(|detail| is_permanent(detail)).map(|_| SuppressionReason::HardBounce))
            .or(self.default_reason)
            .unwrap_or(SuppressionReason::Import);
        let mut cause = SuppressionCause { detail, ..SuppressionCause::new(target, reason, SuppressionSource::Import) };
        cause.note = Some(strip_formula_guard(cell(self.note)).chars().take(NOTE_CHARS_MAX).collect())
            .filter(|note: &String| !note.is_empty());
        if matches!(reason, SuppressionReason::Manual | SuppressionReason::Import) && !cell(self.expires_at).is_empty()
        {
            let end: Timestamp =
                cell(self.expires_at).parse().map_err(|_| "`expires_at` is not a valid time".to_owned())?;
            if end <= now {
                return Err("`expires_at` is in the past".to_owned());
            }
            cause.expires_at = Some(end);
        }
        Ok(cause)
    }

    fn detail(&self, record: &CsvRecord) -> Option<SmtpDiagnostic> {
        let cell = |column: Option<usize>| column.map_or("", |column| record.field(column));
        let smtp_code = cell(self.code).parse().ok().filter(|code| (200..600).contains(code));
        let enhanced_code = Enhanced::split_prefix(cell(self.status)).map(|(code, _)| code);
        (smtp_code.is_some() || enhanced_code.is_some()).then(|| SmtpDiagnostic {
            smtp_code,
            enhanced_code,
            diagnostic: truncate_diagnostic(cell(self.words)),
        })
    }
}

fn is_permanent(detail: &SmtpDiagnostic) -> bool {
    match (detail.enhanced_code, detail.smtp_code) {
        (Some(enhanced), _) => enhanced.class == 5,
        (None, code) => code.is_some_and(|code| code >= 500),
    }
}

/// Lower-cases a column name and drops its punctuation: `Email Address` and `email_address` are equal.
fn normalize_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Maps the reasons of other services. Other text is no reason: SendGrid puts the server's reply there.
fn parse_reason(word: &str, origin: &str) -> Option<SuppressionReason> {
    Some(match normalize_name(word).as_str() {
        "bounce" | "hardbounce" | "permanent" => SuppressionReason::HardBounce,
        "complaint" | "spamcomplaint" | "spam" | "spamreport" | "abuse" => SuppressionReason::Complaint,
        "unsubscribe" | "unsubscribed" | "globalunsubscribe" => SuppressionReason::Unsubscribe,
        // Postmark has no other word for a recipient's own request.
        "manualsuppression" if normalize_name(origin) == "recipient" => SuppressionReason::Unsubscribe,
        "manual" | "manualsuppression" => SuppressionReason::Manual,
        "import" | "softbounce" | "smtpfailure" => SuppressionReason::Import,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn read(text: &str) -> Vec<Result<(String, SuppressionReason), String>> {
        let columns = ImportColumns::detect(text).unwrap();
        CsvReader::new(text)
            .skip(usize::from(columns.has_header))
            .map(|record| columns.parse_record(&record, now()).map(|g| (g.target.to_string(), g.reason)))
            .collect()
    }

    #[test]
    fn lists_of_other_services_are_imported() {
        let record = |reason| Ok(("a@example.net".to_owned(), reason));
        use SuppressionReason as R;
        for (text, reason) in [
            ("a@example.net\n", R::Import),
            ("Email\na@example.net", R::Import),
            ("name;E-Mail;x\nAda;Ada <a@example.net>;1", R::Import),
            ("EmailAddress,Reason,LastUpdateTime\na@example.net,BOUNCE,2020-04-09", R::HardBounce),
            ("\"EmailAddress\",\"Reason\"\n\"a@example.net\",\"COMPLAINT\"", R::Complaint),
            ("EmailAddress,SuppressionReason,Origin\na@example.net,SpamComplaint,Recipient", R::Complaint),
            ("EmailAddress,SuppressionReason,Origin\na@example.net,ManualSuppression,Recipient", R::Unsubscribe),
            ("EmailAddress,SuppressionReason,Origin\na@example.net,ManualSuppression,Customer", R::Manual),
            ("status,reason,email,created\n5.1.1,550 5.1.1 no such user,a@example.net,1600", R::HardBounce),
            ("status,reason,email,created\n4.2.2,452 full,a@example.net,1600", R::Import),
            ("email,created,ip\na@example.net,1600,192.0.2.1", R::Complaint),
            ("address,code,error,created_at\na@example.net,550,No such mailbox,Fri", R::HardBounce),
            ("address,tags,created_at\na@example.net,*,Fri", R::Unsubscribe),
            ("id,email,reason,expires_at\nsup_1,a@example.net,complaint,", R::Complaint),
        ] {
            assert_eq!(read(text), [record(reason)], "{text}");
        }
    }

    #[test]
    fn invalid_lines_are_reported_and_the_others_imported() {
        let text = "email,reason,expires_at\nnobody\n@example.org,,\n,,\nb@example.net,manual,2001-01-01T00:00:00Z\n\
                    c@example.net,manual,2040-01-01T00:00:00Z\n\"d@example.net\nE@Example.NET,x,\n";
        let found = read(text);
        assert_eq!(found[0], Err("`nobody` is not an address".to_owned()));
        assert_eq!(found[1], Ok(("@example.org".to_owned(), SuppressionReason::Import)));
        assert!(found[2].is_err() && found[4].is_err());
        assert_eq!(found[3], Ok(("c@example.net".to_owned(), SuppressionReason::Manual)));
        assert_eq!(found[5], Ok(("E@example.net".to_owned(), SuppressionReason::Import)));
        assert!(ImportColumns::detect("name,phone\nAda,1").unwrap_err().contains("name, phone"));
        assert!(ImportColumns::detect("").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "(email|reason|,|@a.example|x|\"|\n| ){0,40}") {
            if let Ok(columns) = ImportColumns::detect(&text) {
                for record in CsvReader::new(&text) {
                    let _ = columns.parse_record(&record, now());
                }
            }
        }
    }
}
