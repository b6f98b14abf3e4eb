//! Reading the fields of a body: each by its type, everything that is wrong told at once.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use mail::affiliate::money::{BasisPoints, Currency, CurrencyError};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::Call;
use crate::fields::{self, Given, Names, Notes, Object};
use crate::problem::Problem;

/// The largest amount: what JavaScript counts exactly with, and with room for sums.
pub(super) const CENTS_MAX: i64 = 1_000_000_000_000;

/// The fields of an object, and what was wrong with them so far.
pub(super) struct Fields<'a> {
    given: Given<'a>,
    notes: Notes,
    prefix: String,
    /// Who tells what was ignored; of an object in a field, who reads the body.
    call: Option<&'a Call>,
}

impl<'a> Fields<'a> {
    /// Of a body.
    pub(super) fn of(call: &'a Call, names: &Names) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        Ok(Self { given: call.given(names, &mut notes)?, notes, prefix: String::new(), call: Some(call) })
    }

    /// Of a body that may be left out.
    pub(super) fn of_any(call: &'a Call, names: &Names) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        Ok(Self {
            given: call.given_if_any(names, &mut notes)?,
            notes,
            prefix: String::new(),
            call: Some(call),
        })
    }

    /// Of a body in which no other names may stand.
    pub(super) fn of_these_only(call: &'a Call, names: &Names) -> Result<Self, Problem> {
        let Object(fields) = fields::body(&call.body)?;
        let mut notes = Notes::default();
        for (name, _) in &fields {
            if !names.known.iter().any(|(known, _)| known == name) {
                notes.errors.add(&fields::show(name), "is none of the keys that can be set");
            }
        }
        let given = Given::sort(Object(fields), names, "", &mut notes);
        Ok(Self { given, notes, prefix: String::new(), call: Some(call) })
    }

    /// Of an object in a field; nothing when it is none.
    pub(super) fn inside(
        value: &'a RawValue,
        (names, place): (&Names, &str),
        notes: &mut Notes,
    ) -> Option<Self> {
        match fields::object(value) {
            Ok(object) => {
                let prefix = format!("{place}.");
                let mut own = std::mem::take(notes);
                let given = Given::sort(object, names, &prefix, &mut own);
                Some(Self { given, notes: own, prefix, call: None })
            }
            Err(why) => {
                notes.errors.add(place, why);
                None
            }
        }
    }

    /// A field; nothing when it is absent, null or wrong.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<T> {
        let read = self.given.value(name).map(read)?;
        read.map_err(|why| self.wrong(name, why)).ok()
    }

    /// A field that null takes away.
    pub(super) fn change<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, String>,
    ) -> Option<Option<T>> {
        if self.given.is_given_as_null(name) {
            return Some(None);
        }
        self.take(name, read).map(Some)
    }

    /// A text that null, or nothing in it, takes away.
    pub(super) fn words(&mut self, name: &str, bytes_max: usize) -> Option<Option<String>> {
        let text = self.change(name, |value| fields::line(value, bytes_max))?;
        Some(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// What is in a field, unread.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.given.value(name)
    }

    /// Whether it was given, and not as null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.is_meant(name)
    }

    /// A field must be there.
    pub(super) fn need(&mut self, name: &str) {
        if !self.given.is_meant(name) {
            self.wrong(name, "is required");
        }
    }

    /// Fields that another request takes: they are refused by name, with what takes them.
    pub(super) fn refuse(&mut self, names: &[&str], why: &str) {
        for name in names {
            if self.given.value(name).is_some() || self.given.is_given_as_null(name) {
                self.wrong(name, why);
            }
        }
    }

    /// A field will not do.
    pub(super) fn wrong(&mut self, name: &str, why: impl Into<String>) {
        self.notes.errors.add(&format!("{}{name}", self.prefix), why);
    }

    /// What was found wrong, for what is read beside it.
    pub(super) fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// The end of an object in a field: what was found wrong goes on with the others.
    pub(super) fn leave(self) -> Notes {
        self.notes
    }

    /// The end of the body.
    pub(super) fn end(mut self) -> Result<(), Problem> {
        if let Some(call) = self.call {
            call.ignored.borrow_mut().append(&mut self.notes.warnings);
        }
        if self.notes.errors.is_empty() { Ok(()) } else { Err(self.notes.errors.into()) }
    }
}

/// What a text stands for.
pub(super) fn parsed<T: FromStr<Err: Display>>(value: &RawValue) -> Result<T, String> {
    fields::text(value)?.trim().parse().map_err(|why: T::Err| why.to_string())
}

/// A currency that is in use.
pub(super) fn currency(value: &RawValue) -> Result<Currency, String> {
    in_use(&fields::text(value)?)
}

/// The same, as text.
pub(super) fn in_use(text: &str) -> Result<Currency, String> {
    let currency: Currency = text.trim().parse().map_err(|why: CurrencyError| why.to_string())?;
    let why = || format!("`{currency}` is no currency that is in use (ISO 4217)");
    currency.is_in_use().then_some(currency).ok_or_else(why)
}

/// One of a closed set of words.
pub(super) fn word<T>(all: &[&str], read: impl Fn(&str) -> Option<T>, value: &RawValue) -> Result<T, String> {
    let text = fields::text(value)?;
    read(&text).ok_or_else(|| format!("must be one of {}", all.join(", ")))
}

/// A whole number.
pub(super) fn whole<T>(value: &RawValue, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = value.get().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// An amount in minor units, not negative.
pub(super) fn cents(value: &RawValue) -> Result<i64, String> {
    whole(value, 0..=CENTS_MAX)
}

/// A rate in basis points.
pub(super) fn bps(value: &RawValue) -> Result<BasisPoints, String> {
    let points = whole(value, 0..=BasisPoints::ALL.get())?;
    BasisPoints::try_from(points).map_err(|why| why.to_string())
}

/// A time with its offset.
pub(super) fn time(value: &RawValue) -> Result<Timestamp, String> {
    let text = fields::text(value)?;
    text.parse().map_err(|_| "must be a time with its offset, like `2026-01-01T10:00:00Z`".to_owned())
}

/// A time with its offset, or Unix seconds, as a number or as a text (affiliate-admin.md 1).
pub(super) fn moment(value: &RawValue) -> Result<Timestamp, String> {
    let seconds = value.get().trim_matches('"').parse::<i64>();
    match seconds {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|_| "is no time".to_owned()),
        Err(_) => time(value),
    }
}

/// A text of several lines.
pub(super) fn lines(value: &RawValue, bytes_max: usize) -> Result<String, String> {
    let text = fields::text(value)?;
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
pub(super) fn whole_schema(range: RangeInclusive<i64>, description: &str) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end(), "description": description})
}

/// The schema of an amount.
pub(super) fn cents_schema(description: &str) -> Value {
    whole_schema(0..=CENTS_MAX, description)
}

/// The schema of a rate.
pub(super) fn bps_schema(description: &str) -> Value {
    whole_schema(0..=BasisPoints::ALL.get().into(), description)
}
