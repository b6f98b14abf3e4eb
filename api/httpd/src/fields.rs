//! Parses JSON objects field by field, so that all errors of a request are reported at once.
//!
//! An object is split into names and raw values (borrowed, unparsed); each value is then parsed to its field's type.
//! Only requested values are built: an unknown field costs one pass over its bytes, and lists are bounded while they
//! are read.
//!
//! Names: aliases map to the canonical name. PascalCase names of other providers are rejected with the canonical name.
//! Other unknown names are ignored and reported in `warnings`; if the request fails, in
//! `details.warnings`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use message::address_pattern::AddressPattern;
use model::tags::check_line;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::problem::{ErrorCode, FieldErrors, Problem};

/// Maximum number of fields of an object.
pub const FIELDS_MAX: usize = 100;
/// Maximum number of warnings per response.
pub const WARNINGS_MAX: usize = 20;
/// Unknown names are truncated to this length in messages.
const NAME_SHOWN_CHARS_MAX: usize = 64;

/// The field names that an object accepts.
#[derive(Debug)]
pub struct FieldNames {
    /// Accepted names with their canonical names; a canonical name maps to itself.
    pub known: &'static [(&'static str, &'static str)],
    /// Names of other providers with the canonical name to use instead.
    pub foreign: &'static [(&'static str, &'static str)],
}

/// Finds the field that a name in a request means.
pub trait FieldLookup {
    /// The canonical name of an accepted name.
    fn canonical(&self, name: &str) -> Option<&'static str>;
    /// The name to use instead of another provider's name.
    fn replacement(&self, name: &str) -> Option<&'static str>;
}

impl FieldLookup for FieldNames {
    fn canonical(&self, name: &str) -> Option<&'static str> {
        self.known.iter().find(|(known, _)| *known == name).map(|(_, canonical)| *canonical)
    }

    fn replacement(&self, name: &str) -> Option<&'static str> {
        self.foreign.iter().find(|(foreign, _)| *foreign == name).map(|(_, canonical)| *canonical)
    }
}

/// A row of a table of fields.
pub trait NamedField {
    /// The canonical name.
    fn name(&self) -> &'static str;
    /// Other accepted names.
    fn aliases(&self) -> &'static [&'static str];
    /// Names of other providers, which are rejected with the hint to use the canonical name.
    fn foreign(&self) -> &'static [&'static str];
}

impl<F: NamedField> FieldLookup for &[F] {
    fn canonical(&self, name: &str) -> Option<&'static str> {
        let row = self.iter().find(|field| field.name() == name || field.aliases().contains(&name))?;
        Some(row.name())
    }

    fn replacement(&self, name: &str) -> Option<&'static str> {
        self.iter().find(|field| field.foreign().contains(&name)).map(|field| field.name())
    }
}

/// Errors and warnings found so far.
#[derive(Debug, Default)]
pub struct FieldDiagnostics {
    pub errors: FieldErrors,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
}

impl FieldDiagnostics {
    /// Adds a warning, up to the maximum.
    pub fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.errors.add_ignored(text.clone());
            self.warnings.push(text);
        }
    }
}

/// The fields of an object by canonical name.
#[derive(Debug, Default)]
pub struct ObjectFields<'a> {
    fields: Vec<(&'static str, &'a RawValue)>,
    /// Canonical names that were meant by a rejected name.
    misnamed: Vec<&'static str>,
}

impl<'a> ObjectFields<'a> {
    /// Maps the fields of an object to canonical names. `prefix` precedes names in messages.
    pub fn from_object(
        object: JsonObject<'a>,
        names: &dyn FieldLookup,
        prefix: &str,
        notes: &mut FieldDiagnostics,
    ) -> Self {
        let mut object_fields = Self::default();
        for (name, value) in object.0 {
            let full_name = || format!("{prefix}{}", printable_name(&name));
            if let Some(canonical) = names.canonical(&name) {
                if object_fields.fields.iter().any(|(n, _)| *n == canonical) {
                    notes.errors.add(&format!("{prefix}{canonical}"), "is given more than once");
                } else {
                    object_fields.fields.push((canonical, value));
                }
            } else if let Some(expected) = names.replacement(&name) {
                notes.errors.add(&full_name(), format!("`{name}` is not accepted; use `{expected}`"));
                object_fields.misnamed.push(expected);
            } else if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                let text = format!("`{}` is not accepted; names are written like `reply_to`", printable_name(&name));
                notes.errors.add(&full_name(), text);
            } else {
                notes.warn(format!("`{}` is not a known field and was ignored", full_name()));
            }
        }
        object_fields
    }

    /// All fields, by canonical name.
    pub fn fields(&self) -> &[(&'static str, &'a RawValue)] {
        &self.fields
    }

    /// The value of a field; `None` if absent or null.
    pub fn value(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.fields.iter().find(|(n, _)| *n == name)?;
        Some(*value).filter(|value| JsonKind::of_value(value) != JsonKind::Null)
    }

    /// Parses an optional field. An error goes to the diagnostics.
    pub fn read<T>(
        &self,
        name: &str,
        parse: impl Fn(&RawValue) -> Result<T, String>,
        notes: &mut FieldDiagnostics,
    ) -> Option<T> {
        parse(self.value(name)?).map_err(|text| notes.errors.add(name, text)).ok()
    }

    /// Returns whether the field is present and null.
    pub fn is_null(&self, name: &str) -> bool {
        self.fields.iter().any(|(n, value)| *n == name && JsonKind::of_value(value) == JsonKind::Null)
    }

    /// Returns whether the field is present, or was meant by a rejected name.
    pub fn is_present_or_misnamed(&self, name: &str) -> bool {
        self.value(name).is_some() || self.misnamed.contains(&name)
    }
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    Text,
    List,
    Object,
    Boolean,
    Null,
    Number,
}

impl JsonKind {
    pub fn of_value(value: &RawValue) -> Self {
        match value.get().as_bytes().first() {
            Some(b'"') => Self::Text,
            Some(b'[') => Self::List,
            Some(b'{') => Self::Object,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

/// Parses an optional body; an empty body is an object without fields.
pub fn parse_optional_body(body: &[u8]) -> Result<JsonObject<'_>, Problem> {
    if body.trim_ascii().is_empty() { Ok(JsonObject(Vec::new())) } else { self::parse_body(body) }
}

/// Splits a body into fields.
///
/// # Errors
/// `invalid_json`, or `validation_error` if the body is not an object.
pub fn parse_body(bytes: &[u8]) -> Result<JsonObject<'_>, Problem> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Problem::new(ErrorCode::INVALID_JSON, "The body is not UTF-8"))?;
    serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            if let Some(found) = non_object_kind(text) {
                let message = format!("The body must be a JSON object (`{{…}}`), not {found}");
                return Problem::new(ErrorCode::VALIDATION_ERROR, message);
            }
            return Problem::new(ErrorCode::VALIDATION_ERROR, error.to_string());
        }
        Problem::new(ErrorCode::INVALID_JSON, format!("The body is not JSON: {error}"))
    })
}

/// The kind of JSON that was given instead of an object.
fn non_object_kind(text: &str) -> Option<&'static str> {
    match text.trim_start().bytes().next()? {
        b'{' => None,
        b'[' => Some("a list"),
        b'"' => Some("a string"),
        b'n' => Some("null"),
        b't' | b'f' => Some("a boolean"),
        _ => Some("a number"),
    }
}

/// Parses a string.
///
/// # Errors
/// The value is not a string.
pub fn parse_text(value: &RawValue) -> Result<Cow<'_, str>, String> {
    if JsonKind::of_value(value) != JsonKind::Text {
        return Err("must be a string".to_owned());
    }
    // The JSON grammar was checked already: only an unpaired surrogate can fail.
    serde_json::from_str::<JsonText<'_>>(value.get()).map(|text| text.0).map_err(|_| "is not valid text".to_owned())
}

/// Parses a string for a header line: bounded, without control characters.
///
/// # Errors
/// The value is not a string, too long, or has control characters.
pub fn parse_header_line(value: &RawValue, bytes_max: usize) -> Result<String, String> {
    let text = parse_text(value)?;
    check_line(&text, bytes_max)?;
    Ok(text.into_owned())
}

/// Parses text of several lines; line breaks and tabs are the only control characters allowed.
///
/// # Errors
/// The value is not a string, too long, or has other control characters.
pub fn parse_multiline_text(value: &RawValue, bytes_max: usize) -> Result<String, String> {
    let text = parse_text(value)?;
    if text.len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(text.into_owned())
}

/// Parses a list with a maximum length.
///
/// # Errors
/// The value is not a list or has too many entries.
pub fn parse_list(value: &RawValue, entries_max: usize) -> Result<Vec<&RawValue>, String> {
    let too_many = || format!("has more than {entries_max} entries");
    let mut all = serde_json::Deserializer::from_str(value.get());
    match all.deserialize_seq(ListVisitor { entries_max, lifetime: PhantomData }) {
        Ok(Some(entries)) => Ok(entries),
        Ok(None) => Err(too_many()),
        // The JSON grammar was checked already: the value is not a list or has too many entries.
        Err(_) if JsonKind::of_value(value) == JsonKind::List => Err(too_many()),
        Err(_) => Err("must be a list".to_owned()),
    }
}

/// Parses a list of address patterns and removes duplicates.
///
/// # Errors
/// The value is not a list of patterns; the error shows the invalid entry.
pub fn parse_address_patterns(value: &RawValue, entries_max: usize) -> Result<Vec<AddressPattern>, String> {
    let mut patterns: Vec<AddressPattern> = Vec::new();
    for entry in parse_list(value, entries_max)? {
        let text = parse_text(entry).map_err(|_| "must be a list of addresses".to_owned())?;
        let pattern = text.parse().map_err(|error| format!("`{}`: {error}", printable_name(&text)))?;
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Ok(patterns)
}

/// Parses a boolean.
///
/// # Errors
/// The value is not a boolean.
pub fn parse_bool(value: &RawValue) -> Result<bool, String> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// Splits an object into fields.
///
/// # Errors
/// The value is not an object or has too many fields.
pub fn parse_object(value: &RawValue) -> Result<JsonObject<'_>, String> {
    if JsonKind::of_value(value) != JsonKind::Object {
        return Err("must be an object".to_owned());
    }
    serde_json::from_str(value.get()).map_err(|_| format!("must be an object of at most {FIELDS_MAX} fields"))
}

/// A name from a request for use in a message: truncated, without control characters.
pub fn printable_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN_CHARS_MAX).collect()
}

/// An object, split into names and unparsed values.
#[derive(Debug)]
pub struct JsonObject<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonObject<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for ObjectVisitor<'a> {
            type Value = JsonObject<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject<'a>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((JsonText(name), value)) = map.next_entry()? {
                    if fields.len() == FIELDS_MAX {
                        return Err(A::Error::custom(format_args!("more than {FIELDS_MAX} fields")));
                    }
                    fields.push((name, value));
                }
                Ok(JsonObject(fields))
            }
        }
        input.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A string, borrowed if it has no escapes.
struct JsonText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct TextVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
            type Value = JsonText<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Cow::Owned(text.to_owned())))
            }
        }
        input.deserialize_str(TextVisitor(PhantomData))
    }
}

struct ListVisitor<'a> {
    entries_max: usize,
    lifetime: PhantomData<&'a ()>,
}

impl<'de: 'a, 'a> Visitor<'de> for ListVisitor<'a> {
    type Value = Option<Vec<&'a RawValue>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if elements.len() == self.entries_max {
                return Ok(None);
            }
            elements.push(entry);
        }
        Ok(Some(elements))
    }
}
