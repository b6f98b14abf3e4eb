//! CSV files that pages make (RFC 4180).

use serde::de::DeserializeOwned;

use super::backend::{Call, Failure};
use super::context::{Context, List};
use super::table::View;

/// Most rows of an export.
pub const ROWS_MAX: usize = 10_000;
/// Most calls of an export: with filters, a page of a list can have no entries though there are more.
const CALLS_MAX: usize = 200;
/// Longest file: it is built in memory.
const BYTES_MAX: usize = 8 << 20;

/// A column of an export: its title, and the value of an entry.
pub type CsvColumn<T> = (&'static str, fn(&T) -> String);

/// A value that can be missing.
pub fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_default()
}

/// A filtered list as a file, the newest rows first. `call` is the list's call, and `list` the field with its entries.
pub async fn export_list<T: DeserializeOwned>(
    context: &Context<'_>,
    name: &str,
    list: &str,
    mut call: Call,
    columns: &[CsvColumn<T>],
) -> Result<View, Failure> {
    call.query.retain(|(name, _)| name != "cursor" && name != "limit");
    let base = call.query("limit", "100");
    let titles: Vec<_> = columns.iter().map(|(title, _)| *title).collect();
    let (mut csv, mut cursor, mut is_complete) = (CsvText::new(&titles), String::new(), false);
    for _ in 0..CALLS_MAX {
        let found: List<T> = context.perform(&base.clone().query("cursor", &cursor)).await?.read_list(list)?;
        for entry in found.entries.iter().take(ROWS_MAX.saturating_sub(csv.rows())) {
            csv.push(&columns.iter().map(|(_, value)| value(entry)).collect::<Vec<_>>());
        }
        cursor = found.next_cursor.unwrap_or_default();
        is_complete = cursor.is_empty();
        if is_complete || csv.rows() >= ROWS_MAX || csv.is_full() {
            break;
        }
    }
    let part = if is_complete { "" } else { "-newest-part" };
    Ok(csv.into_file(context, name, part))
}

/// A CSV file under construction.
#[derive(Debug, Clone)]
pub struct CsvText {
    text: String,
    rows: usize,
}

impl CsvText {
    /// A file with its header row.
    pub fn new(columns: &[&str]) -> Self {
        Self { text: columns.join(",") + "\r\n", rows: 0 }
    }

    /// The number of rows without the header.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True if the file has reached its longest size: no further page is read.
    pub fn is_full(&self) -> bool {
        self.text.len() >= BYTES_MAX
    }

    /// Adds a row. Values that spreadsheets would run as formulas get an apostrophe before them.
    pub fn push<T: AsRef<str>>(&mut self, values: &[T]) {
        for (n, value) in values.iter().enumerate() {
            if n > 0 {
                self.text.push(',');
            }
            self.push_value(value.as_ref());
        }
        self.text.push_str("\r\n");
        self.rows += 1;
    }

    fn push_value(&mut self, value: &str) {
        let begins_formula = |part: &str| part.trim_start().starts_with(['=', '+', '-', '@', '\t', '\r']);
        let is_formula = value.split([';', '\t', '\n']).any(begins_formula);
        // Some spreadsheets split at semicolons or tabs.
        if !is_formula && !value.contains(['"', ',', ';', '\t', '\n', '\r']) {
            self.text.push_str(value);
            return;
        }
        self.text.push('"');
        if is_formula {
            self.text.push('\'');
        }
        let quoted = value.replace('"', "\"\"");
        self.text.push_str(&quoted);
        self.text.push('"');
    }

    /// The file of a page: `emails-2026-11-26.csv`; `part` stands after the day.
    pub fn into_file(self, context: &Context<'_>, name: &str, part: &str) -> View {
        let file_name = format!("{name}-{}{part}.csv", context.now().strftime("%Y-%m-%d"));
        View::File { media_type: "text/csv; charset=utf-8", file_name, content: self.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_never_formulas() {
        let mut csv = CsvText::new(&["a", "b"]);
        csv.push(&["x, \"y\"", "=1+1"]);
        csv.push(&["a;=cmd|x", "b;c"]);
        assert_eq!(csv.rows(), 2);
        assert_eq!(csv.text, "a,b\r\n\"x, \"\"y\"\"\",\"'=1+1\"\r\n\"'a;=cmd|x\",\"b;c\"\r\n");
    }
}
