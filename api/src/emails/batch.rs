//! Batch: up to 100 send requests in one request, accepted in one commit.
//!
//! ```text
//! body ─► items (each parsed, or its error) ─► `send_batch` ─► `BatchResponse`: one entry per email
//! ```
//!
//! Each email has its own result in its own entry. With `Batch-Validation: strict` all emails are accepted or none. An
//! error of the batch itself (too many emails, an attachment) rejects the whole batch. The
//! body is `{"emails": […]}` or the list alone.

pub mod response;
pub mod submit;

use std::collections::HashMap;

use httpd::fields::{FieldNames, JsonKind};
use httpd::request::SEND_BYTES_MAX;
use queue::intake::idempotency::IdempotencyKey;

use super::send::SendRequest;
use super::send_fields::{self, ATTACHMENTS, IDEMPOTENCY_KEY};
use crate::idempotency;
use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;

/// Maximum number of emails per batch.
pub const EMAILS_MAX: usize = 100;
/// Header that requests all-or-nothing processing.
const VALIDATION_HEADER: &str = "batch-validation";

const BATCH_NAMES: FieldNames = FieldNames { known: &[("emails", "emails")], foreign: &[("Messages", "emails")] };

/// A parsed batch.
#[derive(Debug)]
pub struct BatchRequest {
    /// Each email with its own idempotency key, if it has one, or its error.
    pub items: Vec<Result<SendRequest>>,
    /// All emails are accepted or none.
    pub strict: bool,
    /// The idempotency key of the whole batch.
    pub claim: Option<IdempotencyKey>,
}

impl FromRequest for BatchRequest {
    const BODY_BYTES_MAX: Option<usize> = Some(SEND_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(|schemas| {
        schemas.component("SendRequest", |_| send_fields::send_schema(IDEMPOTENCY_KEY));
        let email = schemas.component("BatchItem", |_| send_fields::send_schema(ATTACHMENTS));
        let emails = json!({"type": "array", "items": email, "minItems": 1, "maxItems": EMAILS_MAX});
        let description = "The emails, without attachments. The body may also be the list alone";
        schema::object(description, [("emails", emails)])
    });

    fn parameters() -> Vec<Value> {
        let strict = schema::header_parameter(
            "Batch-Validation",
            "`strict`: all emails are accepted or none; `permissive` (default): each email separately",
        );
        vec![idempotency::header_parameter(), strict]
    }

    fn read(call: &Request) -> Result<Self> {
        let strict = match call.headers.get(VALIDATION_HEADER).map(|value| value.as_bytes()) {
            None | Some(b"permissive") => false,
            Some(b"strict") => true,
            Some(_) => return Err(Problem::field("Batch-Validation", "must be `strict` or `permissive`")),
        };
        let items = fields::parse_list(emails_value(call)?, EMAILS_MAX);
        let items = items.map_err(|text| Problem::field("emails", text))?;
        if items.is_empty() {
            return Err(Problem::field("emails", "has no entries"));
        }
        let mut errors = FieldErrors::default();
        let read = items.into_iter().enumerate().filter_map(|(n, value)| read_item(n, value, &mut errors));
        let mut items: Vec<_> = read.collect();
        if !errors.is_empty() {
            return Err(errors.into());
        }
        reject_duplicate_keys(&mut items);
        let claim = idempotency::parse_claim(&call.headers, || batch_fingerprint(&items, strict))?;
        Ok(Self { items, strict, claim })
    }
}

/// Parses one email or returns its error. `None` if the error rejects the whole batch.
fn read_item(n: usize, value: &RawValue, errors: &mut FieldErrors) -> Option<Result<SendRequest>> {
    let object = match fields::parse_object(value) {
        Ok(object) => object,
        Err(text) => {
            return Some(Err(Problem::new(ErrorCode::VALIDATION_ERROR, format!("An email of a batch {text}"))));
        }
    };
    let has_files = |(name, value): &(std::borrow::Cow<'_, str>, &RawValue)| {
        name == "attachments" && !matches!(value.get(), "null" | "[]")
    };
    if object.0.iter().any(has_files) {
        errors.add(
            &format!("emails[{n}].attachments"),
            "attachments are not supported in a batch; send this email with POST /emails",
        );
        return None;
    }
    Some(SendRequest::from_batch_item(object))
}

/// Rejects the second of two emails with the same key: it would be neither sent nor a replay.
fn reject_duplicate_keys(items: &mut [Result<SendRequest>]) {
    let mut first_indexes = HashMap::new();
    for (n, item) in items.iter_mut().enumerate() {
        let Ok(SendRequest { claim: Some(claim), .. }) = item else { continue };
        if let Some(first) = first_indexes.get(&claim.key) {
            *item = Err(Problem::field(IDEMPOTENCY_KEY, format!("is also the key of emails[{first}]")));
        } else {
            first_indexes.insert(claim.key.clone(), n);
        }
    }
}

/// The fingerprint of the batch: that of each email or of its error.
fn batch_fingerprint(items: &[Result<SendRequest>], strict: bool) -> String {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add_count(usize::from(strict));
    fingerprint.add_count(items.len());
    for item in items {
        fingerprint.add_count(usize::from(item.is_ok()));
        match item {
            Ok(SendRequest { email, warnings, claim }) => {
                send_fields::add_to_fingerprint(&mut fingerprint, email, warnings);
                fingerprint.add_optional(claim.as_ref().map(|claim| &claim.key));
            }
            Err(problem) => fingerprint.add(json!(problem.batch_entry_error()).to_string()),
        }
    }
    fingerprint.finish()
}

/// The list of emails: the body's `emails`, or the body itself.
fn emails_value(call: &Request) -> Result<&RawValue> {
    let first = call.body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        return serde_json::from_slice(&call.body)
            .map_err(|error| Problem::new(ErrorCode::INVALID_JSON, format!("The body is not JSON: {error}")));
    }
    let mut notes = FieldDiagnostics::default();
    let fields = call.body_fields(&BATCH_NAMES, &mut notes)?;
    if !notes.errors.is_empty() {
        return Err(notes.errors.into());
    }
    match fields.value("emails") {
        Some(emails) if JsonKind::of_value(emails) == JsonKind::List => Ok(emails),
        Some(_) => Err(Problem::field("emails", "must be a list")),
        None => Err(Problem::field("emails", "is required")),
    }
}
