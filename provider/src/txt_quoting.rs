//! Quoted TXT values, as in zone files and some providers' APIs: split into strings, with escapes (RFC 1035 5.1).

/// Maximum length of one string of a text (RFC 1035 3.3).
const STRING_BYTES_MAX: usize = 255;

/// Quotes a text, split into strings.
pub(super) fn quote(text: &str) -> String {
    let mut written = String::from("\"");
    let mut string_bytes = 0;
    for character in text.chars() {
        if string_bytes + character.len_utf8() > STRING_BYTES_MAX {
            written.push_str("\" \"");
            string_bytes = 0;
        }
        if matches!(character, '"' | '\\') {
            written.push('\\');
        }
        written.push(character);
        string_bytes += character.len_utf8();
    }
    written.push('"');
    written
}

/// Returns the text of a value, its strings joined, whether it is quoted or not.
pub(super) fn unquote(written: &str) -> String {
    if !written.starts_with('"') {
        return written.to_owned();
    }
    let (mut text, mut inside, mut escaped) = (String::new(), false, false);
    for character in written.chars() {
        match character {
            _ if escaped => {
                text.push(character);
                escaped = false;
            }
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ if inside => text.push(character),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_round_trip() {
        for text in ["v=spf1 -all", "a \"quoted\" \\ word", "", &"x".repeat(700), &"é".repeat(200)] {
            assert_eq!(unquote(&quote(text)), text);
        }
        assert_eq!(quote(&"x".repeat(300)).matches("\" \"").count(), 1);
        assert_eq!(unquote("v=spf1 -all"), "v=spf1 -all");
        assert_eq!(unquote("\"v=spf1 \" \"-all\""), "v=spf1 -all");
    }
}
