//! Reads the typed fields of a JSON body and collects all errors, so that one response reports every one of them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use mail::affiliate::money::{BasisPoints, CENTS_MAX, Currency, CurrencyError};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields::{self, FieldDiagnostics, FieldNames, JsonObject, ObjectFields};
use crate::problem::Problem;
use crate::request::Request;

/// The fields of one object with the errors and warnings found so far.
pub(super) struct BodyFieldReader<'a> {
    fields: ObjectFields<'a>,
    diagnostics: FieldDiagnostics,
    prefix: String,
    /// The request that receives the warnings; `None` for a nested object.
    call: Option<&'a Request>,
}

impl<'a> BodyFieldReader<'a> {
    /// Reads a required body.
    pub(super) fn from_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        Ok(Self {
            fields: call.body_fields(names, &mut notes)?,
            diagnostics: notes,
            prefix: String::new(),
            call: Some(call),
        })
    }

    /// Reads an optional body.
    pub(super) fn from_optional_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        Ok(Self {
            fields: call.optional_body_fields(names, &mut notes)?,
            diagnostics: notes,
            prefix: String::new(),
            call: Some(call),
        })
    }

    /// Reads a body in which unknown fields are errors.
    pub(super) fn from_strict_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let JsonObject(fields) = fields::parse_body(&call.body)?;
        let mut notes = FieldDiagnostics::default();
        for (name, _) in &fields {
            if !names.known.iter().any(|(known, _)| known == name) {
                notes.errors.add(&fields::printable_name(name), "is not a known setting");
            }
        }
        let fields = ObjectFields::from_object(JsonObject(fields), names, "", &mut notes);
        Ok(Self { fields, diagnostics: notes, prefix: String::new(), call: Some(call) })
    }

    /// Reads an object inside a field. Returns `None` and records an error if the value is not an object.
    pub(super) fn from_nested_object(
        value: &'a RawValue,
        names: &FieldNames,
        path: &str,
        notes: &mut FieldDiagnostics,
    ) -> Option<Self> {
        match fields::parse_object(value) {
            Ok(object) => {
                let prefix = format!("{path}.");
                let mut nested_notes = std::mem::take(notes);
                let fields = ObjectFields::from_object(object, names, &prefix, &mut nested_notes);
                Some(Self { fields, diagnostics: nested_notes, prefix, call: None })
            }
            Err(reason) => {
                notes.errors.add(path, reason);
                None
            }
        }
    }

    /// Reads a field. Returns `None` if it is absent, null or invalid; an invalid value is recorded.
    pub(super) fn read_optional<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<T> {
        let parsed = self.fields.value(name).map(parse)?;
        parsed.map_err(|reason| self.add_error(name, reason)).ok()
    }

    /// Reads a field that null clears: `Some(None)` for null.
    pub(super) fn read_nullable<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<Option<T>> {
        if self.fields.is_null(name) {
            return Some(None);
        }
        self.read_optional(name, parse).map(Some)
    }

    /// Reads a text field that null or an empty text clears.
    pub(super) fn read_nullable_text(&mut self, name: &str, bytes_max: usize) -> Option<Option<String>> {
        let text = self.read_nullable(name, |value| fields::parse_header_line(value, bytes_max))?;
        Some(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// The unparsed value of a field.
    pub(super) fn raw_value(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.value(name)
    }

    /// Returns whether the field is present and not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.is_present_or_misnamed(name)
    }

    /// Records an error if the field is absent.
    pub(super) fn require(&mut self, name: &str) {
        if !self.fields.is_present_or_misnamed(name) {
            self.add_error(name, "is required");
        }
    }

    /// Records an error for each of the named fields that is present, because another operation sets them.
    pub(super) fn reject_fields(&mut self, names: &[&str], reason: &str) {
        for name in names {
            if self.fields.value(name).is_some() || self.fields.is_null(name) {
                self.add_error(name, reason);
            }
        }
    }

    /// Records an error of a field.
    pub(super) fn add_error(&mut self, name: &str, reason: impl Into<String>) {
        self.diagnostics.errors.add(&format!("{}{name}", self.prefix), reason);
    }

    /// The errors and warnings so far, to share them with a nested reader.
    pub(super) fn diagnostics_mut(&mut self) -> &mut FieldDiagnostics {
        &mut self.diagnostics
    }

    /// Ends a nested reader and returns its errors and warnings.
    pub(super) fn into_diagnostics(self) -> FieldDiagnostics {
        self.diagnostics
    }

    /// Passes the warnings to the request and returns the errors, if any.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        if let Some(call) = self.call {
            call.warnings.borrow_mut().append(&mut self.diagnostics.warnings);
        }
        if self.diagnostics.errors.is_empty() { Ok(()) } else { Err(self.diagnostics.errors.into()) }
    }
}

/// Parses a text by the type's `FromStr`.
pub(super) fn parse_from_text<T: FromStr<Err: Display>>(value: &RawValue) -> Result<T, String> {
    fields::parse_text(value)?.trim().parse().map_err(|error: T::Err| error.to_string())
}

/// Parses an ISO 4217 currency that is in use.
pub(super) fn parse_currency(value: &RawValue) -> Result<Currency, String> {
    parse_currency_text(&fields::parse_text(value)?)
}

/// Like [`parse_currency`], from text.
pub(super) fn parse_currency_text(text: &str) -> Result<Currency, String> {
    let currency: Currency = text.trim().parse().map_err(|error: CurrencyError| error.to_string())?;
    let error = || format!("`{currency}` is not a currency in use (ISO 4217)");
    currency.is_in_use().then_some(currency).ok_or_else(error)
}

/// Parses one of a closed set of words.
pub(super) fn parse_word<T>(all: &[&str], parse: impl Fn(&str) -> Option<T>, value: &RawValue) -> Result<T, String> {
    let text = fields::parse_text(value)?;
    parse(&text).ok_or_else(|| format!("must be one of {}", all.join(", ")))
}

/// Parses a whole number within the range.
pub(super) fn parse_integer<T>(value: &RawValue, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = value.get().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// Parses a non-negative amount in minor units.
pub(super) fn parse_cents(value: &RawValue) -> Result<i64, String> {
    parse_integer(value, 0..=CENTS_MAX)
}

/// Parses a rate in basis points.
pub(super) fn parse_basis_points(value: &RawValue) -> Result<BasisPoints, String> {
    let points = parse_integer(value, 0..=BasisPoints::ALL.get())?;
    BasisPoints::try_from(points).map_err(|error| error.to_string())
}

/// Parses an RFC 3339 time with an offset.
pub(super) fn parse_time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::parse_text(value)?;
    text.parse().map_err(|_| "must be a time with its offset, like `2026-01-01T10:00:00Z`".to_owned())
}

/// Parses a time with an offset, or Unix seconds as a number or text.
pub(super) fn parse_time_or_unix(value: &RawValue) -> Result<Timestamp, String> {
    let seconds = value.get().trim_matches('"').parse::<i64>();
    match seconds {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|_| "is not a valid time".to_owned()),
        Err(_) => parse_time(value),
    }
}

/// Parses multi-line text; line breaks and tabs are the only control characters allowed.
pub(super) fn parse_multiline_text(value: &RawValue, bytes_max: usize) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    if text.len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err("must not contain control characters".to_owned());
    }
    Ok(text.into_owned())
}

/// Schema of a text with a maximum length.
pub(super) fn text_schema(bytes_max: usize, description: &str) -> Value {
    json!({"type": "string", "maxLength": bytes_max, "description": description})
}

/// Schema of a nullable text with a maximum length.
pub(super) fn nullable_text_schema(bytes_max: usize, description: &str) -> Value {
    json!({"type": ["string", "null"], "maxLength": bytes_max, "description": description})
}

/// Schema of a whole number within a range.
pub(super) fn integer_schema(range: RangeInclusive<i64>, description: &str) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end(), "description": description})
}

/// Schema of an amount in minor units.
pub(super) fn cents_schema(description: &str) -> Value {
    integer_schema(0..=CENTS_MAX, description)
}

/// Schema of a rate in basis points.
pub(super) fn bps_schema(description: &str) -> Value {
    integer_schema(0..=BasisPoints::ALL.get().into(), description)
}
