//! What is put on top of a message that came in, and what is taken out of it.
//!
//! ```text
//! Return-Path          RFC 5321 4.4: by the host that makes the final delivery
//! Delivered-To         RFC 9228: for whom; ours, met again, is a loop
//! Authentication-Results, Received     the door's
//! ```

use bytes::Bytes;

use super::heading::{fields, is_named};
use crate::address::{Address, DomainName};
use crate::letter::LOOP_HEADER;

const AUTHENTICATION_RESULTS: &str = "Authentication-Results";
const DELIVERED_TO: &str = "Delivered-To";
const RECEIVED: &str = "Received";
/// RFC 5321 6.3 asks for 100 at least.
const RECEIVED_MAX: usize = 100;

/// The trace of a message in its header.
#[derive(Debug)]
pub struct TraceFields;

impl TraceFields {
    /// What is put on top, above the fields of the door.
    #[must_use]
    pub fn build(reverse_path: Option<&Address>, recipient: &Address, door: &str) -> String {
        let path = reverse_path.map(ToString::to_string).unwrap_or_default();
        format!("Return-Path: <{path}>\r\n{DELIVERED_TO}: {recipient}\r\n{door}")
    }

    /// Whether a message goes round in circles: it was handed on too often.
    #[must_use]
    pub fn exceeds_hop_limit(message: &[u8]) -> bool {
        fields(message).filter(|field| is_named(field, RECEIVED)).nth(RECEIVED_MAX - 1).is_some()
    }

    /// Whether a message was here before, for the same recipient.
    #[must_use]
    pub fn was_delivered_to(message: &[u8], recipient: &Address) -> bool {
        Self::has_field_for(message, DELIVERED_TO, recipient)
    }

    /// Whether a message is one that was passed on from here for this mailbox, and has come back.
    #[must_use]
    pub fn was_forwarded_for(message: &[u8], mailbox: &Address) -> bool {
        Self::has_field_for(message, LOOP_HEADER, mailbox)
    }

    fn has_field_for(message: &[u8], name: &str, recipient: &Address) -> bool {
        fields(message).filter(|field| is_named(field, name)).any(|field| {
            let text = String::from_utf8_lossy(field);
            let value = text.split_once(':').map(|(_, value)| value.trim()).unwrap_or_default();
            let found = value.trim_start_matches('<').trim_end_matches('>').parse::<Address>();
            found.is_ok_and(|found| {
                found.domain() == recipient.domain()
                    && found.unquoted_local_part().eq_ignore_ascii_case(&recipient.unquoted_local_part())
            })
        })
    }
}

/// A message without the results that somebody claims we have found (RFC 8601 5), in pieces that are not copied.
#[must_use]
pub fn strip_forged_auth_results(message: &Bytes, hostname: &DomainName) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let (mut kept_from, mut at) = (0, 0);
    for field in fields(message) {
        let end = at + field.len();
        if is_named(field, AUTHENTICATION_RESULTS) && has_authserv_id(field, hostname) {
            if at > kept_from {
                pieces.push(message.slice(kept_from..at));
            }
            kept_from = end;
        }
        at = end;
    }
    if kept_from < message.len() {
        pieces.push(message.slice(kept_from..));
    }
    pieces
}

/// Whether the results name us (RFC 8601 2.2: `[CFWS] authserv-id [CFWS version] [CFWS] ;`).
///
/// Readers differ in what they make of odd spellings: some join a name that blanks or comments part, some decode encoded
/// words, some drop escapes. So a name is compared as it stands and with all blanks and comments removed, and an id that
/// readers may decode (quotes, escapes, encoded words, letters beyond ASCII, a comment without an end) counts as ours.
fn has_authserv_id(field: &[u8], hostname: &DomainName) -> bool {
    let text = String::from_utf8_lossy(field);
    let value = text.split_once(':').map(|(_, value)| value).unwrap_or_default();
    let Some(value) = without_comments(value) else { return true };
    let id = value.split(';').next().unwrap_or_default().to_ascii_lowercase();
    if id.contains("=?") || id.chars().any(|c| matches!(c, '"' | '\\') || !is_plain(c)) {
        return true;
    }
    let Some(name) = id.split_ascii_whitespace().next() else { return true };
    let joined: String = id.split_ascii_whitespace().collect();
    name.trim_matches('.') == hostname.as_str() || begins_with_name(&joined, hostname.as_str())
}

/// Whether a letter means the same to every reader: printable ASCII, a blank, or a line end that folds.
fn is_plain(c: char) -> bool {
    c.is_ascii_graphic() || matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Whether a text begins with a host's name that does not go on there, whatever version follows it.
fn begins_with_name(text: &str, name: &str) -> bool {
    let Some(rest) = text.trim_start_matches('.').strip_prefix(name) else { return false };
    let mut rest = rest.bytes();
    match rest.next() {
        Some(b'.') => !rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric()),
        other => !other.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')),
    }
}

/// A value with a blank for each comment (RFC 5322 3.2.2); a `;` in one ends nothing. None when one has no end, or
/// more ends than beginnings. What stands in quotes is no comment.
fn without_comments(value: &str) -> Option<String> {
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    for c in value.chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => {
                escaped = true;
                if depth == 0 {
                    out.push(c);
                }
            }
            '"' if depth == 0 => {
                quoted = !quoted;
                out.push(c);
            }
            '(' if !quoted => {
                depth += 1;
                out.push(' ');
            }
            ')' if !quoted => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            _ => out.push(c),
        }
    }
    (depth == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(message: &'static str) -> String {
        let hostname = "mx.example".parse().unwrap();
        let pieces = strip_forged_auth_results(&Bytes::from_static(message.as_bytes()), &hostname);
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn forged_results_are_taken_out() {
        assert_eq!(
            left("A: b\r\nAuthentication-Results: MX.example;\r\n spf=pass\r\nB: c\r\n\r\nx"),
            "A: b\r\nB: c\r\n\r\nx"
        );
        assert_eq!(left("authentication-results : mx.example 1; none\r\n\r\nx"), "\r\nx");
        assert_eq!(left("Authentication-Results: (c) mx.example; none\r\n\r\nx"), "\r\nx");
        assert_eq!(left("Authentication-Results: \"mx.example\"; none\r\n\r\nx"), "\r\nx");
        for ours in [
            "mx.example (us); spf=pass",
            "mx.example(us) 1 (a;b) ; spf=pass",
            "(other.example;) mx.example; spf=pass",
            "(a (b;) \\) c) mx.example\r\n (;)\r\n ; spf=pass",
            "mx(c).example; x",
            "mx . example; x",
            "mx.\r\n\texample ; x",
            "mx.example.; x",
            ".mx.example; x",
            "mx.example/1; x",
            "mx.example 1; x",
            "mx.example\t1\t; x",
            "mx\\.example; x",
            "\"mx\".example; x",
            "=?utf-8?q?mx.example?=; x",
            "=?utf-8?b?bXguZXhhbXBsZQ==?=; x",
            "\u{ff4d}x.example; x",
            "mx\u{3002}example; x",
            "mx.\u{200b}example; x",
            "mx.example\0; x",
            "MX.EXAMPLE=1; x",
            "other.example (never ends; mx.example",
            "other.example) ; x",
            "(only)",
            "",
        ] {
            let message: &str = format!("Authentication-Results: {ours}\r\n\r\nx").leak();
            assert_eq!(left(message), "\r\nx", "{ours}");
        }
        for theirs in ["mx.example-2.net; x", "mx.example.net; x", "amx.example; x", "spf=pass (sender) a=b; x"] {
            let message: &str = format!("Authentication-Results: {theirs}\r\n\r\nx").leak();
            assert_eq!(left(message), message, "{theirs}");
        }
        let theirs = "Authentication-Results: mx.example.net (by mx.example; it says); none\r\n\r\n";
        assert_eq!(left(theirs), theirs);
        let other = "Authentication-Results: mx.example.net; none\r\n\r\nAuthentication-Results: mx.example; x";
        assert_eq!(left(other), other);
        assert_eq!(left(""), "");
    }

    #[test]
    fn loops_are_seen() {
        let to: Address = "a@b.example".parse().unwrap();
        assert!(TraceFields::was_forwarded_for(b"X-Loop: a@b.example\r\n\r\n", &to));
        assert!(TraceFields::was_delivered_to(b"Delivered-To: A@b.example\r\n\r\n", &to));
        assert!(!TraceFields::was_delivered_to(b"Delivered-To: c@b.example\r\n\r\nDelivered-To: a@b.example\r\n", &to));
        let fields = |count: usize| format!("{}\r\n", "Received: x\r\n".repeat(count));
        assert!(
            TraceFields::exceeds_hop_limit(fields(100).as_bytes())
                && !TraceFields::exceeds_hop_limit(fields(99).as_bytes())
        );
    }
}
