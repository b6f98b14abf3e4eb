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

use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

pub use reply_action::{PAUSE_DEFAULT, ReplyAction, ReplyRule, ReplyRules};
pub use reply_pattern::{ClassifierInput, CodePattern, TextPattern};

/// Category of a bounce or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BounceClass {
    UnknownUser,
    MailboxFull,
    /// The mailbox is disabled.
    Inactive,
    /// The domain does not exist or accepts no mail.
    DomainNotFound,
    /// The message exceeds a size limit of the recipient or host.
    MessageTooLarge,
    /// Concerns the recipient, for an unknown reason.
    Undetermined,
    ContentRejected,
    /// A policy of the destination: authentication, relaying, access.
    Policy,
    /// The sending address or domain has a bad reputation at the destination.
    Reputation,
}

impl BounceClass {
    const WORDS: [(Self, &'static str); 9] = [
        (Self::UnknownUser, "unknown_user"),
        (Self::MailboxFull, "mailbox_full"),
        (Self::Inactive, "inactive"),
        (Self::DomainNotFound, "domain_not_found"),
        (Self::MessageTooLarge, "message_too_large"),
        (Self::Undetermined, "undetermined"),
        (Self::ContentRejected, "content_rejected"),
        (Self::Policy, "policy"),
        (Self::Reputation, "reputation"),
    ];

    /// True if the address is invalid for good. Such a bounce suppresses it permanently, any other bounce for a limited
    /// time.
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::UnknownUser | Self::Inactive | Self::DomainNotFound)
    }

    /// The word in the API.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("", |(_, word)| word)
    }

    /// The category with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(reason, _)| *reason)
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

/// The mailbox provider that operates a mail host. All hosts of a provider share one view of a sender's reputation.
pub fn mailbox_provider(host: &DomainName) -> Option<&'static DomainName> {
    table::mailbox_provider(host)
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
