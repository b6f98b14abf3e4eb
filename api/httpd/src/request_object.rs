//! `RequestObject`: an object of a request body, declared as a struct whose fields are the object's fields.
//!
//! ```text
//! struct ─► #[derive(RequestObject)] ─► FIELDS ─► names (FieldLookup), schema (OpenAPI)
//!                                   └─► read_fields ─► the parsed struct, or all errors
//! ```
//!
//! A field has one row: its name, its reader and the reader's schema. [`RequestValue`] holds a reader with its schema, so
//! that the document states the limits that are enforced. `schema-derive` lists the attributes.

use schema::Schemas;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields::{self, FieldDiagnostics, FieldLookup, ObjectFields};
pub use schema_derive::RequestObject;

use crate::problem::Problem;
use crate::request::Request;

/// A field of an object, for the names that are accepted and for the OpenAPI document.
pub enum FieldSpec {
    Named {
        name: &'static str,
        /// Other accepted names; the schema does not list them.
        aliases: &'static [&'static str],
        /// Names of other providers, which are rejected with the hint to use `name`.
        foreign: &'static [&'static str],
        /// The schema with its description.
        schema: fn(&mut Schemas) -> Value,
        is_required: bool,
    },
    /// The fields of another object that stand among this object's fields.
    Flattened(&'static [FieldSpec]),
}

impl FieldSpec {
    /// Finds the name of the field that `is_meant` accepts.
    fn find(specs: &[Self], is_meant: &dyn Fn(&'static str, &Self) -> bool) -> Option<&'static str> {
        specs.iter().find_map(|spec| match spec {
            Self::Named { name, .. } => is_meant(name, spec).then_some(*name),
            Self::Flattened(specs) => Self::find(specs, is_meant),
        })
    }

    fn add_to(&self, properties: &mut Vec<(&'static str, Value)>, required: &mut Vec<&str>, schemas: &mut Schemas) {
        match self {
            Self::Named { name, schema, is_required, .. } => {
                properties.push((*name, schema(schemas)));
                required.extend(is_required.then_some(*name));
            }
            Self::Flattened(specs) => specs.iter().for_each(|spec| spec.add_to(properties, required, schemas)),
        }
    }
}

impl FieldLookup for &'static [FieldSpec] {
    fn canonical(&self, name: &str) -> Option<&'static str> {
        FieldSpec::find(self, &|known, spec| match spec {
            FieldSpec::Named { aliases, .. } => known == name || aliases.contains(&name),
            FieldSpec::Flattened(_) => false,
        })
    }

    fn replacement(&self, name: &str) -> Option<&'static str> {
        FieldSpec::find(self, &|_, spec| match spec {
            FieldSpec::Named { foreign, .. } => foreign.contains(&name),
            FieldSpec::Flattened(_) => false,
        })
    }
}

/// An object of a request body. `#[derive(RequestObject)]` implements it.
pub trait RequestObject: Sized {
    const FIELDS: &'static [FieldSpec];

    /// The schema, or a reference to it.
    fn schema(schemas: &mut Schemas) -> Value;

    /// Parses all fields; errors go to the diagnostics. `None` if a required field is missing or invalid.
    fn read_fields(reader: &mut FieldReader<'_, '_>) -> Option<Self>;
}

/// Reads a field's value; its schema states what the reader accepts.
pub trait RequestValue {
    type Value;

    fn schema(schemas: &mut Schemas) -> Value;

    fn parse(value: &RawValue) -> Result<Self::Value, String>;
}

/// The fields of one object, and the errors and warnings found so far.
pub struct FieldReader<'r, 'a> {
    pub fields: &'r ObjectFields<'a>,
    /// Precedes the names in messages: empty, or `steps[0].`.
    prefix: &'r str,
    pub notes: &'r mut FieldDiagnostics,
}

impl<'r, 'a> FieldReader<'r, 'a> {
    pub fn new(fields: &'r ObjectFields<'a>, notes: &'r mut FieldDiagnostics) -> Self {
        Self { fields, prefix: "", notes }
    }

    /// Reads an object inside a body; `prefix` precedes the names in messages, like `steps[0].`.
    pub fn nested(fields: &'r ObjectFields<'a>, prefix: &'r str, notes: &'r mut FieldDiagnostics) -> Self {
        Self { fields, prefix, notes }
    }

    /// Parses a field. `None` if it is absent, null or invalid.
    pub fn optional<T>(&mut self, name: &str, parse: impl Fn(&RawValue) -> Result<T, String>) -> Option<T> {
        parse(self.fields.value(name)?).map_err(|error| self.add_error(name, error)).ok()
    }

    /// As [`Self::optional`]; a field that is absent or null is an error.
    pub fn required<T>(&mut self, name: &str, parse: impl Fn(&RawValue) -> Result<T, String>) -> Option<T> {
        if !self.fields.is_present_or_misnamed(name) {
            self.add_error(name, "is required");
        }
        self.optional(name, parse)
    }

    /// As [`Self::optional`]; null has a value of its own.
    pub fn or_null<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&RawValue) -> Result<T, String>,
        null: impl FnOnce() -> T,
    ) -> Option<T> {
        if self.fields.is_null(name) { Some(null()) } else { self.optional(name, parse) }
    }

    /// As [`Self::optional`]; `Some(None)` for null.
    pub fn nullable<T>(&mut self, name: &str, parse: impl Fn(&RawValue) -> Result<T, String>) -> Option<Option<T>> {
        self.or_null(name, |value| parse(value).map(Some), || None)
    }

    /// Adds an error of a field.
    pub(crate) fn add_error(&mut self, name: &str, error: impl Into<String>) {
        self.notes.errors.add(&format!("{}{name}", self.prefix), error);
    }
}

/// Parses a body.
///
/// # Errors
/// The body is not a JSON object, or all errors of its fields.
pub fn read_body<T: RequestObject>(call: &Request) -> Result<T, Problem> {
    let mut notes = FieldDiagnostics::default();
    let fields = call.body_fields(&T::FIELDS, &mut notes)?;
    finish(call, T::read_fields(&mut FieldReader::new(&fields, &mut notes)), notes)
}

/// As [`read_body`]; `check` adds the errors of fields that do not fit together.
pub fn read_checked_body<T: RequestObject>(
    call: &Request,
    check: impl FnOnce(&T, &ObjectFields<'_>, &mut FieldDiagnostics),
) -> Result<T, Problem> {
    let mut notes = FieldDiagnostics::default();
    let fields = call.body_fields(&T::FIELDS, &mut notes)?;
    let parsed = T::read_fields(&mut FieldReader::new(&fields, &mut notes));
    if let Some(parsed) = &parsed {
        check(parsed, &fields, &mut notes);
    }
    finish(call, parsed, notes)
}

/// As [`read_body`]; a field that is not known is an error.
pub fn read_strict_body<T: RequestObject>(call: &Request) -> Result<T, Problem> {
    let mut notes = FieldDiagnostics::default();
    let mut object = fields::parse_body(&call.body)?;
    object.0.retain(|(name, _)| {
        let is_known = T::FIELDS.canonical(name).is_some();
        if !is_known {
            notes.errors.add(&fields::printable_name(name), "is not a known setting");
        }
        is_known
    });
    let fields = ObjectFields::from_object(object, &T::FIELDS, "", &mut notes);
    finish(call, T::read_fields(&mut FieldReader::new(&fields, &mut notes)), notes)
}

/// Names of fields that another operation sets, each with the error that says which.
pub type RejectedFields = &'static [(&'static str, &'static str)];

struct WithRejected(&'static [FieldSpec], RejectedFields);

impl FieldLookup for WithRejected {
    fn canonical(&self, name: &str) -> Option<&'static str> {
        let rejected = || self.1.iter().find(|(rejected, _)| *rejected == name).map(|(rejected, _)| *rejected);
        self.0.canonical(name).or_else(rejected)
    }

    fn replacement(&self, name: &str) -> Option<&'static str> {
        self.0.replacement(name)
    }
}

/// As [`read_body`]; the rejected fields are errors, also if they are null.
pub fn read_body_rejecting<T: RequestObject>(call: &Request, rejected: RejectedFields) -> Result<T, Problem> {
    let mut notes = FieldDiagnostics::default();
    let fields = call.body_fields(&WithRejected(T::FIELDS, rejected), &mut notes)?;
    for (name, error) in rejected.iter().filter(|(name, _)| fields.value(name).is_some() || fields.is_null(name)) {
        notes.errors.add(name, *error);
    }
    finish(call, T::read_fields(&mut FieldReader::new(&fields, &mut notes)), notes)
}

/// As [`read_body`]; an empty body is an object without fields.
pub fn read_optional_body<T: RequestObject>(call: &Request) -> Result<T, Problem> {
    let mut notes = FieldDiagnostics::default();
    let fields = call.optional_body_fields(&T::FIELDS, &mut notes)?;
    finish(call, T::read_fields(&mut FieldReader::new(&fields, &mut notes)), notes)
}

/// The parsed body unless there are errors. Warnings go to the response.
fn finish<T>(call: &Request, parsed: Option<T>, mut notes: FieldDiagnostics) -> Result<T, Problem> {
    call.warnings.borrow_mut().append(&mut notes.warnings);
    parsed.filter(|_| notes.errors.is_empty()).ok_or_else(|| notes.errors.into())
}

/// Parses an object inside a body. `path` is its name in messages.
pub fn read_nested<T: RequestObject>(value: &RawValue, path: &str, notes: &mut FieldDiagnostics) -> Option<T> {
    let object = match fields::parse_object(value) {
        Ok(object) => object,
        Err(error) => {
            notes.errors.add(path, error);
            return None;
        }
    };
    let prefix = format!("{path}.");
    let fields = ObjectFields::from_object(object, &T::FIELDS, &prefix, notes);
    T::read_fields(&mut FieldReader::nested(&fields, &prefix, notes))
}

/// Parses a list of objects; errors name the index. `None` if it is absent, null or no list.
pub fn read_nested_list<T: RequestObject>(
    fields: &ObjectFields<'_>,
    name: &str,
    entries_max: usize,
    notes: &mut FieldDiagnostics,
) -> Option<Vec<T>> {
    let entries = fields::parse_list(fields.value(name)?, entries_max);
    let entries = entries.map_err(|error| notes.errors.add(name, error)).ok()?.into_iter().enumerate();
    Some(entries.filter_map(|(index, entry)| read_nested(entry, &format!("{name}[{index}]"), notes)).collect())
}

/// The schema of an object with these fields.
pub fn object_schema(schemas: &mut Schemas, description: &str, specs: &[FieldSpec]) -> Value {
    let (mut properties, mut required) = (Vec::new(), Vec::new());
    specs.iter().for_each(|spec| spec.add_to(&mut properties, &mut required, schemas));
    schema::object_with(description, &required, properties)
}

/// Lets a field's schema accept null as well.
pub fn nullable_schema(mut value: Value) -> Value {
    schema::allow_null(&mut value);
    value
}

/// A constant schema of a reader.
pub fn bounded_text_schema(bytes_min: usize, bytes_max: usize) -> Value {
    let mut text = json!({"type": "string", "maxLength": bytes_max});
    if bytes_min > 0 {
        text["minLength"] = json!(bytes_min);
    }
    text
}
