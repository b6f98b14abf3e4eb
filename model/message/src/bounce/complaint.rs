//! Parser of complaints: ARF (RFC 5965), and a provider's own format.
//!
//! Providers redact the recipient in different ways (RFC 6590). So the email is identified by several means: a signed
//! return path anywhere in the report's fields or the enclosed header, the email's `Message-ID`, or the recipient.

use mail_parser::{HeaderValue, parsers::MessageStream};

use jiff::Timestamp;

use crate::address::Address;
use crate::header::HEADER_BYTES_MAX;

use super::report_parts::{self, ReportPart, field_groups, group_field};
use super::smtp_codes::one_line;
use super::{Complaint, ParsedReport, find_part};

/// Media types of the enclosed email or its header.
const ENCLOSED_TYPES: [&str; 6] = [
    "message/rfc822",
    "message/global",
    "text/rfc822-headers",
    "message/rfc822-headers",
    "message/global-headers",
    "text/rfc822",
];
/// Maximum number of return paths that are collected; a header has one, in a few fields.
const RETURN_PATHS_MAX: usize = 16;
/// Maximum number of signatures that are collected: two of this server, and some of forwarders and lists.
const SIGNATURES_MAX: usize = 16;
/// Minimum length of a signature: Ed25519 has 88 characters (RFC 8463), RSA more.
const SIGNATURE_CHARS_MIN: usize = 80;
/// Maximum number of recipients that are collected per field.
const RECIPIENTS_MAX: usize = 8;
/// Prefix of a signed return path ([`model::verp`]).
const RETURN_PATH_PREFIX: &[u8] = b"b-";

/// Parses a feedback report. Returns `None` if there is none, and `Nothing` if it is not a complaint.
pub(super) fn parse(parts: &[ReportPart<'_>]) -> Option<ParsedReport> {
    let report = find_part(parts, &["message/feedback-report"])?.text().into_owned();
    // All fields count as one block, because some generators insert empty lines.
    let fields: Vec<(String, String)> = field_groups(&report).into_iter().flatten().collect();
    let feedback_type = group_field(&fields, "feedback-type").unwrap_or("abuse");
    let feedback_type = one_line(feedback_type).to_ascii_lowercase();
    // A "not spam" report cannot be matched to a complaint; a virus or a failed check is not reported by a person.
    if matches!(feedback_type.as_str(), "not-spam" | "not_spam" | "auth-failure" | "virus") {
        return Some(ParsedReport::Nothing);
    }
    let mut complaint = parse_enclosed_header(parts);
    complaint.feedback_type = feedback_type;
    complaint.user_agent = group_field(&fields, "user-agent").map(one_line).filter(|text| !text.is_empty());
    let date = group_field(&fields, "arrival-date").or_else(|| group_field(&fields, "received-date"));
    complaint.arrived_at = date.and_then(parse_date);
    let reported = find_return_paths(report.as_bytes());
    complaint.return_paths.extend(reported);
    complaint.return_paths.sort_unstable_by_key(ToString::to_string);
    complaint.return_paths.dedup();
    for name in ["original-rcpt-to", "removal-recipient"] {
        let named = fields.iter().filter(|(known, _)| known == name);
        complaint.recipients.extend(named.filter_map(|(_, value)| parse_address(value)).take(RECIPIENTS_MAX));
    }
    Some(ParsedReport::Complaint(complaint))
}

/// Parses Outlook.com's junk mail report: an email with a fixed subject that encloses the original email.
pub(super) fn parse_provider_form(message: &[u8], parts: &[ReportPart<'_>]) -> Option<Complaint> {
    let subject = report_parts::header_field(message, "Subject")?.to_ascii_lowercase();
    let is_junk_report = subject.starts_with("complaint about message from") || subject.starts_with("fw: junk");
    find_part(parts, &ENCLOSED_TYPES).filter(|_| is_junk_report)?;
    Some(Complaint { feedback_type: "abuse".to_owned(), ..parse_enclosed_header(parts) })
}

/// Collects identifying data from the enclosed header.
fn parse_enclosed_header(parts: &[ReportPart<'_>]) -> Complaint {
    let Some(part) = find_part(parts, &ENCLOSED_TYPES) else { return Complaint::default() };
    let body: &[u8] = &part.body;
    let header = body.get(..crate::header::parse_fields(body).1).unwrap_or_default();
    let recipient = report_parts::header_field(header, "X-HmXmrOriginalRecipient");
    Complaint {
        return_paths: find_return_paths(header),
        message_id: report_parts::header_field(header, "Message-ID")
            .map(|id| id.trim_matches(['<', '>', ' ']).to_owned())
            .filter(|id| !id.is_empty() && id.len() <= 998),
        recipients: recipient.as_deref().and_then(parse_address).into_iter().collect(),
        signatures: dkim_signature_values(header),
        ..Complaint::default()
    }
}

/// Returns the `b=` value of each DKIM signature in a header, without white space. Only its holders can read it,
/// and it stays intact when a provider redacts the rest.
pub fn dkim_signature_values(header: &[u8]) -> Vec<String> {
    let (fields, _) = crate::header::parse_fields(header);
    let values = fields.iter().filter(|field| field.has_name(header, "DKIM-Signature"));
    let values = values.filter_map(|field| header.get(field.name_end..field.end)).take(SIGNATURES_MAX);
    values.filter_map(|value| signature_value(&String::from_utf8_lossy(value))).collect()
}

/// The `b=` tag of a signature (RFC 6376 3.5); its value may be folded anywhere.
fn signature_value(value: &str) -> Option<String> {
    let tags = value.trim_start_matches(':').split(';');
    let value = tags.filter_map(|tag| tag.split_once('=')).find(|(name, _)| name.trim() == "b")?.1;
    let value: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    (value.len() >= SIGNATURE_CHARS_MIN).then_some(value)
}

fn parse_address(value: &str) -> Option<Address> {
    value.trim().trim_start_matches("rfc822;").trim().trim_matches(['<', '>']).parse().ok()
}

fn parse_date(value: &str) -> Option<Timestamp> {
    match MessageStream::new(format!("{value}\n").as_bytes()).parse_date() {
        HeaderValue::DateTime(date) => Timestamp::from_second(date.to_timestamp()).ok(),
        _ => None,
    }
}

/// Collects everything that looks like a signed return path, in any field.
fn find_return_paths(header: &[u8]) -> Vec<Address> {
    let header = header.get(..HEADER_BYTES_MAX).unwrap_or(header);
    let lower = header.to_ascii_lowercase();
    let mut found: Vec<Address> = Vec::new();
    for at in memchr::memmem::find_iter(&lower, RETURN_PATH_PREFIX) {
        // The prefix starts a word, or follows the prefix of a rewritten sender (SRS, BATV): `=b-…`.
        let begins = at == 0 || !matches!(lower.get(at - 1), Some(b) if b.is_ascii_alphanumeric());
        let rest = lower.get(at..).unwrap_or_default();
        let end = rest
            .iter()
            .take(crate::address::ADDRESS_BYTES_MAX + 1)
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'@' | b'.' | b'=')));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let Some(word) = std::str::from_utf8(word).ok().filter(|_| begins) else { continue };
        // A host that embeds the sender in an address of its own replaces `@` by `=`.
        let text = if word.contains('@') { word.to_owned() } else { word.replacen('=', "@", 1) };
        let Ok(address) = text.trim_end_matches('.').parse::<Address>() else { continue };
        if address.local_part().matches('-').count() == 3 && !found.contains(&address) {
            found.push(address);
        }
        if found.len() >= RETURN_PATHS_MAX {
            break;
        }
    }
    found
}
