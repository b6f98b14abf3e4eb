//! Prints answers: tables and lines on a terminal, JSON otherwise.

use std::io::{IsTerminal as _, Write as _};

use serde_json::{Map, Value};

use crate::error::CliError;

/// Columns of a table, at most.
const COLUMNS_MAX: usize = 8;
/// Characters of a cell.
const CELL_CHARS: usize = 48;
/// Width of a terminal that does not tell its own.
const WIDTH_DEFAULT: usize = 120;
/// Columns that stand before the others.
const FIRST_COLUMNS: &[&str] =
    &["id", "name", "email", "status", "type", "subject", "to", "event", "url", "created_at", "sent_at"];

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One JSON value a line for each entry of a list.
    JsonLines,
}

impl Format {
    /// JSON if it was asked for or standard output is no terminal.
    pub fn choose(json: bool, json_lines: bool) -> Self {
        match () {
            () if json_lines => Self::JsonLines,
            () if json || !std::io::stdout().is_terminal() => Self::Json,
            () => Self::Text,
        }
    }
}

/// Prints a line.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    write(format!("{text}\n").as_bytes())
}

/// Writes to standard output. A reader that has left (`| head`) ends the program quietly.
///
/// # Errors
/// Standard output cannot be written.
pub fn write(content: &[u8]) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(content).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CliError::Io(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a JSON value: on several lines on a terminal.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_json(value: &Value) -> Result<(), CliError> {
    if std::io::stdout().is_terminal() {
        return print(&escaped_json(&serde_json::to_string_pretty(value).unwrap_or_default()));
    }
    print(&value.to_string())
}

/// Prints a JSON value in one line.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_json_line(value: &Value) -> Result<(), CliError> {
    print(&json_line(value))
}

/// A JSON value in one line, safe for a terminal if standard output is one.
pub fn json_line(value: &Value) -> String {
    let line = value.to_string();
    if std::io::stdout().is_terminal() { escaped_json(&line) } else { line }
}

/// Escapes the characters that could control a terminal and that JSON leaves as they are (RFC 8259 7): DEL, the
/// controls above it, and direction overrides.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_deceptive(c) && c != '\n' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Prints one object for people.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_object(value: &Value) -> Result<(), CliError> {
    // `{email: {…}}` is shown as the email.
    let inner = value.as_object().and_then(|object| match object.iter().collect::<Vec<_>>().as_slice() {
        [(_, inner @ Value::Object(_))] => Some(*inner),
        _ => None,
    });
    print(&object_text(inner.unwrap_or(value)))
}

fn object_text(value: &Value) -> String {
    let Value::Object(object) = value else { return cell(value) };
    let width = object.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (name, value) in object {
        let name = safe_text(name);
        match value {
            Value::Array(entries) if entries.iter().any(Value::is_object) => {
                lines.push(format!("{name}:"));
                lines.extend(table(entries, None).lines().map(|line| format!("  {line}")));
            }
            Value::Object(inner) if !inner.is_empty() => {
                lines.push(format!("{name}:"));
                lines.extend(object_text(value).lines().map(|line| format!("  {line}")));
            }
            value => lines.push(format!("{name:width$}  {}", safe_text(&plain(value)))),
        }
    }
    lines.join("\n")
}

/// A table of the entries of a list.
pub fn table(entries: &[Value], columns: Option<&[String]>) -> String {
    let is_named = columns.is_some();
    let columns: Vec<String> = match columns {
        Some(columns) => columns.to_vec(),
        None => chosen_columns(entries),
    };
    if entries.is_empty() {
        return "none".to_owned();
    }
    let rows: Vec<Vec<String>> = std::iter::once(columns.iter().map(|name| safe_text(&name.to_uppercase())).collect())
        .chain(entries.iter().map(|entry| {
            let last = columns.len().saturating_sub(1);
            // The last of the columns that the caller names is not shortened.
            let shown = |(index, name): (usize, &String)| match pick(entry, name) {
                value if is_named && index == last => safe_text(&plain(value)),
                value => cell(value),
            };
            columns.iter().enumerate().map(shown).collect()
        }))
        .collect();
    let width_of = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|column| width_of(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Columns with plain values that fit the terminal's width, the usual ones first.
fn chosen_columns(entries: &[Value]) -> Vec<String> {
    let Some(Value::Object(first)) = entries.first() else { return vec!["value".to_owned()] };
    let is_plain = |name: &&String| {
        entries.iter().all(|entry| match &entry[name.as_str()] {
            Value::Object(_) => false,
            Value::Array(values) => values.iter().all(|value| !value.is_object() && !value.is_array()),
            _ => true,
        }) && entries.iter().any(|entry| !entry[name.as_str()].is_null())
    };
    let mut names: Vec<&String> = first.keys().filter(is_plain).collect();
    let rank = |name: &str| FIRST_COLUMNS.iter().position(|first| *first == name).unwrap_or(FIRST_COLUMNS.len());
    names.sort_by_key(|name| rank(name));
    let terminal = std::env::var("COLUMNS").ok().and_then(|width| width.parse().ok()).unwrap_or(WIDTH_DEFAULT);
    let (mut chosen, mut width) = (Vec::new(), 0);
    for name in names {
        let cells = entries.iter().map(|entry| cell(&entry[name.as_str()]).chars().count());
        let column = cells.max().unwrap_or(0).max(name.chars().count());
        if chosen.is_empty() || (width + 2 + column <= terminal && chosen.len() < COLUMNS_MAX) {
            width += column + 2;
            chosen.push(name.clone());
        }
    }
    chosen
}

fn cell(value: &Value) -> String {
    let text = safe_text(&plain(value));
    if text.chars().count() <= CELL_CHARS {
        return text;
    }
    text.chars().take(CELL_CHARS - 1).chain(['…']).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Replaces control characters and direction overrides of foreign text, which could change what a terminal shows.
pub fn safe_text(text: &str) -> String {
    text.chars().map(|c| if is_deceptive(c) { '\u{fffd}' } else { c }).collect()
}

/// A control character, or a formatting character of UAX #9 (bidirectional text).
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// As `safe_text`, but keeps tabs.
pub fn safe_line(text: &str) -> String {
    text.split('\t').map(safe_text).collect::<Vec<_>>().join("\t")
}

/// The value at a path such as `email.status`; null if there is none.
fn pick<'a>(value: &'a Value, path: &str) -> &'a Value {
    if let Some(found) = value.get(path) {
        return found;
    }
    path.split('.').fold(value, |at, name| &at[name])
}

/// Only the named fields of an object.
pub fn select(value: &Value, fields: &[String]) -> Value {
    let mut selected = Map::new();
    for field in fields {
        selected.insert(field.clone(), pick(value, field).clone());
    }
    Value::Object(selected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_have_the_usual_columns_first() {
        let entries = [
            json!({"created_at": "2026", "status": "sent", "id": "msg_1", "tags": [{"a": 1}], "to": ["a@x", "b@x"]}),
            json!({"created_at": "2027", "status": "delivered", "id": "msg_2", "tags": [], "to": []}),
        ];
        assert_eq!(
            table(&entries, None),
            "ID     STATUS     TO        CREATED_AT\nmsg_1  sent       a@x, b@x  2026\nmsg_2  delivered            2027"
        );
        assert_eq!(table(&entries, Some(&["id".to_owned()])), "ID\nmsg_1\nmsg_2");
        assert_eq!(table(&[], None), "none");
        let detail = [json!({"detail": "x".repeat(60)})];
        assert_eq!(table(&detail, Some(&["detail".to_owned()])).lines().last().map(str::len), Some(60));
    }

    #[test]
    fn foreign_text_cannot_control_the_terminal() {
        assert_eq!(cell(&json!("a\u{1b}[31m\u{202e}b\n")), "a\u{fffd}[31m\u{fffd}b\u{fffd}");
        assert_eq!(cell(&json!("x".repeat(60))).chars().count(), CELL_CHARS);
        let entry = json!({"a\u{1b}[2J": 1});
        assert!(
            !object_text(&entry).contains('\u{1b}') && !table(std::slice::from_ref(&entry), None).contains('\u{1b}')
        );
        let value = json!({"subject": "a\u{9b}31m\u{7f}\u{202e}é"});
        let escaped = escaped_json(&value.to_string());
        assert_eq!(escaped, r#"{"subject":"a\u009b31m\u007f\u202eé"}"#);
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn fields_are_selected_by_path() {
        let email = json!({"email": {"id": "msg_1", "status": "sent"}});
        assert_eq!(select(&email, &["email.status".to_owned()]), json!({"email.status": "sent"}));
        assert_eq!(object_text(&json!({"a": {"b": 1}, "c": null})), "a:\n  b  1\nc  ");
    }
}
