//! What makes two messages the same to an idempotency key: to whom they go and what they say.
//!
//! A client that tries again makes its message anew: another Message-ID, another Date, other boundaries
//! between the parts. None of that counts, nor does the way a part is encoded; everything else does, the
//! `Service-*` fields among it, since another template or other variables make another email.

use std::fmt::Write as _;

use mail_parser::{ContentType, Message, MessageParser, MimeHeaders as _, PartType};
use sha2::{Digest as _, Sha256};

use crate::address::Address;
use crate::message::fields;
use crate::mime;

/// Fields that differ between two tries, and those that the parts say.
const PASSED_OVER: &[&str] = &[
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

/// The fingerprint of a message to these recipients: SHA-256, in hexadecimal.
#[must_use]
pub fn of<'a>(recipients: impl Iterator<Item = &'a Address>, message: &[u8]) -> String {
    let mut sum = Sum(Sha256::new());
    let mut recipients: Vec<String> = recipients.map(ToString::to_string).collect();
    recipients.sort_unstable();
    recipients.dedup();
    sum.number(recipients.len());
    recipients.iter().for_each(|address| sum.bytes(address.as_bytes()));
    let (fields, body) = fields(message);
    for field in fields.iter().filter(|field| !PASSED_OVER.iter().any(|name| field.is(message, name))) {
        sum.bytes(&message[field.start..field.name_end].to_ascii_lowercase());
        // However it was folded.
        let words = message[field.name_end..field.end].split(u8::is_ascii_whitespace);
        sum.bytes(&words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(&b' '));
    }
    match mime::parse(&MessageParser::default(), message) {
        Some(parsed) => sum.parts(&parsed),
        None => sum.bytes(message.get(body..).unwrap_or_default()),
    }
    let mut text = String::with_capacity(64);
    for byte in sum.0.finalize() {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

struct Sum(Sha256);

impl Sum {
    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    /// Each with its length: what follows cannot be taken for a part of it.
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    fn kind(&mut self, kind: Option<&ContentType<'_>>) {
        let Some(kind) = kind else { return self.number(0) };
        self.bytes(kind.ctype().to_ascii_lowercase().as_bytes());
        self.bytes(kind.subtype().unwrap_or_default().to_ascii_lowercase().as_bytes());
        for attribute in kind.attributes().unwrap_or_default() {
            if !attribute.name.eq_ignore_ascii_case("boundary") {
                self.bytes(attribute.name.to_ascii_lowercase().as_bytes());
                self.bytes(attribute.value.as_bytes());
            }
        }
    }

    fn parts(&mut self, parsed: &Message<'_>) {
        self.number(parsed.parts.len());
        for part in &parsed.parts {
            self.kind(part.content_type());
            self.kind(part.content_disposition());
            self.bytes(part.content_id().unwrap_or_default().as_bytes());
            match &part.body {
                PartType::Multipart(parts) => self.number(parts.len()),
                _ => self.bytes(part.contents()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(to: &[&str], message: &str) -> String {
        let to: Vec<Address> = to.iter().map(|to| to.parse().unwrap()).collect();
        super::of(to.iter(), message.as_bytes())
    }

    fn message(boundary: &str, id: &str, text: &str, more: &str) -> String {
        format!(
            "Message-ID: <{id}@x>\r\nDate: {id}\r\nSubject: hi\r\n{more}MIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n\
             Content-Type: text/plain\r\n\r\n{text}\r\n--{boundary}\r\nContent-Type: application/pdf\r\n\
             Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n--{boundary}--\r\n"
        )
    }

    #[test]
    fn a_second_try_is_the_same() {
        let first = of(&["a@b.example", "c@d.example"], &message("x", "1", "hi", "X-A: b c\r\n"));
        let again = of(&["c@d.example", "a@b.example"], &message("y", "2", "hi", "X-A: b\r\n c\r\n"));
        assert_eq!(first, again);
        let keyed = message("y", "2", "hi", "X-A: b c\r\nService-Idempotency-Key: k\r\n");
        assert_eq!(first, of(&["a@b.example", "c@d.example"], &keyed));
    }

    #[test]
    fn whatever_else_differs_makes_another() {
        let to = ["a@b.example"];
        let all = [
            of(&to, &message("x", "1", "hi", "")),
            of(&["z@b.example"], &message("x", "1", "hi", "")),
            of(&to, &message("x", "1", "hi!", "")),
            of(&to, &message("x", "1", "hi", "X-A: b\r\n")),
            of(&to, &message("x", "1", "hi", "Service-Tags: a=b\r\n")),
            of(&to, &message("x", "1", "hi", "").replace("AAEC", "AAED")),
            of(&to, "Subject: hi\r\n\r\nhi"),
            of(&to, ""),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one), "{n}");
        }
    }
}
