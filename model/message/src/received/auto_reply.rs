//! Automatic replies: which messages their header excludes (RFC 3834 2), and the threading fields of a reply
//! (RFC 5322 3.6.4).

use super::ReceivedHeader;
use super::header::{fields, is_named};
use crate::words;

/// Maximum length of the References field of a reply, in bytes: about thirty messages.
const REFERENCES_BYTES_MAX: usize = 2_000;

words! {
    /// Reason why a received email gets no automatic reply.
    AutoReplyRefusal {
        /// Sent automatically (`Auto-Submitted`, RFC 3834 5).
        AutoSubmitted = "auto_submitted",
        /// Sent from the null reverse path, or a report: a bounce, a receipt, a complaint.
        Report = "report",
        /// Forwarded by a mailing list (RFC 2919, RFC 2369).
        MailingList = "mailing_list",
        /// Bulk mail (`Precedence`).
        Bulk = "bulk",
        /// No author, or an author who is a machine (`mailer-daemon@`, `noreply@`).
        NoAuthor = "no_author",
        Spam = "spam",
        /// The author may be forged: DMARC fails, or, where DMARC has no result, SPF does not pass for the author's
        /// organisation or DKIM fails.
        Unauthenticated = "unauthenticated",
        /// The author is an address for which the account receives mail.
        OwnAddress = "own_address",
        /// The same automation replied to the author recently.
        AnsweredLately = "answered_lately",
        /// The email was deleted before the automation processed it.
        Deleted = "deleted",
    }
}

/// Returns the refusal that follows from a message's header.
pub(super) fn header_refusal(message: &[u8]) -> Option<AutoReplyRefusal> {
    fields(message).find_map(field_refusal)
}

fn field_refusal(field: &[u8]) -> Option<AutoReplyRefusal> {
    let colon = memchr::memchr(b':', field)?;
    let (name, value) = field.split_at_checked(colon)?;
    let name = name.trim_ascii();
    let is_one_of = |words: &[&str]| {
        let value = String::from_utf8_lossy(value.get(1..).unwrap_or_default()).to_ascii_lowercase();
        let mut tokens = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '/');
        tokens.any(|word| words.contains(&word))
    };
    if is_named(field, "Auto-Submitted") {
        // RFC 3834 5.2: every value except `no` counts, including unknown ones. A comment may precede it.
        return (!is_one_of(&["no"]) || is_one_of(&["auto-generated", "auto-replied", "auto-notified"]))
            .then_some(AutoReplyRefusal::AutoSubmitted);
    }
    // Exchange's field, and fields of autoresponders older than RFC 3834.
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
        // Written as `auto_reply` by old responders.
        if is_one_of(&["auto", "auto-reply"]) {
            return Some(AutoReplyRefusal::AutoSubmitted);
        }
        let bulk_refusal = is_one_of(&["bulk", "junk"]).then_some(AutoReplyRefusal::Bulk);
        return bulk_refusal.or_else(|| is_one_of(&["list"]).then_some(AutoReplyRefusal::MailingList));
    }
    let of_list = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"List-"));
    (of_list || is_named(field, "Mailing-List")).then_some(AutoReplyRefusal::MailingList)
}

/// Builds the threading fields of a reply (RFC 5322 3.6.4). Invalid message ids are dropped: an empty field, or an id
/// with a blank, breaks the thread in mail clients.
pub fn thread_headers(heading: &ReceivedHeader) -> Vec<(&'static str, String)> {
    let parent_id = Some(heading.message_id.as_str()).filter(|id| is_message_id(id));
    let mut before: Vec<&str> = heading.references.iter().map(String::as_str).collect();
    if before.is_empty() {
        before.extend(heading.in_reply_to.as_deref());
    }
    before.retain(|id| is_message_id(id) && Some(*id) != parent_id);
    before.extend(parent_id);
    // Long threads keep their first and nearest messages, which are enough to place the reply (RFC 5537 3.4.4).
    while before.len() > 2 && before.iter().map(|id| id.len() + 1).sum::<usize>() > REFERENCES_BYTES_MAX {
        before.remove(1);
    }
    let references = Some(before.join(" ")).filter(|all| !all.is_empty() && all.len() <= REFERENCES_BYTES_MAX);
    let parent_id = parent_id.map(|id| ("In-Reply-To", id.to_owned()));
    parent_id.into_iter().chain(references.map(|all| ("References", all))).collect()
}

/// Returns whether the text is a message id in one word (RFC 5322 3.6.4); ids without an `@` are accepted.
fn is_message_id(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'<' | b'>')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_exclude_auto_replies() {
        let exclusion = |field: &str| {
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
            assert_eq!(exclusion(field), Some(why), "{field}");
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
            assert_eq!(exclusion(field), None, "{field}");
        }
    }

    #[test]
    fn a_reply_references_its_thread() {
        let thread = |message_id: &str, in_reply_to: Option<&str>, references: &[&str]| {
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
        assert_eq!(thread("<3@a>", None, &["<1@a>", "<2@a>"]), (some("<3@a>"), some("<1@a> <2@a> <3@a>")));
        assert_eq!(thread("<3@a>", Some("<2@a>"), &[]), (some("<3@a>"), some("<2@a> <3@a>")));
        assert_eq!(thread("<3@a>", None, &["<3@a>"]), (some("<3@a>"), some("<3@a>")));
        assert_eq!(thread("", None, &["<1@a>"]), (None, some("<1@a>")));
        for bad in ["", " ", "<>", "<a b@c>", "<a@b> <c@d>", "nonsense", "<\u{e4}@a>"] {
            assert_eq!(thread(bad, Some(bad), &[bad, ""]), (None, None), "{bad}");
        }
        let long: Vec<String> = (0..200).map(|n| format!("<{n:030}@example.com>")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let references = thread("<x@a>", None, &long).1.unwrap();
        assert!(references.len() <= REFERENCES_BYTES_MAX);
        assert!(references.starts_with(long[0]) && references.ends_with(&format!("{} <x@a>", long[199])));
    }
}
