//! Keeps results small enough for a conversation.

use serde_json::Value;

/// Largest result as JSON: some 8,000 tokens.
pub(crate) const RESULT_BYTES_MAX: usize = 28 << 10;

/// Steps of shortening: most characters of a text, most entries of a list.
const STEPS: &[(usize, usize)] = &[(12_000, 200), (4_000, 100), (1_500, 50), (500, 25), (200, 15), (80, 8), (20, 3)];
/// Most steps for a page of a list: then a smaller page is read instead.
const PAGE_STEPS: usize = 4;

/// A value that was shortened where necessary.
#[derive(Debug, PartialEq)]
pub(crate) struct ShortenedValue {
    pub(crate) value: Value,
    /// A sentence about the parts that were shortened.
    pub(crate) note: Option<String>,
    /// False if even the shortest form is too large.
    pub(crate) fits: bool,
}

/// Shortens a value until it fits. The entries of `page`, a field of the value, are all kept.
pub(crate) fn bound(value: Value, page: Option<&str>) -> ShortenedValue {
    if json_len(&value) <= RESULT_BYTES_MAX {
        return ShortenedValue { value, note: None, fits: true };
    }
    let steps = STEPS.get(..page.map_or(STEPS.len(), |_| PAGE_STEPS)).unwrap_or(STEPS);
    let mut cut = value;
    for (chars_max, entries_max) in steps {
        shorten(&mut cut, *chars_max, *entries_max, page);
        if json_len(&cut) <= RESULT_BYTES_MAX {
            let note = format!(
                "The result was too long: texts are cut off after {chars_max} characters and lists after \
                 {entries_max} entries. Read parts of it with another tool, or in the dashboard."
            );
            return ShortenedValue { value: cut, note: Some(note), fits: true };
        }
    }
    ShortenedValue { value: cut, note: Some("The result is too long; most of it was left out.".into()), fits: false }
}

/// Shortens a text that is a result of its own.
pub(crate) fn bound_text(text: &str) -> (String, Option<String>) {
    if text.len() <= RESULT_BYTES_MAX {
        return (text.to_owned(), None);
    }
    let total = text.chars().count();
    let mut start = text.to_owned();
    start.truncate((0..=RESULT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
    let shown = start.chars().count();
    (start, Some(format!("The first {shown} of {total} characters are shown.")))
}

fn json_len(value: &Value) -> usize {
    value.to_string().len()
}

fn shorten(value: &mut Value, chars_max: usize, entries_max: usize, page: Option<&str>) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(chars_max) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(entries) => {
            entries.truncate(entries_max);
            entries.iter_mut().for_each(|entry| shorten(entry, chars_max, entries_max, None));
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::Array(entries) if Some(name.as_str()) == page => {
                        entries.iter_mut().for_each(|entry| shorten(entry, chars_max, entries_max, None));
                    }
                    field => shorten(field, chars_max, entries_max, None),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_values_stay() {
        let value = json!({"a": "x".repeat(2_000)});
        assert_eq!(bound(value.clone(), None), ShortenedValue { value, note: None, fits: true });
    }

    #[test]
    fn long_texts_and_lists_are_cut() {
        let recipients: Vec<Value> = (0..1_000).map(|n| json!({"email": format!("a{n}@example.net")})).collect();
        let bounded = bound(json!({"html": "é".repeat(1 << 20), "recipients": recipients}), None);
        assert!(bounded.fits && bounded.note.unwrap().contains("cut off after 4000 characters"));
        assert_eq!(bounded.value["recipients"].as_array().unwrap().len(), 100);
        let huge = json!((0..100_000).map(|_| json!({"a": "x".repeat(100)})).collect::<Vec<_>>());
        assert!(bound(huge, None).fits);
    }

    #[test]
    fn pages_keep_their_entries() {
        let entries: Vec<Value> = (0..25).map(|n| json!({"n": n, "text": "x".repeat(5_000)})).collect();
        let bounded = bound(json!({"emails": entries, "next_cursor": "c"}), Some("emails"));
        assert_eq!(bounded.value["emails"].as_array().unwrap().len(), 25);
        assert!(bounded.fits);
        let wide: Vec<Value> = (0..25).map(|n| json!({"n": n, "texts": vec!["x".repeat(5_000); 30]})).collect();
        let bounded = bound(json!({"emails": wide}), Some("emails"));
        assert!(!bounded.fits && bounded.value["emails"].as_array().unwrap().len() == 25);
    }

    #[test]
    fn long_texts_end_at_a_character() {
        let (start, note) = bound_text(&"é".repeat(20_000));
        assert!(start.len() <= RESULT_BYTES_MAX && note.unwrap().contains("of 20000 characters"));
    }
}
