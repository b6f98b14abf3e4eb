//! JSON parser for untrusted input: typed access to fields by path, with errors that name the field.
//!
//! Memory holds only the text and an index of one object's fields, whose number is bounded. Other values are skipped
//! by a parser that does not recurse. So neither nesting depth, nor millions of small fields, nor duplicate names cost
//! more memory than the text.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use model::affiliate::money::Currency;
use serde::de::{Deserialize, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use super::metadata::MetadataKeys;
use super::state_version::StateVersion;

/// Maximum length of an id (Stripe documents 255).
const ID_BYTES_MAX: usize = 255;
/// Maximum length of an email (RFC 5321 4.5.3.1, with some margin).
const EMAIL_BYTES_MAX: usize = 320;
/// Maximum entries of a list in an object; what does not fit on its first page is fetched separately.
const ENTRIES_MAX: usize = 1_000;
/// Maximum fields of an object (Stripe's have about 100, and up to 50 of metadata).
const FIELDS_MAX: usize = 1_000;
/// Maximum amount in minor units. A million such amounts still fit into a 64-bit sum.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000;
/// Maximum size of an object, in a list or by itself.
pub const OBJECT_BYTES_MAX: usize = 64 << 10;
pub const PAGE_OBJECTS: usize = 100;
/// Maximum size of a page: all objects of the maximum size, and the text between them.
pub const PAGE_BYTES_MAX: usize = PAGE_OBJECTS * OBJECT_BYTES_MAX + (64 << 10);

/// Result of parsing the processor's JSON.
pub(super) type JsonResult<T, E = JsonReadError> = std::result::Result<T, E>;

/// The processor's JSON is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct JsonReadError {
    /// Path from the body's root, e.g. `data.object.lines.data[2].amount`; `body` for the whole body.
    pub field: String,
    pub problem: FieldProblem,
}

/// Why a field is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FieldProblem {
    /// Not JSON, or nested too deep.
    #[error("is not JSON")]
    NotJson,
    /// Has a field name that is reserved by the JSON library ([`model::json`]).
    #[error("has a field with a reserved name")]
    ReservedName,
    #[error("is missing")]
    Missing,
    #[error("is not an object")]
    NotAnObject,
    #[error("is not a list")]
    NotAList,
    /// Has more entries than the limit.
    #[error("has more than {ENTRIES_MAX} entries")]
    TooMany,
    /// Has more objects than a page may have.
    #[error("has more than {PAGE_OBJECTS} objects")]
    PageTooLong,
    /// Has more fields than the limit.
    #[error("has more than {FIELDS_MAX} fields")]
    TooManyFields,
    /// An object of a list exceeds the size limit.
    #[error("is larger than {OBJECT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("is not a string")]
    NotText,
    /// Neither an id nor an object with one.
    #[error("is not an id: a string of up to {ID_BYTES_MAX} bytes without control characters")]
    NotAnId,
    #[error("is not a 64-bit integer")]
    NotAnAmount,
    /// Larger than any plausible sale.
    #[error("exceeds {AMOUNT_MAX} minor units")]
    AmountTooLarge,
    #[error("is negative")]
    Negative,
    #[error("is not a currency: three letters (ISO 4217)")]
    NotACurrency,
    #[error("is not a time: whole seconds since 1970")]
    NotATime,
    #[error("is neither true nor false")]
    NotAFlag,
}

/// Context of a parser.
#[derive(Debug, Clone, Copy)]
pub struct ReadContext<'a> {
    /// Names of the metadata fields to read.
    pub keys: &'a MetadataKeys,
    /// Version of the object's state.
    pub as_of: StateVersion,
}

/// An object of the processor, parsed from its JSON.
pub trait StripeObject: Sized {
    /// Parses an object of an event.
    ///
    /// # Errors
    /// A needed field is missing or invalid.
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> JsonResult<Self>;

    /// Parses a fetched object.
    ///
    /// # Errors
    /// A needed field is missing or invalid.
    fn read(json: &str, reading: &ReadContext<'_>) -> JsonResult<Self> {
        Self::from_json(&ProcessorJsonObject::parse(json, "")?, reading)
    }
}

/// Returns an error about the whole body.
pub(super) fn body_error(problem: FieldProblem) -> JsonReadError {
    JsonReadError { field: "body".to_owned(), problem }
}

/// Checks that a body is JSON, and returns its text.
pub(super) fn json(body: &[u8]) -> JsonResult<&str> {
    let text = std::str::from_utf8(body).ok();
    let read = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    read.map(RawValue::get).ok_or_else(|| body_error(FieldProblem::NotJson))
}

/// A string; copied only if it contains escapes.
#[derive(serde::Deserialize)]
struct JsonString<'a>(#[serde(borrow)] Cow<'a, str>);

fn parse_text(json: &str) -> Option<Cow<'_, str>> {
    Some(serde_json::from_str::<JsonString<'_>>(json).ok()?.0)
}

/// Fields of an object, in order.
struct JsonFields<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de> Deserialize<'de> for JsonFields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> JsonResult<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = JsonFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> JsonResult<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((JsonString(name), value)) = map.next_entry::<JsonString<'de>, &'de RawValue>()? {
                    if fields.len() == FIELDS_MAX {
                        return Err(A::Error::custom(FieldProblem::TooManyFields));
                    }
                    fields.push((name, value.get()));
                }
                Ok(JsonFields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Returns the field of this name, the last one of several; `None` if `json` is not an object.
pub(super) fn field_of<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    struct FieldVisitor<'n>(&'n str);
    impl<'de> Visitor<'de> for FieldVisitor<'_> {
        type Value = Option<&'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> JsonResult<Self::Value, A::Error> {
            let mut found = None;
            while let Some(JsonString(name)) = map.next_key::<JsonString<'de>>()? {
                if name == self.0 {
                    found = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    let found = serde_json::Deserializer::from_str(json).deserialize_map(FieldVisitor(name)).ok()?;
    found.map(RawValue::get).filter(|value| *value != "null")
}

/// Returns the string in a field of an object.
pub(super) fn text_in<'a>(json: &'a str, name: &str) -> Option<Cow<'a, str>> {
    parse_text(field_of(json, name)?)
}

/// Returns the elements of a list; `None` if there are more than `limit`, or it is not a list.
pub(super) fn elements(json: &str, limit: usize) -> Option<Vec<&str>> {
    struct ElementsVisitor(usize);
    impl<'de> Visitor<'de> for ElementsVisitor {
        type Value = Vec<&'de str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> JsonResult<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = list.next_element::<&'de RawValue>()? {
                if elements.len() == self.0 {
                    return Err(A::Error::custom("too many"));
                }
                elements.push(element.get());
            }
            Ok(elements)
        }
    }
    serde_json::Deserializer::from_str(json).deserialize_seq(ElementsVisitor(limit)).ok()
}

/// An object and its path. Fields are accessed by path, e.g. `price`, `pricing.price_details.price`; `null` counts as
/// absent.
pub struct ProcessorJsonObject<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
    /// Path prefix with its dot; empty at the root.
    path: String,
}

/// Entries of a list in an object, parsed one by one.
pub(super) struct JsonEntries<'a> {
    list: Vec<&'a str>,
    path: String,
}

impl<'a> JsonEntries<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = JsonResult<ProcessorJsonObject<'a>>> {
        let item =
            |(index, json): (usize, &&'a str)| ProcessorJsonObject::parse(json, &format!("{}[{index}]", self.path));
        self.list.iter().enumerate().map(item)
    }
}

impl<'a> ProcessorJsonObject<'a> {
    /// Parses an object; `object_path` is its path, empty for the root.
    pub(super) fn parse(json: &'a str, object_path: &str) -> JsonResult<Self> {
        let read_error = |problem| {
            let field = if object_path.is_empty() { "body" } else { object_path };
            JsonReadError { field: field.to_owned(), problem }
        };
        if !json.trim_start().starts_with('{') {
            return Err(read_error(FieldProblem::NotAnObject));
        }
        let JsonFields(fields) = serde_json::from_str(json).map_err(|error| {
            read_error(if error.is_data() { FieldProblem::TooManyFields } else { FieldProblem::NotJson })
        })?;
        let path = if object_path.is_empty() { String::new() } else { format!("{object_path}.") };
        Ok(Self { fields, path })
    }

    /// Returns the JSON at a path, if present.
    pub(super) fn find(&self, field_path: &str) -> Option<&'a str> {
        let mut parts = field_path.split('.');
        let name = parts.next()?;
        let (_, json) = self.fields.iter().rev().find(|(field_name, _)| field_name == name)?;
        let found = parts.try_fold(*json, field_of)?;
        Some(found).filter(|json| *json != "null")
    }

    /// True if the string at a path equals `text`.
    pub(super) fn has_text(&self, field_path: &str, text: &str) -> bool {
        self.find(field_path).and_then(parse_text).is_some_and(|found| found == text)
    }

    /// Returns an error about a path.
    pub(super) fn error_at(&self, field_path: &str, problem: FieldProblem) -> JsonReadError {
        JsonReadError { field: format!("{}{field_path}", self.path), problem }
    }

    /// Parses the value at a path, if present.
    fn read<T>(
        &self,
        field_path: &str,
        problem: FieldProblem,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> JsonResult<Option<T>> {
        let Some(json) = self.find(field_path) else { return Ok(None) };
        read(json).map(Some).ok_or_else(|| self.error_at(field_path, problem))
    }

    /// Returns the value, or an error if it is missing.
    pub(super) fn required<T>(&self, field_path: &str, found: Option<T>) -> JsonResult<T> {
        found.ok_or_else(|| self.error_at(field_path, FieldProblem::Missing))
    }

    /// Returns the object at a path where an id may be instead.
    pub(super) fn expanded(&self, field_path: &str) -> JsonResult<Option<Self>> {
        let found = self.find(field_path).filter(|json| json.starts_with('{'));
        found.map(|json| Self::parse(json, &format!("{}{field_path}", self.path))).transpose()
    }

    /// Returns the objects of a list, given directly or as `data` of an object; empty if absent.
    pub(super) fn objects(&self, field_path: &str) -> JsonResult<JsonEntries<'a>> {
        let (field_path, list) = match self.find(field_path) {
            Some(json) if json.starts_with('{') => (format!("{field_path}.data"), field_of(json, "data")),
            found => (field_path.to_owned(), found),
        };
        let list = match list {
            None => Vec::new(),
            Some(json) if !json.starts_with('[') => return Err(self.error_at(&field_path, FieldProblem::NotAList)),
            Some(json) => {
                elements(json, ENTRIES_MAX).ok_or_else(|| self.error_at(&field_path, FieldProblem::TooMany))?
            }
        };
        Ok(JsonEntries { list, path: format!("{}{field_path}", self.path) })
    }

    /// Returns an id, or the id of the expanded object. An empty id counts as absent.
    pub(super) fn id(&self, field_path: &str) -> JsonResult<Option<String>> {
        let id = self.read(field_path, FieldProblem::NotAnId, |json| {
            if json.starts_with('{') { text_in(json, "id") } else { parse_text(json) }
        })?;
        let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
        if id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
            return Err(self.error_at(field_path, FieldProblem::NotAnId));
        }
        Ok(Some(id.into_owned()))
    }

    pub(super) fn first_id(&self, field_paths: &[&str]) -> JsonResult<Option<String>> {
        field_paths.iter().map(|field_path| self.id(field_path)).find(|id| !matches!(id, Ok(None))).unwrap_or(Ok(None))
    }

    pub(super) fn required_id(&self, field_path: &str) -> JsonResult<String> {
        self.required(field_path, self.id(field_path)?)
    }

    pub(super) fn text(&self, field_path: &str) -> JsonResult<Option<Cow<'a, str>>> {
        self.read(field_path, FieldProblem::NotText, parse_text)
    }

    /// Returns the first email at one of these paths, in lowercase. One that is too long counts as absent.
    pub(super) fn email(&self, field_paths: &[&str]) -> JsonResult<Option<String>> {
        for field_path in field_paths {
            let text = self.text(field_path)?.unwrap_or_default();
            let email = text.trim();
            if (1..=EMAIL_BYTES_MAX).contains(&email.len()) {
                return Ok(Some(email.to_lowercase()));
            }
        }
        Ok(None)
    }

    /// Returns an amount in minor units, with an absolute value up to [`AMOUNT_MAX`].
    pub(super) fn amount(&self, field_path: &str) -> JsonResult<Option<i64>> {
        let amount: Option<i64> =
            self.read(field_path, FieldProblem::NotAnAmount, |json| serde_json::from_str(json).ok())?;
        if amount.is_some_and(|amount| !(-AMOUNT_MAX..=AMOUNT_MAX).contains(&amount)) {
            return Err(self.error_at(field_path, FieldProblem::AmountTooLarge));
        }
        Ok(amount)
    }

    pub(super) fn required_amount(&self, field_path: &str) -> JsonResult<i64> {
        self.required(field_path, self.amount(field_path)?)
    }

    pub(super) fn non_negative_amount(&self, field_path: &str) -> JsonResult<Option<i64>> {
        match self.amount(field_path)? {
            Some(amount) if amount < 0 => Err(self.error_at(field_path, FieldProblem::Negative)),
            share => Ok(share),
        }
    }

    pub(super) fn required_non_negative_amount(&self, field_path: &str) -> JsonResult<i64> {
        self.required(field_path, self.non_negative_amount(field_path)?)
    }

    /// Sums the amounts of the entries of a list for which `counts` returns true; `None` if the list is empty.
    pub(super) fn sum(
        &self,
        field_path: &str,
        counts: impl Fn(&ProcessorJsonObject<'a>) -> bool,
    ) -> JsonResult<Option<i64>> {
        let entries = self.objects(field_path)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut sum = 0_i64;
        for entry in entries.iter() {
            let entry = entry?;
            if counts(&entry) {
                let amount = entry.required_amount("amount")?;
                sum = sum.checked_add(amount).ok_or_else(|| entry.error_at("amount", FieldProblem::AmountTooLarge))?;
            }
        }
        Ok(Some(sum))
    }

    pub(super) fn currency(&self, field_path: &str) -> JsonResult<Option<Currency>> {
        self.read(field_path, FieldProblem::NotACurrency, |json| parse_text(json)?.parse().ok())
    }

    pub(super) fn required_currency(&self) -> JsonResult<Currency> {
        self.required("currency", self.currency("currency")?)
    }

    /// Returns a time given in whole seconds.
    pub(super) fn time(&self, field_path: &str) -> JsonResult<Option<Timestamp>> {
        self.read(field_path, FieldProblem::NotATime, |json| {
            Timestamp::from_second(serde_json::from_str(json).ok()?).ok()
        })
    }

    pub(super) fn flag(&self, field_path: &str) -> JsonResult<Option<bool>> {
        self.read(field_path, FieldProblem::NotAFlag, |json| serde_json::from_str(json).ok())
    }

    /// True if a flag is present and set.
    pub(super) fn is_set(&self, field_path: &str) -> JsonResult<bool> {
        Ok(self.flag(field_path)?.unwrap_or(false))
    }
}
