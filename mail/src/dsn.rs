//! A delivery status notification: the report that mail could not be delivered (RFC 3464, RFC 3461).
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

/// What a notification reports.
#[derive(Debug)]
pub struct Report<'a> {
    /// The host that gives up: us.
    pub reporting_host: &'a Name,
    /// To whom it goes.
    pub to: &'a Address,
    /// The Message-ID of the notification, without angle brackets.
    pub message_id: &'a str,
    /// The recipient that failed.
    pub recipient: &'a Address,
    /// ORCPT as it was given (RFC 3461 4.2).
    pub original_recipient: Option<&'a str>,
    /// ENVID as it was given, decoded (RFC 3461 4.4).
    pub envelope_id: Option<&'a str>,
    /// What the destination (or we in its stead) said last.
    pub reply: Option<&'a Reply>,
    /// The host that said it.
    pub remote_host: Option<&'a str>,
    /// What went wrong, in a sentence.
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
    let full = report.return_full && report.returned.len() <= RETURNED_BYTES_MAX;
    let returned =
        if full { report.returned } else { &report.returned[..message::fields(report.returned).1] };
    let eight_bit = !returned.is_ascii();
    let boundary = format!("=_{}", report.message_id.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let mut out = String::with_capacity(2048 + returned.len());
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "From: Mail Delivery System <MAILER-DAEMON@{host}>\r\nTo: <{to}>\r\n\
         Subject: Undelivered mail returned to sender\r\nDate: {date}\r\nMessage-ID: <{id}>\r\n\
         Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=\"{boundary}\"\r\n{cte}\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n{cte}\r\n\
         Your message could not be delivered to\r\n\r\n    {recipient}\r\n\r\n{explanation}\r\n",
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
    let _ = write!(out, "Final-Recipient: {kind}; {}\r\nAction: failed\r\n", report.recipient);
    let code = report.reply.and_then(|r| r.enhanced).map_or_else(
        || "5.4.7".to_owned(),
        |e| {
            // What is reported is final, also when the last word was a 4yz (RFC 3464 2.3.4: 5.x.x for failed).
            format!("5.{}.{}", e.subject, e.detail)
        },
    );
    let _ = write!(out, "Status: {code}\r\n");
    if let Some(host) = report.remote_host {
        let _ = write!(out, "Remote-MTA: dns; {}\r\n", one_line(host));
    }
    if let Some(reply) = report.reply {
        let _ = write!(out, "Diagnostic-Code: smtp; {}\r\n", one_line(&reply.to_string()));
    }
    let _ = write!(out, "Last-Attempt-Date: {}\r\n", message::date(report.last_attempt_at));
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
