//! SMTP reply codes embedded in free text.

use crate::reply::{Enhanced, SmtpReply, truncate_diagnostic};

/// A code found in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EmbeddedCode {
    /// The three-digit reply code.
    pub code: Option<u16>,
    /// The enhanced status code (RFC 3463).
    pub enhanced: Option<Enhanced>,
    /// Text behind the code.
    pub text: String,
}

impl EmbeddedCode {
    /// Converts to a reply. A missing reply code is derived from the enhanced code, or from `hard` if there is none.
    pub(super) fn into_reply(self, hard: bool) -> SmtpReply {
        let class = self.enhanced.map_or(if hard { 5 } else { 4 }, |enhanced| enhanced.class);
        let code = self.code.unwrap_or(if class == 4 { 450 } else { 550 });
        let text = if self.text.is_empty() { "no reason was given".to_owned() } else { self.text };
        SmtpReply { code, enhanced: self.enhanced, lines: vec![text.into()] }
    }
}

/// Joins the text into one line, replaces control characters, and truncates it to the stored length.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(400).collect();
    let clean: String = words.join(" ").chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    truncate_diagnostic(&clean)
}

/// Trims punctuation around codes: brackets, quotes, the `#` of Exchange.
fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(['(', ')', '<', '>', '[', ']', '#', ',', ';', ':', '"', '\''])
}

fn parse_code(word: &str) -> Option<u16> {
    let digits = word.len() == 3 && word.bytes().all(|b| b.is_ascii_digit());
    word.parse().ok().filter(|code| digits && (400..600).contains(code))
}

fn parse_enhanced(word: &str) -> Option<Enhanced> {
    let word = word.trim_end_matches('.');
    let (code, rest) = Enhanced::split_prefix(word)?;
    (rest.is_empty() && code.class != 2).then_some(code)
}

/// The text behind `smtp;`.
fn strip_smtp_prefix(word: &str) -> Option<&str> {
    word.split_once(';').filter(|(kind, _)| kind.eq_ignore_ascii_case("smtp")).map(|(_, code)| code)
}

/// Parses `550`, `550-5.1.1` or `#550`.
fn codes_in_word(word: &str) -> (Option<u16>, Option<Enhanced>) {
    let word = trim_punctuation(word);
    // `smtp;550` is a report field without the blank.
    let word = strip_smtp_prefix(word).unwrap_or(word);
    if let Some(code) = parse_code(word) {
        return (Some(code), None);
    }
    if let Some(enhanced) = parse_enhanced(word) {
        return (None, Some(enhanced));
    }
    let Some((code, rest)) = word.split_once(['-', '_', '#']) else { return (None, None) };
    match parse_code(code) {
        Some(code) => (Some(code), parse_enhanced(rest)),
        None => (None, None),
    }
}

/// Finds the first code in a line: three digits at the beginning, after a colon or an announcing word, or with an
/// enhanced code; or an enhanced code alone.
pub(super) fn find_code(line: &str) -> Option<EmbeddedCode> {
    /// Words that announce a code.
    const ANNOUNCE: [&str; 9] =
        ["said", "error", "error_code", "code", "status", "reply", "response", "returned", "smtp"];
    /// Markers of remote replies in a transcript.
    const HEARD: [&str; 2] = ["<--", "<<<"];
    let mut before: Option<&str> = None;
    let mut words = line.split_whitespace().take(200).peekable();
    while let Some(word) = words.next() {
        let (code, mut enhanced) = codes_in_word(word);
        let is_announced = before.is_none_or(|before| {
            let plain = trim_punctuation(before).to_ascii_lowercase();
            let ends =
                before.ends_with(':') || before.ends_with(';') || strip_smtp_prefix(trim_punctuation(word)).is_some();
            ends || HEARD.contains(&before) || ANNOUNCE.contains(&plain.as_str())
        });
        before = Some(word);
        if code.is_none() && enhanced.is_none() {
            continue;
        }
        let next = words.peek().and_then(|next| parse_enhanced(trim_punctuation(next)));
        if code.is_some() && enhanced.is_none() && next.is_some() {
            enhanced = next;
            words.next();
        }
        if enhanced.is_some() || is_announced || word.starts_with('#') {
            let text: Vec<&str> = words.collect();
            return Some(EmbeddedCode { code, enhanced, text: one_line(&text.join(" ")) });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smtp_codes_are_found_in_text() {
        for (line, code, enhanced, text) in [
            ("550 5.1.1 <a@b.example>: unknown", Some(550), Some((5, 1, 1)), "<a@b.example>: unknown"),
            ("550-5.1.1 The account", Some(550), Some((5, 1, 1)), "The account"),
            ("host mx.example [192.0.2.1] said: 452 too much", Some(452), None, "too much"),
            ("Remote Server returned '550 5.1.10 RESOLVER'", Some(550), Some((5, 1, 10)), "RESOLVER'"),
            ("<mx.example #5.2.2 smtp; 552 full>", None, Some((5, 2, 2)), "smtp; 552 full>"),
            ("#< #5.1.1> #SMTP#", None, Some((5, 1, 1)), "#SMTP#"),
            ("Diagnostic code: smtp;552 5.2.2 full", Some(552), Some((5, 2, 2)), "full"),
            ("08:00:00: <-- 550 unknown", Some(550), None, "unknown"),
            ("Sorry, no mailbox here by that name. (#5.1.1)", None, Some((5, 1, 1)), ""),
        ] {
            let found = find_code(line).unwrap_or_else(|| panic!("{line}"));
            let expected = enhanced.map(|(c, s, d)| Enhanced::new(c, s, d));
            assert_eq!((found.code, found.enhanced, found.text.as_str()), (code, expected, text), "{line}");
        }
        for none in ["on 2026-11-22 at 450 Main Street", "[192.0.2.550]", "2.0.0 fine", "a 500 MB file", ""] {
            assert_eq!(find_code(none), None, "{none}");
        }
    }
}
