//! A received email: accepted by the MX listener for an address of a customer's domain.
//!
//! ```text
//! ReceivedHeader + authentication results ─► crate::spam ─► ReceivedEmail ─► [data]: the payload of `email.received`
//! ```
//!
//! The stored header is bounded, so that a huge header cannot fill lists and events.

mod auto_reply;
mod payload;

use jiff::Timestamp;
use message::address::Address;
use message::received::{AuthenticationResults, ReceivedHeader};
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, DomainId, ReceivedId};

pub use auto_reply::AutoReplyContext;
pub use payload::received_event_data;

words! {
    #[derive(Default)]
    SpamStatus {
        /// No filter has checked the message.
        #[default]
        NotChecked = "not_checked",
        NotSpam = "not_spam",
        Spam = "spam",
    }
}

/// Spam score in tenths of a point, so that it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpamScore(pub i32);

impl SpamScore {
    /// Converts from points; NaN is 0.
    pub fn from_points(points: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "clamped before")]
        Self((points * 10.0).clamp(-1e6, 1e6).round() as i32)
    }

    /// Converts to points.
    pub fn points(self) -> f64 {
        f64::from(self.0) / 10.0
    }
}

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedEmail {
    pub id: ReceivedId,
    pub account: AccountId,
    pub domain: DomainId,
    /// Sequence number within the account, in commit order: once an email is readable, so are all with lower numbers.
    pub sequence: u64,
    /// Envelope recipient.
    pub rcpt_to: Address,
    /// Envelope sender; `None` is the null reverse path.
    pub envelope_from: Option<Address>,
    pub heading: ReceivedHeader,
    pub auth: AuthenticationResults,
    pub spam_status: SpamStatus,
    /// Spam score; `None` if no filter has checked the message.
    pub spam_score: Option<SpamScore>,
    /// Trace fields that are prepended for this recipient.
    pub trace: String,
    /// Key of the stored message; recipients of one account share it.
    pub body: ReceivedId,
    /// Size of the message as received, in bytes.
    pub size_bytes: u64,
    /// Time at which the content was complete.
    pub received_at: Timestamp,
}

/// Id of the attachment with this index, from 0 (`att_3`).
pub fn attachment_id(index: usize) -> String {
    format!("{ATTACHMENT_PREFIX}{index}")
}

/// Parses an attachment id into its index.
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
    fn attachment_ids_contain_the_index() {
        assert_eq!(attachment_index(&attachment_id(12)), Some(12));
        for none in ["att_", "att_01", "att_+1", "att_-1", "1", "att_x", "att_99999999999999999999"] {
            assert_eq!(attachment_index(none), None, "{none}");
        }
    }

    #[test]
    fn words_match_serialization() {
        for word in SpamStatus::WORDS {
            let status = SpamStatus::from_word(word).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), *word);
        }
    }

    #[test]
    fn spam_scores_are_points() {
        assert!((SpamScore::from_points(5.04).points() - 5.0).abs() < 1e-9);
        assert_eq!(SpamScore::from_points(f64::NAN), SpamScore(0));
    }
}
