//! What a permanent refusal is about: the recipient, or us.
//!
//! A 5yz about the recipient is a bounce; one about the sender (policy, reputation, content) is a
//! failure that says nothing against the address (completions-email.md 2.9). The enhanced status
//! code decides (RFC 3463, RFC 7372); servers that send none, or send 5.7.1 for everything, are
//! read by their words, and last by the phase in which they refused.

use serde::{Deserialize, Serialize};

use crate::outcome::Phase;
use crate::reply::{Enhanced, Reply};

/// What kind of bounce, or of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
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

impl Reason {
    /// Whether the refusal is about the recipient: then it is a bounce.
    #[must_use]
    pub fn is_about_recipient(self) -> bool {
        !matches!(self, Self::ContentRejected | Self::Policy | Self::Reputation)
    }

    /// What a text without codes says, if it says anything.
    #[must_use]
    pub fn by_words(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        WORDS.iter().find(|(word, _)| text.contains(word)).map(|(_, reason)| *reason)
    }
}

/// Words by which servers without (or with useless) enhanced codes tell what they mean. The order
/// matters: what blames the sender is looked for first, since such texts often name the recipient too.
const WORDS: &[(&str, Reason)] = &[
    ("spam", Reason::ContentRejected),
    ("virus", Reason::ContentRejected),
    ("malware", Reason::ContentRejected),
    ("phish", Reason::ContentRejected),
    ("reputation", Reason::Reputation),
    ("blacklist", Reason::Reputation),
    ("blocklist", Reason::Reputation),
    ("block list", Reason::Reputation),
    ("spamhaus", Reason::Reputation),
    ("dmarc", Reason::Policy),
    ("dkim", Reason::Policy),
    (" spf", Reason::Policy),
    ("relaying", Reason::Policy),
    ("relay access", Reason::Policy),
    ("not authenticated", Reason::Policy),
    ("quota", Reason::MailboxFull),
    ("mailbox full", Reason::MailboxFull),
    ("mailbox is full", Reason::MailboxFull),
    ("over quota", Reason::MailboxFull),
    ("disabled", Reason::Inactive),
    ("inactive", Reason::Inactive),
    ("suspended", Reason::Inactive),
    ("deactivated", Reason::Inactive),
    ("user unknown", Reason::UnknownUser),
    ("unknown user", Reason::UnknownUser),
    ("no such user", Reason::UnknownUser),
    ("no such recipient", Reason::UnknownUser),
    ("no mailbox", Reason::UnknownUser),
    ("domain does not exist", Reason::DomainNotFound),
    ("domain not found", Reason::DomainNotFound),
    ("host not found", Reason::DomainNotFound),
    ("does not exist", Reason::UnknownUser),
    ("doesn't exist", Reason::UnknownUser),
    ("not found", Reason::UnknownUser),
    ("couldn't be found", Reason::UnknownUser),
    ("could not be found", Reason::UnknownUser),
    ("unknown recipient", Reason::UnknownUser),
    ("no mailbox here", Reason::UnknownUser),
    ("doesn't have a", Reason::UnknownUser),
    ("not listed in", Reason::UnknownUser),
    ("unrouteable address", Reason::UnknownUser),
    ("user invalid", Reason::UnknownUser),
    ("recipient unknown", Reason::UnknownUser),
    ("utente sconosciuto", Reason::UnknownUser),
    ("usuario desconhecido", Reason::UnknownUser),
    ("usuario desconocido", Reason::UnknownUser),
    ("nie ma takiego", Reason::UnknownUser),
    ("不存在", Reason::UnknownUser),
    ("존재하지 않는", Reason::UnknownUser),
    ("宛先不明", Reason::UnknownUser),
    ("宛先が見つかりません", Reason::UnknownUser),
    ("invalid recipient", Reason::UnknownUser),
    ("recipient rejected", Reason::UnknownUser),
    ("no longer available", Reason::Inactive),
    ("no longer active", Reason::Inactive),
    ("too large", Reason::MessageTooLarge),
    ("size limit", Reason::MessageTooLarge),
];

/// Reads what a permanent refusal is about.
#[must_use]
pub fn classify(reply: &Reply, phase: Phase) -> Reason {
    reply
        .enhanced
        .and_then(|code| by_code(reply.code, code))
        .or_else(|| Reason::by_words(&reply.text()))
        .unwrap_or(match phase {
            Phase::Rcpt => Reason::Undetermined,
            Phase::Data | Phase::Final => Reason::ContentRejected,
            _ => Reason::Policy,
        })
}

/// The codes that mean one thing wherever they are used. 5.7.1 and the x.0.0 do not.
fn by_code(reply: u16, code: Enhanced) -> Option<Reason> {
    Some(match (code.subject, code.detail) {
        (1, 1 | 3 | 6) => Reason::UnknownUser,
        (1, 2) => Reason::DomainNotFound,
        // A null MX (RFC 7505 4.2); Exchange says it of its users, with another reply.
        (1, 10) if reply == 556 => Reason::DomainNotFound,
        (1, 7 | 8) => Reason::Policy,
        (2, 1) => Reason::Inactive,
        (2, 2) => Reason::MailboxFull,
        (2, 3) | (3, 4) => Reason::MessageTooLarge,
        (6, 7) => Reason::Undetermined,
        (6, _) => Reason::ContentRejected,
        // RFC 7372: SPF, DKIM, reverse DNS; RFC 7505: null MX of the sender.
        (7, 20..=27) => Reason::Policy,
        // Our own word that there is no host; from others it is about their routing.
        (4, 4) => Reason::DomainNotFound,
        (4, 6) => Reason::Undetermined,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say() {
        for (code, enhanced, text, phase, reason) in [
            (550, Some((5, 1, 1)), "spam lovers unknown here", Phase::Rcpt, Reason::UnknownUser),
            (550, None, "no such user", Phase::Rcpt, Reason::UnknownUser),
            (550, None, "rejected", Phase::Rcpt, Reason::Undetermined),
            (552, Some((5, 2, 2)), "x", Phase::Rcpt, Reason::MailboxFull),
            (554, Some((5, 7, 1)), "blocked using zen.spamhaus.org", Phase::Rcpt, Reason::ContentRejected),
            (554, Some((5, 7, 1)), "on our blocklist", Phase::Rcpt, Reason::Reputation),
            (550, Some((5, 7, 26)), "x", Phase::Final, Reason::Policy),
            (554, None, "transaction failed", Phase::Final, Reason::ContentRejected),
            (550, None, "access denied", Phase::Mail, Reason::Policy),
            (552, Some((5, 3, 4)), "x", Phase::Mail, Reason::MessageTooLarge),
            (556, Some((5, 1, 10)), "x", Phase::Dns, Reason::DomainNotFound),
            (550, Some((5, 1, 10)), "recipient not found", Phase::Rcpt, Reason::UnknownUser),
        ] {
            let reply = Reply {
                code,
                enhanced: enhanced.map(|(c, s, d)| Enhanced::new(c, s, d)),
                lines: vec![text.into()],
            };
            assert_eq!(classify(&reply, phase), reason, "{reply}");
        }
    }
}
