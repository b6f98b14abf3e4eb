//! Complaints (RFC 5965), and the form that a provider has of its own.
//!
//! Providers blacken what names the recipient (RFC 6590), each in its own way, so what leads to the email is
//! looked for wherever it may stand: a return path of ours anywhere in the report's fields or in the header of
//! what is enclosed, then the email's `Message-ID`, then the recipient.

use mail_parser::{HeaderValue, parsers::MessageStream};

use jiff::Timestamp;

use crate::address::Address;
use crate::message::HEADER_BYTES_MAX;

use super::codes::one_line;
use super::parts::{self, ReportPart, field_groups, group_field};
use super::{Complaint, ParsedReport, find_part};

/// What is enclosed of the email.
const ENCLOSED_TYPES: [&str; 6] = [
    "message/rfc822",
    "message/global",
    "text/rfc822-headers",
    "message/rfc822-headers",
    "message/global-headers",
    "text/rfc822",
];
/// Return paths that are looked at: a header names one, in a few fields.
const RETURN_PATHS_MAX: usize = 16;
/// Signatures that are looked at: ours are two, hosts on the way and lists put on some more.
const SIGNATURES_MAX: usize = 16;
/// Shorter ones are none: Ed25519 has 88 characters (RFC 8463), RSA more.
const SIGNATURE_CHARS_MIN: usize = 80;
/// Recipients that are looked at.
const RECIPIENTS_MAX: usize = 8;
/// How a return path of ours begins ([`crate::verp`]).
const RETURN_PATH_PREFIX: &[u8] = b"b-";

/// Reads a feedback report; none when it is none, and nothing when it is no complaint.
pub(super) fn parse(parts: &[ReportPart<'_>]) -> Option<ParsedReport> {
    let report = find_part(parts, &["message/feedback-report"])?.text().into_owned();
    // One block of fields, whatever empty lines a maker puts in between.
    let fields: Vec<(String, String)> = field_groups(&report).into_iter().flatten().collect();
    let feedback_type = group_field(&fields, "feedback-type").unwrap_or("abuse");
    let feedback_type = one_line(feedback_type).to_ascii_lowercase();
    // "Not spam" takes a complaint back that nobody can know of; a virus or a failed check is no person's word.
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

/// Outlook.com's junk mail reporting: the email itself, enclosed in one of theirs that says so in its subject.
pub(super) fn parse_provider_form(message: &[u8], parts: &[ReportPart<'_>]) -> Option<Complaint> {
    let subject = parts::header_field(message, "Subject")?.to_ascii_lowercase();
    let is_one = subject.starts_with("complaint about message from") || subject.starts_with("fw: junk");
    find_part(parts, &ENCLOSED_TYPES).filter(|_| is_one)?;
    Some(Complaint { feedback_type: "abuse".to_owned(), ..parse_enclosed_header(parts) })
}

/// What the enclosed header says.
fn parse_enclosed_header(parts: &[ReportPart<'_>]) -> Complaint {
    let Some(part) = find_part(parts, &ENCLOSED_TYPES) else { return Complaint::default() };
    let body: &[u8] = &part.body;
    let header = body.get(..crate::message::parse_fields(body).1).unwrap_or_default();
    let recipient = parts::header_field(header, "X-HmXmrOriginalRecipient");
    Complaint {
        return_paths: find_return_paths(header),
        message_id: parts::header_field(header, "Message-ID")
            .map(|id| id.trim_matches(['<', '>', ' ']).to_owned())
            .filter(|id| !id.is_empty() && id.len() <= 998),
        recipients: recipient.as_deref().and_then(parse_address).into_iter().collect(),
        signatures: dkim_signature_values(header),
        ..Complaint::default()
    }
}

/// See [`super::signatures`].
pub(super) fn dkim_signature_values(header: &[u8]) -> Vec<String> {
    let (fields, _) = crate::message::parse_fields(header);
    let values = fields.iter().filter(|field| field.has_name(header, "DKIM-Signature"));
    let values = values.filter_map(|field| header.get(field.name_end..field.end)).take(SIGNATURES_MAX);
    values.filter_map(|value| signature_value(&String::from_utf8_lossy(value))).collect()
}

/// `b=` of a signature's tags (RFC 6376 3.5); its value may be folded anywhere.
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

/// All that looks like a return path of ours, in fields of any names.
fn find_return_paths(header: &[u8]) -> Vec<Address> {
    let header = header.get(..HEADER_BYTES_MAX).unwrap_or(header);
    let lower = header.to_ascii_lowercase();
    let mut found: Vec<Address> = Vec::new();
    for at in memchr::memmem::find_iter(&lower, RETURN_PATH_PREFIX) {
        // It begins a word, or what the sender's address was rewritten to (SRS, BATV) holds it: `=b-…`.
        let begins = at == 0 || !matches!(lower.get(at - 1), Some(b) if b.is_ascii_alphanumeric());
        let rest = lower.get(at..).unwrap_or_default();
        let end = rest
            .iter()
            .take(crate::address::ADDRESS_BYTES_MAX + 1)
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'@' | b'.' | b'=')));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let Some(word) = std::str::from_utf8(word).ok().filter(|_| begins) else { continue };
        // A host that writes the sender into an address of its own puts `=` for the `@`.
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
