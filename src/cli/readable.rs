//! JSON as text for people.

use std::fmt::Write as _;

use serde_json::Value;

/// Formats a JSON value as text: one line per field, lists indented, multi-line texts as blocks.
pub(super) fn render_readable(value: &Value) -> String {
    let mut out = String::new();
    write_readable(&mut out, value, 0);
    out
}

fn write_readable(out: &mut String, value: &Value, depth: usize) {
    let pad = "  ".repeat(depth);
    // Writing to a String does not fail.
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Null => {}
                    Value::Object(inner) if inner.is_empty() => {}
                    Value::Array(inner) if inner.is_empty() => {
                        let _ = writeln!(out, "{pad}{name}: none");
                    }
                    Value::Object(_) | Value::Array(_) => {
                        let _ = writeln!(out, "{pad}{name}:");
                        write_readable(out, value, depth + 1);
                    }
                    Value::String(text) if text.contains('\n') => {
                        let _ = writeln!(out, "{pad}{name}:");
                        text.lines().for_each(|line| {
                            let _ = writeln!(out, "{pad}  | {line}");
                        });
                    }
                    plain => {
                        let _ = writeln!(out, "{pad}{name}: {}", scalar_text(plain));
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                write_readable(&mut inner, item, depth + 1);
                let bullet = format!("{pad}- ");
                out.push_str(&inner.replacen(&"  ".repeat(depth + 1), &bullet, 1));
            }
        }
        plain => {
            let _ = writeln!(out, "{pad}{}", scalar_text(plain));
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_rendered_as_text() {
        let value = json!({"a": 1, "b": null, "list": [{"x": "y", "z": 2}, {"x": "w"}], "text": "one\ntwo"});
        let text = render_readable(&value);
        assert_eq!(text, "a: 1\nlist:\n  - x: y\n    z: 2\n  - x: w\ntext:\n  | one\n  | two\n");
    }
}
