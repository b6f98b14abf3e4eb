//! Reading the JSON of others: what is asked for, by the places where it may stand, or an error that names the field.
//!
//! The text itself is kept, and nothing is made of it but an index of one object's fields at a time, of a bounded number.
//! What is not asked for is skipped by a parser that does not recurse. So neither depth, nor millions of small fields or
//! elements, nor fields of the same name cost more memory than the text itself.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use mail::affiliate::money::Currency;
use serde::de::{Deserialize, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use super::as_of::StateVersion;
use super::marks::MetadataKeys;

/// Ids are not longer (Stripe says 255).
const ID_BYTES_MAX: usize = 255;
/// Addresses are not longer (RFC 5321 section 4.5.3.1, with room).
const EMAIL_BYTES_MAX: usize = 320;
/// A list in an object has no more entries; what it holds beyond its first page is asked for page by page.
const ENTRIES_MAX: usize = 1_000;
/// An object has no more fields (Stripe's have about a hundred, and up to 50 of metadata).
const FIELDS_MAX: usize = 1_000;
/// An amount is not larger, in minor units. A million such amounts still fit into a sum of the books.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000;
/// The largest object of a list, and the largest that is asked for by itself.
pub const OBJECT_BYTES_MAX: usize = 64 << 10;
/// Objects of a page.
pub const PAGE_OBJECTS: usize = 100;
/// A page: so many objects of the largest size, and what is between them.
pub const PAGE_BYTES_MAX: usize = PAGE_OBJECTS * OBJECT_BYTES_MAX + (64 << 10);

/// What the processor sent cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct JsonReadError {
    /// Where, from the body's root: `data.object.lines.data[2].amount`; `body` for all of it.
    pub field: String,
    /// Why.
    pub problem: FieldProblem,
}

/// Why something cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FieldProblem {
    /// No JSON at all, or nested too deep.
    #[error("is no JSON")]
    NotJson,
    /// It uses a name that no JSON of others may ([`mail::json`]).
    #[error("has a field with a reserved name")]
    ReservedName,
    /// It has to be there.
    #[error("is missing")]
    Missing,
    /// It should be an object.
    #[error("is no object")]
    NotAnObject,
    /// It should be a list.
    #[error("is no list")]
    NotAList,
    /// More than are read.
    #[error("has more than {ENTRIES_MAX} entries")]
    TooMany,
    /// More than a page has.
    #[error("has more than {PAGE_OBJECTS} objects")]
    PageTooLong,
    /// More fields than are read.
    #[error("has more than {FIELDS_MAX} fields")]
    TooManyFields,
    /// An object of a list is larger than is read.
    #[error("is larger than {OBJECT_BYTES_MAX} bytes")]
    TooLarge,
    /// It should be a text.
    #[error("is no text")]
    NotText,
    /// It should be an id or an object with one.
    #[error("is no id: a text of up to {ID_BYTES_MAX} bytes without control characters")]
    NotAnId,
    /// It should be an amount.
    #[error("is no whole number of 64 bits")]
    NotAnAmount,
    /// No sale is so large.
    #[error("is beyond {AMOUNT_MAX} minor units")]
    AmountTooLarge,
    /// It should be an amount of zero or more.
    #[error("is less than zero")]
    Negative,
    /// It should be a currency.
    #[error("is no currency: three letters (ISO 4217)")]
    NotACurrency,
    /// It should be a time.
    #[error("is no time: whole seconds since 1970")]
    NotATime,
    /// It should be true or false.
    #[error("is neither true nor false")]
    NotAFlag,
}

/// What a reader needs besides the object.
#[derive(Debug, Clone, Copy)]
pub struct ReadContext<'a> {
    /// Which metadata matter.
    pub keys: &'a MetadataKeys,
    /// As of when the object stood so.
    pub as_of: StateVersion,
}

/// The error that all of a body is.
pub(super) fn body_error(problem: FieldProblem) -> JsonReadError {
    JsonReadError { field: "body".to_owned(), problem }
}

/// The text of a body that is JSON.
pub(super) fn json(body: &[u8]) -> Result<&str, JsonReadError> {
    let text = std::str::from_utf8(body).ok();
    let read = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    read.map(RawValue::get).ok_or_else(|| body_error(FieldProblem::NotJson))
}

/// A text; it is copied only where something in it is escaped.
#[derive(serde::Deserialize)]
struct JsonString<'a>(#[serde(borrow)] Cow<'a, str>);

fn parse_text(json: &str) -> Option<Cow<'_, str>> {
    Some(serde_json::from_str::<JsonString<'_>>(json).ok()?.0)
}

/// The fields of an object, in their order.
struct JsonFields<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de> Deserialize<'de> for JsonFields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = JsonFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
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

/// The field of this name of an object, the last one where there are several; none of what is no object.
pub(super) fn field_of<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    struct FieldVisitor<'n>(&'n str);
    impl<'de> Visitor<'de> for FieldVisitor<'_> {
        type Value = Option<&'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
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

/// The text that a field of an object holds.
pub(super) fn text_in<'a>(json: &'a str, name: &str) -> Option<Cow<'a, str>> {
    parse_text(field_of(json, name)?)
}

/// The elements of a list, at most so many; none where there are more, or where it is no list.
pub(super) fn elements(json: &str, most: usize) -> Option<Vec<&str>> {
    struct Each(usize);
    impl<'de> Visitor<'de> for Each {
        type Value = Vec<&'de str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
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
    serde_json::Deserializer::from_str(json).deserialize_seq(Each(most)).ok()
}

/// An object and where it stands. Fields are asked for by place: `price`, `pricing.price_details.price`; what is `null`
/// is not there.
pub(super) struct ProcessorJsonObject<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
    /// With its dot; empty at the root.
    path: String,
}

/// The entries of a list in an object. Each is read when its turn comes.
pub(super) struct JsonEntries<'a> {
    list: Vec<&'a str>,
    place: String,
}

impl<'a> JsonEntries<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Result<ProcessorJsonObject<'a>, JsonReadError>> {
        let item =
            |(index, json): (usize, &&'a str)| ProcessorJsonObject::of(json, &format!("{}[{index}]", self.place));
        self.list.iter().enumerate().map(item)
    }
}

impl<'a> ProcessorJsonObject<'a> {
    /// The object at the root of what was sent, or at this place of it.
    pub(super) fn of(json: &'a str, place: &str) -> Result<Self, JsonReadError> {
        let wrong = |problem| {
            let field = if place.is_empty() { "body" } else { place };
            JsonReadError { field: field.to_owned(), problem }
        };
        if !json.trim_start().starts_with('{') {
            return Err(wrong(FieldProblem::NotAnObject));
        }
        let JsonFields(fields) = serde_json::from_str(json).map_err(|error| {
            wrong(if error.is_data() { FieldProblem::TooManyFields } else { FieldProblem::NotJson })
        })?;
        let path = if place.is_empty() { String::new() } else { format!("{place}.") };
        Ok(Self { fields, path })
    }

    /// What stands at a place, if anything does.
    pub(super) fn find(&self, place: &str) -> Option<&'a str> {
        let mut parts = place.split('.');
        let name = parts.next()?;
        let (_, json) = self.fields.iter().rev().find(|(its, _)| its == name)?;
        let found = parts.try_fold(*json, field_of)?;
        Some(found).filter(|json| *json != "null")
    }

    /// Whether just this text stands at a place.
    pub(super) fn has_text(&self, place: &str, text: &str) -> bool {
        self.find(place).and_then(parse_text).is_some_and(|found| found == text)
    }

    /// The error that this place is in.
    pub(super) fn error_at(&self, place: &str, problem: FieldProblem) -> JsonReadError {
        JsonReadError { field: format!("{}{place}", self.path), problem }
    }

    /// Reads what stands at a place, if anything does.
    fn read<T>(
        &self,
        place: &str,
        problem: FieldProblem,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, JsonReadError> {
        let Some(json) = self.find(place) else { return Ok(None) };
        read(json).map(Some).ok_or_else(|| self.error_at(place, problem))
    }

    /// What has to be there.
    pub(super) fn required<T>(&self, place: &str, found: Option<T>) -> Result<T, JsonReadError> {
        found.ok_or_else(|| self.error_at(place, FieldProblem::Missing))
    }

    /// The object at a place where an id may stand instead.
    pub(super) fn expanded(&self, place: &str) -> Result<Option<Self>, JsonReadError> {
        let found = self.find(place).filter(|json| json.starts_with('{'));
        found.map(|json| Self::of(json, &format!("{}{place}", self.path))).transpose()
    }

    /// The objects of a list, which stands there by itself or as `data` of an object; none where there is no list.
    pub(super) fn objects(&self, place: &str) -> Result<JsonEntries<'a>, JsonReadError> {
        let (place, list) = match self.find(place) {
            Some(json) if json.starts_with('{') => (format!("{place}.data"), field_of(json, "data")),
            found => (place.to_owned(), found),
        };
        let list = match list {
            None => Vec::new(),
            Some(json) if !json.starts_with('[') => return Err(self.error_at(&place, FieldProblem::NotAList)),
            Some(json) => elements(json, ENTRIES_MAX).ok_or_else(|| self.error_at(&place, FieldProblem::TooMany))?,
        };
        Ok(JsonEntries { list, place: format!("{}{place}", self.path) })
    }

    /// An id, or the id of the object that stands in its place. An empty one is none.
    pub(super) fn id(&self, place: &str) -> Result<Option<String>, JsonReadError> {
        let id = self.read(place, FieldProblem::NotAnId, |json| {
            if json.starts_with('{') { text_in(json, "id") } else { parse_text(json) }
        })?;
        let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
        if id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
            return Err(self.error_at(place, FieldProblem::NotAnId));
        }
        Ok(Some(id.into_owned()))
    }

    /// The first id that stands at one of these places.
    pub(super) fn first_id(&self, places: &[&str]) -> Result<Option<String>, JsonReadError> {
        places.iter().map(|place| self.id(place)).find(|id| !matches!(id, Ok(None))).unwrap_or(Ok(None))
    }

    /// An id that has to be there.
    pub(super) fn required_id(&self, place: &str) -> Result<String, JsonReadError> {
        self.required(place, self.id(place)?)
    }

    /// A text.
    pub(super) fn text(&self, place: &str) -> Result<Option<Cow<'a, str>>, JsonReadError> {
        self.read(place, FieldProblem::NotText, parse_text)
    }

    /// The first address that stands at one of these places, in lower case. One that is too long for an address is
    /// none: nobody is found by it.
    pub(super) fn email(&self, places: &[&str]) -> Result<Option<String>, JsonReadError> {
        for place in places {
            let text = self.text(place)?.unwrap_or_default();
            let email = text.trim();
            if (1..=EMAIL_BYTES_MAX).contains(&email.len()) {
                return Ok(Some(email.to_lowercase()));
            }
        }
        Ok(None)
    }

    /// An amount in minor units, of at most [`AMOUNT_MAX`].
    pub(super) fn amount(&self, place: &str) -> Result<Option<i64>, JsonReadError> {
        let amount: Option<i64> =
            self.read(place, FieldProblem::NotAnAmount, |json| serde_json::from_str(json).ok())?;
        if amount.is_some_and(|amount| !(-AMOUNT_MAX..=AMOUNT_MAX).contains(&amount)) {
            return Err(self.error_at(place, FieldProblem::AmountTooLarge));
        }
        Ok(amount)
    }

    /// An amount that has to be there.
    pub(super) fn required_amount(&self, place: &str) -> Result<i64, JsonReadError> {
        self.required(place, self.amount(place)?)
    }

    /// An amount of zero or more.
    pub(super) fn non_negative_amount(&self, place: &str) -> Result<Option<i64>, JsonReadError> {
        match self.amount(place)? {
            Some(amount) if amount < 0 => Err(self.error_at(place, FieldProblem::Negative)),
            share => Ok(share),
        }
    }

    /// An amount of zero or more that has to be there.
    pub(super) fn required_non_negative_amount(&self, place: &str) -> Result<i64, JsonReadError> {
        self.required(place, self.non_negative_amount(place)?)
    }

    /// The sum of the amounts in a list, of those entries that count; `None` where there is no entry at all.
    pub(super) fn sum(
        &self,
        place: &str,
        counts: impl Fn(&ProcessorJsonObject<'a>) -> bool,
    ) -> Result<Option<i64>, JsonReadError> {
        let entries = self.objects(place)?;
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

    /// A currency.
    pub(super) fn currency(&self, place: &str) -> Result<Option<Currency>, JsonReadError> {
        self.read(place, FieldProblem::NotACurrency, |json| parse_text(json)?.parse().ok())
    }

    /// A currency that has to be there.
    pub(super) fn required_currency(&self) -> Result<Currency, JsonReadError> {
        self.required("currency", self.currency("currency")?)
    }

    /// A time in seconds.
    pub(super) fn time(&self, place: &str) -> Result<Option<Timestamp>, JsonReadError> {
        self.read(place, FieldProblem::NotATime, |json| Timestamp::from_second(serde_json::from_str(json).ok()?).ok())
    }

    /// A flag.
    pub(super) fn flag(&self, place: &str) -> Result<Option<bool>, JsonReadError> {
        self.read(place, FieldProblem::NotAFlag, |json| serde_json::from_str(json).ok())
    }

    /// Whether a flag is there and set.
    pub(super) fn is_set(&self, place: &str) -> Result<bool, JsonReadError> {
        Ok(self.flag(place)?.unwrap_or(false))
    }
}
