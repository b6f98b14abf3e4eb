//! Field reader: reads the fields of a JSON object one by one and reports the unread ones as ignored.

use serde_json::{Map, Value};

/// Maximum number of reported errors, and of reported ignored fields.
const ERRORS_MAX: usize = 50;
/// Maximum nesting of a value.
pub(super) const DEPTH_MAX: usize = 12;

/// Errors and ignored fields found so far.
#[derive(Debug, Default)]
pub struct ParseNotes {
    /// Path of the field, and the error as the end of a sentence.
    pub errors: Vec<(String, String)>,
    /// Paths of ignored fields.
    pub ignored: Vec<String>,
    /// True if the steps are stored: rules that are newer than they do not apply.
    pub(super) is_stored: bool,
}

impl ParseNotes {
    /// For steps that were stored, perhaps by an earlier release.
    pub fn of_stored_steps() -> Self {
        Self { is_stored: true, ..Self::default() }
    }

    /// Adds an error.
    pub fn error(&mut self, field: &str, text: impl Into<String>) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push((field.to_owned(), text.into()));
        }
    }
}

/// Nesting depth of a value; 0 for a scalar.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(depth).max().unwrap_or(0),
        number if crate::raw_number::is_number(number) => 0,
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reads the fields of one object.
pub(super) struct ObjectReader<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
    read_names: Vec<&'static str>,
    pub(super) notes: &'a mut ParseNotes,
}

impl<'a> ObjectReader<'a> {
    pub(super) fn new(value: &'a Value, path: &'a str, notes: &'a mut ParseNotes) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { map, path, read_names: Vec::new(), notes }),
            Value::Null => {
                notes.error(path, "is required");
                None
            }
            _ => {
                notes.error(path, "must be an object");
                None
            }
        }
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    pub(super) fn error(&mut self, name: &str, text: impl Into<String>) {
        let path = self.path_of(name);
        self.notes.error(&path, text);
    }

    /// Returns a field that is not null, without marking it as read.
    pub(super) fn peek(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field that is not null, and marks it as read.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read_names.push(name);
        self.peek(name)
    }

    /// Returns a field by any of its names; the first one is the canonical name.
    pub(super) fn take_any(&mut self, names: &[&'static str]) -> Option<&'a Value> {
        self.read_names.extend_from_slice(names);
        names.iter().find_map(|name| self.peek(name))
    }

    pub(super) fn required<T>(&mut self, name: &'static str, read: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        if self.peek(name).is_none() {
            self.read_names.push(name);
            self.error(name, "is required");
            return None;
        }
        self.optional(name, read)
    }

    pub(super) fn optional<T>(&mut self, name: &'static str, read: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        let value = self.take(name)?;
        read(value).map_err(|text| self.error(name, text)).ok()
    }

    /// Reads a field whose parser reports errors itself.
    pub(super) fn optional_with<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&Value, &str, &mut ParseNotes) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        let path = self.path_of(name);
        read(value, &path, self.notes)
    }

    pub(super) fn word<T>(
        &mut self,
        name: &'static str,
        words: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.optional(name, |value| {
            value.as_str().and_then(&read).ok_or_else(|| format!("must be one of {}", words.join(", ")))
        })
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.optional(name, |value| value.as_bool().ok_or_else(|| "must be true or false".to_owned()))
    }

    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        entries_max: usize,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Vec<T> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let Some(entries) = value.as_array() else {
            self.error(name, "must be a list");
            return Vec::new();
        };
        if entries.len() > entries_max {
            self.error(name, format!("has more than {entries_max} entries"));
            return Vec::new();
        }
        let mut all = Vec::with_capacity(entries.len());
        for (n, entry) in entries.iter().enumerate() {
            match read(entry) {
                Ok(item) => all.push(item),
                Err(text) => self.error(&format!("{name}[{n}]"), text),
            }
        }
        all
    }

    /// Reports the unread fields as ignored.
    pub(super) fn finish(self) {
        let Self { map, path, read_names, notes } = self;
        for name in map.keys().filter(|name| !read_names.contains(&name.as_str())) {
            if notes.ignored.len() < ERRORS_MAX {
                let printable: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                notes.ignored.push(format!("{path}.{printable}"));
            }
        }
    }
}
