//! A delivery status notification: the report of what became of mail (RFC 3464, RFC 3461), for any number of
//! its recipients at once.
//!
//! It goes to the reverse path of mail that came in by SMTP, with the null reverse path of its own, so that a
//! notification never answers a notification. Who used SMTPUTF8 gets the forms of RFC 6533 wherever something
//! is not ASCII; all others get ASCII in whatever a machine reads. What is not ASCII travels as it is when
//! the report's own way must take UTF-8 (its address needs it), and quoted-printable otherwise.

mod form;

use std::fmt::Write as _;

use jiff::Timestamp;

use self::form::{Transfer, in_field, one_line, original, part, typed};
use crate::address::{Address, Name};
use crate::message;
use crate::notice::{Action, Notice};

/// A returned message longer than this is cut to its header, whatever RET says (RFC 3461 6.2 allows it).
pub const RETURNED_BYTES_MAX: usize = 1024 * 1024;

/// What a notification reports.
#[derive(Debug)]
pub struct Report<'a> {
    /// The host that reports: us.
    pub reporting_host: &'a Name,
    /// To whom it goes.
    pub to: &'a Address,
    /// The Message-ID of the notification, without angle brackets.
    pub message_id: &'a str,
    /// When the notification is written.
    pub now: Timestamp,
    /// What became of each recipient, the gravest first.
    pub notices: &'a [Notice],
    /// ENVID as it was given, decoded (RFC 3461 4.4).
    pub envelope_id: Option<&'a str>,
    /// When the message was accepted.
    pub arrived_at: Timestamp,
    /// The message, or its header (RET).
    pub returned: &'a [u8],
    /// RET=FULL.
    pub return_full: bool,
}

impl Report<'_> {
    /// Its gravest news.
    fn gravest(&self) -> Action {
        self.notices.iter().map(|notice| notice.action).min().unwrap_or(Action::Failed)
    }

    /// Whether its reader reads the forms of RFC 6533.
    fn utf8(&self) -> bool {
        self.to.needs_smtputf8()
            || self.notices.iter().any(|notice| notice.smtputf8 || notice.address.needs_smtputf8())
    }

    /// The subject.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        self.gravest().subject()
    }

    /// Writes the notification.
    #[must_use]
    pub fn compose(&self) -> Vec<u8> {
        let (utf8, eight) = (self.utf8(), self.to.needs_smtputf8());
        let text = self.text();
        let status = self.status(utf8);
        let status_kind = if status.is_ascii() { "delivery-status" } else { "global-delivery-status" };
        let (returned, returned_kind, returned_transfer) = self.returned(utf8, eight);
        let text_transfer = Transfer::of(text.as_bytes(), eight);
        let status_transfer = Transfer::of(status.as_bytes(), eight);
        let transfers = [text_transfer, status_transfer, returned_transfer];
        let eight_bit = transfers.contains(&Transfer::Eight);
        let boundary = format!("=_{}", self.message_id.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        let head = format!(
            "From: Mail Delivery System <MAILER-DAEMON@{host}>\r\nTo: <{to}>\r\n\
             Subject: {subject}\r\nDate: {date}\r\nMessage-ID: <{id}>\r\n\
             Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type={status_kind};\r\n boundary=\"{boundary}\"\r\n{cte}",
            host = self.reporting_host,
            to = self.to,
            subject = self.subject(),
            date = message::date(self.now),
            id = self.message_id,
            cte = if eight_bit { "Content-Transfer-Encoding: 8bit\r\n" } else { "" },
        );
        let mut out = Vec::with_capacity(head.len() + text.len() + status.len() + returned.len() + 1024);
        out.extend_from_slice(head.as_bytes());
        part(&mut out, (&boundary, "text/plain; charset=utf-8"), text_transfer, text.as_bytes());
        let status_kind = format!("message/{status_kind}");
        part(&mut out, (&boundary, &status_kind), status_transfer, status.as_bytes());
        part(&mut out, (&boundary, returned_kind), returned_transfer, returned);
        out.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        out
    }

    /// What is returned of the message, and how. Only who learns that it failed needs the whole of it back
    /// (RFC 3461 4.3).
    fn returned(&self, utf8: bool, eight: bool) -> (&[u8], &'static str, Transfer) {
        let body_at = message::fields(self.returned).1;
        let header = self.returned.get(..body_at).unwrap_or(self.returned);
        let global = utf8 && !header.is_ascii();
        let full = self.gravest() == Action::Failed && self.return_full;
        match (full && self.returned.len() <= RETURNED_BYTES_MAX, global) {
            (true, true) => (self.returned, "message/global", Transfer::of(self.returned, eight)),
            // A type of this kind is encoded in itself only, and never as a whole (RFC 2046 5.2.1).
            (true, false) => (self.returned, "message/rfc822", Transfer::of(self.returned, true)),
            (false, true) => (header, "message/global-headers", Transfer::of(header, eight)),
            (false, false) => (header, "text/rfc822-headers", Transfer::of(header, eight)),
        }
    }

    /// What a person reads: what became of it, and of whom.
    fn text(&self) -> String {
        let mut out = String::with_capacity(256 * self.notices.len().max(1));
        let mut told = None;
        for notice in self.notices {
            let word = notice.action.word();
            if told != Some(word) {
                let between = if told.is_some() { "\r\n" } else { "" };
                // Writing to a String does not fail.
                let _ = write!(out, "{between}{}\r\n", notice.action.opening());
                told = Some(word);
            }
            let explanation = one_line(&notice.explanation);
            let _ = write!(out, "\r\n    {}\r\n\r\n{explanation}\r\n", notice.address);
            if let Some(reply) = &notice.reply {
                let why = match notice.remote_host.as_deref() {
                    Some(host) => format!("{} said:", one_line(host)),
                    None => "This is why:".to_owned(),
                };
                let _ = write!(out, "\r\n{why}\r\n\r\n    {}\r\n", one_line(&reply.to_string()));
            }
        }
        out
    }

    /// What a machine reads (RFC 3464 2.2, 2.3).
    fn status(&self, utf8: bool) -> String {
        let mut out = String::with_capacity(512 * self.notices.len().max(1));
        let _ = write!(out, "Reporting-MTA: dns; {}\r\n", self.reporting_host);
        if let Some(id) = self.envelope_id {
            let _ = write!(out, "Original-Envelope-Id: {}\r\n", in_field(id, utf8));
        }
        let _ = write!(out, "Arrival-Date: {}\r\n", message::date(self.arrived_at));
        for notice in self.notices {
            recipient_status(&mut out, notice, utf8);
        }
        out
    }
}

/// The fields of one recipient, behind an empty line.
fn recipient_status(out: &mut String, notice: &Notice, utf8: bool) {
    out.push_str("\r\n");
    if let Some(given) = &notice.original_recipient {
        let _ = write!(out, "Original-Recipient: {}\r\n", original(given, utf8));
    }
    let _ = write!(
        out,
        "Final-Recipient: {}\r\nAction: {}\r\nStatus: {}\r\n",
        typed(&notice.address, utf8),
        notice.action.word(),
        notice.action.status(notice.reply.as_ref())
    );
    if let Some(host) = &notice.remote_host {
        let _ = write!(out, "Remote-MTA: dns; {}\r\n", in_field(host, utf8));
    }
    if let Some(reply) = &notice.reply {
        // What no host has said is not its diagnostic (RFC 3464 2.3.6).
        let kind = if notice.remote_host.is_some() { "smtp" } else { "x-postrider" };
        let _ = write!(out, "Diagnostic-Code: {kind}; {}\r\n", in_field(&reply.to_string(), utf8));
    }
    let _ = write!(out, "Last-Attempt-Date: {}\r\n", message::date(notice.last_attempt_at));
    if let Action::Delayed(until) = notice.action {
        let _ = write!(out, "Will-Retry-Until: {}\r\n", message::date(until));
    }
}

#[cfg(test)]
mod tests;
