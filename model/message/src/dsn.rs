//! Delivery status notification (DSN): reports the delivery of a message to one or more recipients (RFC 3464, RFC
//! 3461).
//!
//! A DSN is sent to the reverse-path of a message that was received by SMTP. Its own reverse-path is null, so that no
//! DSN is sent about a DSN.
//!
//! If the sender used SMTPUTF8, non-ASCII values are reported in the forms of RFC 6533; otherwise all machine-readable
//! parts are ASCII. Non-ASCII parts are sent as 8bit if the DSN's own recipient address needs SMTPUTF8, and as
//! quoted-printable otherwise.

mod part_encoding;

use std::fmt::Write as _;

use jiff::Timestamp;

use self::part_encoding::{PartEncoding, field_text, one_line, original_recipient, typed_address, write_part};
use crate::address::{Address, DomainName};
use crate::header;
use crate::pending_dsn::{DsnAction, PendingDsn};

/// A longer message is returned as its header only, even with RET=FULL (allowed by RFC 3461 6.2).
pub const RETURNED_BYTES_MAX: usize = 1024 * 1024;

/// The content of a DSN.
#[derive(Debug)]
pub struct DsnMessage<'a> {
    /// Host name of this MTA.
    pub reporting_host: &'a DomainName,
    /// Recipient of the DSN: the reverse-path of the message.
    pub to: &'a Address,
    /// Message-ID of the DSN, without angle brackets.
    pub message_id: &'a str,
    /// Date of the DSN.
    pub now: Timestamp,
    /// The reported recipients, in order of severity: failed first.
    pub recipients: &'a [PendingDsn],
    /// ENVID, decoded (RFC 3461 4.4).
    pub envelope_id: Option<&'a str>,
    /// When the message was accepted.
    pub arrived_at: Timestamp,
    /// The message, or its header only (RET).
    pub returned: &'a [u8],
    /// RET=FULL.
    pub return_full: bool,
}

impl DsnMessage<'_> {
    /// The most severe action of all recipients.
    fn worst_action(&self) -> DsnAction {
        self.recipients.iter().map(|notice| notice.action).min().unwrap_or(DsnAction::Failed)
    }

    /// True if the sender understands the forms of RFC 6533.
    fn accepts_utf8(&self) -> bool {
        self.to.needs_smtputf8()
            || self.recipients.iter().any(|notice| notice.smtputf8 || notice.address.needs_smtputf8())
    }

    pub fn subject(&self) -> &'static str {
        self.worst_action().subject_line()
    }

    pub fn compose(&self) -> Vec<u8> {
        let (utf8, eight) = (self.accepts_utf8(), self.to.needs_smtputf8());
        let text = self.human_readable_part();
        let status = self.delivery_status_part(utf8);
        let status_kind = if status.is_ascii() { "delivery-status" } else { "global-delivery-status" };
        let (returned, returned_kind, returned_transfer) = self.returned_part(utf8, eight);
        let text_transfer = PartEncoding::choose(text.as_bytes(), eight);
        let status_transfer = PartEncoding::choose(status.as_bytes(), eight);
        let transfers = [text_transfer, status_transfer, returned_transfer];
        let eight_bit = transfers.contains(&PartEncoding::EightBit);
        let boundary = format!("=_{}", self.message_id.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        let head = format!(
            "From: Mail Delivery System <MAILER-DAEMON@{host}>\r\nTo: <{to}>\r\n\
             Subject: {subject}\r\nDate: {date}\r\nMessage-ID: <{id}>\r\n\
             Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type={status_kind};\r\n boundary=\"{boundary}\"\r\n{cte}",
            host = self.reporting_host,
            to = self.to,
            subject = self.subject(),
            date = header::format_date(self.now),
            id = self.message_id,
            cte = if eight_bit { "Content-Transfer-Encoding: 8bit\r\n" } else { "" },
        );
        let mut out = Vec::with_capacity(head.len() + text.len() + status.len() + returned.len() + 1024);
        out.extend_from_slice(head.as_bytes());
        write_part(&mut out, &boundary, "text/plain; charset=utf-8", text_transfer, text.as_bytes());
        let status_kind = format!("message/{status_kind}");
        write_part(&mut out, &boundary, &status_kind, status_transfer, status.as_bytes());
        write_part(&mut out, &boundary, returned_kind, returned_transfer, returned);
        out.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        out
    }

    /// The returned content with its type and encoding. The full message is returned only for a failure (RFC 3461 4.3).
    fn returned_part(&self, utf8: bool, eight: bool) -> (&[u8], &'static str, PartEncoding) {
        let body_at = header::parse_fields(self.returned).1;
        let header = self.returned.get(..body_at).unwrap_or(self.returned);
        let global = utf8 && !header.is_ascii();
        let full = self.worst_action() == DsnAction::Failed && self.return_full;
        match (full && self.returned.len() <= RETURNED_BYTES_MAX, global) {
            (true, true) => (self.returned, "message/global", PartEncoding::choose(self.returned, eight)),
            // MIME forbids a transfer encoding of message/rfc822 as a whole (RFC 2046 5.2.1).
            (true, false) => (self.returned, "message/rfc822", PartEncoding::choose(self.returned, true)),
            (false, true) => (header, "message/global-headers", PartEncoding::choose(header, eight)),
            (false, false) => (header, "text/rfc822-headers", PartEncoding::choose(header, eight)),
        }
    }

    /// The first part, for people: the recipients by action, with explanation and SMTP reply.
    fn human_readable_part(&self) -> String {
        let mut out = String::with_capacity(256 * self.recipients.len().max(1));
        let mut previous = None;
        for notice in self.recipients {
            let word = notice.action.action_field();
            if previous != Some(word) {
                let separator = if previous.is_some() { "\r\n" } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(out, "{separator}{}\r\n", notice.action.intro_text());
                previous = Some(word);
            }
            let explanation = one_line(&notice.explanation);
            let _ = write!(out, "\r\n    {}\r\n\r\n{explanation}\r\n", notice.address);
            if let Some(reply) = &notice.reply {
                let why = match notice.remote_host.as_deref() {
                    Some(host) => format!("{} said:", one_line(host)),
                    None => "Reason:".to_owned(),
                };
                let _ = write!(out, "\r\n{why}\r\n\r\n    {}\r\n", one_line(&reply.to_string()));
            }
        }
        out
    }

    /// The second part, machine-readable (RFC 3464 2.2, 2.3).
    fn delivery_status_part(&self, utf8: bool) -> String {
        let mut out = String::with_capacity(512 * self.recipients.len().max(1));
        let _ = write!(out, "Reporting-MTA: dns; {}\r\n", self.reporting_host);
        if let Some(id) = self.envelope_id {
            let _ = write!(out, "Original-Envelope-Id: {}\r\n", field_text(id, utf8));
        }
        let _ = write!(out, "Arrival-Date: {}\r\n", header::format_date(self.arrived_at));
        for notice in self.recipients {
            write_recipient_fields(&mut out, notice, utf8);
        }
        out
    }
}

/// Appends the field group of one recipient, preceded by an empty line.
fn write_recipient_fields(out: &mut String, notice: &PendingDsn, utf8: bool) {
    out.push_str("\r\n");
    if let Some(original) = &notice.original_recipient {
        let _ = write!(out, "Original-Recipient: {}\r\n", original_recipient(original, utf8));
    }
    let _ = write!(
        out,
        "Final-Recipient: {}\r\nAction: {}\r\nStatus: {}\r\n",
        typed_address(&notice.address, utf8),
        notice.action.action_field(),
        notice.status_code()
    );
    if let Some(host) = &notice.remote_host {
        let _ = write!(out, "Remote-MTA: dns; {}\r\n", field_text(host, utf8));
    }
    if let Some(reply) = &notice.reply {
        // Without a remote host the reply was generated locally, so it is not an SMTP diagnostic (RFC 3464 2.3.6).
        let kind = if notice.remote_host.is_some() { "smtp" } else { "x-postrider" };
        let _ = write!(out, "Diagnostic-Code: {kind}; {}\r\n", field_text(&reply.to_string(), utf8));
    }
    let _ = write!(out, "Last-Attempt-Date: {}\r\n", header::format_date(notice.last_attempt_at));
    if let DsnAction::Delayed(until) = notice.action {
        let _ = write!(out, "Will-Retry-Until: {}\r\n", header::format_date(until));
    }
}

#[cfg(test)]
mod tests;
