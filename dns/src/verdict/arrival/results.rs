//! The field that tells a verdict (RFC 8601): `Authentication-Results`, with our name for an id.
//!
//! Values come from strangers: what is not made of the characters of a domain name or a plain address is left
//! out (RFC 8601 2.2).

use std::fmt::Write as _;

use mail::received::AuthResult;

use super::{AuthenticationVerdict, AuthorDomain, DmarcPolicy};
use crate::verdict::DkimResultCode;

impl AuthenticationVerdict {
    /// The field, CRLF included.
    #[must_use]
    pub fn header_field(&self) -> String {
        let way = &self.source;
        let mut text = format!("Authentication-Results: {}", way.hostname);
        // Writing to a String does not fail.
        let _ = write!(text, ";\r\n\tiprev={}", self.iprev.word());
        push_property(&mut text, "policy.iprev", &way.peer.to_canonical().to_string());
        let _ = write!(text, ";\r\n\tspf={}", self.auth.spf.word());
        if let Some(why) = &self.spf_explanation {
            let _ = write!(text, " ({})", sanitize_comment(why));
        }
        match &way.reverse_path {
            Some(path) => push_property(&mut text, "smtp.mailfrom", &path.to_string()),
            None => push_property(&mut text, "smtp.helo", &way.helo),
        }
        if way.reverse_path.is_some() && self.helo != AuthResult::None {
            let _ = write!(text, ";\r\n\tspf={}", self.helo.word());
            push_property(&mut text, "smtp.helo", &way.helo);
        }
        if self.dkim.is_empty() {
            text.push_str(";\r\n\tdkim=none");
        }
        for one in &self.dkim {
            let _ = write!(text, ";\r\n\tdkim={}", one.result.as_str());
            if one.result != DkimResultCode::Pass && !one.reason.is_empty() {
                let _ = write!(text, " ({})", sanitize_comment(&one.reason));
            }
            push_property(&mut text, "header.d", &one.domain);
            push_property(&mut text, "header.s", &one.selector);
            push_property(&mut text, "header.a", one.algorithm);
        }
        if self.auth.arc != AuthResult::None {
            let _ = write!(text, ";\r\n\tarc={}", self.auth.arc.word());
        }
        let _ = write!(text, ";\r\n\tdmarc={}", self.auth.dmarc.word());
        match (&self.author, self.auth.dmarc) {
            (AuthorDomain::Invalid, _) => text.push_str(" (no single author)"),
            (AuthorDomain::Single(_), AuthResult::None) | (AuthorDomain::Unchecked, _) => {}
            (AuthorDomain::Single(_), _) => {
                let policy = match self.policy {
                    DmarcPolicy::None => "none",
                    DmarcPolicy::Quarantine => "quarantine",
                    DmarcPolicy::Reject => "reject",
                };
                let _ = write!(text, " (p={policy})");
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
