//! Answers that nobody writes: which received email a machine may answer (RFC 3834 2), and the fields by which an
//! answer stands in its thread.
//!
//! ```text
//! header ─► [unanswerable] ─► Heading · envelope, verdict ─► [Received::unanswerable] ─► [Answering]: what a run knows
//! ```
//!
//! In doubt there is no answer: one that is missing is missed by one person, one too many goes to somebody who never
//! wrote, or round in circles.

use serde::{Deserialize, Serialize};

use super::heading::{fields, is_named};
use super::{AuthResult, AuthenticationResults, ReceivedEmail, ReceivedHeader, SpamStatus};
use crate::address::Address;
use crate::automation::person;
use crate::sending_name::organizational_domain;

/// Bytes of the thread that an answer names: some thirty messages.
const REFERENCES_BYTES_MAX: usize = 2_000;
/// Authors who are no persons, in lower case (RFC 3834 2, RFC 5230 4.6).
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

/// Why no machine answers a received email.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoReplyRefusal {
    /// A machine sent it (`Auto-Submitted`, RFC 3834 5).
    AutoSubmitted,
    /// It comes from the null path, or is a report: a bounce, a receipt, a complaint.
    Report,
    /// A mailing list passed it on (RFC 2919, RFC 2369).
    MailingList,
    /// It went to many (`Precedence`).
    Bulk,
    /// It names no author, or one who reads nothing (`mailer-daemon@`, `noreply@`).
    NoAuthor,
    /// It is marked as spam.
    Spam,
    /// Its author may be forged: DMARC fails, or, where that says nothing, SPF or DKIM does.
    Unauthenticated,
    /// Its author is an address that the account takes mail in for.
    OwnAddress,
    /// The same automation has answered the author a short while ago.
    AnsweredLately,
    /// It was deleted before it was heard of.
    Deleted,
}

impl AutoReplyRefusal {
    /// As a run's step says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::AutoSubmitted => "auto_submitted",
            Self::Report => "report",
            Self::MailingList => "mailing_list",
            Self::Bulk => "bulk",
            Self::NoAuthor => "no_author",
            Self::Spam => "spam",
            Self::Unauthenticated => "unauthenticated",
            Self::OwnAddress => "own_address",
            Self::AnsweredLately => "answered_lately",
            Self::Deleted => "deleted",
        }
    }
}

/// What a message's header says against an answer.
pub(super) fn header_refusal(message: &[u8]) -> Option<AutoReplyRefusal> {
    fields(message).find_map(field_refusal)
}

fn field_refusal(field: &[u8]) -> Option<AutoReplyRefusal> {
    let colon = memchr::memchr(b':', field)?;
    let (name, value) = field.split_at_checked(colon)?;
    let name = name.trim_ascii();
    let is_one_of = |words: &[&str]| {
        let value = String::from_utf8_lossy(value.get(1..).unwrap_or_default()).to_ascii_lowercase();
        let mut said = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '/');
        said.any(|word| words.contains(&word))
    };
    if is_named(field, "Auto-Submitted") {
        // RFC 3834 5.2: whatever is not `no`, also what nobody has heard of. A comment may stand before it.
        return (!is_one_of(&["no"]) || is_one_of(&["auto-generated", "auto-replied", "auto-notified"]))
            .then_some(AutoReplyRefusal::AutoSubmitted);
    }
    // Exchange's word for it, and those of responders from before RFC 3834.
    if is_named(field, "X-Auto-Response-Suppress") {
        return is_one_of(&["all", "oof", "autoreply"]).then_some(AutoReplyRefusal::AutoSubmitted);
    }
    if is_named(field, "X-Autoreply") || is_named(field, "X-Autorespond") {
        return Some(AutoReplyRefusal::AutoSubmitted);
    }
    if is_named(field, "Content-Type") {
        return is_one_of(&["multipart/report"]).then_some(AutoReplyRefusal::Report);
    }
    if is_named(field, "Precedence") {
        // `auto_reply`, as old responders say it.
        if is_one_of(&["auto", "auto-reply"]) {
            return Some(AutoReplyRefusal::AutoSubmitted);
        }
        let many = is_one_of(&["bulk", "junk"]).then_some(AutoReplyRefusal::Bulk);
        return many.or_else(|| is_one_of(&["list"]).then_some(AutoReplyRefusal::MailingList));
    }
    let of_list = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"List-"));
    (of_list || is_named(field, "Mailing-List")).then_some(AutoReplyRefusal::MailingList)
}

impl ReceivedEmail {
    /// Why no machine answers it; none when one may.
    #[must_use]
    pub fn unanswerable(&self) -> Option<AutoReplyRefusal> {
        let Some(sender) = &self.envelope_from else { return Some(AutoReplyRefusal::Report) };
        if let Some(said) = self.heading.unanswerable {
            return Some(said);
        }
        let author = self.heading.author.as_ref().filter(|author| !is_machine(author));
        if author.is_none() || is_machine(sender) {
            return Some(AutoReplyRefusal::NoAuthor);
        }
        if self.spam_status == SpamStatus::Spam {
            return Some(AutoReplyRefusal::Spam);
        }
        let stands_by = author.is_some_and(|author| is_same_organization(sender, author));
        is_author_unverified(&self.auth, stands_by).then_some(AutoReplyRefusal::Unauthenticated)
    }
}

/// Whether the author may be another one. Where DMARC does not say that it is the author's own mail, the envelope's sender
/// must stand by it: a check that holds for somebody else's domain proves nothing about the author's.
fn is_author_unverified(auth: &AuthenticationResults, sender_stands_by: bool) -> bool {
    match auth.dmarc {
        AuthResult::Pass => false,
        AuthResult::Fail | AuthResult::PermError => true,
        _ => {
            let fails = matches!(auth.spf, AuthResult::Fail | AuthResult::SoftFail) || auth.dkim == AuthResult::Fail;
            fails || !sender_stands_by
        }
    }
}

/// Whether two addresses are of domains of one organisation (RFC 7489 3.1, relaxed alignment).
fn is_same_organization(one: &Address, other: &Address) -> bool {
    organizational_domain(one.domain()) == organizational_domain(other.domain())
}

fn is_machine(address: &Address) -> bool {
    let local = address.unquoted_local_part().to_ascii_lowercase();
    // What stands after a plus sign, or tells one message of a machine's from another, makes no person of it.
    let name = local.split_once('+').map_or(local.as_str(), |(name, _)| name);
    let is_of = |machine: &&str| {
        let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['-', '.', '_', '=']);
        name.strip_prefix(machine).is_some_and(goes_on)
    };
    MACHINES.iter().any(is_of)
        || name.starts_with("owner-")
        || ["-request", "noreply", "no-reply"].iter().any(|end| name.ends_with(end))
}

/// What is to be known of the received email that began a run, to answer it or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoReplyContext {
    /// Who would be answered.
    pub author: Option<Address>,
    /// The envelope's sender.
    pub envelope_from: Option<Address>,
    /// The fields by which an answer stands in its thread.
    pub thread: Vec<(String, String)>,
    /// Why there is no answer.
    pub unanswerable: Option<AutoReplyRefusal>,
    /// Whether a machine of this very service sent it. Then nobody at all is written to for it: what was written would
    /// come in again, here or at another account's, and so without end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
}

impl AutoReplyContext {
    /// Of a received email.
    #[must_use]
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

    /// Of one that is there no more.
    #[must_use]
    pub fn for_deleted() -> Self {
        let unanswerable = Some(AutoReplyRefusal::Deleted);
        Self { author: None, envelope_from: None, thread: Vec::new(), unanswerable, is_ours: false }
    }

    /// Whether a person wrote it, who is who they say, for all that is known.
    #[must_use]
    pub fn is_from_person(&self) -> bool {
        self.unanswerable.is_none()
    }

    /// Whether mail to an address goes to who wrote.
    #[must_use]
    pub fn is_author_address(&self, address: &Address) -> bool {
        let key = |address: &Address| person::email_key(&address.to_string());
        self.author.iter().chain(&self.envelope_from).any(|known| key(known) == key(address))
    }
}

/// The fields by which an answer stands in the thread of what it answers (RFC 5322 3.6.4). What is no message id
/// is none there either: an empty field, or one with a blank in an id, breaks the thread for all who read it.
#[must_use]
pub fn thread_headers(heading: &ReceivedHeader) -> Vec<(&'static str, String)> {
    let answered = Some(heading.message_id.as_str()).filter(|id| is_message_id(id));
    let mut before: Vec<&str> = heading.references.iter().map(String::as_str).collect();
    if before.is_empty() {
        before.extend(heading.in_reply_to.as_deref());
    }
    before.retain(|id| is_message_id(id) && Some(*id) != answered);
    before.extend(answered);
    // Of a long thread where it began and the nearest: every reader finds its place by those (RFC 5537 3.4.4).
    while before.len() > 2 && before.iter().map(|id| id.len() + 1).sum::<usize>() > REFERENCES_BYTES_MAX {
        before.remove(1);
    }
    let references = Some(before.join(" ")).filter(|all| !all.is_empty() && all.len() <= REFERENCES_BYTES_MAX);
    let answered = answered.map(|id| ("In-Reply-To", id.to_owned()));
    answered.into_iter().chain(references.map(|all| ("References", all))).collect()
}

/// `<left@right>`, in one word (RFC 5322 3.6.4); who wrote it without an `@` meant it too.
fn is_message_id(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'<' | b'>')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_that_nobody_is_to_be_answered() {
        let of = |field: &str| {
            header_refusal(format!("From: a@b.example\r\n{field}\r\n\r\nAuto-Submitted: x\r\n").as_bytes())
        };
        for (field, why) in [
            ("Auto-Submitted: auto-replied", AutoReplyRefusal::AutoSubmitted),
            ("AUTO-SUBMITTED:\r\n auto-generated; owner-email=\"a@b\"", AutoReplyRefusal::AutoSubmitted),
            ("Auto-Submitted: (no) auto-notified", AutoReplyRefusal::AutoSubmitted),
            ("Auto-Submitted: x-new", AutoReplyRefusal::AutoSubmitted),
            ("Auto-Submitted:", AutoReplyRefusal::AutoSubmitted),
            ("X-Auto-Response-Suppress: DR, OOF, AutoReply", AutoReplyRefusal::AutoSubmitted),
            ("Precedence: auto_reply", AutoReplyRefusal::AutoSubmitted),
            ("X-Autoreply: yes", AutoReplyRefusal::AutoSubmitted),
            ("Content-Type: multipart/report; report-type=delivery-status", AutoReplyRefusal::Report),
            ("List-Id: <list.example>", AutoReplyRefusal::MailingList),
            ("list-unsubscribe: <mailto:x@y>", AutoReplyRefusal::MailingList),
            ("Precedence: list", AutoReplyRefusal::MailingList),
            ("Precedence: Bulk", AutoReplyRefusal::Bulk),
            ("Precedence: junk", AutoReplyRefusal::Bulk),
        ] {
            assert_eq!(of(field), Some(why), "{field}");
        }
        for field in [
            "Auto-Submitted: no",
            "auto-submitted: No (really)",
            "Precedence: first-class",
            "X-Auto-Response-Suppress: None",
            "Content-Type: multipart/mixed",
            "Listing: x",
            "Subject: Auto-Submitted: auto-replied",
        ] {
            assert_eq!(of(field), None, "{field}");
        }
    }

    #[test]
    fn a_verdict_speaks_against_an_author() {
        let of = |spf, dkim, dmarc| {
            is_author_unverified(&AuthenticationResults { spf, dkim, dmarc, arc: AuthResult::None }, true)
        };
        let (none, pass, fail) = (AuthResult::None, AuthResult::Pass, AuthResult::Fail);
        // Passed on, or signed by a list as well: the author is proven all the same.
        assert!(!of(fail, fail, pass));
        assert!(!of(none, none, none) && !of(pass, none, none) && !of(pass, pass, AuthResult::TempError));
        assert!(of(pass, pass, fail) && of(pass, pass, AuthResult::PermError));
        // Somebody else's proof is none of the author's.
        assert!(is_author_unverified(&AuthenticationResults { spf: pass, dkim: pass, dmarc: none, arc: none }, false));
        assert!(!is_author_unverified(&AuthenticationResults { spf: pass, dkim: none, dmarc: pass, arc: none }, false));
        assert!(of(fail, none, none) && of(AuthResult::SoftFail, none, none) && of(pass, fail, none));
    }

    #[test]
    fn machines_are_told_by_their_names() {
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

    #[test]
    fn an_answer_stands_in_its_thread_or_in_none() {
        let of = |message_id: &str, in_reply_to: Option<&str>, references: &[&str]| {
            let heading = ReceivedHeader {
                message_id: message_id.to_owned(),
                in_reply_to: in_reply_to.map(str::to_owned),
                references: references.iter().map(|id| (*id).to_owned()).collect(),
                ..ReceivedHeader::default()
            };
            let field = |name| thread_headers(&heading).into_iter().find(|(known, _)| *known == name).map(|(_, v)| v);
            (field("In-Reply-To"), field("References"))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("<3@a>", None, &["<1@a>", "<2@a>"]), (some("<3@a>"), some("<1@a> <2@a> <3@a>")));
        assert_eq!(of("<3@a>", Some("<2@a>"), &[]), (some("<3@a>"), some("<2@a> <3@a>")));
        assert_eq!(of("<3@a>", None, &["<3@a>"]), (some("<3@a>"), some("<3@a>")));
        assert_eq!(of("", None, &["<1@a>"]), (None, some("<1@a>")));
        for bad in ["", " ", "<>", "<a b@c>", "<a@b> <c@d>", "nonsense", "<\u{e4}@a>"] {
            assert_eq!(of(bad, Some(bad), &[bad, ""]), (None, None), "{bad}");
        }
        let long: Vec<String> = (0..200).map(|n| format!("<{n:030}@example.com>")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let references = of("<x@a>", None, &long).1.unwrap();
        assert!(references.len() <= REFERENCES_BYTES_MAX);
        assert!(references.starts_with(long[0]) && references.ends_with(&format!("{} <x@a>", long[199])));
    }
}
