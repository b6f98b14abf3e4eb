//! Checks that a signature is complete and covers what it must (RFC 6376 3.5, 6.1.1; RFC 8617 4.1).
//!
//! mail-auth parses the fields leniently. The checks here refuse what it accepts.

use mail_auth::common::crypto::Algorithm;

/// Maximum tags of a field.
const TAGS_MAX: usize = 64;
/// Required tags of a DKIM-Signature (RFC 6376 3.5).
pub(super) const DKIM_REQUIRED_TAGS: &[&str] = &["v", "a", "b", "bh", "d", "h", "s"];
/// Required tags of an ARC-Message-Signature (RFC 8617 4.1.2).
pub(super) const ARC_MESSAGE_REQUIRED_TAGS: &[&str] = &["i", "a", "b", "bh", "d", "h", "s"];
/// Required tags of an ARC-Seal (RFC 8617 4.1.3).
pub(super) const ARC_SEAL_REQUIRED_TAGS: &[&str] = &["i", "a", "b", "cv", "d", "s"];

/// The error in a field's tag list (RFC 6376 3.2): a tag that is malformed, duplicate or missing.
pub(super) fn tag_list_fault(value: &[u8], needed: &[&str]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(value) else { return Some("it is not valid UTF-8") };
    let mut names: Vec<&str> = Vec::new();
    let text = text.trim_end();
    for part in text.strip_suffix(';').unwrap_or(text).split(';') {
        let Some((name, _)) = part.split_once('=') else { return Some("a tag is malformed") };
        let name = name.trim();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            return Some("a tag is malformed");
        }
        if names.contains(&name) {
            return Some("a tag occurs twice");
        }
        if names.len() == TAGS_MAX {
            return Some("there are too many tags");
        }
        names.push(name);
    }
    (!needed.iter().all(|name| names.contains(name))).then_some("a required tag is missing")
}

/// The reason why a signature is not accepted even if it verifies.
pub(super) fn signature_objection(algorithm: Algorithm, covered: &[String]) -> Option<&'static str> {
    if algorithm == Algorithm::RsaSha1 {
        return Some("rsa-sha1 is not accepted (RFC 8301)");
    }
    let covers_author = covered.iter().any(|field| field.trim().eq_ignore_ascii_case("from"));
    // Otherwise another From field could be prepended (RFC 6376 6.1.1).
    (!covers_author).then_some("it does not cover the From field")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_lists_are_parsed() {
        let whole = "v=1; a=rsa-sha256; d=a.example; s=s;\r\n\th=from; bh=A=; b=B=";
        assert_eq!(tag_list_fault(whole.as_bytes(), DKIM_REQUIRED_TAGS), None);
        assert_eq!(tag_list_fault(format!("{whole};\r\n").as_bytes(), DKIM_REQUIRED_TAGS), None);
        for (bad, why) in [
            (format!("{whole}; d=b.example"), "twice"),
            (format!("{whole};; x=1"), "malformed"),
            (format!("{whole}; 1=1"), "malformed"),
            (whole.replace("s=s", "S=s"), "missing"),
            (whole.replace("v=1;", ""), "missing"),
        ] {
            assert!(tag_list_fault(bad.as_bytes(), DKIM_REQUIRED_TAGS).unwrap().contains(why), "{bad}");
        }
    }

    #[test]
    fn signed_fields_are_checked() {
        let fields = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
        assert_eq!(signature_objection(Algorithm::RsaSha256, &fields(&["Subject", "From"])), None);
        assert!(signature_objection(Algorithm::RsaSha1, &fields(&["From"])).unwrap().contains("rsa-sha1"));
        assert!(signature_objection(Algorithm::Ed25519Sha256, &fields(&["Subject"])).unwrap().contains("From"));
    }
}
