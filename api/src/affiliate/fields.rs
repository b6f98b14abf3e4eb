//! Readers of values in requests of the affiliate program.

use std::fmt::Display;
use std::str::FromStr;

use httpd::request_object::{RequestValue, bounded_text_schema};
use httpd::request_value::Integer;
use message::address::ADDRESS_BYTES_MAX;
use model::affiliate::money::{CENTS_MAX, Currency, CurrencyError};

use crate::prelude::*;

pub(super) use httpd::model_values::{parse_integer, parse_word};

/// A line that null or an empty text clears.
pub(super) struct ClearableLine<const BYTES_MAX: usize>;

impl<const BYTES_MAX: usize> RequestValue for ClearableLine<BYTES_MAX> {
    type Value = Option<String>;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(0, BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        let text = fields::parse_header_line(value, BYTES_MAX)?.trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}

/// Text of several lines.
pub(super) struct Multiline<const BYTES_MAX: usize>;

impl<const BYTES_MAX: usize> RequestValue for Multiline<BYTES_MAX> {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        bounded_text_schema(0, BYTES_MAX)
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        fields::parse_multiline_text(value, BYTES_MAX)
    }
}

/// An email address, with spaces around it removed.
pub(super) struct EmailAddress;

impl RequestValue for EmailAddress {
    type Value = Address;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "email", "maxLength": 4 * ADDRESS_BYTES_MAX})
    }

    fn parse(value: &RawValue) -> Result<Address, String> {
        parse_from_text(value)
    }
}

/// The code of a currency that is in use, in any case.
pub(super) struct CurrencyCode;

impl RequestValue for CurrencyCode {
    type Value = Currency;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "pattern": "^[A-Za-z]{3}$", "examples": ["usd"]})
    }

    fn parse(value: &RawValue) -> Result<Currency, String> {
        parse_currency_text(&fields::parse_text(value)?)
    }
}

/// A time with its offset, or Unix seconds as a number or text.
pub(super) struct TimeOrUnix;

impl RequestValue for TimeOrUnix {
    type Value = Timestamp;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "date-time"})
    }

    fn parse(value: &RawValue) -> Result<Timestamp, String> {
        match value.get().trim_matches('"').parse::<i64>() {
            Ok(seconds) => Timestamp::from_second(seconds).map_err(|_| "is not a valid time".to_owned()),
            Err(_) => parse_time(value),
        }
    }
}

/// A non-negative amount in minor units.
pub(super) type Cents = Integer<i64, 0, CENTS_MAX>;

/// Parses a text by the type's `FromStr`.
pub(super) fn parse_from_text<T: FromStr<Err: Display>>(value: &RawValue) -> Result<T, String> {
    fields::parse_text(value)?.trim().parse().map_err(|error: T::Err| error.to_string())
}

/// Parses an ISO 4217 currency that is in use.
pub(super) fn parse_currency_text(text: &str) -> Result<Currency, String> {
    let currency: Currency = text.trim().parse().map_err(|error: CurrencyError| error.to_string())?;
    let error = || format!("`{currency}` is not a currency in use (ISO 4217)");
    currency.is_in_use().then_some(currency).ok_or_else(error)
}

/// Parses an RFC 3339 time with an offset.
pub(super) fn parse_time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::parse_text(value)?;
    text.parse().map_err(|_| "must be a time with an offset, like `2026-01-01T10:00:00Z`".to_owned())
}
