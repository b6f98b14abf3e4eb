//! JSON limits, checked before a parser runs: nesting depth, number of values, reserved names.
//!
//! Most bodies have fewer brackets than the allowed depth, so counting brackets is all that they cost.

use memchr::{memchr_iter, memchr2, memchr2_iter};

use crate::problem::{ErrorCode, Problem};

/// Deepest nesting of arrays and objects; no request needs as much.
pub const LEVELS_MAX: usize = 128;

/// Most values of a body, counted by their separators. A parsed value takes about 70 bytes of memory, however short
/// it is on the wire; the largest accepted lists have a tenth of this.
pub const VALUES_MAX: usize = 500_000;

/// Refuses JSON that is nested too deep, has too many values, or uses a reserved name ([`model::json`]). Other syntax
/// errors are left to the parser.
///
/// # Errors
/// 400 `invalid_json`, or 413 for too many values.
pub fn check_limits(json: &[u8]) -> Result<(), Problem> {
    // A body that begins otherwise is not nested JSON, for example CSV.
    let flat = !json.trim_ascii_start().starts_with(b"[") && !json.trim_ascii_start().starts_with(b"{");
    if !flat && model::json::has_reserved_name(json) {
        return Err(Problem::new(ErrorCode::INVALID_JSON, "The body has a field whose name is reserved"));
    }
    if !flat && memchr_iter(b',', json).nth(VALUES_MAX).is_some() && count_separators(json) > VALUES_MAX {
        let text = format!("The body has more than {VALUES_MAX} values: send it in several requests");
        return Err(Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, text));
    }
    let is_shallow = flat || memchr2_iter(b'[', b'{', json).nth(LEVELS_MAX).is_none();
    if is_shallow || nesting_depth(json) <= LEVELS_MAX {
        return Ok(());
    }
    Err(Problem::new(ErrorCode::INVALID_JSON, format!("The body is nested deeper than {LEVELS_MAX} levels")))
}

/// The deepest nesting; brackets in strings do not count.
fn nesting_depth(json: &[u8]) -> usize {
    let (mut level, mut deepest, mut rest) = (0usize, 0, json);
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'[' | b'{' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' => level = level.saturating_sub(1),
            b'"' => rest = skip_string(rest),
            _ => {}
        }
    }
    deepest
}

/// The number of commas outside of strings.
fn count_separators(json: &[u8]) -> usize {
    let (mut count, mut rest) = (0, json);
    while let Some(index) = memchr2(b'"', b',', rest) {
        let is_text = rest.get(index) == Some(&b'"');
        rest = rest.get(index + 1..).unwrap_or_default();
        match is_text {
            true => rest = skip_string(rest),
            false => count += 1,
        }
    }
    count
}

/// The bytes after the end of a string.
fn skip_string(mut rest: &[u8]) -> &[u8] {
    while let Some(index) = memchr2(b'"', b'\\', rest) {
        let escape = rest.get(index) == Some(&b'\\');
        rest = rest.get(index + 1 + usize::from(escape)..).unwrap_or_default();
        if !escape {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_refused() {
        let mut text = "1".to_owned();
        for _ in 0..9 {
            let inner = format!("{}{text}{}", "[".repeat(LEVELS_MAX - 4), "]".repeat(LEVELS_MAX - 4));
            text = serde_json::json!({"$serde_json::private::RawValue": inner}).to_string();
        }
        assert!(check_limits(format!("{{\"data\":{text}}}").as_bytes()).is_err());
    }

    #[test]
    fn values() {
        let many = format!("{{\"a\":[0{}]}}", ",0".repeat(VALUES_MAX + 1));
        assert_eq!(check_limits(many.as_bytes()).unwrap_err().code(), ErrorCode::PAYLOAD_TOO_LARGE);
        let text = format!("{{\"a\":\"\\\"{}\"}}", ",".repeat(VALUES_MAX + 1));
        assert!(check_limits(text.as_bytes()).is_ok());
    }

    #[test]
    fn levels() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check_limits(nested(LEVELS_MAX).as_bytes()).is_ok());
        assert!(check_limits(nested(LEVELS_MAX + 1).as_bytes()).is_err());
        assert!(check_limits(format!("{{\"a\":{}}}", nested(LEVELS_MAX)).as_bytes()).is_err());
        // Many but side by side; many but in a string; after a string.
        let many_lists = format!("[{}0]", "[[]],".repeat(1_000));
        let text = format!("{{\"css\":\"\\\"{}\"}}", "{[".repeat(1_000));
        assert!(check_limits(many_lists.as_bytes()).is_ok() && check_limits(text.as_bytes()).is_ok());
        let after_string = format!("[\"\\\\\",{}]", nested(LEVELS_MAX));
        assert!(check_limits(after_string.as_bytes()).is_err());
        // Not JSON.
        for malformed in ["\"\\", "\"", "]]]]", ""] {
            assert_eq!(nesting_depth(malformed.as_bytes()), 0, "{malformed}");
        }
    }
}
