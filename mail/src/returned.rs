//! What comes back about mail that we sent, read.
//!
//! ```text
//! message ─► parts ─► multipart/report: delivery status ─► Said::Failed | Delayed     (RFC 3464, RFC 6533)
//!                 │                     feedback report ─► Said::Complaint            (RFC 5965)
//!                 └─► one of the free forms of bounces  ─► Said::Failed | Delayed
//!                 └─► anything else, auto-replies say   ─► Said::Nothing              (RFC 3834)
//! ```
//!
//! A report is told by its type or by the words that its maker always uses, and never by `Auto-Submitted`, which
//! auto-replies and bounces both carry. What is read is bounded: the first [`MESSAGE_BYTES_READ`] bytes, some
//! parts, some fields. Nothing here fails: what is not understood says nothing.

mod codes;
mod complaint;
mod form;
pub mod parts;
pub mod reporter;
mod status;

use jiff::Timestamp;

use crate::address::{Address, DomainName};
use crate::classify::{self, BounceClass};
use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

use self::parts::ReportPart;

/// Of a message that came back so much is read: a report, and the header of what it is about.
pub const MESSAGE_BYTES_READ: usize = 1024 * 1024;

/// What a message that came back says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedReport {
    /// It did not arrive, and will not.
    Failed(BounceDetail),
    /// It did not arrive yet.
    Delayed(BounceDetail),
    /// The recipient calls it spam.
    Complaint(Complaint),
    /// Nothing that changes anything: it arrived, an auto-reply, what nobody understands.
    Nothing,
}

/// Why it did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BounceDetail {
    /// What was said, in the form of a reply.
    pub reply: SmtpReply,
    /// Its three digits were said; else they are made of the rest.
    pub has_code: bool,
    /// In the words of the report: `smtp; 550 5.1.1 …`.
    pub diagnostic: String,
    /// It was given up for what might pass by itself.
    pub soft: bool,
    /// Who said it: the host that refused, or the one that reports.
    pub host: Option<String>,
}

impl BounceDetail {
    /// What it is about, by the rules for what is said to us directly. Of one who says nothing the recipient's
    /// mailbox is taken to be the reason: what was wrong with us would have been said when we delivered.
    #[must_use]
    pub fn class(&self) -> BounceClass {
        classify::classify(self.host.as_deref(), &self.reply, AttemptPhase::Rcpt)
    }
}

/// A complaint, and all that leads to the email that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Complaint {
    /// `abuse`, `fraud` (RFC 5965 7.3).
    pub feedback_type: String,
    /// What made the report.
    pub user_agent: Option<String>,
    /// When the email arrived there, as the report says.
    pub arrived_at: Option<Timestamp>,
    /// Addresses in it that look like return paths of ours.
    pub return_paths: Vec<Address>,
    /// The email's `Message-ID`, without angle brackets.
    pub message_id: Option<String>,
    /// The recipients that it names.
    pub recipients: Vec<Address>,
    /// The DKIM signatures in the enclosed header, as [`signatures`] reads them.
    pub signatures: Vec<String>,
}

impl Complaint {
    /// The same, with when it came to us where it does not say when the email arrived.
    #[must_use]
    pub fn with_default_arrival(self, now: Timestamp) -> Self {
        Self { arrived_at: self.arrived_at.or(Some(now)), ..self }
    }
}

/// Reads what came back to the return path of a recipient, from the null path or from a sender.
///
/// Reports come from the null path (RFC 3464 2, RFC 5321 4.5.5); some hosts send theirs from a mailbox. Whoever knows
/// the signed return path may use the null path as well, so nothing is won against them by asking for it: a report of
/// RFC 3464 is read whoever sends it. The free forms are told by their words, which people quote: they are read from
/// the null path, or from who writes bounces by name.
#[must_use]
pub fn parse(message: &[u8], about: Option<&Address>, sender: Option<&Address>) -> ParsedReport {
    let message = message.get(..MESSAGE_BYTES_READ).unwrap_or(message);
    let parts = parts::parse_parts(message);
    if let Some(said) = complaint::parse(&parts) {
        return said;
    }
    let free_form = || form::parse(message, &parts).filter(|_| sender.is_none_or(form::is_daemon));
    status::parse(&parts, about).or_else(free_form).unwrap_or(ParsedReport::Nothing)
}

/// Reads what came to where complaints come in: beside reports, the forms that a provider has of its own.
#[must_use]
pub fn parse_complaint(message: &[u8]) -> Option<Complaint> {
    let message = message.get(..MESSAGE_BYTES_READ).unwrap_or(message);
    let parts = parts::parse_parts(message);
    match complaint::parse(&parts) {
        Some(ParsedReport::Complaint(complaint)) => Some(complaint),
        Some(_) => None,
        None => complaint::parse_provider_form(message, &parts),
    }
}

/// The DKIM signatures in a header: the value of each field's `b=`, without blanks. Only who had the message has
/// them, and they stay as they are where a provider blackens the rest.
#[must_use]
pub fn dkim_signature_values(header: &[u8]) -> Vec<String> {
    complaint::dkim_signature_values(header)
}

/// The first part of one of these types.
fn find_part<'p, 'm>(parts: &'p [ReportPart<'m>], kinds: &[&str]) -> Option<&'p ReportPart<'m>> {
    parts.iter().find(|part| kinds.contains(&part.kind.as_str()))
}

/// A host in a field of a report: `dns; mx.example.net (192.0.2.1)`.
fn reporting_host(value: &str) -> Option<String> {
    let (kind, rest) = value.split_once(';').unwrap_or(("dns", value));
    let word = rest.split_whitespace().next()?.trim_matches(['[', ']', '<', '>', '(', ')', '.']);
    let is_host = kind.trim().eq_ignore_ascii_case("dns") && word.parse::<DomainName>().is_ok();
    (is_host || word.parse::<std::net::IpAddr>().is_ok()).then(|| word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
