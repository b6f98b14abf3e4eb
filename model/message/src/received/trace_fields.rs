//! Trace fields: the fields added to a received message, loop detection, and removal of forged results.
//!
//! ```text
//! Return-Path                          RFC 5321 4.4: added by the host that makes final delivery
//! Delivered-To                         RFC 9228: the recipient; one of a local recipient in a new message means a loop
//! Authentication-Results, Received     added by the MX listener
//! ```

use bytes::Bytes;

use super::header::{fields, is_named};
use crate::address::{Address, DomainName};

/// Header field that names the forwarding mailbox.
pub const LOOP_HEADER: &str = "X-Loop";
const AUTHENTICATION_RESULTS: &str = "Authentication-Results";
const DELIVERED_TO: &str = "Delivered-To";
const RECEIVED: &str = "Received";
/// RFC 5321 6.3 requires at least 100.
const RECEIVED_MAX: usize = 100;

/// Builds and checks the trace fields of a message.
#[derive(Debug)]
pub struct TraceFields;

impl TraceFields {
    /// Builds the added fields; `listener_fields` holds the fields of the MX listener.
    pub fn build(reverse_path: Option<&Address>, recipient: &Address, listener_fields: &str) -> String {
        let path = reverse_path.map(ToString::to_string).unwrap_or_default();
        format!("Return-Path: <{path}>\r\n{DELIVERED_TO}: {recipient}\r\n{listener_fields}")
    }

    /// Returns whether the message has so many Received fields that it must be looping.
    pub fn exceeds_hop_limit(message: &[u8]) -> bool {
        fields(message).filter(|field| is_named(field, RECEIVED)).nth(RECEIVED_MAX - 1).is_some()
    }

    /// Returns whether the message was delivered to this recipient before.
    pub fn was_delivered_to(message: &[u8], recipient: &Address) -> bool {
        Self::has_field_for(message, DELIVERED_TO, recipient)
    }

    /// Returns whether this server forwarded the message for this mailbox before.
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

/// Removes Authentication-Results fields that claim to be from this host (RFC 8601 5). The pieces share the message's
/// bytes.
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

/// Returns whether the field's authserv-id may be read as this host. RFC 8601 2.2 defines the field as
/// `[CFWS] authserv-id [CFWS version] [CFWS] ;`.
///
/// Readers differ on malformed ids: some join a name that is split by blanks or comments, some decode encoded words,
/// some drop escapes. So the id is compared as written, and with all blanks and comments removed. An id that a reader
/// may decode counts as this host's: quotes, escapes, encoded words, non-ASCII characters, or an unclosed comment.
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

/// Characters that all parsers interpret in the same way: printable ASCII, blanks and folding line ends.
fn is_plain(c: char) -> bool {
    c.is_ascii_graphic() || matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Returns whether the text begins with the host name at a name boundary, optionally followed by a version.
fn begins_with_name(text: &str, name: &str) -> bool {
    let Some(rest) = text.trim_start_matches('.').strip_prefix(name) else { return false };
    let mut rest = rest.bytes();
    match rest.next() {
        Some(b'.') => !rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric()),
        other => !other.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')),
    }
}

/// Replaces comments by a blank (RFC 5322 3.2.2), so that a `;` in a comment does not end the id. Returns `None` if the
/// parentheses are unbalanced. Parentheses in quotes are no comments.
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
    fn forged_authentication_results_are_removed() {
        assert_eq!(
            left("A: b\r\nAuthentication-Results: MX.example;\r\n spf=pass\r\nB: c\r\n\r\nx"),
            "A: b\r\nB: c\r\n\r\nx"
        );
        assert_eq!(left("authentication-results : mx.example 1; none\r\n\r\nx"), "\r\nx");
        assert_eq!(left("Authentication-Results: (c) mx.example; none\r\n\r\nx"), "\r\nx");
        assert_eq!(left("Authentication-Results: \"mx.example\"; none\r\n\r\nx"), "\r\nx");
        for forged in [
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
            let message: &str = format!("Authentication-Results: {forged}\r\n\r\nx").leak();
            assert_eq!(left(message), "\r\nx", "{forged}");
        }
        for foreign in ["mx.example-2.net; x", "mx.example.net; x", "amx.example; x", "spf=pass (sender) a=b; x"] {
            let message: &str = format!("Authentication-Results: {foreign}\r\n\r\nx").leak();
            assert_eq!(left(message), message, "{foreign}");
        }
        let foreign = "Authentication-Results: mx.example.net (by mx.example; it says); none\r\n\r\n";
        assert_eq!(left(foreign), foreign);
        let other = "Authentication-Results: mx.example.net; none\r\n\r\nAuthentication-Results: mx.example; x";
        assert_eq!(left(other), other);
        assert_eq!(left(""), "");
    }

    #[test]
    fn mail_loops_are_detected() {
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
