//! Detection of serde_json's reserved field names in untrusted JSON.
//!
//! serde_json parses the text value of an object whose first field is `$serde_json::private::RawValue` as JSON of its
//! own. The recursion limit starts again for each such text, so nested texts can overflow the stack and end the
//! process. Untrusted JSON is therefore checked with [`has_reserved_name`] before it is parsed into values.

use memchr::memmem;

/// The reserved names, unescaped.
const RESERVED: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];
/// Longest encoded form of a reserved name: every character escaped (`\u0024`), with quotes.
const NAME_BYTES_MAX: usize = 6 * 30 + 2;

/// Returns whether any field of this JSON has a reserved name. The input may also be invalid JSON.
pub fn has_reserved_name(json: &[u8]) -> bool {
    // Fast path: a reserved name contains this prefix, or escapes of ASCII characters.
    let may = memmem::find(json, b"$serde_json::private").is_some() || memmem::find(json, b"\\u00").is_some();
    may && names(json).any(is_reserved)
}

fn is_reserved(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX
        && serde_json::from_slice::<String>(name).is_ok_and(|name| RESERVED.contains(&name.as_str()))
}

/// Strings followed by a colon, with their quotes.
fn names(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = json;
    std::iter::from_fn(move || {
        loop {
            let begin = memchr::memchr(b'"', rest)?;
            let from = rest.get(begin..)?;
            let length = text_length(from)?;
            let (text, tail) = from.split_at_checked(length)?;
            rest = tail;
            if tail.trim_ascii_start().first() == Some(&b':') {
                return Some(text);
            }
        }
    })
}

/// Length of the string at the start of `json`, quotes included.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json.get(end) == Some(&b'"') {
            return Some(end + 1);
        }
        at = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_member_names_are_found() {
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
