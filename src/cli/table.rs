//! Text tables: one line per row, columns as wide as their contents.

use std::fmt::Write as _;

use serde_json::Value;

/// A column: its heading, the field of a row that it shows, and its maximum width in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    heading: &'static str,
    field: &'static str,
    width_max: usize,
}

impl Column {
    pub(super) const fn new(heading: &'static str, field: &'static str, width_max: usize) -> Self {
        Self { heading, field, width_max }
    }

    fn cell(&self, row: &Value) -> String {
        let text = match &row[self.field] {
            Value::Null => "-".to_owned(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            // Control characters could break the table or the terminal.
            Value::String(text) => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
            other => other.to_string(),
        };
        if text.chars().count() <= self.width_max {
            return text;
        }
        text.chars().take(self.width_max.saturating_sub(1)).chain(['…']).collect()
    }
}

/// Formats rows as a table.
pub(super) fn table(columns: &[Column], rows: &[Value]) -> String {
    let heading = columns.iter().map(|column| column.heading.to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|column| column.cell(row)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(heading).chain(cells).collect();
    let width =
        |n: usize| lines.iter().filter_map(|line| line.get(n)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}")).collect();
        // Writing to a String does not fail.
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}

/// Returns the array in a field of a result; empty if there is none.
pub(super) fn list<'a>(result: &'a Value, field: &str) -> &'a [Value] {
    result[field].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_aligned_below_headings() {
        let columns = [Column::new("name", "name", 8), Column::new("of it", "count", 5), Column::new("why", "why", 4)];
        let rows = [
            json!({"name": "a\nb", "count": 7, "why": null}),
            json!({"name": "a long name", "count": true, "why": "\u{1b}[2J"}),
        ];
        let result = table(&columns, &rows);
        assert_eq!(result, "name      of it  why\na b       7      -\na long …  yes     [2J\n");
    }
}
