//! Parsing a received message.
//!
//! ```text
//! message ─► crate::mime ─► [parse] ─► ReceivedHeader (stored in the row) · texts, attachments (parsed on request)
//! ```
//!
//! The stored header is bounded, so that a huge header cannot fill lists and events.

mod author;
mod auto_reply;
mod filename;
mod header;
mod parse;
mod reply_text;
mod trace_fields;

use serde::{Deserialize, Serialize};

use crate::words;

pub use author::author_domain;
pub use auto_reply::{AutoReplyRefusal, thread_headers};
pub use header::{ReceivedHeader, field_count};
pub use parse::{ParsedReceivedEmail, ReceivedAttachment};
pub use reply_text::strip_quote;
pub use trace_fields::{LOOP_HEADER, TraceFields, strip_forged_auth_results};

words! {
    /// Result of one authentication check (RFC 8601 2.7).
    #[derive(Default)]
    AuthResult {
        /// Nothing to check.
        #[default]
        None = "none",
        Pass = "pass",
        Fail = "fail",
        /// Weak failure (SPF's `~all`).
        SoftFail = "softfail",
        /// No statement is published, or no result is possible.
        Neutral = "neutral",
        /// The check failed temporarily.
        TempError = "temperror",
        /// The check is impossible: the published record or the message is malformed.
        PermError = "permerror",
    }
}

/// Authentication results of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuthenticationResults {
    /// Result of SPF (RFC 7208): is the sending host authorized for the envelope sender?
    pub spf: AuthResult,
    /// Result of DKIM (RFC 6376): is a signature valid?
    pub dkim: AuthResult,
    /// Result of DMARC (RFC 7489): does SPF or DKIM authenticate the author's domain?
    pub dmarc: AuthResult,
    /// Result of ARC (RFC 8617): is the chain of forwarders valid?
    pub arc: AuthResult,
}

/// Metadata of an attachment of a received email.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentSummary {
    /// File name; a generated one if the part has none.
    pub filename: String,
    /// MIME type.
    pub content_type: String,
    /// Decoded size in bytes.
    pub size_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authentication_words_match_serialization() {
        for word in AuthResult::WORDS {
            let result: AuthResult = serde_json::from_value((*word).into()).unwrap();
            assert_eq!(result.word(), *word);
        }
    }
}
