//! Decision about an automatic reply to a received email (RFC 3834 2).
//!
//! ```text
//! ReceivedHeader · envelope, authentication ─► [ReceivedEmail::unanswerable] ─► [AutoReplyContext]
//! ```
//!
//! In doubt no reply is sent: a missing reply affects one person, while a wrong one reaches a forged author or starts a
//! mail loop.

use message::address::Address;
use message::domain_name::organizational_domain;
use message::received::{AuthResult, AuthenticationResults, AutoReplyRefusal, thread_headers};
use serde::{Deserialize, Serialize};

use super::{ReceivedEmail, SpamStatus};
use crate::automation::person_key;

/// Local parts that belong to machines, in lower case (RFC 3834 2, RFC 5230 4.6).
const MACHINES: [&str; 10] = [
    "mailer-daemon",
    "postmaster",
    "listserv",
    "majordomo",
    "noreply",
    "no-reply",
    "donotreply",
    "do-not-reply",
    "bounce",
    "bounces",
];

impl ReceivedEmail {
    /// Returns why no automatic reply is sent; `None` if one is permitted.
    pub fn unanswerable(&self) -> Option<AutoReplyRefusal> {
        let Some(sender) = &self.envelope_from else { return Some(AutoReplyRefusal::Report) };
        if let Some(refusal) = self.heading.unanswerable {
            return Some(refusal);
        }
        let author = self.heading.author.as_ref().filter(|author| !is_machine(author));
        if author.is_none() || is_machine(sender) {
            return Some(AutoReplyRefusal::NoAuthor);
        }
        if self.spam_status == SpamStatus::Spam {
            return Some(AutoReplyRefusal::Spam);
        }
        let is_aligned = author.is_some_and(|author| is_same_organization(sender, author));
        is_author_unverified(&self.auth, is_aligned).then_some(AutoReplyRefusal::Unauthenticated)
    }
}

/// Returns whether the author may be forged. Without a clear DMARC result, SPF must pass, DKIM must not fail, and the
/// envelope sender must be of the author's organisation. A DKIM pass alone is not enough: the signing domain is not
/// known here, and a pass for another domain proves nothing about the author.
fn is_author_unverified(auth: &AuthenticationResults, sender_is_aligned: bool) -> bool {
    match auth.dmarc {
        AuthResult::Pass => false,
        AuthResult::Fail | AuthResult::PermError => true,
        _ => auth.spf != AuthResult::Pass || auth.dkim == AuthResult::Fail || !sender_is_aligned,
    }
}

/// Returns whether two addresses are in domains of one organisation (RFC 7489 3.1, relaxed alignment).
fn is_same_organization(one: &Address, other: &Address) -> bool {
    organizational_domain(one.domain()) == organizational_domain(other.domain())
}

fn is_machine(address: &Address) -> bool {
    let local = address.unquoted_local_part().to_ascii_lowercase();
    // A plus tag or a per-message suffix does not change the mailbox.
    let name = local.split_once('+').map_or(local.as_str(), |(name, _)| name);
    let matches_machine = |machine: &&str| {
        let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['-', '.', '_', '=']);
        name.strip_prefix(machine).is_some_and(goes_on)
    };
    MACHINES.iter().any(matches_machine)
        || name.starts_with("owner-")
        || ["-request", "noreply", "no-reply"].iter().any(|end| name.ends_with(end))
}

/// Properties of the received email that started a run, for deciding on a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoReplyContext {
    /// The address that would receive the reply.
    pub author: Option<Address>,
    /// The envelope sender.
    pub envelope_from: Option<Address>,
    /// Threading fields of a reply.
    pub thread: Vec<(String, String)>,
    /// Reason why no reply is sent.
    pub unanswerable: Option<AutoReplyRefusal>,
    /// True if this server sent the email automatically. Such a run sends no email at all, because that email would
    /// be received here again and form an endless loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
}

impl AutoReplyContext {
    pub fn from_received(received: &ReceivedEmail) -> Self {
        let thread = thread_headers(&received.heading).into_iter();
        Self {
            author: received.heading.author.clone(),
            envelope_from: received.envelope_from.clone(),
            thread: thread.map(|(name, value)| (name.to_owned(), value)).collect(),
            unanswerable: received.unanswerable(),
            is_ours: false,
        }
    }

    /// Creates the context for a received email that no longer exists.
    pub fn for_deleted() -> Self {
        let unanswerable = Some(AutoReplyRefusal::Deleted);
        Self { author: None, envelope_from: None, thread: Vec::new(), unanswerable, is_ours: false }
    }

    /// Returns whether a reply is permitted: the author is a person and not known to be forged.
    pub fn is_from_person(&self) -> bool {
        self.unanswerable.is_none()
    }

    /// Returns whether the address is the email's author or envelope sender.
    pub fn is_author_address(&self, address: &Address) -> bool {
        let key = |address: &Address| person_key::email_key(&address.to_string());
        self.author.iter().chain(&self.envelope_from).any(|known| key(known) == key(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authentication_results_decide_about_the_author() {
        let is_against = |spf, dkim, dmarc| {
            is_author_unverified(&AuthenticationResults { spf, dkim, dmarc, arc: AuthResult::None }, true)
        };
        let (none, pass, fail) = (AuthResult::None, AuthResult::Pass, AuthResult::Fail);
        // Forwarded, or signed by a list as well: the author is authenticated all the same.
        assert!(!is_against(fail, fail, pass));
        assert!(
            !is_against(pass, none, none)
                && !is_against(pass, AuthResult::TempError, none)
                && !is_against(pass, pass, AuthResult::TempError)
        );
        // Nothing authenticates the envelope sender. A DKIM pass may belong to any domain.
        for spf in [none, AuthResult::Neutral, AuthResult::TempError, AuthResult::PermError] {
            assert!(is_against(spf, none, none) && is_against(spf, pass, none), "{spf:?}");
            assert!(is_against(spf, pass, AuthResult::TempError), "{spf:?}");
        }
        assert!(is_against(pass, pass, fail) && is_against(pass, pass, AuthResult::PermError));
        // Authentication of another domain does not authenticate the author.
        assert!(is_author_unverified(&AuthenticationResults { spf: pass, dkim: pass, dmarc: none, arc: none }, false));
        assert!(!is_author_unverified(&AuthenticationResults { spf: pass, dkim: none, dmarc: pass, arc: none }, false));
        assert!(
            is_against(fail, none, none)
                && is_against(AuthResult::SoftFail, none, none)
                && is_against(pass, fail, none)
        );
    }

    #[test]
    fn machine_senders_are_recognised_by_name() {
        for (address, machine) in [
            ("MAILER-DAEMON@a.example", true),
            ("owner-list@a.example", true),
            ("list-request@a.example", true),
            ("NoReply@a.example", true),
            ("\"noreply\"@a.example", true),
            ("bounces+12@a.example", true),
            ("ada@a.example", false),
            ("request@a.example", false),
        ] {
            assert_eq!(is_machine(&address.parse().unwrap()), machine, "{address}");
        }
    }
}
