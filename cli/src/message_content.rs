//! Links and one-time codes of a message, for tests of applications.

/// Words that a one-time code stands near.
const CODE_WORDS: &[&str] =
    &["code", "passcode", "password", "otp", "pin", "verification", "verify", "confirm", "token", "login", "sign in"];
/// Characters between such a word and the code.
const NEARBY_CHARS: usize = 80;
/// Links and codes of one message.
const FOUND_MAX: usize = 500;

/// The http and https URLs of a message, each once: those of its HTML's links, then those in its text.
pub fn links(links: Vec<String>, text: &str) -> Vec<String> {
    let mut links = links;
    for word in text.split(|c: char| c.is_whitespace() || "<>\"'".contains(c)) {
        let Some(start) = word.find("https://").or_else(|| word.find("http://")) else { continue };
        let url = word.get(start..).unwrap_or_default();
        links.push(url.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']).to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    links.retain(|link| seen.insert(link.clone()));
    links.truncate(FOUND_MAX);
    links
}

/// The http and https URLs of `href` attributes in HTML, in order. Comments are skipped.
pub fn href_urls(html: &str) -> Vec<String> {
    let (mut urls, mut rest) = (Vec::new(), html);
    while let Some(at) = rest.find(['<']) {
        rest = rest.get(at..).unwrap_or_default();
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = rest.find('>') else { break };
        let (tag, after) = rest.split_at(end);
        rest = after;
        let lower = tag.to_ascii_lowercase();
        let Some(value) = lower.find("href=").and_then(|at| tag.get(at + "href=".len()..)) else { continue };
        let url = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value.get(1..).and_then(|value| value.split(quote).next()),
            _ => value.split_whitespace().next(),
        };
        let url = url.unwrap_or_default().trim().replace("&amp;", "&");
        if (url.starts_with("https://") || url.starts_with("http://")) && urls.len() < FOUND_MAX {
            urls.push(url);
        }
    }
    urls
}

/// One-time codes of a message, the most likely first: groups of 4 to 8 digits (also as `123-456` or `123 456`), and of
/// 6 to 10 capital letters and digits, that stand alone. A group near a word such as "code" goes before others.
pub fn one_time_codes(subject: &str, text: &str) -> Vec<String> {
    let content = format!("{subject}\n{text}");
    let lower = content.to_lowercase();
    let mut words: Vec<usize> =
        CODE_WORDS.iter().flat_map(|word| lower.match_indices(word).map(|(at, _)| at)).collect();
    words.sort_unstable();
    let mut candidates: Vec<(usize, usize, String)> = Vec::new();
    for (at, token) in tokens(&content) {
        let Some(code) = code_of(token) else { continue };
        // Lower case may have another length; the distance only ranks.
        let next = words.partition_point(|word| *word < at);
        let neighbours = [next.checked_sub(1), Some(next)].into_iter().flatten().filter_map(|index| words.get(index));
        let distance = neighbours.map(|word| word.abs_diff(at)).min().unwrap_or(usize::MAX);
        let is_near = distance <= NEARBY_CHARS;
        if is_near || code.bytes().all(|byte| byte.is_ascii_digit()) && !is_year(&code) {
            candidates.push((if is_near { distance } else { usize::MAX }, at, code));
        }
    }
    // A year is a code only if nothing else is one.
    if candidates.iter().any(|(_, _, code)| !is_year(code)) {
        candidates.retain(|(_, _, code)| !is_year(code));
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
    let is_mixed = digits > 0 && capitals > 0 && digits + capitals == code.len() && (6..=10).contains(&code.len());
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
        // Many words and codes take time in proportion to their number.
        assert_eq!(one_time_codes("", &"code 123456 ".repeat(300_000)), ["123456"]);
    }

    #[test]
    fn links_come_from_html_and_text_once() {
        let html = "<p><A class=x HREF=\"https://a.example/?x=1&amp;y=2\">a</a><!-- <a href=\"http://no/\"> --><a href=mailto:x>";
        let text = "See https://a.example/?x=1&y=2 or <http://b.example/c>.";
        assert_eq!(links(href_urls(html), text), ["https://a.example/?x=1&y=2", "http://b.example/c"]);
        assert!(href_urls("<a href=").is_empty() && href_urls("<!-- <a").is_empty());
    }
}
