//! A delivery status notification: the report of what became of mail (RFC 3464, RFC 3461).
//!
//! It goes to the reverse path of mail that came in by SMTP, with the null reverse path of its own,
//! so that a notification never answers a notification.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::address::{Address, Name};
use crate::message;
use crate::reply::Reply;

/// A returned message longer than this is cut to its header, whatever RET says (RFC 3461 6.2 allows it).
pub const RETURNED_BYTES_MAX: usize = 1024 * 1024;

/// What became of it (RFC 3464 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It was given up.
    Failed,
    /// It is late, and will be tried until then.
    Delayed(Timestamp),
    /// The next host has it. That is all that is known: reports of success are not asked of it.
    Relayed,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Delayed(_) => "delayed",
            Self::Relayed => "relayed",
        }
    }

    /// The subject of the report.
    #[must_use]
    pub fn subject(self) -> &'static str {
        match self {
            Self::Failed => "Undelivered mail returned to sender",
            Self::Delayed(_) => "Mail is delayed, and will be tried again",
            Self::Relayed => "Mail was handed to the next host",
        }
    }

    /// How the report begins; the recipient follows.
    fn opening(self) -> &'static str {
        match self {
            Self::Failed => "Your message could not be delivered to",
            Self::Delayed(_) => "You need not send your message again. It has not yet been delivered to",
            Self::Relayed => "Your message was handed to the next mail host on its way to",
        }
    }

    /// The enhanced status code: its class follows from the action, also when the last word was of another
    /// one (RFC 3464 2.3.4, RFC 3463 2).
    fn status(self, reply: Option<&Reply>) -> String {
        let (class, otherwise) = match self {
            Self::Failed => (5, "5.4.7"),
            Self::Delayed(_) => (4, "4.4.1"),
            Self::Relayed => (2, "2.0.0"),
        };
        let said = reply.and_then(|reply| reply.enhanced);
        said.map_or_else(|| otherwise.to_owned(), |e| format!("{class}.{}.{}", e.subject, e.detail))
    }
}

/// What a notification reports.
#[derive(Debug)]
pub struct Report<'a> {
    /// What became of it.
    pub action: Action,
    /// The host that reports: us.
    pub reporting_host: &'a Name,
    /// To whom it goes.
    pub to: &'a Address,
    /// The Message-ID of the notification, without angle brackets.
    pub message_id: &'a str,
    /// The recipient that it is about.
    pub recipient: &'a Address,
    /// ORCPT as it was given (RFC 3461 4.2).
    pub original_recipient: Option<&'a str>,
    /// ENVID as it was given, decoded (RFC 3461 4.4).
    pub envelope_id: Option<&'a str>,
    /// What the destination (or we in its stead) said last.
    pub reply: Option<&'a Reply>,
    /// The host that said it.
    pub remote_host: Option<&'a str>,
    /// How that came, in a sentence.
    pub explanation: &'a str,
    /// When the message was accepted.
    pub arrived_at: Timestamp,
    /// When it was last tried.
    pub last_attempt_at: Timestamp,
    /// The message, or its header (RET).
    pub returned: &'a [u8],
    /// RET=FULL.
    pub return_full: bool,
}

/// Writes the notification.
#[must_use]
pub fn compose(report: &Report<'_>) -> Vec<u8> {
    // Only who learns that it failed needs the whole of it back (RFC 3461 4.3).
    let full =
        report.action == Action::Failed && report.return_full && report.returned.len() <= RETURNED_BYTES_MAX;
    let returned =
        if full { report.returned } else { &report.returned[..message::fields(report.returned).1] };
    let eight_bit = !returned.is_ascii();
    let boundary = format!("=_{}", report.message_id.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let mut out = String::with_capacity(2048 + returned.len());
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "From: Mail Delivery System <MAILER-DAEMON@{host}>\r\nTo: <{to}>\r\n\
         Subject: {subject}\r\nDate: {date}\r\nMessage-ID: <{id}>\r\n\
         Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=\"{boundary}\"\r\n{cte}\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n{cte}\r\n\
         {opening}\r\n\r\n    {recipient}\r\n\r\n{explanation}\r\n",
        subject = report.action.subject(),
        opening = report.action.opening(),
        host = report.reporting_host,
        to = report.to,
        date = message::date(report.last_attempt_at),
        id = report.message_id,
        cte = if eight_bit || needs_eight_bit(report) { "Content-Transfer-Encoding: 8bit\r\n" } else { "" },
        recipient = report.recipient,
        explanation = one_line(report.explanation),
    );
    if let Some(reply) = report.reply {
        let who = report.remote_host.unwrap_or("the destination");
        let _ = write!(out, "\r\n{} said:\r\n\r\n    {}\r\n", one_line(who), one_line(&reply.to_string()));
    }
    let _ = write!(out, "\r\n--{boundary}\r\nContent-Type: message/delivery-status\r\n\r\n");
    status(&mut out, report);
    let kind = if full { "message/rfc822" } else { "text/rfc822-headers" };
    let cte = if eight_bit { "Content-Transfer-Encoding: 8bit\r\n" } else { "" };
    let _ = write!(out, "\r\n--{boundary}\r\nContent-Type: {kind}\r\n{cte}\r\n");
    let mut out = out.into_bytes();
    out.extend_from_slice(returned);
    out.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    out
}

/// The machine-readable part (RFC 3464 2.2, 2.3).
fn status(out: &mut String, report: &Report<'_>) {
    let _ = write!(out, "Reporting-MTA: dns; {}\r\n", report.reporting_host);
    if let Some(id) = report.envelope_id {
        let _ = write!(out, "Original-Envelope-Id: {}\r\n", one_line(id));
    }
    let _ = write!(out, "Arrival-Date: {}\r\n\r\n", message::date(report.arrived_at));
    if let Some(original) = report.original_recipient {
        let _ = write!(out, "Original-Recipient: {}\r\n", one_line(original));
    }
    let kind = if report.recipient.needs_smtputf8() { "utf-8" } else { "rfc822" };
    let _ = write!(
        out,
        "Final-Recipient: {kind}; {}\r\nAction: {}\r\nStatus: {}\r\n",
        report.recipient,
        report.action.word(),
        report.action.status(report.reply)
    );
    if let Some(host) = report.remote_host {
        let _ = write!(out, "Remote-MTA: dns; {}\r\n", one_line(host));
    }
    if let Some(reply) = report.reply {
        let _ = write!(out, "Diagnostic-Code: smtp; {}\r\n", one_line(&reply.to_string()));
    }
    let _ = write!(out, "Last-Attempt-Date: {}\r\n", message::date(report.last_attempt_at));
    if let Action::Delayed(until) = report.action {
        let _ = write!(out, "Will-Retry-Until: {}\r\n", message::date(until));
    }
}

fn needs_eight_bit(report: &Report<'_>) -> bool {
    report.recipient.needs_smtputf8() || report.to.needs_smtputf8() || !report.explanation.is_ascii()
}

/// Text from outside in one line of bounded length: nothing can break out of its field.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(240).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Enhanced;

    #[test]
    fn a_report_is_well_formed() {
        let reply = Reply::new(550, Enhanced::new(5, 1, 1), "user unknown");
        let to: Address = "sender@example.com".parse().unwrap();
        let recipient: Address = "who@example.net".parse().unwrap();
        let host: Name = "mx.example.org".parse().unwrap();
        let bytes = compose(&Report {
            action: Action::Failed,
            reporting_host: &host,
            to: &to,
            message_id: "x@mx.example.org",
            recipient: &recipient,
            original_recipient: Some("rfc822;who@example.net"),
            envelope_id: Some("abc"),
            reply: Some(&reply),
            remote_host: Some("mx.example.net"),
            explanation: "The destination refused it for good.",
            arrived_at: Timestamp::UNIX_EPOCH,
            last_attempt_at: Timestamp::UNIX_EPOCH,
            returned: b"From: a@b.example\r\nSubject: x\r\n\r\nbody\r\n",
            return_full: false,
        });
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains("Final-Recipient: rfc822; who@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n"),
            "{text}"
        );
        assert!(text.contains("Diagnostic-Code: smtp; 550 5.1.1 user unknown\r\n"), "{text}");
        assert!(text.contains("text/rfc822-headers") && !text.contains("body\r\n"), "{text}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "bare CR or LF");
    }
}
