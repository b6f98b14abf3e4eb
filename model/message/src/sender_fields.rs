//! Sender domains beside From: Sender (RFC 5322 3.6.2), Resent-From and Resent-Sender (3.6.6). Mail clients show them
//! ("on behalf of"), so an account may only use its own domains in them.
//!
//! The fields are searched for domains instead of parsed, so that malformed addresses cannot hide a domain.

use std::collections::BTreeSet;

use crate::address::DomainName;
use crate::header::{HeaderField, MessageError};

const NAMES: &[&str] = &["Sender", "Resent-From", "Resent-Sender"];
/// Maximum number of different domains. Each is looked up before the message is accepted.
pub const DOMAINS_MAX: usize = 16;

pub(crate) fn sender_domains(message: &[u8], fields: &[HeaderField]) -> Result<BTreeSet<DomainName>, MessageError> {
    let mut found = BTreeSet::new();
    for field in fields.iter().filter(|field| NAMES.iter().any(|name| field.has_name(message, name))) {
        let value = message.get(field.name_end..field.end).unwrap_or_default();
        collect_domains(&String::from_utf8_lossy(value), &mut found);
        if found.len() > DOMAINS_MAX {
            return Err(MessageError::SenderDomains);
        }
    }
    Ok(found)
}

/// Collects the domain behind each `@`. Blanks around dots are removed first (RFC 5322 4.4, `obs-domain`).
fn collect_domains(value: &str, into: &mut BTreeSet<DomainName>) {
    let joined: String = value.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    for after_at in joined.split('@').skip(1) {
        let end = after_at.find(|c: char| c.is_ascii() && !is_name_char(c)).unwrap_or(after_at.len());
        let name = after_at.get(..end).unwrap_or_default();
        if let Ok(name) = name.trim_matches('.').parse() {
            into.insert(name);
        }
        if into.len() > DOMAINS_MAX {
            return;
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(message: &str) -> Result<Vec<String>, MessageError> {
        let (fields, _) = crate::header::parse_fields(message.as_bytes());
        Ok(sender_domains(message.as_bytes(), &fields)?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn sender_domains_are_found_in_every_spelling() {
        for value in [
            "a@b.example",
            "\"A\" <a@B.Example>",
            "a@b\r\n . example",
            "<@relay.example:a@b.example>",
            "\"a@b.example\" <x>",
            "\"a b\"@b.example.",
            "(c) a@b.example (c)",
        ] {
            let names = found(&format!("From: x@y.example\r\nSENDER : {value}\r\n\r\n")).unwrap();
            assert!(names.contains(&"b.example".to_owned()), "{value}: {names:?}");
            assert!(!names.contains(&"y.example".to_owned()));
        }
        assert_eq!(found("Resent-Sender: a@b\u{fc}cher.example\r\n\r\n").unwrap(), ["xn--bcher-kva.example"]);
        assert!(found("Sender: root\r\nSubject: a@b.example\r\n\r\nSender: c@d.example").unwrap().is_empty());
    }

    #[test]
    fn too_many_domains_are_refused() {
        let list = |count: usize| {
            let addresses: Vec<String> = (0..count).map(|n| format!("a@b{n}.example")).collect();
            found(&format!("Resent-From: {}\r\n\r\n", addresses.join(", ")))
        };
        assert_eq!(list(DOMAINS_MAX).unwrap().len(), DOMAINS_MAX);
        assert_eq!(list(DOMAINS_MAX + 1), Err(MessageError::SenderDomains));
    }
}
