//! Untrusted text in log lines: bounded in length, without control characters, and without the local parts of email
//! addresses unless `[log] addresses` allows them.
//!
//! SMTP replies, user names and header fields are untrusted. A line break in one of them must not start a new log line.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum length of a text in a log field, in bytes.
pub const BYTES_MAX: usize = 1_000;
/// Bytes read past [`BYTES_MAX`], to mask an address at the cut as a whole (RFC 5321 4.5.3.1.3: a path has 256 octets).
const LOOK_AHEAD_BYTES: usize = 256;
/// Replaces the local part of an address.
const MASK: &str = "***";

/// Replaces the `@` of an example while the addresses around it are masked: a private-use character.
const EXAMPLE_AT: &str = "\u{e000}";

static SHOWS_ADDRESSES: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True while this thread logs a text whose addresses were masked before ([`with_addresses`]).
    static SHOWS_ADDRESSES_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether log lines above DEBUG show email addresses: `[log] addresses`.
pub fn show_addresses(is_shown: bool) {
    SHOWS_ADDRESSES.store(is_shown, Ordering::Relaxed);
}

/// Returns whether log lines above DEBUG show email addresses.
pub fn shows_addresses() -> bool {
    SHOWS_ADDRESSES.load(Ordering::Relaxed) || SHOWS_ADDRESSES_HERE.get()
}

/// Logs a text of [`masked_except`], whose addresses are not masked again.
pub fn with_addresses(log: impl FnOnce()) {
    SHOWS_ADDRESSES_HERE.set(true);
    log();
    SHOWS_ADDRESSES_HERE.set(false);
}

/// Cleans a text as a log line does, but does not mask the examples, which are the server's own words.
pub fn masked_except(text: &str, examples: &[&str]) -> String {
    let text = examples.iter().fold(text.to_owned(), |text, example| hide_at(&text, example));
    cleaned(&text, !shows_addresses()).replace(EXAMPLE_AT, "@")
}

/// Replaces the at sign of an example by [`EXAMPLE_AT`] wherever the example is not a part of a longer address.
fn hide_at(text: &str, example: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || ".-_+%".contains(c);
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(example) {
        out.push_str(before);
        let is_whole = !out.ends_with(is_part) && !after.starts_with(is_part);
        out.push_str(&if is_whole { example.replace('@', EXAMPLE_AT) } else { example.to_owned() });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Truncates a text to [`BYTES_MAX`], escapes unprintable characters, and masks the local part of each address if
/// `masks_addresses` is set. Allocates only if something changes.
pub fn cleaned(text: &str, masks_addresses: bool) -> Cow<'_, str> {
    let is_short = text.len() <= BYTES_MAX;
    let is_plain = !text.chars().any(is_unprintable);
    if is_short && is_plain && !(masks_addresses && text.contains('@')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(BYTES_MAX) + MASK.len());
    for character in text.chars() {
        if out.len() > BYTES_MAX + LOOK_AHEAD_BYTES {
            break;
        }
        match character {
            '@' if masks_addresses => mask_local_part(&mut out),
            character if is_unprintable(character) => out.extend(character.escape_default()),
            character => out.push(character),
        }
        if character == '@' && masks_addresses {
            out.push('@');
        }
    }
    if !is_short || out.len() > BYTES_MAX {
        let end = out.floor_char_boundary(BYTES_MAX);
        out.truncate(end);
        out.push('…');
    }
    Cow::Owned(out)
}

/// Masks the local part at the end of `out` (RFC 5322 3.4.1: a dot-atom or a quoted string). Remote text may also hold
/// malformed addresses, with comments or escaped characters: then the local part starts after the last blank, `<`, `,`
/// or `:`.
fn mask_local_part(out: &mut String) {
    let start = match out.strip_suffix('"') {
        Some(quoted) => quoted.rfind('"').or_else(|| Some(begin_of_word(quoted))),
        None => {
            let start = begin_of_word(out);
            Some(start).filter(|start| *start < out.len())
        }
    };
    if let Some(start) = start {
        out.truncate(start);
        out.push_str(MASK);
    }
}

fn begin_of_word(text: &str) -> usize {
    text.rfind(is_before_address).map_or(0, |at| text.ceil_char_boundary(at + 1))
}

fn is_before_address(character: char) -> bool {
    character.is_whitespace() || matches!(character, '<' | ',' | ':')
}

/// Control characters, and characters that break lines or reorder text on a terminal.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_becomes_one_bounded_line() {
        let forged = cleaned("no\r\n2026-01-01 INFO postrider: all is well\u{1b}[2J\u{2028}", true);
        assert_eq!(forged, "no\\r\\n2026-01-01 INFO postrider: all is well\\u{1b}[2J\\u{2028}");
        let long = "x".repeat(100_000);
        assert_eq!(cleaned(&long, true).chars().count(), BYTES_MAX + 1);
        let wide = "ä".repeat(100_000);
        assert!(cleaned(&wide, false).len() <= BYTES_MAX + '…'.len_utf8());
        assert!(cleaned(&"\u{1}".repeat(10_000), false).len() <= BYTES_MAX + '…'.len_utf8());
    }

    #[test]
    fn local_parts_are_masked() {
        for (text, masked) in [
            ("<bob@example.net>: user unknown", "<***@example.net>: user unknown"),
            ("a.b+c=d@x.example and e@y.example", "***@x.example and ***@y.example"),
            ("\"John Doe\"@example.net", "***@example.net"),
            ("zoë@example.net", "***@example.net"),
            ("user(x)@secret.test", "***@secret.test"),
            ("to:<user(x)@secret.test>,b;c@x.test", "to:<***@secret.test>,***@x.test"),
            ("to half\"@x.test", "to ***@x.test"),
            ("at 5 @ noon", "at 5 @ noon"),
            ("no address", "no address"),
        ] {
            assert_eq!(cleaned(text, true), masked);
            assert_eq!(cleaned(text, false), text);
        }
        for split in ["bo\u{200b}b@x.test", "bo\u{1}b@x.test", "bo\r\nb@x.test"] {
            assert_eq!(cleaned(split, true), "***@x.test");
        }
        // An address at the cut.
        let text = format!("{} bob.smith@example.net", "x".repeat(BYTES_MAX - 5));
        assert!(!cleaned(&text, true).contains("bob"));
    }

    #[test]
    fn examples_are_not_masked() {
        let text = "`bob@x@y`: an address has the form local@domain (example: \"ann@example.net\", not eve@z.test)";
        assert_eq!(
            masked_except(text, &["local@domain", "ann@example.net"]),
            "***@y`: an address has the form local@domain (example: \"ann@example.net\", not ***@z.test)"
        );
        assert_eq!(masked_except("`bob-ann@example.net`", &["ann@example.net"]), "***@example.net`");
    }

    #[test]
    fn a_plain_text_is_not_copied() {
        assert!(matches!(cleaned("2.0.0 Ok: queued as 4F2A", true), Cow::Borrowed(_)));
    }
}
