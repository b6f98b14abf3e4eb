//! Prints answers: tables and lines on a terminal, JSON otherwise.
//!
//! Answers are shown from their text, not from a [`Value`], so that numbers of customers keep all their digits.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use mcp::exact_json::{self, ExactJson};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

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
pub fn print(text: &str) -> Result<(), CliError> {
    write(format!("{text}\n").as_bytes())
}

/// Writes to standard output. A reader that has left (`| head`) ends the program quietly.
pub fn write(content: &[u8]) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(content).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CliError::Io(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a JSON value: on several lines on a terminal.
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<(), CliError> {
    if std::io::stdout().is_terminal() {
        return print(&escaped_json(&serde_json::to_string_pretty(value).unwrap_or_default()));
    }
    print(&serde_json::to_string(value).unwrap_or_default())
}

pub fn print_json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), CliError> {
    print(&json_line(value))
}

/// A JSON value in one line, safe for a terminal if standard output is one.
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> String {
    let line = serde_json::to_string(value).unwrap_or_default();
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

/// A value as JSON text.
pub fn raw_json<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

/// Prints one object for people.
pub fn print_object(value: &Value) -> Result<(), CliError> {
    print_raw_object(&raw_json(value))
}

/// Prints one object of an answer for people.
pub fn print_raw_object(json: &RawValue) -> Result<(), CliError> {
    // `{email: {…}}` is shown as the email.
    let inner = exact_json::fields(json).and_then(|object| match object.as_slice() {
        [(_, inner)] if is_object(inner) => Some(*inner),
        _ => None,
    });
    print(&object_text(inner.unwrap_or(json)))
}

fn object_text(json: &RawValue) -> String {
    let Some(object) = exact_json::fields(json) else { return cell(json) };
    let width = object.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (name, value) in object {
        let name = safe_text(&name);
        match exact_json::entries(value) {
            Some(entries) if entries.iter().any(|entry| is_object(entry)) => {
                lines.push(format!("{name}:"));
                lines.extend(raw_table(&entries, None).lines().map(|line| format!("  {line}")));
            }
            None if exact_json::fields(value).is_some_and(|inner| !inner.is_empty()) => {
                lines.push(format!("{name}:"));
                lines.extend(object_text(value).lines().map(|line| format!("  {line}")));
            }
            _ => lines.push(format!("{name:width$}  {}", safe_text(&plain(value)))),
        }
    }
    lines.join("\n")
}

/// A table of values.
pub fn table(entries: &[Value], columns: Option<&[String]>) -> String {
    let entries: Vec<Box<RawValue>> = entries.iter().map(raw_json).collect();
    raw_table(&entries.iter().map(|entry| &**entry).collect::<Vec<_>>(), columns)
}

/// A table of the entries of a list.
pub fn raw_table(entries: &[&RawValue], columns: Option<&[String]>) -> String {
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
fn chosen_columns<'a>(entries: &[&'a RawValue]) -> Vec<String> {
    let Some(first) = entries.first().and_then(|first| exact_json::fields(first)) else {
        return vec!["value".to_owned()];
    };
    let fields_of = |entry: &&'a RawValue| exact_json::fields(entry).unwrap_or_default().into_iter().collect();
    let rows: Vec<BTreeMap<String, &'a RawValue>> = entries.iter().map(fields_of).collect();
    let values = |name: &str| -> Vec<&'a RawValue> {
        rows.iter().map(|row| row.get(name).copied().unwrap_or(RawValue::NULL)).collect()
    };
    let is_plain = |value: &&RawValue| match exact_json::entries(value) {
        Some(entries) => entries.iter().all(|entry| !entry.get().starts_with(['{', '['])),
        None => !is_object(value),
    };
    let names = first.into_iter().map(|(name, _)| name);
    let columns = names.map(|name| (values(&name), name));
    let mut columns: Vec<(Vec<&'a RawValue>, String)> = columns
        .filter(|(values, _)| values.iter().all(is_plain) && values.iter().any(|value| value.get() != "null"))
        .collect();
    let rank = |name: &str| FIRST_COLUMNS.iter().position(|first| *first == name).unwrap_or(FIRST_COLUMNS.len());
    columns.sort_by_key(|(_, name)| rank(name));
    let terminal = std::env::var("COLUMNS").ok().and_then(|width| width.parse().ok()).unwrap_or(WIDTH_DEFAULT);
    let (mut chosen, mut width) = (Vec::new(), 0);
    for (values, name) in columns {
        let cells = values.iter().map(|value| cell(value).chars().count());
        let column = cells.max().unwrap_or(0).max(name.chars().count());
        if chosen.is_empty() || (width + 2 + column <= terminal && chosen.len() < COLUMNS_MAX) {
            width += column + 2;
            chosen.push(name);
        }
    }
    chosen
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

fn cell(json: &RawValue) -> String {
    let text = safe_text(&plain(json));
    if text.chars().count() <= CELL_CHARS {
        return text;
    }
    text.chars().take(CELL_CHARS - 1).chain(['…']).collect()
}

fn plain(json: &RawValue) -> String {
    match json.get() {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
        _ => match exact_json::entries(json) {
            Some(entries) => entries.iter().map(|entry| plain(entry)).collect::<Vec<_>>().join(", "),
            None => serde_json::to_string(&ExactJson(json)).unwrap_or_default(),
        },
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

/// The value at a path such as `email.status`; null if there is none. Of fields with the same name, the last counts, as
/// in a [`Value`].
pub fn pick<'a>(json: &'a RawValue, path: &str) -> &'a RawValue {
    let field = |at: &'a RawValue, name: &str| {
        exact_json::fields(at)?.into_iter().rev().find_map(|(found, value)| (found == name).then_some(value))
    };
    let nested = || path.split('.').fold(json, |at, name| field(at, name).unwrap_or(RawValue::NULL));
    field(json, path).unwrap_or_else(nested)
}

/// Only the named fields of an object.
pub fn select(json: &RawValue, names: &[String]) -> Box<RawValue> {
    let mut selected: Vec<(&str, &RawValue)> = Vec::new();
    for name in names.iter().map(String::as_str) {
        if selected.iter().all(|(other, _)| *other != name) {
            selected.push((name, pick(json, name)));
        }
    }
    raw_json(&SelectedFields(selected))
}

struct SelectedFields<'a>(Vec<(&'a str, &'a RawValue)>);

impl Serialize for SelectedFields<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|(name, value)| (name, ExactJson(value))))
    }
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
        let exact: Box<RawValue> = serde_json::from_str(r#"{"data": {"price": 19.90}, "n": 1.10}"#).unwrap();
        assert_eq!(
            raw_table(&[&exact], Some(&["n".to_owned(), "data".to_owned()])),
            "N     DATA\n1.10  {\"price\":19.90}"
        );
        let detail = [json!({"detail": "x".repeat(60)})];
        assert_eq!(table(&detail, Some(&["detail".to_owned()])).lines().last().map(str::len), Some(60));
    }

    #[test]
    fn foreign_text_cannot_control_the_terminal() {
        assert_eq!(cell(&raw_json("a\u{1b}[31m\u{202e}b\n")), "a\u{fffd}[31m\u{fffd}b\u{fffd}");
        assert_eq!(cell(&raw_json(&"x".repeat(60))).chars().count(), CELL_CHARS);
        let entry = json!({"a\u{1b}[2J": 1});
        assert!(
            !object_text(&raw_json(&entry)).contains('\u{1b}')
                && !table(std::slice::from_ref(&entry), None).contains('\u{1b}')
        );
        let value = json!({"subject": "a\u{9b}31m\u{7f}\u{202e}é"});
        let escaped = escaped_json(&value.to_string());
        assert_eq!(escaped, r#"{"subject":"a\u009b31m\u007f\u202eé"}"#);
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn fields_are_selected_by_path() {
        let email = raw_json(&json!({"email": {"id": "msg_1", "status": "sent"}}));
        assert_eq!(select(&email, &["email.status".to_owned()]).get(), r#"{"email.status":"sent"}"#);
        assert_eq!(object_text(&raw_json(&json!({"a": {"b": 1}, "c": null}))), "a:\n  b  1\nc  ");
        let twice: Box<RawValue> = serde_json::from_str(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(pick(&twice, "a").get(), "2");
    }
}
