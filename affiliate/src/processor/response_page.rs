//! API responses: a single object, or a page of a list (`GET /v1/invoices`, `/v1/charges`, `/v1/events`).
//!
//! Only the response's bytes are held. An object is a slice of them, parsed when it is used.

use std::borrow::Cow;

use bytes::Bytes;

use super::json_reader::{
    FieldProblem, JsonReadError, JsonResult as Result, OBJECT_BYTES_MAX, PAGE_OBJECTS, ProcessorJsonObject, body_error,
    elements, field_of, json, text_in,
};

/// Unparsed JSON of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorJson {
    bytes: Bytes,
    /// True if the object exceeds [`OBJECT_BYTES_MAX`]: only its id is retained.
    is_too_large: bool,
}

impl ProcessorJson {
    /// Checks a response that is a single object.
    ///
    /// # Errors
    /// The body is not JSON, or exceeds [`OBJECT_BYTES_MAX`].
    pub fn read(body: Bytes) -> Result<Self> {
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

    pub fn text(&self) -> &str {
        // Checked to be UTF-8 when it was parsed.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    pub fn id(&self) -> Option<Cow<'_, str>> {
        text_in(self.text(), "id")
    }

    /// Returns the id in a field, which may be expanded to an object.
    pub fn id_in(&self, field: &str) -> Option<Cow<'_, str>> {
        let found = field_of(self.text(), field)?;
        if found.starts_with('{') { text_in(found, "id") } else { text_in(self.text(), field) }
    }

    pub fn text_in(&self, field: &str) -> Option<Cow<'_, str>> {
        text_in(self.text(), field)
    }

    /// Returns the string at a path, e.g. `metadata.payout_id`.
    pub fn text_at(&self, path: &str) -> Option<Cow<'_, str>> {
        let (parent, field) = path.rsplit_once('.')?;
        text_in(parent.split('.').try_fold(self.text(), field_of)?, field)
    }

    /// Returns the integer at a path, e.g. `created`, `status_transitions.paid_at`.
    pub fn number_in(&self, path: &str) -> Option<i64> {
        serde_json::from_str(path.split('.').try_fold(self.text(), field_of)?).ok()
    }

    /// Returns the boolean in a field.
    pub fn flag_in(&self, field: &str) -> Option<bool> {
        serde_json::from_str(field_of(self.text(), field)?).ok()
    }

    /// Checks that the object was not cut to its id because of its size.
    ///
    /// # Errors
    /// `TooLarge`, with the object's id.
    pub fn check_size(&self) -> Result<()> {
        if !self.is_too_large {
            return Ok(());
        }
        let field = self.id().map_or_else(|| "object without an id".to_owned(), Cow::into_owned);
        Err(JsonReadError { field, problem: FieldProblem::TooLarge })
    }

    /// True if the object exceeds [`OBJECT_BYTES_MAX`].
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsePage {
    pub objects: Vec<ProcessorJson>,
    /// True if more pages follow.
    pub has_more: bool,
}

impl ResponsePage {
    /// Parses a page.
    ///
    /// # Errors
    /// The body is not a list, or has more than [`PAGE_OBJECTS`] objects.
    pub fn read(body: &Bytes) -> Result<Self> {
        let page = ProcessorJsonObject::parse(json(body)?, "")?;
        let has_more = page.is_set("has_more")?;
        let list = page.required("data", page.find("data"))?;
        if !list.starts_with('[') {
            return Err(page.error_at("data", FieldProblem::NotAList));
        }
        let list = elements(list, PAGE_OBJECTS).ok_or_else(|| page.error_at("data", FieldProblem::PageTooLong))?;
        let objects = list.into_iter().map(|text| ProcessorJson::of_page(body, text)).collect();
        Ok(Self { objects, has_more })
    }

    /// Returns the `starting_after` of the next page; `None` on the last page.
    pub fn next(&self) -> Option<Cow<'_, str>> {
        self.objects.last().filter(|_| self.has_more)?.id()
    }
}
