//! What tests look for in a message: its links, and one-time codes.

use mail::received::ParsedReceivedEmail;
use mail::tracking;

/// Words that a one-time code stands near.
const CODE_WORDS: &[&str] =
    &["code", "passcode", "password", "otp", "pin", "verification", "verify", "confirm", "token", "login", "sign in"];
/// Characters between such a word and the code.
const NEARBY_CHARS: usize = 80;
/// Links and codes of one message.
const FOUND_MAX: usize = 500;

/// The http and https URLs of a message, in order, each once: those of the links in its HTML, then those in its text.
pub(super) fn links(message: &ParsedReceivedEmail) -> Vec<String> {
    let mut links = message.html.as_deref().map(tracking::link_urls).unwrap_or_default();
    for word in message.text.as_deref().unwrap_or_default().split(|c: char| c.is_whitespace() || "<>\"'".contains(c)) {
        let Some(start) = word.find("https://").or_else(|| word.find("http://")) else { continue };
        let url = word.get(start..).unwrap_or_default();
        links.push(url.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']).to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    links.retain(|link| seen.insert(link.clone()));
    links.truncate(FOUND_MAX);
    links
}

/// One-time codes of a message, the most likely first: groups of 4 to 8 digits (also as `123-456` or `123 456`), and of
/// 6 to 10 capital letters and digits, that stand alone. A group near a word such as "code" goes before others.
pub(super) fn one_time_codes(subject: &str, text: &str) -> Vec<String> {
    let content = format!("{subject}\n{text}");
    let lower = content.to_lowercase();
    let words: Vec<usize> = CODE_WORDS.iter().flat_map(|word| lower.match_indices(word).map(|(at, _)| at)).collect();
    let mut candidates: Vec<(usize, usize, String)> = Vec::new();
    for (at, token) in tokens(&content) {
        let Some(code) = code_of(token) else { continue };
        // Lower case may have another length; the distance only ranks.
        let distance = words.iter().map(|word| word.abs_diff(at)).min().unwrap_or(usize::MAX);
        let is_near = distance <= NEARBY_CHARS;
        if is_near || code.bytes().all(|byte| byte.is_ascii_digit()) && !is_year(&code) {
            candidates.push((if is_near { distance } else { usize::MAX }, at, code));
        }
    }
    candidates.sort();
    let mut codes: Vec<String> = Vec::new();
    for (_, _, code) in candidates {
        if !codes.contains(&code) && codes.len() < FOUND_MAX {
            codes.push(code);
        }
    }
    codes
}

/// Words of a text, with their offsets. `123 456` is one word.
fn tokens(content: &str) -> Vec<(usize, &str)> {
    let is_edge = |c: char| c.is_whitespace() || "<>()[]{}\"'`*_,;:!?|=".contains(c);
    let mut tokens: Vec<(usize, &str)> = Vec::new();
    for token in content.split(is_edge) {
        let token = token.trim_matches('.');
        if token.is_empty() {
            continue;
        }
        let at = token.as_ptr() as usize - content.as_ptr() as usize;
        let is_group = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some((before_at, before)) = tokens.last_mut()
            && is_group(before)
            && is_group(token)
            && content.get(*before_at + before.len()..at) == Some(" ")
        {
            *before = content.get(*before_at..at + token.len()).unwrap_or(before);
            continue;
        }
        tokens.push((at, token));
    }
    tokens
}

/// The code that a word is, without its separator.
fn code_of(token: &str) -> Option<String> {
    let code: String = token.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let parts: Vec<&str> = token.split(['-', ' ']).collect();
    let has_even_parts = parts.iter().all(|part| part.len() == parts.first().map_or(0, |first| first.len()));
    if parts.len() > 2 || !has_even_parts {
        return None;
    }
    let digits = code.bytes().filter(u8::is_ascii_digit).count();
    let capitals = code.bytes().filter(u8::is_ascii_uppercase).count();
    let is_number = digits == code.len() && (4..=8).contains(&code.len());
    let is_mixed = digits > 0 && digits + capitals == code.len() && (6..=10).contains(&code.len());
    (is_number || is_mixed).then_some(code)
}

fn is_year(code: &str) -> bool {
    code.len() == 4 && (code.starts_with("19") || code.starts_with("20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_near_a_word_go_first() {
        for (text, codes) in [
            ("Your code is 123456.", &["123456"][..]),
            ("Order 7788 of 2026: your verification code: 123-456", &["123456", "7788"]),
            ("123 456 is your sign in code", &["123456"]),
            ("Use passcode A1B2-C3D4 to log in. Call 5551234567.", &["A1B2C3D4"]),
            ("(c) 2026 Example, 10115 Berlin. PIN: *0042*", &["0042", "10115"]),
            ("In 2026 we grew by 12.5 %", &[]),
            ("", &[]),
        ] {
            assert_eq!(one_time_codes("", text), codes, "{text}");
        }
        assert_eq!(one_time_codes("4711 is your code", "Hello"), ["4711"]);
    }

    #[test]
    fn links_come_from_html_and_text_once() {
        let message = ParsedReceivedEmail {
            html: Some("<a href=\"https://a.example/?x=1&amp;y=2\">a</a><!-- <a href=\"http://no/\"> -->".to_owned()),
            text: Some("See https://a.example/?x=1&y=2 or <http://b.example/c>.".to_owned()),
            ..ParsedReceivedEmail::default()
        };
        assert_eq!(links(&message), ["https://a.example/?x=1&y=2", "http://b.example/c"]);
    }
}
