//! Parser of reports about sent mail: bounces (DSN), delays and complaints.
//!
//! ```text
//! message ─► parts ─► multipart/report: delivery status ─► ParsedReport::Failed | Delayed    (RFC 3464, RFC 6533)
//!                 │                     feedback report ─► ParsedReport::Complaint           (RFC 5965)
//!                 └─► a known free-form bounce          ─► ParsedReport::Failed | Delayed
//!                 └─► anything else, also auto-replies  ─► ParsedReport::Nothing             (RFC 3834)
//! ```
//!
//! A report is recognised by its media type or by its generator's fixed phrases. `Auto-Submitted` is no criterion:
//! bounces and auto-replies both have it. Input is bounded: the first [`MESSAGE_BYTES_READ`] bytes, and a maximum
//! number of parts and fields. Parsing never fails: an unknown message is [`ParsedReport::Nothing`].

mod complaint;
mod delivery_status;
pub mod feedback_reporter;
mod freeform;
pub mod report_parts;
mod smtp_codes;

use jiff::Timestamp;

use crate::address::{Address, DomainName};
use crate::classify::{self, BounceClass};
use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

pub use self::complaint::dkim_signature_values;
use self::report_parts::ReportPart;

/// Bytes of a message that are parsed: enough for a report and the header of the returned message.
pub const MESSAGE_BYTES_READ: usize = 1024 * 1024;

/// Result of parsing a returned message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedReport {
    /// The message was not delivered, and will not be retried.
    Failed(BounceDetail),
    /// The message is delayed, and will be retried.
    Delayed(BounceDetail),
    /// The recipient reported the message as spam.
    Complaint(Complaint),
    /// No actionable report: a success report, an auto-reply, or an unknown message.
    Nothing,
}

/// Details of a failed or delayed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BounceDetail {
    /// The reported reply.
    pub reply: SmtpReply,
    /// The reply code was reported; otherwise it is derived from the enhanced code or the action.
    pub has_code: bool,
    /// Original text of the report: `smtp; 550 5.1.1 …`.
    pub diagnostic: String,
    /// The failure is of a temporary kind.
    pub soft: bool,
    /// The host that rejected the message, or else the reporting host.
    pub host: Option<String>,
}

impl BounceDetail {
    /// Classifies the bounce by the rules for direct replies. A report without a cause is attributed to the recipient's
    /// mailbox: a problem with this server would have been reported during delivery.
    pub fn class(&self) -> BounceClass {
        classify::classify(self.host.as_deref(), &self.reply, AttemptPhase::Rcpt)
    }
}

/// A complaint, with all data that identifies its email.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Complaint {
    /// `abuse`, `fraud` (RFC 5965 7.3).
    pub feedback_type: String,
    /// The software that generated the report.
    pub user_agent: Option<String>,
    /// Arrival time of the email at the reporter, if stated.
    pub arrived_at: Option<Timestamp>,
    /// Addresses in the report that look like signed return paths.
    pub return_paths: Vec<Address>,
    /// `Message-ID` of the email, without angle brackets.
    pub message_id: Option<String>,
    /// Recipients named in the report.
    pub recipients: Vec<Address>,
    /// DKIM signatures of the enclosed header, as [`dkim_signature_values`] returns them.
    pub signatures: Vec<String>,
}

impl Complaint {
    /// Sets `arrived_at` to `now` if the report does not state it.
    #[must_use]
    pub fn with_default_arrival(self, now: Timestamp) -> Self {
        Self { arrived_at: self.arrived_at.or(Some(now)), ..self }
    }
}

/// Parses a message that was sent to a recipient's signed return path.
///
/// Reports use the null reverse path (RFC 3464 2, RFC 5321 4.5.5), but some hosts send them from a mailbox. Whoever
/// knows the signed return path can also use the null reverse path, so requiring it gives no protection: RFC 3464
/// reports are accepted from any sender. Free-form bounces are recognised by phrases that people also quote. They are
/// accepted only from the null reverse path, or from a sender whose name is that of a mail daemon.
pub fn parse(message: &[u8], about: Option<&Address>, sender: Option<&Address>) -> ParsedReport {
    let message = message.get(..MESSAGE_BYTES_READ).unwrap_or(message);
    let parts = report_parts::parse_parts(message);
    if let Some(report) = complaint::parse(&parts) {
        return report;
    }
    let free_form = || freeform::parse(message, &parts).filter(|_| sender.is_none_or(freeform::is_daemon));
    delivery_status::parse(&parts, about).or_else(free_form).unwrap_or(ParsedReport::Nothing)
}

/// Parses a message sent to the complaint address: an RFC 5965 report, or a provider's own format.
pub fn parse_complaint(message: &[u8]) -> Option<Complaint> {
    let message = message.get(..MESSAGE_BYTES_READ).unwrap_or(message);
    let parts = report_parts::parse_parts(message);
    match complaint::parse(&parts) {
        Some(ParsedReport::Complaint(complaint)) => Some(complaint),
        Some(_) => None,
        None => complaint::parse_provider_form(message, &parts),
    }
}

/// The first part of one of these media types.
fn find_part<'p, 'm>(parts: &'p [ReportPart<'m>], kinds: &[&str]) -> Option<&'p ReportPart<'m>> {
    parts.iter().find(|part| kinds.contains(&part.kind.as_str()))
}

/// Parses a host in a report field: `dns; mx.example.net (192.0.2.1)`.
fn reporting_host(value: &str) -> Option<String> {
    let (kind, rest) = value.split_once(';').unwrap_or(("dns", value));
    let word = rest.split_whitespace().next()?.trim_matches(['[', ']', '<', '>', '(', ')', '.']);
    let is_host = kind.trim().eq_ignore_ascii_case("dns") && word.parse::<DomainName>().is_ok();
    (is_host || word.parse::<std::net::IpAddr>().is_ok()).then(|| word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
