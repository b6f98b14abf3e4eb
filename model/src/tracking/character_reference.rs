//! Character references in attribute values: `&amp;`, `&#38;`, `&#x26;`.
//!
//! HTML has 2,231 names, of which URLs need a few. An unknown reference makes the whole value unknown: its link is not
//! tracked, which is always safe.
//!
//! Standard: WHATWG HTML 13.2.5.72 to 13.2.5.80 (character references), in attributes.

use std::borrow::Cow;

/// Names with a semicolon that mean one ASCII character.
const NAMES: &[(&str, char)] = &[
    ("AMP", '&'),
    ("GT", '>'),
    ("LT", '<'),
    ("NewLine", '\n'),
    ("QUOT", '"'),
    ("Tab", '\t'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("gt", '>'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lt", '<'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rpar", ')'),
    ("semi", ';'),
    ("sol", '/'),
];

/// Legacy names that need no semicolon. In an attribute they count only if neither `=` nor a letter or digit follows,
/// so `?a=1&copy=2` stays unchanged.
const WITHOUT_SEMICOLON: &str = " AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc \
    Egrave Euml GT Iacute Icirc Igrave Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN \
    Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring atilde auml brvbar ccedil cedil \
    cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc iexcl igrave \
    iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml \
    para plusmn pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml \
    yacute yen yuml ";

/// Meaning of a reference.
enum CharacterReference {
    /// A character that replaces this many bytes after the `&`.
    Is(char, usize),
    /// The `&` is literal.
    Literal,
    /// A reference that is not supported here.
    Unknown,
}

/// Decodes an attribute value; `None` if it has an unsupported reference.
pub(super) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr::memchr(b'&', value.as_bytes()) else { return Some(Cow::Borrowed(value)) };
    let mut text = String::with_capacity(value.len());
    let (before, mut rest) = value.split_at_checked(first)?;
    text.push_str(before);
    while let Some(after) = rest.strip_prefix('&') {
        let taken = match parse_reference(after) {
            CharacterReference::Unknown => return None,
            CharacterReference::Literal => {
                text.push('&');
                0
            }
            CharacterReference::Is(character, bytes) => {
                text.push(character);
                bytes
            }
        };
        let after = after.get(taken..)?;
        let next = memchr::memchr(b'&', after.as_bytes()).unwrap_or(after.len());
        let (plain, left) = after.split_at_checked(next)?;
        text.push_str(plain);
        rest = left;
    }
    Some(Cow::Owned(text))
}

/// Encodes a text as an attribute value that is safe with any quotes or none.
pub(super) fn encode(text: &str) -> String {
    let mut value = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => value.push_str("&amp;"),
            '"' => value.push_str("&quot;"),
            '<' => value.push_str("&lt;"),
            '>' => value.push_str("&gt;"),
            '\'' => value.push_str("&#39;"),
            ' ' => value.push_str("&#32;"),
            other => value.push(other),
        }
    }
    value
}

fn parse_reference(after: &str) -> CharacterReference {
    if let Some(number) = after.strip_prefix('#') {
        return match number.strip_prefix(['x', 'X']) {
            Some(digits) => parse_numeric(digits, 16, 2),
            None => parse_numeric(number, 10, 1),
        };
    }
    let length = after.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let (name, rest) = after.split_at_checked(length).unwrap_or_default();
    let known = || NAMES.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
    if rest.starts_with(';') {
        return match known() {
            Some(character) => CharacterReference::Is(character, length + 1),
            None if name.is_empty() => CharacterReference::Literal,
            None => CharacterReference::Unknown,
        };
    }
    let stands_alone = !rest.starts_with('=') && WITHOUT_SEMICOLON.contains(&format!(" {name} "));
    match known() {
        _ if name.is_empty() || !stands_alone => CharacterReference::Literal,
        Some(character) => CharacterReference::Is(character, length),
        None => CharacterReference::Unknown,
    }
}

/// Parses the digits behind `#` or `#x`, whose length is `lead`.
fn parse_numeric(digits: &str, radix: u32, lead: usize) -> CharacterReference {
    let length = digits.chars().take_while(|c| c.is_digit(radix)).count();
    let (number, rest) = digits.split_at_checked(length).unwrap_or_default();
    if number.is_empty() {
        return CharacterReference::Literal;
    }
    let character = u32::from_str_radix(number, radix).ok().and_then(char::from_u32);
    // Browsers remap some control characters, and URLs contain none except white space.
    match character.filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')) {
        Some(character) => CharacterReference::Is(character, lead + length + usize::from(rest.starts_with(';'))),
        None => CharacterReference::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn references_are_decoded_as_by_browsers() {
        for (value, text) in [
            ("https://a/?b=1&amp;c=2", "https://a/?b=1&c=2"),
            ("https://a/?b=1&c=2", "https://a/?b=1&c=2"),
            ("https://a/?b=1&copy=2", "https://a/?b=1&copy=2"),
            ("https://a/?b=1&copyright", "https://a/?b=1&copyright"),
            ("https://a/?b=1&ampc=2", "https://a/?b=1&ampc=2"),
            ("https://a/?b=1&amp", "https://a/?b=1&"),
            ("https://a/?b=1&amp&c", "https://a/?b=1&&c"),
            ("https://a/?b=1&#38;c&#x26;d&#X26e&#038f", "https://a/?b=1&c&d\u{26e}&f"),
            ("https&colon;&sol;&sol;a", "https://a"),
            ("&amp;amp;", "&amp;"),
            ("a&;b&#;c&#x;d&", "a&;b&#;c&#x;d&"),
            ("&é", "&é"),
        ] {
            assert_eq!(decode(value).as_deref(), Some(text), "{value}");
        }
        for value in
            ["&copy;", "&lang;x", "&copy", "a&copy/b", "&#0;", "&#xD800;", "&#x110000;", "&#99999999999;", "&#128;"]
        {
            assert_eq!(decode(value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn encoded_text_round_trips(text in "\\PC{0,40}", forms in proptest::collection::vec(0u8..5, 40)) {
            let mut value = String::new();
            for (c, form) in text.chars().zip(forms) {
                match (c, form) {
                    ('&', 0 | 1) => value.push_str("&amp;"),
                    (c, 2) => value.push_str(&format!("&#{};", u32::from(c))),
                    (c, 3) => value.push_str(&format!("&#x{:x};", u32::from(c))),
                    ('&', _) => value.push_str("&#38;"),
                    (c, _) => value.push(c),
                }
            }
            let decoded = decode(&value);
            prop_assert_eq!(decoded.as_deref(), Some(text.as_str()));
        }

        #[test]
        fn any_text_is_decoded_without_a_panic(value in "(&|#|x|;|=|[a-f0-9]|amp|copy|é){0,30}") {
            let _ = decode(&value);
        }
    }
}
