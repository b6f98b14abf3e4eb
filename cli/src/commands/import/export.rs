//! `ExportFile`: the rows of an export file, whether it is CSV, one JSON value, or one JSON value a line.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::csv::CsvRows;
use super::service::{Service, normal_name};
use crate::error::CliError;
use crate::file_value;

/// A row, by normalised names of its columns (`EmailAddress` is `emailaddress`).
pub(super) struct ExportRow {
    pub(super) line: u64,
    pub(super) fields: Result<Map<String, Value>, String>,
}

/// The rows of a file, in its order.
#[derive(Default)]
pub(super) struct ExportRows {
    pub(super) rows: Vec<ExportRow>,
    /// For each answer of an API in the file that says it: whether another page follows.
    pub(super) next_pages: Vec<bool>,
}

pub(super) struct ExportFile {
    path: String,
    content: ExportContent,
}

enum ExportContent {
    Text(String),
    /// A folder of the Postmark command line: `meta.json`, `content.html`, `content.txt`.
    Folder(Value),
}

impl ExportFile {
    pub(super) fn read(path: &str) -> Result<Self, CliError> {
        let content = if Path::new(path).is_dir() {
            ExportContent::Folder(read_folder(Path::new(path))?)
        } else {
            ExportContent::Text(file_value::read_text(path)?)
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// The rows of the file.
    ///
    /// # Errors
    /// It is neither CSV nor JSON with a list that the service writes.
    pub(super) fn rows(&self, service: Service) -> Result<ExportRows, CliError> {
        let text = match &self.content {
            ExportContent::Folder(value) => {
                return Ok(ExportRows { rows: vec![json_row(1, value)], ..ExportRows::default() });
            }
            ExportContent::Text(text) => text,
        };
        let invalid = |why: String| CliError::usage(format!("{}: {why}", self.path));
        if !text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) {
            // Some programs end lines with CR alone.
            let text = if text.contains('\n') { Cow::Borrowed(text.as_str()) } else { text.replace('\r', "\n").into() };
            let rows = csv_rows(&text).map_err(invalid)?;
            return Ok(ExportRows { rows, ..ExportRows::default() });
        }
        let values = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<Value>();
        let ExportRows { mut rows, mut next_pages } = ExportRows::default();
        for value in values {
            let value = value.map_err(|error| invalid(format!("not valid JSON: {error}")))?;
            let entries = service.lists().iter().find_map(|list| value[*list].as_array());
            next_pages.extend(entries.and_then(|_| service.has_next_page(&value)));
            match (entries, &value) {
                (Some(entries), _) | (None, Value::Array(entries)) => {
                    for entry in entries {
                        rows.push(json_row(rows.len() as u64 + 1, entry));
                    }
                }
                (None, value) => rows.push(json_row(rows.len() as u64 + 1, value)),
            }
        }
        Ok(ExportRows { rows, next_pages })
    }
}

fn csv_rows(text: &str) -> Result<Vec<ExportRow>, String> {
    let mut rows = CsvRows::new(text);
    let header = rows.next().ok_or("the file is empty")?;
    let names: Vec<String> = header.cells.iter().map(|cell| normal_name(cell)).collect();
    if Service::EMAIL_COLUMNS.iter().all(|column| !names.iter().any(|name| name == column)) {
        return Err(format!("no column of addresses; the first line is: {}", header.cells.join(", ")));
    }
    let row = |row: super::csv::CsvRow| {
        let cells = names.iter().cloned().zip(row.cells.into_iter().map(|cell| json!(cell)));
        let fields = if row.is_whole { Ok(cells.collect()) } else { Err("a quotation mark is not closed".to_owned()) };
        ExportRow { line: row.line, fields }
    };
    Ok(rows.map(row).collect())
}

fn json_row(line: u64, value: &Value) -> ExportRow {
    let fields = match value {
        Value::Object(fields) => Ok(fields.iter().map(|(name, value)| (normal_name(name), value.clone())).collect()),
        // SES suppression lists of addresses alone.
        Value::String(address) => Ok([("email".to_owned(), json!(address))].into_iter().collect()),
        other => Err(format!("`{other}` is not an object")),
    };
    ExportRow { line, fields }
}

fn read_folder(folder: &Path) -> Result<Value, CliError> {
    let read = |name: &str| {
        let path = folder.join(name);
        path.is_file().then(|| file_value::read_text(&path.display().to_string())).transpose()
    };
    let meta = read("meta.json")?.ok_or_else(|| {
        CliError::usage(format!("{} is a folder without meta.json; name export files", folder.display()))
    })?;
    let mut value: Value = serde_json::from_str(&meta)
        .map_err(|error| CliError::usage(format!("{}: not valid JSON: {error}", folder.join("meta.json").display())))?;
    for (name, field) in [("content.html", "HtmlBody"), ("content.txt", "TextBody")] {
        if let (Some(text), true) = (read(name)?, value.is_object()) {
            value[field] = json!(text);
        }
    }
    Ok(value)
}
