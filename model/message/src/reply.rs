//! An SMTP reply: code, enhanced status code, text (RFC 5321 4.2, RFC 3463, RFC 2034).
//!
//! The type serves both directions: replies of this server, and replies of remote hosts. The lines of a remote reply
//! are stored with control characters escaped, so that a hostile server cannot forge log lines or header fields.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a stored diagnostic text, in characters.
const DIAGNOSTIC_CHARS_MAX: usize = 500;

/// Enhanced status code (RFC 3463): class, subject, detail; `4.7.1`, `5.7.509`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Enhanced {
    /// 2 success, 4 persistent transient failure, 5 permanent failure.
    pub class: u8,
    /// 1 addressing, 2 mailbox, 3 mail system, 4 network, 5 protocol, 6 content, 7 policy.
    pub subject: u16,
    /// The detail, up to three digits.
    pub detail: u16,
}

impl Enhanced {
    pub const fn new(class: u8, subject: u16, detail: u16) -> Self {
        Self { class, subject, detail }
    }

    /// Parses a code at the start of a reply's text, and returns it with the text behind it.
    ///
    /// Subject and detail have one to three digits, without leading zeros (RFC 3463 2). Text that only starts like a
    /// number (`5.1 users`) is not a code.
    pub fn split_prefix(text: &str) -> Option<(Self, &str)> {
        let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut parts = code.split('.');
        let (class, subject, detail) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || !matches!(class, "2" | "4" | "5") {
            return None;
        }
        let number = |s: &str| -> Option<u16> {
            let digits = (1..=3).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
            let has_leading_zero = s.len() > 1 && s.starts_with('0');
            if digits && !has_leading_zero { s.parse().ok() } else { None }
        };
        Some((Self::new(class.parse().ok()?, number(subject)?, number(detail)?), rest))
    }
}

impl fmt::Display for Enhanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

impl FromStr for Enhanced {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match Self::split_prefix(text) {
            Some((code, "")) => Ok(code),
            _ => Err(format!("`{text}` is not an enhanced status code")),
        }
    }
}

crate::stored_as_text!(Enhanced);

/// Meaning of a reply's first digit (RFC 5321 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// 2yz: success.
    Completed,
    /// 3yz: continue.
    Intermediate,
    /// 4yz: temporary failure.
    Transient,
    /// 5yz: permanent failure.
    Permanent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmtpReply {
    /// Reply code, 200 to 599.
    pub code: u16,
    /// The enhanced status code, if present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<Enhanced>,
    /// Text lines without codes and line ends. Never empty.
    pub lines: Vec<Cow<'static, str>>,
}

impl SmtpReply {
    /// Creates a one-line reply with an enhanced status code.
    pub fn new(code: u16, enhanced: Enhanced, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, enhanced: Some(enhanced), lines: vec![text.into()] }
    }

    /// Creates a reply without an enhanced status code: greetings, 3yz and the EHLO reply have none (RFC 2034 4).
    pub fn without_enhanced(code: u16, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, enhanced: None, lines: vec![text.into()] }
    }

    /// Parses the one-line form: `550 5.1.1 user unknown`.
    pub fn parse_line(line: &str) -> Option<Self> {
        let line = line.trim();
        let (code, text) = line.split_once([' ', '-']).unwrap_or((line, ""));
        let code = code.parse().ok().filter(|code| (200..600).contains(code))?;
        let found = Enhanced::split_prefix(text).filter(|(found, _)| u16::from(found.class) == code / 100);
        let (enhanced, text) = found.map_or((None, text), |(found, rest)| (Some(found), rest));
        Some(Self { code, enhanced, lines: vec![text.trim_start().to_owned().into()] })
    }

    /// Severity by the first digit. An invalid code counts as transient, so that a malformed reply does not fail the
    /// mail.
    pub fn severity(&self) -> Severity {
        match self.code {
            200..=299 => Severity::Completed,
            300..=399 => Severity::Intermediate,
            500..=599 => Severity::Permanent,
            _ => Severity::Transient,
        }
    }

    /// All text lines joined by blanks.
    pub fn text(&self) -> Cow<'_, str> {
        match self.lines.as_slice() {
            [line] => Cow::Borrowed(line),
            many => Cow::Owned(many.join(" ")),
        }
    }

    /// Appends the reply in wire format: each line with the code and the enhanced status code (RFC 2034 4), ended by
    /// CRLF.
    ///
    /// Control characters and non-ASCII characters become `?`, so that untrusted text cannot forge another reply line.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let last = self.lines.len().saturating_sub(1);
        for (n, line) in self.lines.iter().enumerate() {
            let separator = if n == last { ' ' } else { '-' };
            out.extend_from_slice(format!("{:03}{separator}", self.code).as_bytes());
            if let Some(enhanced) = self.enhanced {
                out.extend_from_slice(format!("{enhanced} ").as_bytes());
            }
            out.extend(line.chars().map(|c| if matches!(c, ' '..='~') { c as u8 } else { b'?' }));
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl fmt::Display for SmtpReply {
    /// One-line form: `550 5.1.1 user unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}", self.code)?;
        if let Some(enhanced) = self.enhanced {
            write!(f, " {enhanced}")?;
        }
        write!(f, " {}", self.text())
    }
}

/// Truncates a remote text to the stored length.
pub fn truncate_diagnostic(text: &str) -> String {
    text.chars().take(DIAGNOSTIC_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enhanced_codes_keep_three_digits() {
        assert_eq!(Enhanced::split_prefix("5.7.509 no"), Some((Enhanced::new(5, 7, 509), "no")));
        assert_eq!(Enhanced::split_prefix("4.7.1"), Some((Enhanced::new(4, 7, 1), "")));
        assert_eq!(Enhanced::split_prefix("5.0.0"), Some((Enhanced::new(5, 0, 0), "")));
        for not_a_code in
            ["5.1 users", "3.1.1 x", "5.1.1.1 x", "5.1.1000 x", "5..1 x", "5.01.1 x", "5.1.01 x", "5.00.0", "hello", ""]
        {
            assert_eq!(Enhanced::split_prefix(not_a_code), None, "{not_a_code}");
        }
    }

    #[test]
    fn one_line_replies_round_trip() {
        for line in ["550 5.1.1 user unknown", "421 4.7.28 slow", "554 no"] {
            assert_eq!(SmtpReply::parse_line(line).unwrap().to_string(), line);
        }
        assert_eq!(SmtpReply::parse_line("550 4.1.1 two minds").unwrap().enhanced, None);
        assert!(["", "600 x", "user unknown"].into_iter().all(|line| SmtpReply::parse_line(line).is_none()));
    }

    #[test]
    fn a_reply_cannot_forge_another_line() {
        let mut wire = Vec::new();
        SmtpReply::new(550, Enhanced::new(5, 1, 1), "no\r\n250 OK \u{e9}").write_to(&mut wire);
        assert_eq!(wire, b"550 5.1.1 no??250 OK ?\r\n");
    }

    #[test]
    fn every_line_contains_the_code() {
        let mut wire = Vec::new();
        let reply = SmtpReply { code: 250, enhanced: None, lines: vec!["a".into(), "b".into()] };
        reply.write_to(&mut wire);
        assert_eq!(wire, b"250-a\r\n250 b\r\n");
    }
}
