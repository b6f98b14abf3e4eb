//! Importing suppressions: a list in CSV, as the other services hand it out, and how far it is read.
//!
//! What the columns are is told from the names in the first line; a list without such a line has the
//! addresses in the first column that holds one. Known are the lists of SES (`EmailAddress, Reason,
//! LastUpdateTime`), Postmark (`EmailAddress, SuppressionReason, Origin, CreatedAt`), SendGrid (`status,
//! reason, email, created`; `email, created, ip`), Mailgun (`address, code, error, created_at`; `address,
//! tags, created_at`), our own export, and any with a column of addresses.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::csv::{CsvReader, CsvRecord, strip_formula_guard};
use crate::id::{AccountId, ImportId};
use crate::reply::Enhanced;
use crate::suppression::{
    SmtpDiagnostic, SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget, truncate_diagnostic,
};

/// Lines that are told to be wrong, of one import.
pub const ERRORS_MAX: usize = 20;
/// The longest note, in characters.
pub const NOTE_CHARS_MAX: usize = 500;

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// It waits.
    Queued,
    /// It is being read.
    Running,
    /// It was read to its end.
    Completed,
    /// It could not be read on.
    Failed,
}

/// What an import has come to so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportCounts {
    /// Records in the list.
    pub total: u64,
    /// Records read so far.
    pub processed: u64,
    /// Addresses that were suppressed by them.
    pub created: u64,
    /// Addresses that were suppressed already.
    pub exists: u64,
    /// Records that say nothing that can be used.
    pub invalid: u64,
    /// Records that the plan had no room for.
    #[serde(default)]
    pub refused: u64,
}

/// A line that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportLineError {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

/// A list that is being imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionImport {
    /// Its id.
    pub id: ImportId,
    /// Whose it is.
    pub account: AccountId,
    /// How far it is.
    pub status: ImportStatus,
    /// What it has come to.
    pub counts: ImportCounts,
    /// Where the next record begins, in bytes, and on which line.
    pub place: (u64, u64),
    /// The first lines that could not be used.
    pub errors: Vec<ImportLineError>,
    /// When it was handed in.
    pub created_at: Timestamp,
    /// When it was done.
    pub completed_at: Option<Timestamp>,
}

/// Which column is what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportColumns {
    /// The first line holds names.
    pub has_header: bool,
    email: usize,
    reason: Option<usize>,
    origin: Option<usize>,
    code: Option<usize>,
    status: Option<usize>,
    words: Option<usize>,
    note: Option<usize>,
    expires_at: Option<usize>,
    /// What a record is about when it does not say.
    default_reason: Option<SuppressionReason>,
}

/// Names of columns, without case and punctuation.
const EMAIL: &[&str] = &["email", "emailaddress", "address", "recipient", "recipientaddress", "mail"];
const REASON: &[&str] = &["suppressionreason", "reason", "type", "bouncetype"];

impl ImportColumns {
    /// Finds the columns of a list.
    ///
    /// # Errors
    /// It has no column of addresses; the text says what was found.
    pub fn detect(text: &str) -> Result<Self, String> {
        let first = CsvReader::new(text).next().ok_or("the list is empty")?;
        let fields = first.fields.clone().unwrap_or_default();
        let names: Vec<String> = fields.iter().map(|field| normalize_name(field)).collect();
        let place = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
        if let Some(email) = place(EMAIL) {
            let otherwise = if place(&["ip"]).is_some() {
                // SendGrid's spam reports.
                Some(SuppressionReason::Complaint)
            } else if place(&["tag", "tags"]).is_some() {
                // Mailgun's unsubscribes.
                Some(SuppressionReason::Unsubscribe)
            } else {
                None
            };
            return Ok(Self {
                has_header: true,
                email,
                reason: place(REASON),
                origin: place(&["origin"]),
                code: place(&["code", "smtpcode"]),
                status: place(&["status", "enhancedcode"]),
                words: place(&["error", "diagnostic"]).or_else(|| place(&["reason"])),
                note: place(&["note"]),
                expires_at: place(&["expiresat"]),
                default_reason: otherwise,
            });
        }
        match fields.iter().position(|field| SuppressionTarget::parse(strip_formula_guard(field)).is_ok()) {
            Some(email) => Ok(Self { email, ..Self::default() }),
            None => Err(format!(
                "no column of addresses was found; the first line says: {}",
                truncate_diagnostic(&fields.join(", "))
            )),
        }
    }

    /// What a record says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_record(&self, record: &CsvRecord, now: Timestamp) -> Result<SuppressionCause, String> {
        if record.fields.is_none() {
            return Err("a quote is not closed".to_owned());
        }
        let given = strip_formula_guard(record.field(self.email));
        let target = SuppressionTarget::parse(given).map_err(|_| match given {
            "" => "there is no address".to_owned(),
            given => format!("`{}` is not an address", given.chars().take(80).collect::<String>()),
        })?;
        let cell = |place: Option<usize>| place.map_or("", |place| record.field(place));
        let detail = self.detail(record);
        let reason = parse_reason(cell(self.reason), cell(self.origin))
            .or_else(|| detail.as_ref().filter(|detail| is_permanent(detail)).map(|_| SuppressionReason::HardBounce))
            .or(self.default_reason)
            .unwrap_or(SuppressionReason::Import);
        let mut grounds =
            SuppressionCause { detail, ..SuppressionCause::new(target, reason, SuppressionSource::Import) };
        grounds.note = Some(strip_formula_guard(cell(self.note)).chars().take(NOTE_CHARS_MAX).collect())
            .filter(|note: &String| !note.is_empty());
        if matches!(reason, SuppressionReason::Manual | SuppressionReason::Import) && !cell(self.expires_at).is_empty()
        {
            let end: Timestamp = cell(self.expires_at).parse().map_err(|_| "expires_at is not a time".to_owned())?;
            if end <= now {
                return Err("it has ended already".to_owned());
            }
            grounds.expires_at = Some(end);
        }
        Ok(grounds)
    }

    fn detail(&self, record: &CsvRecord) -> Option<SmtpDiagnostic> {
        let cell = |place: Option<usize>| place.map_or("", |place| record.field(place));
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

/// A name without case and punctuation: `Email Address` and `email_address` are one.
fn normalize_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// What the other services call a reason. A sentence is none: SendGrid has the server's words there.
fn parse_reason(word: &str, origin: &str) -> Option<SuppressionReason> {
    Some(match normalize_name(word).as_str() {
        "bounce" | "hardbounce" | "permanent" => SuppressionReason::HardBounce,
        "complaint" | "spamcomplaint" | "spam" | "spamreport" | "abuse" => SuppressionReason::Complaint,
        "unsubscribe" | "unsubscribed" | "globalunsubscribe" => SuppressionReason::Unsubscribe,
        // Postmark has no other word for a recipient's own wish.
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
    fn the_lists_of_the_other_services() {
        let one = |reason| Ok(("a@example.net".to_owned(), reason));
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
            assert_eq!(read(text), [one(reason)], "{text}");
        }
    }

    #[test]
    fn bad_lines_are_told_and_the_rest_is_read() {
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
        fn any_text_is_read_without_a_panic(text in "(email|reason|,|@a.example|x|\"|\n| ){0,40}") {
            if let Ok(columns) = ImportColumns::detect(&text) {
                for record in CsvReader::new(&text) {
                    let _ = columns.parse_record(&record, now());
                }
            }
        }
    }
}
