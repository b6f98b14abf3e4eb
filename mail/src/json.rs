//! Names that no JSON of others may use: those by which serde_json marks what it carries.
//!
//! serde_json takes an object whose first field is called `$serde_json::private::RawValue` for JSON in a text, and
//! parses that: an object that is none, and with it any depth, for each text begins to count anew. A program ends when
//! its stack does. So whatever comes from outside, and is read into values, is asked about first.

use memchr::memmem;

/// The names, as they are when nothing in them is escaped.
const RESERVED: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];
/// A name of so many bytes may be the longest of them, each letter escaped (`\u0024`).
const NAME_BYTES_MAX: usize = 6 * 30 + 2;

/// Whether a field of this JSON, or of what may become JSON, has such a name.
#[must_use]
pub fn has_reserved_name(json: &[u8]) -> bool {
    // Nearly nothing comes further: the names hold this, or are written with escapes of ASCII.
    let may = memmem::find(json, b"$serde_json::private").is_some() || memmem::find(json, b"\\u00").is_some();
    may && names(json).any(is_reserved)
}

fn is_reserved(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX
        && serde_json::from_slice::<String>(name).is_ok_and(|name| RESERVED.contains(&name.as_str()))
}

/// The texts that a colon follows, with their quotes.
fn names(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = json;
    std::iter::from_fn(move || {
        loop {
            let begin = memchr::memchr(b'"', rest)?;
            let from = rest.get(begin..)?;
            let length = text_length(from)?;
            let (text, behind) = from.split_at_checked(length)?;
            rest = behind;
            if behind.trim_ascii_start().first() == Some(&b':') {
                return Some(text);
            }
        }
    })
}

/// How long the text is that begins here, quotes included.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let place = at + memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json.get(place) == Some(&b'"') {
            return Some(place + 1);
        }
        at = place + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_for_others() {
        for bad in [
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            r#"{"a":[{"$serde_json::private::Number" : "1"}]}"#,
            r#"{"\u0024serde_json::private::RawValue":"1"}"#,
            r#"{"$\u0073erde_json::private::\u0052awValue":"1"}"#,
        ] {
            assert!(has_reserved_name(bad.as_bytes()), "{bad}");
        }
        let all_escaped: String = RESERVED[0].bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        assert!(has_reserved_name(format!("{{\"{all_escaped}\":\"1\"}}").as_bytes()));
        for good in [
            r#"{"a":"$serde_json::private::RawValue"}"#,
            r#"{"a":"{\"$serde_json::private::RawValue\":1}"}"#,
            r#"{"a":"\u0000","\u0000b":1}"#,
            r#"["$serde_json::private::RawValue","\u0024"]"#,
            "\"",
            "\"\\",
            "$serde_json::private::RawValue",
            "",
        ] {
            assert!(!has_reserved_name(good.as_bytes()), "{good}");
        }
    }
}
