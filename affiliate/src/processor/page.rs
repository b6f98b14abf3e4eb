//! Answers of the processor: an object that was asked for, and a page of a list: `GET /v1/invoices`, `/v1/charges`,
//! `/v1/events`.
//!
//! What is kept of an answer are its own bytes. An object is a slice of them, and is read when its turn comes.

use std::borrow::Cow;

use bytes::Bytes;

use super::reading::{
    FieldProblem, JsonReadError, OBJECT_BYTES_MAX, PAGE_OBJECTS, ProcessorJsonObject, body_error, elements, field_of,
    json, text_in,
};

/// The JSON of an object, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorJson {
    bytes: Bytes,
    /// It is larger than is read: nothing is kept of it but its id.
    is_too_large: bool,
}

impl ProcessorJson {
    /// Reads an answer that is one object.
    ///
    /// # Errors
    /// It is no JSON, or larger than an object may be.
    pub fn read(body: Bytes) -> Result<Self, JsonReadError> {
        if body.len() > OBJECT_BYTES_MAX {
            return Err(body_error(FieldProblem::TooLarge));
        }
        json(&body)?;
        Ok(Self { bytes: body, is_too_large: false })
    }

    fn of_page(body: &Bytes, text: &str) -> Self {
        if text.len() <= OBJECT_BYTES_MAX {
            return Self { bytes: body.slice_ref(text.as_bytes()), is_too_large: false };
        }
        let id = text_in(text, "id").filter(|id| id.len() <= OBJECT_BYTES_MAX / 2);
        Self { bytes: serde_json::json!({"id": id}).to_string().into(), is_too_large: true }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        // It was read as text.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// Its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<Cow<'_, str>> {
        text_in(self.text(), "id")
    }

    /// The id in a field, or that of the object that stands there.
    #[must_use]
    pub fn id_in(&self, field: &str) -> Option<Cow<'_, str>> {
        let found = field_of(self.text(), field)?;
        if found.starts_with('{') { text_in(found, "id") } else { text_in(self.text(), field) }
    }

    /// The text in a field.
    #[must_use]
    pub fn text_in(&self, field: &str) -> Option<Cow<'_, str>> {
        text_in(self.text(), field)
    }

    /// The text at a place: `metadata.payout_id`.
    #[must_use]
    pub fn text_at(&self, place: &str) -> Option<Cow<'_, str>> {
        let (holder, field) = place.rsplit_once('.')?;
        text_in(holder.split('.').try_fold(self.text(), field_of)?, field)
    }

    /// The whole number at a place: `created`, `status_transitions.paid_at`.
    #[must_use]
    pub fn number_in(&self, place: &str) -> Option<i64> {
        serde_json::from_str(place.split('.').try_fold(self.text(), field_of)?).ok()
    }

    /// The flag in a field.
    #[must_use]
    pub fn flag_in(&self, field: &str) -> Option<bool> {
        serde_json::from_str(field_of(self.text(), field)?).ok()
    }

    /// That it is larger than an object may be, if it is: then it has nothing but its id.
    ///
    /// # Errors
    /// It is.
    pub fn check_size(&self) -> Result<(), JsonReadError> {
        if !self.is_too_large {
            return Ok(());
        }
        let field = self.id().map_or_else(|| "an object without an id".to_owned(), Cow::into_owned);
        Err(JsonReadError { field, problem: FieldProblem::TooLarge })
    }

    /// Whether it is larger than an object may be.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsePage {
    /// Its objects, each for the reader of its kind.
    pub objects: Vec<ProcessorJson>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

impl ResponsePage {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is no list, or one of more objects than a page has.
    pub fn read(body: &Bytes) -> Result<Self, JsonReadError> {
        let page = ProcessorJsonObject::of(json(body)?, "")?;
        let has_more = page.is_set("has_more")?;
        let list = page.required("data", page.find("data"))?;
        if !list.starts_with('[') {
            return Err(page.error_at("data", FieldProblem::NotAList));
        }
        let list = elements(list, PAGE_OBJECTS).ok_or_else(|| page.error_at("data", FieldProblem::PageTooLong))?;
        let objects = list.into_iter().map(|text| ProcessorJson::of_page(body, text)).collect();
        Ok(Self { objects, has_more })
    }

    /// The `starting_after` of the next page; `None` when this is the last one.
    #[must_use]
    pub fn next(&self) -> Option<Cow<'_, str>> {
        self.objects.last().filter(|_| self.has_more)?.id()
    }
}
