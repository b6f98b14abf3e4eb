//! The author's domain of a message: that of the only address in the only From field.
//!
//! The parser is strict. Input that readers may interpret differently has no author domain: two addresses without a
//! comma, a comment in the middle of a domain, a domain with a trailing dot. The author that a reader sees must be the
//! one that was authenticated (RFC 7489 6.6.1).

use super::header::{fields, is_named};
use crate::address::DomainName;

/// Returns the author's domain; `None` unless there is exactly one unambiguous author.
pub fn author_domain(message: &[u8]) -> Option<DomainName> {
    let mut named = fields(message).filter(|field| is_named(field, "From"));
    let (field, None) = (named.next()?, named.next()) else { return None };
    let value = field.get(memchr::memchr(b':', field)? + 1..)?;
    let plain = strip_quotes_and_comments(&String::from_utf8_lossy(value));
    let address = match (plain.matches('<').count(), plain.matches('>').count()) {
        (0, 0) => plain.as_str(),
        (1, 1) => plain.split_once('<')?.1.split_once('>')?.0,
        _ => return None,
    };
    if plain.matches('@').count() != 1 || plain.contains([':', ';']) {
        return None;
    }
    let (local, domain) = address.split_once('@')?;
    let broken = |part: &str| part.trim().contains(char::is_whitespace);
    if broken(local) || broken(domain) || domain.trim().ends_with('.') {
        return None;
    }
    domain.trim().parse().ok()
}

/// Removes quoted strings, and replaces comments by a blank so that the text around them stays separate.
fn strip_quotes_and_comments(value: &str) -> String {
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    for c in value.chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' if quoted || depth > 0 => escaped = true,
            '"' if depth == 0 => quoted = !quoted,
            '(' if !quoted => {
                depth += 1;
                out.push(' ');
            }
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ if quoted || depth > 0 => {}
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_author_is_returned() {
        let author = |value: &str| {
            author_domain(format!("Subject: x\r\nFrom:{value}\r\n\r\n").as_bytes()).map(|name| name.to_string())
        };
        for value in [
            " a@rej.org",
            " <a@rej.org>",
            "\tAda <a@REJ.org>",
            " \"Ada, at@home: <x>\" <a@rej.org> (work)",
            " \"a b\"@rej.org",
            " Ada\r\n <a@rej.org>",
            "a@rej.org (Ada (of a@other.org))",
        ] {
            assert_eq!(author(value).as_deref(), Some("rej.org"), "{value}");
        }
        for value in [
            "",
            " Ada",
            " <a@rej.org> <b@ok.org>",
            " <a@rej.org><b@ok.org>",
            " a@rej.org\r\n\tb@ok.org",
            " a@rej.org, b@ok.org",
            " b@ok.org <a@rej.org>",
            " a@rej.org.",
            " x <a@rej.org.>",
            " a@rej(c).org",
            " a@rej .org",
            " Team: a@rej.org;",
            " <a@rej.org",
            " a@[127.0.0.1]",
            " x\r\nFrom: a@rej.org",
        ] {
            assert_eq!(author(value), None, "{value}");
        }
    }
}
