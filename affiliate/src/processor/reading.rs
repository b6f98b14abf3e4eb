//! Reading the JSON of others: what is asked for, by the places where it may stand, or an error that names the field.

use jiff::Timestamp;
use mail::affiliate::money::Currency;
use serde_json::{Map, Value};
use thiserror::Error;

use super::as_of::AsOf;
use super::marks::MetadataKeys;

/// Ids are not longer (Stripe says 255).
const ID_BYTES_MAX: usize = 255;
/// Addresses are not longer (RFC 5321 section 4.5.3.1, with room).
const EMAIL_BYTES_MAX: usize = 320;
/// A list in an object has no more entries; what it holds beyond its first page is asked for page by page.
const ENTRIES_MAX: usize = 1_000;

/// What the processor sent cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct Unreadable {
    /// Where, from the body's root: `data.object.lines.data[2].amount`; `body` for all of it.
    pub field: String,
    /// Why.
    pub problem: Problem,
}

/// Why something cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
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
    /// It should be a text.
    #[error("is no text")]
    NotText,
    /// It should be an id or an object with one.
    #[error("is no id: a text of up to {ID_BYTES_MAX} bytes without control characters")]
    NotAnId,
    /// It should be an amount.
    #[error("is no whole number of 64 bits")]
    NotAnAmount,
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
pub struct Reading<'a> {
    /// Which metadata matter.
    pub keys: &'a MetadataKeys,
    /// As of when the object stood so.
    pub as_of: AsOf,
}

/// Reads a body.
pub(super) fn json(body: &[u8]) -> Result<Value, Unreadable> {
    let wrong = |problem| Unreadable { field: "body".to_owned(), problem };
    if mail::json::has_reserved_name(body) {
        return Err(wrong(Problem::ReservedName));
    }
    serde_json::from_slice(body).map_err(|_| wrong(Problem::NotJson))
}

/// An object and where it stands. Fields are asked for by place: `price`, `pricing.price_details.price`; what is `null`
/// is not there.
pub(super) struct Object<'a> {
    fields: &'a Map<String, Value>,
    /// With its dot; empty at the root.
    path: String,
}

impl<'a> Object<'a> {
    /// The object at the root of what was sent, or at this place of it.
    pub(super) fn of(value: &'a Value, place: &str) -> Result<Self, Unreadable> {
        let Some(fields) = value.as_object() else {
            let field = if place.is_empty() { "body" } else { place };
            return Err(Unreadable { field: field.to_owned(), problem: Problem::NotAnObject });
        };
        let path = if place.is_empty() { String::new() } else { format!("{place}.") };
        Ok(Self { fields, path })
    }

    /// What stands at a place, if anything does.
    pub(super) fn find(&self, place: &str) -> Option<&'a Value> {
        let mut parts = place.split('.');
        let mut value = self.fields.get(parts.next()?)?;
        for part in parts {
            value = value.as_object()?.get(part)?;
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// The error that this place is in.
    pub(super) fn wrong(&self, place: &str, problem: Problem) -> Unreadable {
        Unreadable { field: format!("{}{place}", self.path), problem }
    }

    /// Reads what stands at a place, if anything does.
    fn read<T>(
        &self,
        place: &str,
        problem: Problem,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        let Some(value) = self.find(place) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong(place, problem))
    }

    /// What has to be there.
    pub(super) fn needed<T>(&self, place: &str, found: Option<T>) -> Result<T, Unreadable> {
        found.ok_or_else(|| self.wrong(place, Problem::Missing))
    }

    /// The object at a place where an id may stand instead.
    pub(super) fn expanded(&self, place: &str) -> Option<Self> {
        let fields = self.find(place)?.as_object()?;
        Some(Self { fields, path: format!("{}{place}.", self.path) })
    }

    /// The objects of a list, which stands there by itself or as `data` of an object; none where there is no list.
    pub(super) fn objects(&self, place: &str) -> Result<Vec<Self>, Unreadable> {
        let Some(value) = self.find(place) else { return Ok(Vec::new()) };
        let (place, list) = match value.as_object() {
            Some(list) => (format!("{place}.data"), list.get("data")),
            None => (place.to_owned(), Some(value)),
        };
        let Some(list) = list.filter(|list| !list.is_null()) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(|| self.wrong(&place, Problem::NotAList))?;
        if list.len() > ENTRIES_MAX {
            return Err(self.wrong(&place, Problem::TooMany));
        }
        let item = |(index, value)| Self::of(value, &format!("{}{place}[{index}]", self.path));
        list.iter().enumerate().map(item).collect()
    }

    /// An id, or the id of the object that stands in its place. An empty one is none.
    pub(super) fn id(&self, place: &str) -> Result<Option<String>, Unreadable> {
        let id = self.read(place, Problem::NotAnId, |value| match value {
            Value::Object(object) => object.get("id")?.as_str(),
            value => value.as_str(),
        })?;
        let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
        if id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
            return Err(self.wrong(place, Problem::NotAnId));
        }
        Ok(Some(id.to_owned()))
    }

    /// The first id that stands at one of these places.
    pub(super) fn first_id(&self, places: &[&str]) -> Result<Option<String>, Unreadable> {
        places.iter().map(|place| self.id(place)).find(|id| !matches!(id, Ok(None))).unwrap_or(Ok(None))
    }

    /// An id that has to be there.
    pub(super) fn needed_id(&self, place: &str) -> Result<String, Unreadable> {
        self.needed(place, self.id(place)?)
    }

    /// A text.
    pub(super) fn text(&self, place: &str) -> Result<Option<&'a str>, Unreadable> {
        self.read(place, Problem::NotText, Value::as_str)
    }

    /// The first address that stands at one of these places, in lower case. One that is too long for an address is
    /// none: nobody is found by it.
    pub(super) fn email(&self, places: &[&str]) -> Result<Option<String>, Unreadable> {
        for place in places {
            let email = self.text(place)?.map(str::trim).unwrap_or_default();
            if (1..=EMAIL_BYTES_MAX).contains(&email.len()) {
                return Ok(Some(email.to_lowercase()));
            }
        }
        Ok(None)
    }

    /// An amount in minor units.
    pub(super) fn amount(&self, place: &str) -> Result<Option<i64>, Unreadable> {
        self.read(place, Problem::NotAnAmount, Value::as_i64)
    }

    /// An amount that has to be there.
    pub(super) fn needed_amount(&self, place: &str) -> Result<i64, Unreadable> {
        self.needed(place, self.amount(place)?)
    }

    /// An amount of zero or more.
    pub(super) fn share(&self, place: &str) -> Result<Option<i64>, Unreadable> {
        match self.amount(place)? {
            Some(amount) if amount < 0 => Err(self.wrong(place, Problem::Negative)),
            share => Ok(share),
        }
    }

    /// An amount of zero or more that has to be there.
    pub(super) fn needed_share(&self, place: &str) -> Result<i64, Unreadable> {
        self.needed(place, self.share(place)?)
    }

    /// The sum of the amounts in a list, of those entries that count; `None` where there is no entry at all.
    pub(super) fn sum(
        &self,
        place: &str,
        counts: impl Fn(&Object<'a>) -> bool,
    ) -> Result<Option<i64>, Unreadable> {
        let entries = self.objects(place)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut sum = 0_i64;
        for entry in entries.iter().filter(|entry| counts(entry)) {
            let amount = entry.needed_amount("amount")?;
            sum = sum.checked_add(amount).ok_or_else(|| entry.wrong("amount", Problem::NotAnAmount))?;
        }
        Ok(Some(sum))
    }

    /// A currency.
    pub(super) fn currency(&self, place: &str) -> Result<Option<Currency>, Unreadable> {
        self.read(place, Problem::NotACurrency, |value| value.as_str()?.parse().ok())
    }

    /// A currency that has to be there.
    pub(super) fn needed_currency(&self) -> Result<Currency, Unreadable> {
        self.needed("currency", self.currency("currency")?)
    }

    /// A time in seconds.
    pub(super) fn time(&self, place: &str) -> Result<Option<Timestamp>, Unreadable> {
        self.read(place, Problem::NotATime, |value| Timestamp::from_second(value.as_i64()?).ok())
    }

    /// A flag.
    pub(super) fn flag(&self, place: &str) -> Result<Option<bool>, Unreadable> {
        self.read(place, Problem::NotAFlag, Value::as_bool)
    }

    /// Whether a flag is there and set.
    pub(super) fn is(&self, place: &str) -> Result<bool, Unreadable> {
        Ok(self.flag(place)?.unwrap_or(false))
    }
}
