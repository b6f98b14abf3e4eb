//! Reading the fields of a body: each by its type, everything that is wrong told at once.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use mail::affiliate::money::{BasisPoints, Currency, CurrencyError};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::Request;
use crate::fields::{self, FieldDiagnostics, FieldNames, JsonObject, ObjectFields};
use crate::problem::Problem;

/// The largest amount: what JavaScript counts exactly with, and with room for sums.
pub(super) const CENTS_MAX: i64 = 1_000_000_000_000;

/// The fields of an object, and what was wrong with them so far.
pub(super) struct BodyFieldReader<'a> {
    fields: ObjectFields<'a>,
    diagnostics: FieldDiagnostics,
    prefix: String,
    /// Who tells what was ignored; of an object in a field, who reads the body.
    call: Option<&'a Request>,
}

impl<'a> BodyFieldReader<'a> {
    /// Of a body.
    pub(super) fn from_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        Ok(Self {
            fields: call.body_fields(names, &mut notes)?,
            diagnostics: notes,
            prefix: String::new(),
            call: Some(call),
        })
    }

    /// Of a body that may be left out.
    pub(super) fn from_optional_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        Ok(Self {
            fields: call.optional_body_fields(names, &mut notes)?,
            diagnostics: notes,
            prefix: String::new(),
            call: Some(call),
        })
    }

    /// Of a body in which no other names may stand.
    pub(super) fn from_strict_body(call: &'a Request, names: &FieldNames) -> Result<Self, Problem> {
        let JsonObject(fields) = fields::parse_body(&call.body)?;
        let mut notes = FieldDiagnostics::default();
        for (name, _) in &fields {
            if !names.known.iter().any(|(known, _)| known == name) {
                notes.errors.add(&fields::printable_name(name), "is none of the keys that can be set");
            }
        }
        let given = ObjectFields::from_object(JsonObject(fields), names, "", &mut notes);
        Ok(Self { fields: given, diagnostics: notes, prefix: String::new(), call: Some(call) })
    }

    /// Of an object in a field; nothing when it is none.
    pub(super) fn from_nested_object(
        value: &'a RawValue,
        (names, place): (&FieldNames, &str),
        notes: &mut FieldDiagnostics,
    ) -> Option<Self> {
        match fields::parse_object(value) {
            Ok(object) => {
                let prefix = format!("{place}.");
                let mut own = std::mem::take(notes);
                let given = ObjectFields::from_object(object, names, &prefix, &mut own);
                Some(Self { fields: given, diagnostics: own, prefix, call: None })
            }
            Err(why) => {
                notes.errors.add(place, why);
                None
            }
        }
    }

    /// A field; nothing when it is absent, null or wrong.
    pub(super) fn read_optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<T> {
        let read = self.fields.value(name).map(read)?;
        read.map_err(|why| self.add_error(name, why)).ok()
    }

    /// A field that null takes away.
    pub(super) fn read_nullable<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<Option<T>> {
        if self.fields.is_null(name) {
            return Some(None);
        }
        self.read_optional(name, read).map(Some)
    }

    /// A text that null, or nothing in it, takes away.
    pub(super) fn read_nullable_text(&mut self, name: &str, bytes_max: usize) -> Option<Option<String>> {
        let text = self.read_nullable(name, |value| fields::parse_header_line(value, bytes_max))?;
        Some(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// What is in a field, unread.
    pub(super) fn raw_value(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.value(name)
    }

    /// Whether it was given, and not as null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.is_present_or_misnamed(name)
    }

    /// A field must be there.
    pub(super) fn require(&mut self, name: &str) {
        if !self.fields.is_present_or_misnamed(name) {
            self.add_error(name, "is required");
        }
    }

    /// Fields that another request takes: they are refused by name, with what takes them.
    pub(super) fn reject_fields(&mut self, names: &[&str], why: &str) {
        for name in names {
            if self.fields.value(name).is_some() || self.fields.is_null(name) {
                self.add_error(name, why);
            }
        }
    }

    /// A field will not do.
    pub(super) fn add_error(&mut self, name: &str, why: impl Into<String>) {
        self.diagnostics.errors.add(&format!("{}{name}", self.prefix), why);
    }

    /// What was found wrong, for what is read beside it.
    pub(super) fn diagnostics_mut(&mut self) -> &mut FieldDiagnostics {
        &mut self.diagnostics
    }

    /// The end of an object in a field: what was found wrong goes on with the others.
    pub(super) fn into_diagnostics(self) -> FieldDiagnostics {
        self.diagnostics
    }

    /// The end of the body.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        if let Some(call) = self.call {
            call.warnings.borrow_mut().append(&mut self.diagnostics.warnings);
        }
        if self.diagnostics.errors.is_empty() { Ok(()) } else { Err(self.diagnostics.errors.into()) }
    }
}

/// What a text stands for.
pub(super) fn parse_from_text<T: FromStr<Err: Display>>(value: &RawValue) -> Result<T, String> {
    fields::parse_text(value)?.trim().parse().map_err(|why: T::Err| why.to_string())
}

/// A currency that is in use.
pub(super) fn parse_currency(value: &RawValue) -> Result<Currency, String> {
    parse_currency_text(&fields::parse_text(value)?)
}

/// The same, as text.
pub(super) fn parse_currency_text(text: &str) -> Result<Currency, String> {
    let currency: Currency = text.trim().parse().map_err(|why: CurrencyError| why.to_string())?;
    let why = || format!("`{currency}` is no currency that is in use (ISO 4217)");
    currency.is_in_use().then_some(currency).ok_or_else(why)
}

/// One of a closed set of words.
pub(super) fn parse_word<T>(all: &[&str], read: impl Fn(&str) -> Option<T>, value: &RawValue) -> Result<T, String> {
    let text = fields::parse_text(value)?;
    read(&text).ok_or_else(|| format!("must be one of {}", all.join(", ")))
}

/// A whole number.
pub(super) fn parse_integer<T>(value: &RawValue, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = value.get().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// An amount in minor units, not negative.
pub(super) fn parse_cents(value: &RawValue) -> Result<i64, String> {
    parse_integer(value, 0..=CENTS_MAX)
}

/// A rate in basis points.
pub(super) fn parse_basis_points(value: &RawValue) -> Result<BasisPoints, String> {
    let points = parse_integer(value, 0..=BasisPoints::ALL.get())?;
    BasisPoints::try_from(points).map_err(|why| why.to_string())
}

/// A time with its offset.
pub(super) fn parse_time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::parse_text(value)?;
    text.parse().map_err(|_| "must be a time with its offset, like `2026-01-01T10:00:00Z`".to_owned())
}

/// A time with its offset, or Unix seconds, as a number or as a text (affiliate-admin.md 1).
pub(super) fn parse_time_or_unix(value: &RawValue) -> Result<Timestamp, String> {
    let seconds = value.get().trim_matches('"').parse::<i64>();
    match seconds {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|_| "is no time".to_owned()),
        Err(_) => parse_time(value),
    }
}

/// A text of several lines.
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

/// The schema of a text of at most so many bytes.
pub(super) fn text_schema(bytes_max: usize, description: &str) -> Value {
    json!({"type": "string", "maxLength": bytes_max, "description": description})
}

/// The schema of a text that may be null.
pub(super) fn nullable_text_schema(bytes_max: usize, description: &str) -> Value {
    json!({"type": ["string", "null"], "maxLength": bytes_max, "description": description})
}

/// The schema of a whole number.
pub(super) fn integer_schema(range: RangeInclusive<i64>, description: &str) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end(), "description": description})
}

/// The schema of an amount.
pub(super) fn cents_schema(description: &str) -> Value {
    integer_schema(0..=CENTS_MAX, description)
}

/// The schema of a rate.
pub(super) fn bps_schema(description: &str) -> Value {
    integer_schema(0..=BasisPoints::ALL.get().into(), description)
}
