//! A received email: what came in by the MX door for an address of a customer's domain.
//!
//! ```text
//! message ─► crate::mime ─► [read] ─► Heading (kept in the row) · texts, files (read again when asked for)
//! verdict + heading ─► crate::spam ─► Received ─► [data]: the payload of `email.received`
//! ```
//!
//! What is kept of the header is bounded: whoever writes a header of a megabyte fills no list with it.

mod answer;
mod author;
mod data;
mod filename;
mod heading;
mod read;
mod stripped;
mod trace;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::{AccountId, DomainId, ReceivedId};

pub use answer::{AutoReplyContext, AutoReplyRefusal, thread_headers};
pub use author::author_domain;
pub use data::received_event_data;
pub use heading::{ReceivedHeader, field_count};
pub use read::{ParsedReceivedEmail, ReceivedAttachment};
pub use stripped::strip_quote;
pub use trace::{TraceFields, strip_forged_auth_results};

/// What one check of where a message comes from said (RFC 8601 2.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthResult {
    /// There was nothing to check.
    #[default]
    None,
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It hardly does (SPF's `~all`).
    SoftFail,
    /// Nothing is claimed, or nothing can be said.
    Neutral,
    /// It could not be checked now.
    TempError,
    /// It cannot be checked at all: what is published, or what was sent, makes no sense.
    PermError,
}

impl AuthResult {
    /// Every word.
    pub const WORDS: [&str; 7] = ["none", "pass", "fail", "softfail", "neutral", "temperror", "permerror"];

    /// As it stands in an Authentication-Results field.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::SoftFail => "softfail",
            Self::Neutral => "neutral",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

/// What is known of where a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuthenticationResults {
    /// May the host that handed it in send for the envelope's sender (RFC 7208)?
    pub spf: AuthResult,
    /// Does a signature hold (RFC 6376)?
    pub dkim: AuthResult,
    /// Does one of both stand for the author's domain (RFC 7489)?
    pub dmarc: AuthResult,
    /// Does the chain of those that passed it on hold (RFC 8617)?
    pub arc: AuthResult,
}

/// Whether it is spam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpamStatus {
    /// Nobody has looked.
    #[default]
    NotChecked,
    /// It does not look like it.
    NotSpam,
    /// It does.
    Spam,
}

impl SpamStatus {
    /// Every word.
    pub const WORDS: [&str; 3] = ["not_checked", "not_spam", "spam"];

    /// As the API says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotChecked => "not_checked",
            Self::NotSpam => "not_spam",
            Self::Spam => "spam",
        }
    }

    /// The status of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::NotChecked, Self::NotSpam, Self::Spam].into_iter().find(|status| status.word() == word)
    }
}

impl fmt::Display for SpamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How much it looks like spam, in tenths of a point, so that it compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpamScore(pub i32);

impl SpamScore {
    /// Of a number of points; what is none is 0.
    #[must_use]
    pub fn from_points(points: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "clamped before")]
        Self((points * 10.0).clamp(-1e6, 1e6).round() as i32)
    }

    /// In points.
    #[must_use]
    pub fn points(self) -> f64 {
        f64::from(self.0) / 10.0
    }
}

/// A file of a received email, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentSummary {
    /// Its name; a made-up one where it has none.
    pub filename: String,
    /// Its MIME type.
    pub content_type: String,
    /// Its size, decoded, in bytes.
    pub size_bytes: u64,
}

/// A received email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEmail {
    /// Its id.
    pub id: ReceivedId,
    /// Whose it is.
    pub account: AccountId,
    /// The domain that it came in for.
    pub domain: DomainId,
    /// Its place among all that the account received: whoever has seen one has seen, or can find by asking
    /// once more, all before it.
    pub sequence: u64,
    /// The envelope's recipient.
    pub rcpt_to: Address,
    /// The envelope's sender; none is the null path.
    pub envelope_from: Option<Address>,
    /// What its header says.
    pub heading: ReceivedHeader,
    /// Where it comes from.
    pub auth: AuthenticationResults,
    /// Whether it is spam.
    pub spam_status: SpamStatus,
    /// How much so; none when nobody has looked.
    pub spam_score: Option<SpamScore>,
    /// What we put on top of the message for this recipient.
    pub trace: String,
    /// Under whose name the message lies: recipients of one account share it.
    pub body: ReceivedId,
    /// The message's size as it came, in bytes.
    pub size_bytes: u64,
    /// When its content was whole.
    pub received_at: Timestamp,
}

/// The id of the file at a place, from 0 (`att_3`).
#[must_use]
pub fn attachment_id(place: usize) -> String {
    format!("{ATTACHMENT_PREFIX}{place}")
}

/// The place of a file by its id.
#[must_use]
pub fn attachment_index(id: &str) -> Option<usize> {
    let digits = id.strip_prefix(ATTACHMENT_PREFIX)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
    digits.parse().ok().filter(|_| plain)
}

const ATTACHMENT_PREFIX: &str = "att_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_ids_by_their_place() {
        assert_eq!(attachment_index(&attachment_id(12)), Some(12));
        for none in ["att_", "att_01", "att_+1", "att_-1", "1", "att_x", "att_99999999999999999999"] {
            assert_eq!(attachment_index(none), None, "{none}");
        }
    }

    #[test]
    fn words_are_what_is_written() {
        for word in SpamStatus::WORDS {
            let status = SpamStatus::from_word(word).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), word);
        }
        for word in AuthResult::WORDS {
            let result: AuthResult = serde_json::from_value(word.into()).unwrap();
            assert_eq!(result.word(), word);
        }
    }

    #[test]
    fn scores_are_points() {
        assert!((SpamScore::from_points(5.04).points() - 5.0).abs() < 1e-9);
        assert_eq!(SpamScore::from_points(f64::NAN), SpamScore(0));
    }
}
