//! Filters and functions of the templates.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};

use crate::case;
use crate::quote::{Language, quote};

pub fn add(environment: &mut Environment<'_>) {
    environment.add_filter("snake", |name: String| case::snake(&name));
    environment.add_filter("camel", |name: String| case::camel(&name));
    environment.add_filter("pascal", |name: String| case::pascal(&name));
    environment.add_filter("kebab", |name: String| case::kebab(&name));
    environment.add_filter("screaming", |name: String| case::screaming(&name));
    environment.add_filter("go_name", |name: String| case::go_name(&name));
    environment.add_test("identifier", |name: String| is_identifier(&name));
    environment.add_filter("singular", |name: String| case::singular(&name));
    environment.add_filter("wrap", |text: String, width: usize, prefix: Option<String>| {
        wrap(&text, width, prefix.as_deref().unwrap_or_default())
    });
    environment.add_filter("comment", |text: String, prefix: String, width: Option<usize>| {
        comment(&text, &prefix, width.unwrap_or(120))
    });
    environment.add_filter("quote", |text: String, language: String| -> Result<String, Error> {
        Ok(quote(&text, language_of(&language)?))
    });
    environment.add_filter("reserved", |name: String, language: String| -> Result<String, Error> {
        Ok(language_of(&language)?.escape_reserved(&name))
    });
    environment.add_filter("urlencode", |text: String| percent_encode(&text));
    environment.add_function("variant_of", variant_of);
    environment.add_function("field_of", field_of);
    environment.add_filter("pretty", |value: Value| -> Result<String, Error> { json(&value, true) });
    environment.add_filter("compact", |value: Value| -> Result<String, Error> { json(&value, false) });
}

/// Whether a key can be written without quotes in JavaScript and Ruby.
fn is_identifier(name: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') && name.chars().all(is_word)
}

fn json(value: &Value, pretty: bool) -> Result<String, Error> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|cause| Error::new(ErrorKind::InvalidOperation, "the value has no JSON").with_source(cause))
}

/// Percent-encoding for paths and queries. Braces stay, so that placeholders of examples can be replaced.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@,/{}".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The variant of a union that fits a value; other types as they are.
fn variant_of(kind: Value, value: Value) -> Result<Value, Error> {
    if kind.is_none() || kind.get_attr("kind")?.as_str() != Some("union") {
        return Ok(kind);
    }
    let fitting: &[&str] = match value.kind() {
        ValueKind::Map => &["ref", "map"],
        ValueKind::Seq | ValueKind::Iterable => &["array"],
        ValueKind::Number => &["integer", "number"],
        ValueKind::Bool => &["boolean"],
        _ => &["string", "enum"],
    };
    for variant in kind.get_attr("variants")?.try_iter()? {
        if variant.get_attr("kind")?.as_str().is_some_and(|name| fitting.contains(&name)) {
            return Ok(variant);
        }
    }
    Ok(Value::from(()))
}

/// The field of a named type with the API's name, or none.
fn field_of(named_type: Value, wire: String) -> Result<Value, Error> {
    if named_type.is_none() {
        return Ok(named_type);
    }
    for field in named_type.get_attr("fields")?.try_iter()? {
        if field.get_attr("wire")?.as_str() == Some(&wire) {
            return Ok(field);
        }
    }
    Ok(Value::from(()))
}

fn language_of(name: &str) -> Result<Language, Error> {
    Language::parse(name)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("no language is called \"{name}\"")))
}

/// Breaks a text into lines of at most `width` characters, where words allow it. Paragraphs stay apart. Lines after the
/// first begin with `prefix`, which counts.
pub fn wrap(text: &str, width: usize, prefix: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.trim().split('\n') {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let length = prefix.chars().count() + line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && length > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |text, line| text + "\n" + format!("{prefix}{line}").trim_end())
}

/// A text as a comment: every line, also the first, begins with `prefix`. Nothing for an empty text.
pub fn comment(text: &str, prefix: &str, width: usize) -> String {
    if text.trim().is_empty() { String::new() } else { format!("{prefix}{}", wrap(text, width, prefix)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_with_a_prefix() {
        assert_eq!(wrap("one two three", 9, "# "), "one two\n# three");
        assert_eq!(comment("one two three", "# ", 9), "# one two\n# three");
        assert_eq!(comment("one\n\ntwo", "# ", 9), "# one\n#\n# two");
        assert_eq!(comment(" ", "# ", 9), "");
    }
}
