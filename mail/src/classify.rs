//! What a refusal means: whether it is about the recipient or about us, and what it calls for.
//!
//! ```text
//! host + reply + phase ─► the operator's rows ─► action
//!                     └─► table.txt ─► category (+ action)
//! ```
//!
//! A 5yz about the recipient is a bounce; one about the sender (policy, reputation, content) is a
//! failure that says nothing against the address (completions-email.md 2.9). Servers say it in enhanced
//! status codes (RFC 3463, RFC 7372), of which `5.7.1` and `5.0.0` mean nothing by themselves, in words, and by when
//! they say it. What blames the sender often names the recipient: so it is looked for first. The corpus of
//! `mail/tests/replies.txt` is what servers really say; a row that is changed is tried on it.

mod action;
mod pattern;
mod table;

use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

pub use action::{PAUSE_DEFAULT, ReplyAction, ReplyRule, ReplyRules};
pub use pattern::{ClassifierInput, CodePattern, TextPattern};

/// What kind of bounce, or of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BounceClass {
    /// No such mailbox.
    UnknownUser,
    /// The mailbox is full.
    MailboxFull,
    /// The mailbox is switched off.
    Inactive,
    /// The domain does not exist or takes no mail.
    DomainNotFound,
    /// Larger than the recipient or the host takes.
    MessageTooLarge,
    /// About the recipient, nobody knows what.
    Undetermined,
    /// The content was refused.
    ContentRejected,
    /// A rule of the destination: authentication, relaying, access.
    Policy,
    /// The sending address or domain has a bad name there.
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

    /// Whether it says something for ever about the address: such a bounce suppresses for good, any other for a time
    /// (completions-email.md 2.9).
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::UnknownUser | Self::Inactive | Self::DomainNotFound)
    }

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("", |(_, word)| word)
    }

    /// The one that a word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(reason, _)| *reason)
    }

    /// Whether the refusal is about the recipient: then it is a bounce.
    #[must_use]
    pub fn is_about_recipient(self) -> bool {
        !matches!(self, Self::ContentRejected | Self::Policy | Self::Reputation)
    }

    /// What a text without codes says, if it says anything.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        table::classify_text(&pattern::normalize_text(text))
    }
}

/// What a reply means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// What it is about.
    pub reason: BounceClass,
    /// What it calls for, beside what its code says.
    pub action: Option<ReplyAction>,
}

/// The large provider that a mail host is of, whatever domains it serves: whose hosts judge together who sends to them.
#[must_use]
pub fn mailbox_provider(host: &DomainName) -> Option<&'static DomainName> {
    table::mailbox_provider(host)
}

/// Reads what a refusal of this host is about.
#[must_use]
pub fn classify(host: Option<&str>, reply: &SmtpReply, phase: AttemptPhase) -> BounceClass {
    let heard = ClassifierInput::new(host, reply, phase);
    match table::classify(&heard).reason {
        // Nobody had asked for a mailbox yet: the one that is missed there is the sender's.
        BounceClass::UnknownUser | BounceClass::MailboxFull | BounceClass::Inactive if is_before_recipient(phase) => {
            BounceClass::Policy
        }
        reason => reason,
    }
}

/// Whether no recipient is named to the host by then.
fn is_before_recipient(phase: AttemptPhase) -> bool {
    matches!(
        phase,
        AttemptPhase::Greeting | AttemptPhase::Ehlo | AttemptPhase::Tls | AttemptPhase::Auth | AttemptPhase::Mail
    )
}

#[cfg(test)]
mod tests;
