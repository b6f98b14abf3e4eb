//! Readers of single values of a request body, each with its schema.
//!
//! JSON Schema counts characters and the readers bytes, so a `maxLength` refuses nothing valid.

use std::marker::PhantomData;

use jiff::Timestamp;
use message::address::{ADDRESS_BYTES_MAX, DomainName, NAME_TEXT_BYTES_MAX};
use message::address_pattern::AddressPattern;
use model::raw_number;
use schema::Schemas;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields;
use crate::request_object::{RequestValue, bounded_text_schema};

impl RequestValue for bool {
    type Value = Self;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "boolean"})
    }

    fn parse(value: &RawValue) -> Result<Self, String> {
        fields::parse_bool(value)
    }
}

/// A text without control characters, with at most this many bytes.
pub struct Line<const BYTES_MAX: usize>;

impl<const BYTES_MAX: usize> RequestValue for Line<BYTES_MAX> {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(0, BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        fields::parse_header_line(value, BYTES_MAX)
    }
}

/// A name: as [`Line`], without spaces around it and not empty.
pub struct Name<const BYTES_MAX: usize>;

impl<const BYTES_MAX: usize> RequestValue for Name<BYTES_MAX> {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(1, BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let name = fields::parse_header_line(value, BYTES_MAX)?.trim().to_owned();
        if name.is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
    }
}

/// Any text; the operation reads it.
pub struct AnyText;

impl RequestValue for AnyText {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string"})
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        fields::parse_text(value).map(std::borrow::Cow::into_owned)
    }
}

/// A whole number in a range.
pub struct Integer<T, const MIN: i64, const MAX: i64>(PhantomData<T>);

impl<T: TryFrom<i64>, const MIN: i64, const MAX: i64> RequestValue for Integer<T, MIN, MAX> {
    type Value = T;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }

    fn parse(value: &RawValue) -> Result<T, String> {
        let number = raw_number::parse_integer::<i64>(value.get()).filter(|number| (MIN..=MAX).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("must be a whole number from {MIN} to {MAX}"))
    }
}

/// A time with its offset (RFC 3339).
pub struct Time;

impl RequestValue for Time {
    type Value = Timestamp;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "date-time"})
    }

    fn parse(value: &RawValue) -> Result<Timestamp, String> {
        model::timestamp::parse(&fields::parse_text(value)?).map_err(str::to_owned)
    }
}

/// Addresses and patterns of addresses, without duplicates.
pub struct AddressPatterns<const ENTRIES_MAX: usize>;

impl<const ENTRIES_MAX: usize> RequestValue for AddressPatterns<ENTRIES_MAX> {
    type Value = Vec<AddressPattern>;

    fn schema(_: &mut Schemas) -> Value {
        json!({
            "type": "array", "maxItems": ENTRIES_MAX,
            "items": {
                "type": "string", "maxLength": 4 * ADDRESS_BYTES_MAX, "description": "An address, or a pattern of addresses",
                "examples": ["support@example.com"],
            },
        })
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        fields::parse_address_patterns(value, ENTRIES_MAX)
    }
}

/// A host name with a dot, also in U-labels.
pub struct HostName;

impl RequestValue for HostName {
    type Value = DomainName;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(1, NAME_TEXT_BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<DomainName, String> {
        let name = fields::parse_text(value)?.parse::<DomainName>().ok();
        let name = name.filter(|name| name.as_str().contains('.'));
        name.ok_or_else(|| "must be a host name, like `links.example.com`".to_owned())
    }
}
