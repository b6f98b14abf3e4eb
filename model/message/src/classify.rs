//! Bounce classification: whether a refusal concerns the recipient or the sender, and which action it requires.
//!
//! ```text
//! host + reply + phase ─► the operator's rules ─► action
//!                     └─► table.txt ─► category (+ action)
//! ```
//!
//! A 5yz reply about the recipient is a bounce. A 5yz reply about the sender (policy, reputation, content) is a failure
//! that does not count against the address.
//!
//! The category is derived from the enhanced status code (RFC 3463, RFC 7372), the text and the phase. The codes
//! `5.7.1` and `5.0.0` alone are ambiguous. Replies that blame the sender often mention the recipient, so the rules for
//! sender reasons are tried first. `model/message/tests/replies.txt` is a corpus of real replies that tests every change of a
//! rule.

mod reply_action;
mod reply_pattern;
mod table;

use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;
use crate::words;

pub use reply_action::{PAUSE_DEFAULT, ReplyAction, ReplyRule, ReplyRules};
pub use reply_pattern::{ClassifierInput, CodePattern, TextPattern};
pub use table::mailbox_provider;

words! {
    /// Category of a bounce or failure.
    BounceClass {
        UnknownUser = "unknown_user",
        MailboxFull = "mailbox_full",
        /// The mailbox is disabled.
        Inactive = "inactive",
        /// The domain does not exist or accepts no mail.
        DomainNotFound = "domain_not_found",
        /// The message exceeds a size limit of the recipient or host.
        MessageTooLarge = "message_too_large",
        /// Concerns the recipient, for an unknown reason.
        Undetermined = "undetermined",
        ContentRejected = "content_rejected",
        /// A policy of the destination: authentication, relaying, access.
        Policy = "policy",
        /// The sending address or domain has a bad reputation at the destination.
        Reputation = "reputation",
    }
}

impl BounceClass {
    /// True if the address is invalid for good. Such a bounce suppresses it permanently, any other bounce for a limited
    /// time.
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::UnknownUser | Self::Inactive | Self::DomainNotFound)
    }

    /// True if the refusal concerns the recipient, which makes it a bounce.
    pub fn is_about_recipient(self) -> bool {
        !matches!(self, Self::ContentRejected | Self::Policy | Self::Reputation)
    }

    /// Classifies a text without codes; `None` if no rule matches.
    pub fn from_text(text: &str) -> Option<Self> {
        table::classify_text(&reply_pattern::normalize_text(text))
    }
}

/// Result of classifying a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    pub reason: BounceClass,
    /// An action in addition to what the reply code requires.
    pub action: Option<ReplyAction>,
}

/// Classifies a refusal of this host.
pub fn classify(host: Option<&str>, reply: &SmtpReply, phase: AttemptPhase) -> BounceClass {
    let input = ClassifierInput::new(host, reply, phase);
    match table::classify(&input).reason {
        // No recipient was named yet, so the missing mailbox is the sender's.
        BounceClass::UnknownUser | BounceClass::MailboxFull | BounceClass::Inactive if is_before_recipient(phase) => {
            BounceClass::Policy
        }
        reason => reason,
    }
}

/// True for phases before the first RCPT.
fn is_before_recipient(phase: AttemptPhase) -> bool {
    matches!(
        phase,
        AttemptPhase::Greeting | AttemptPhase::Ehlo | AttemptPhase::Tls | AttemptPhase::Auth | AttemptPhase::Mail
    )
}

#[cfg(test)]
mod tests;
