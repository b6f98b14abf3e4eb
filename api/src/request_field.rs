//! `RequestField`: a field of a request body, declared in one row.
//!
//! ```text
//! name, aliases ─► FieldLookup    read ─► parsed request    schema ─► OpenAPI    fingerprint ─► idempotency
//! ```
//!
//! The order of the rows is the order in which fields are read, described and fingerprinted. A new row goes to the end,
//! or its fingerprint stays empty unless the field is given: stored fingerprints must stay valid across an update.

use httpd::fields::{FieldDiagnostics, NamedField, ObjectFields};
use serde_json::{Value, json};

use crate::request_fingerprint::RequestFingerprint;

/// A field of a request body that is parsed to a `T`.
pub(crate) struct RequestField<T: 'static> {
    pub(crate) name: &'static str,
    /// Other accepted names; the description lists them.
    pub(crate) aliases: &'static [&'static str],
    /// Names of other providers, which are rejected with the hint to use `name`.
    pub(crate) foreign: &'static [&'static str],
    pub(crate) description: &'static str,
    /// The schema without its description. Its limits are the reader's.
    pub(crate) schema: fn() -> Value,
    /// Parses the field into the request; errors go to the diagnostics.
    pub(crate) read: fn(&mut T, &ObjectFields<'_>, &mut FieldDiagnostics),
    pub(crate) fingerprint: fn(&T, &mut RequestFingerprint),
}

impl<T> RequestField<T> {
    /// The field's name and schema for the OpenAPI document.
    pub(crate) fn property(&self) -> (&'static str, Value) {
        let mut schema = (self.schema)();
        let aliases: Vec<String> = self.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        schema["description"] = match aliases.is_empty() {
            true => json!(self.description),
            false => json!(format!("{} (also {})", self.description, aliases.join(", "))),
        };
        (self.name, schema)
    }
}

/// A reader for a field that is read together with another one.
pub(crate) fn read_with_other<T>(_: &mut T, _: &ObjectFields<'_>, _: &mut FieldDiagnostics) {}

/// For a field whose fingerprint is part of another one's.
pub(crate) fn fingerprint_with_other<T>(_: &T, _: &mut RequestFingerprint) {}

impl<T> NamedField for RequestField<T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
    fn foreign(&self) -> &'static [&'static str] {
        self.foreign
    }
}
