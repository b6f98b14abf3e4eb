//! Readers of values in requests that are types of `model`: words of closed sets and numbers in a range.

use model::affiliate::campaign::Visibility;
use model::affiliate::money::BasisPoints;
use model::affiliate::program::{AfterPayout, Attribution, PayoutMethod, ProcessorMode};
use model::raw_number;
use model::template::{TemplateStatus, VariableType};
use schema::Schemas;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::fields;
use crate::request_object::RequestValue;

impl RequestValue for BasisPoints {
    type Value = Self;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "integer", "minimum": 0, "maximum": Self::ALL.get()})
    }

    fn parse(value: &RawValue) -> Result<Self, String> {
        let points = parse_integer(value, 0..=Self::ALL.get())?;
        Self::try_from(points).map_err(|error| error.to_string())
    }
}

/// Implements [`RequestValue`] for enums of words.
#[macro_export]
macro_rules! word_readers {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::request_object::RequestValue for $type {
            type Value = Self;

            fn schema(_: &mut ::schema::Schemas) -> ::serde_json::Value {
                ::serde_json::json!({"type": "string", "enum": Self::WORDS})
            }

            fn parse(value: &::serde_json::value::RawValue) -> Result<Self, String> {
                $crate::model_values::parse_word(Self::WORDS, Self::from_word, value)
            }
        }
    )*};
}

word_readers!(Visibility, AfterPayout, Attribution, PayoutMethod, ProcessorMode, TemplateStatus, VariableType);

/// Parses one of a closed set of words.
pub fn parse_word<T>(all: &[&str], parse: impl Fn(&str) -> Option<T>, value: &RawValue) -> Result<T, String> {
    let text = fields::parse_text(value)?;
    parse(&text).ok_or_else(|| format!("must be one of {}", all.join(", ")))
}

/// Parses a whole number within the range.
pub fn parse_integer<T>(value: &RawValue, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = raw_number::parse_integer::<T>(value.get()).filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}
