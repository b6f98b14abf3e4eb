//! Fingerprint of a message for idempotency keys: a hash of its recipients and its content.
//!
//! A client that retries builds its message again, with another Message-ID, another Date and other MIME boundaries.
//! The fingerprint ignores these, and the transfer encoding of each part. Everything else counts, including the
//! `Service-*` fields, because another template or other variables make another email.

use mail_parser::{ContentType, Message, MessageParser, MimeHeaders as _, PartType};
use sha2::{Digest as _, Sha256};

use crate::address::Address;
use crate::header::parse_fields;
use crate::{hexadecimal, mime};

/// Fields that differ between retries, and MIME fields that are hashed per part instead.
const IGNORED_FIELDS: &[&str] = &[
    "Received",
    "Date",
    "Message-ID",
    "Service-Idempotency-Key",
    "DKIM-Signature",
    "DKIM2-Signature",
    "Message-Instance",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// SHA-256 of the recipients and the message, in hexadecimal.
pub fn message_fingerprint<'a>(recipients: impl Iterator<Item = &'a Address>, message: &[u8]) -> String {
    let mut sum = FingerprintHasher(Sha256::new());
    let mut recipients: Vec<String> = recipients.map(ToString::to_string).collect();
    recipients.sort_unstable();
    recipients.dedup();
    sum.add_number(recipients.len());
    recipients.iter().for_each(|address| sum.add_bytes(address.as_bytes()));
    let (fields, body) = parse_fields(message);
    for field in fields.iter().filter(|field| !IGNORED_FIELDS.iter().any(|name| field.has_name(message, name))) {
        sum.add_bytes(&message[field.start..field.name_end].to_ascii_lowercase());
        // Field values are hashed without their folding white space.
        let words = message[field.name_end..field.end].split(u8::is_ascii_whitespace);
        sum.add_bytes(&words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(&b' '));
    }
    match mime::parse(&MessageParser::default(), message) {
        Some(parsed) => sum.add_parts(&parsed),
        None => sum.add_bytes(message.get(body..).unwrap_or_default()),
    }
    hexadecimal::encode(sum.0.finalize())
}

struct FingerprintHasher(Sha256);

impl FingerprintHasher {
    fn add_number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    /// Hashes the length before the bytes, so that adjacent values cannot be confused.
    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add_number(bytes.len());
        self.0.update(bytes);
    }

    fn add_content_type(&mut self, kind: Option<&ContentType<'_>>) {
        let Some(kind) = kind else { return self.add_number(0) };
        self.add_bytes(kind.ctype().to_ascii_lowercase().as_bytes());
        self.add_bytes(kind.subtype().unwrap_or_default().to_ascii_lowercase().as_bytes());
        for attribute in kind.attributes().unwrap_or_default() {
            if !attribute.name.eq_ignore_ascii_case("boundary") {
                self.add_bytes(attribute.name.to_ascii_lowercase().as_bytes());
                self.add_bytes(attribute.value.as_bytes());
            }
        }
    }

    fn add_parts(&mut self, parsed: &Message<'_>) {
        self.add_number(parsed.parts.len());
        for part in &parsed.parts {
            self.add_content_type(part.content_type());
            self.add_content_type(part.content_disposition());
            self.add_bytes(part.content_id().unwrap_or_default().as_bytes());
            match &part.body {
                PartType::Multipart(parts) => self.add_number(parts.len()),
                _ => self.add_bytes(part.contents()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint_of(to: &[&str], message: &str) -> String {
        let to: Vec<Address> = to.iter().map(|to| to.parse().unwrap()).collect();
        super::message_fingerprint(to.iter(), message.as_bytes())
    }

    fn message(boundary: &str, id: &str, text: &str, extra_fields: &str) -> String {
        format!(
            "Message-ID: <{id}@x>\r\nDate: {id}\r\nSubject: hi\r\n{extra_fields}MIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n\
             Content-Type: text/plain\r\n\r\n{text}\r\n--{boundary}\r\nContent-Type: application/pdf\r\n\
             Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n--{boundary}--\r\n"
        )
    }

    #[test]
    fn a_retry_has_the_same_fingerprint() {
        let first = fingerprint_of(&["a@b.example", "c@d.example"], &message("x", "1", "hi", "X-A: b c\r\n"));
        let again = fingerprint_of(&["c@d.example", "a@b.example"], &message("y", "2", "hi", "X-A: b\r\n c\r\n"));
        assert_eq!(first, again);
        let keyed = message("y", "2", "hi", "X-A: b c\r\nService-Idempotency-Key: k\r\n");
        assert_eq!(first, fingerprint_of(&["a@b.example", "c@d.example"], &keyed));
    }

    #[test]
    fn any_other_difference_changes_the_fingerprint() {
        let to = ["a@b.example"];
        let all = [
            fingerprint_of(&to, &message("x", "1", "hi", "")),
            fingerprint_of(&["z@b.example"], &message("x", "1", "hi", "")),
            fingerprint_of(&to, &message("x", "1", "hi!", "")),
            fingerprint_of(&to, &message("x", "1", "hi", "X-A: b\r\n")),
            fingerprint_of(&to, &message("x", "1", "hi", "Service-Tags: a=b\r\n")),
            fingerprint_of(&to, &message("x", "1", "hi", "").replace("AAEC", "AAED")),
            fingerprint_of(&to, "Subject: hi\r\n\r\nhi"),
            fingerprint_of(&to, ""),
        ];
        for (n, fingerprint) in all.iter().enumerate() {
            assert!(!all[..n].contains(fingerprint), "{n}");
        }
    }
}
