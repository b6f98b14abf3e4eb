//! Renders a verdict as an `Authentication-Results` field (RFC 8601), with this server's host name as authserv-id.
//!
//! Values are untrusted: a value with characters other than those of a domain name or plain address is omitted (RFC
//! 8601 2.2).

use std::fmt::Write as _;

use message::received::AuthResult;

use super::{AuthenticationVerdict, AuthorDomain};

impl AuthenticationVerdict {
    /// The field, CRLF included.
    pub fn header_field(&self) -> String {
        let source = &self.source;
        let mut text = format!("Authentication-Results: {}", source.hostname);
        // Writing to a String cannot fail.
        let _ = write!(text, ";\r\n\tiprev={}", self.iprev.word());
        push_property(&mut text, "policy.iprev", &source.peer.to_canonical().to_string());
        let _ = write!(text, ";\r\n\tspf={}", self.auth.spf.word());
        if let Some(why) = &self.spf_explanation {
            let _ = write!(text, " ({})", sanitize_comment(why));
        }
        match &source.reverse_path {
            Some(path) => push_property(&mut text, "smtp.mailfrom", &path.to_string()),
            None => push_property(&mut text, "smtp.helo", &source.helo),
        }
        if source.reverse_path.is_some() && self.helo != AuthResult::None {
            let _ = write!(text, ";\r\n\tspf={}", self.helo.word());
            push_property(&mut text, "smtp.helo", &source.helo);
        }
        if self.dkim.is_empty() {
            text.push_str(";\r\n\tdkim=none");
        }
        for verdict in &self.dkim {
            let _ = write!(text, ";\r\n\tdkim={}", verdict.result.word());
            if verdict.result != AuthResult::Pass && !verdict.reason.is_empty() {
                let _ = write!(text, " ({})", sanitize_comment(&verdict.reason));
            }
            push_property(&mut text, "header.d", &verdict.domain);
            push_property(&mut text, "header.s", &verdict.selector);
            push_property(&mut text, "header.a", verdict.algorithm);
        }
        if self.auth.arc != AuthResult::None {
            let _ = write!(text, ";\r\n\tarc={}", self.auth.arc.word());
        }
        let _ = write!(text, ";\r\n\tdmarc={}", self.auth.dmarc.word());
        match (&self.author, self.auth.dmarc) {
            (AuthorDomain::Invalid, _) => text.push_str(" (no single author)"),
            (AuthorDomain::Single(_), AuthResult::None) | (AuthorDomain::Unchecked, _) => {}
            (AuthorDomain::Single(_), _) => {
                let _ = write!(text, " (p={})", self.policy.word());
            }
        }
        if let AuthorDomain::Single(domain) = &self.author {
            push_property(&mut text, "header.from", domain.as_str());
        }
        text.push_str("\r\n");
        text
    }
}

fn push_property(text: &mut String, name: &str, value: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:@+=/".contains(&byte);
    if !value.is_empty() && value.len() <= 320 && value.bytes().all(plain) {
        let _ = write!(text, " {name}={value}");
    }
}

fn sanitize_comment(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " .,-_=:/".contains(c);
    text.chars().map(|c| if plain(c) { c } else { ' ' }).take(80).collect()
}
