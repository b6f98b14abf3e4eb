//! `Problem`: an error response of the API, and the table of all error codes.
//!
//! This is the only place that writes errors to the wire: `{"error": {message, code, details?, upgrade_url?,
//! request_id, doc_url}}`. The cause of a 500 is a separate field,
//! which is logged and never sent to the client.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderName;
use model::approval::CONTENT_BYTES_MAX;
use model::id::RequestId;
use net::limit::rate_limit::RateLimitStatus;
use schema::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::access::Denial;
use store::engine::ReadError;

/// Most field errors in one response; a body can contain many thousands.
pub const FIELD_ERRORS_MAX: usize = 50;
/// `Retry-After` in seconds when memory or another short-lived resource is exhausted.
pub const RETRY_AFTER_S: u32 = 1;
/// `Retry-After` in seconds for longer outages: a full disk, a restart, or a recount of many rows.
pub const OUTAGE_RETRY_AFTER_S: u32 = 10;

/// The result of handling a request, or a part of it.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// A row of the error table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The `code` of the response body.
    pub word: &'static str,
    pub status: u16,
    /// The description in the OpenAPI document.
    pub when: &'static str,
}

macro_rules! codes {
    ($($name:ident $status:literal $word:literal $when:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $when] pub const $name: Self = Self { word: $word, status: $status, when: $when };)*
            /// The whole table.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    BAD_REQUEST 400 "bad_request" "Malformed HTTP request.";
    INVALID_JSON 400 "invalid_json" "The body is not valid JSON.";
    VALIDATION_ERROR 400 "validation_error" "A field is missing or invalid; `details.fields` names each.";
    INVALID_IDEMPOTENCY_KEY 400 "invalid_idempotency_key" "`Idempotency-Key` must have from 1 to 256 printable \
        characters.";
    INVALID_CURSOR 400 "invalid_cursor" "Invalid cursor: it was not returned by this list.";
    UNAUTHORIZED 401 "unauthorized" "The API key or session is missing, invalid, revoked or expired; `details.reason` says which.";
    FORBIDDEN 403 "forbidden" "The scope of the API key or the role of the user does not allow this.";
    REAUTHENTICATION_REQUIRED 403 "reauthentication_required" "The session signed in too long ago for this operation: confirm the password or sign in again.";
    DOMAIN_NOT_VERIFIED 403 "domain_not_verified" "The domain of `from` is not verified for the account.";
    SANDBOX_RESTRICTED 403 "sandbox_restricted" "The sandbox sender can send only to the account's own address.";
    PRODUCTION_ACCESS_REQUIRED 403 "production_access_required" "Sending to other recipients requires production \
        access.";
    IP_NOT_ALLOWED 403 "ip_not_allowed" "The API key may not be used from this address.";
    POLICY_VIOLATION 403 "policy_violation" "The policy of the API key or grant does not permit this; `details.rule` names the rule.";
    ACCOUNT_SUSPENDED 403 "account_suspended" "The account is suspended.";
    NOT_FOUND 404 "not_found" "Not found.";
    METHOD_NOT_ALLOWED 405 "method_not_allowed" "The path does not support this method; see `Allow`.";
    REQUEST_TIMEOUT 408 "request_timeout" "The body arrived too slowly.";
    IDEMPOTENCY_CONFLICT 409 "idempotency_conflict" "The idempotency key was used for a different request; use a new one.";
    IDEMPOTENCY_IN_PROGRESS 409 "idempotency_in_progress" "A request with this key is in progress; see `retry-after`.";
    DOMAIN_CLAIMED 409 "domain_claimed" "The domain belongs to another account; `details` explains how to claim it.";
    CONFLICT 409 "conflict" "It already exists, was changed concurrently, or cannot be changed in its state.";
    GONE 410 "gone" "The link has been used or has expired.";
    PAYLOAD_TOO_LARGE 413 "payload_too_large" "The body, or the message composed from it, is too large.";
    RECIPIENT_BLOCKED 422 "validation_error" "Recipients are suppressed or have opted out of the category; see \
        `details`.";
    UPSTREAM_ERROR 422 "upstream_error" "A remote mail server or provider rejected the request permanently.";
    PLAN_LIMIT 429 "plan_limit" "The plan's daily or monthly limit has been reached; see `upgrade_url`, if present.";
    PLAN_FULL 403 "plan_limit" "The plan's quota of `details.limit` is used up; see `upgrade_url`, if present.";
    UNSUPPORTED_MEDIA_TYPE 415 "unsupported_media_type" "The body must be `application/json`, optionally compressed with gzip or zstd.";
    RATE_LIMIT_EXCEEDED 429 "rate_limit_exceeded" "Too many requests; see `retry-after`.";
    HEADERS_TOO_LARGE 431 "headers_too_large" "The header section has too many fields or bytes.";
    INTERNAL_ERROR 500 "internal_error" "Internal error; the request id identifies it in the server log.";
    MAIL_SERVER_ERROR 502 "mail_server_error" "The mail server could not process the email, for example could not \
        sign it; nothing was accepted.";
    SERVICE_UNAVAILABLE 503 "service_unavailable" "Temporarily unavailable; nothing was accepted. Retry after \
        `retry-after`.";
    SEND_UNCONFIRMED 504 "send_unconfirmed" "It is unknown whether the email was accepted; it may be delivered.";
}

impl ErrorCode {
    /// The name in the OpenAPI document: the code, with the status appended where an earlier row has the same code.
    pub fn name(&self) -> String {
        match Self::ALL.iter().find(|other| other.word == self.word) {
            Some(first) if first != self => format!("{}_{}", self.word, self.status),
            _ => self.word.to_owned(),
        }
    }

    /// The errors of every operation that sends email.
    pub const SENDING: &'static [Self] = &[
        Self::DOMAIN_NOT_VERIFIED,
        Self::SANDBOX_RESTRICTED,
        Self::PRODUCTION_ACCESS_REQUIRED,
        Self::POLICY_VIOLATION,
        Self::ACCOUNT_SUSPENDED,
        Self::NOT_FOUND,
        Self::CONFLICT,
        Self::RECIPIENT_BLOCKED,
        Self::PLAN_LIMIT,
        Self::PLAN_FULL,
        Self::MAIL_SERVER_ERROR,
        Self::SEND_UNCONFIRMED,
    ];
}

/// An error response.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem(Box<ProblemParts>);

#[derive(Debug, Clone, PartialEq)]
struct ProblemParts {
    code: ErrorCode,
    message: String,
    details: Option<Value>,
    upgrade_url: Option<String>,
    headers: Vec<(HeaderName, String)>,
    cause: Option<String>,
}

/// The message of every 401: it does not reveal whether a key is missing, wrong or revoked; the reason is
/// in `details.reason`.
const UNAUTHORIZED: &str = "Unauthorized";

/// An entry of `details.errors`, if a batch is not accepted.
#[derive(Debug, Serialize)]
struct RefusedEmail {
    index: usize,
    #[serde(flatten)]
    error: BatchEntryError,
}

/// The error of one entry of a batch
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BatchEntryError {
    /// Message for people
    message: String,
    /// Code for programs, as in responses to single requests
    #[schema(examples = ["validation_error"])]
    code: String,
    /// Details of the error
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(as = Value, type = "object")]
    details: Option<Value>,
    /// The page to upgrade the account
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples = ["https://example.com/upgrade"])]
    upgrade_url: Option<String>,
}

impl Problem {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ProblemParts {
            code,
            message: message.into(),
            details: None,
            upgrade_url: None,
            headers: Vec::new(),
            cause: None,
        }))
    }

    /// 401: the key, access token or session is not accepted. `WWW-Authenticate` is added with the base URL.
    pub fn unauthorized(denial: Denial) -> Self {
        Self::new(ErrorCode::UNAUTHORIZED, UNAUTHORIZED).with_details(json!({"reason": denial.word()}))
    }

    /// 404: the object does not exist or belongs to another account.
    pub fn not_found(noun: &str) -> Self {
        Self::new(ErrorCode::NOT_FOUND, format!("No such {noun}"))
    }

    /// 500: a fault of the service; `cause` is logged and not sent.
    pub fn internal(cause: impl ToString) -> Self {
        let mut problem = Self::new(ErrorCode::INTERNAL_ERROR, "Internal error");
        problem.0.cause = Some(cause.to_string());
        problem
    }

    /// 503: nothing was accepted, and an idempotency key is released.
    pub fn unavailable(message: impl Into<String>, retry_after_s: u32) -> Self {
        Self::new(ErrorCode::SERVICE_UNAVAILABLE, message)
            .with_details(json!({"idempotency_key_released": true}))
            .with_header(http::header::RETRY_AFTER, retry_after_s.to_string())
    }

    /// 503: the store cannot be read; `cause` is logged and not sent.
    pub fn outage(cause: impl ToString) -> Self {
        let mut problem = Self::unavailable("Temporarily unavailable; try again", OUTAGE_RETRY_AFTER_S);
        problem.0.cause = Some(cause.to_string());
        problem
    }

    /// 429: the account exceeded its requests per second.
    pub fn rate_limited(status: RateLimitStatus) -> Self {
        let RateLimitStatus { limit, reset_s, .. } = status;
        let message = format!("More than {limit} requests per second; try again in {reset_s} s");
        Self::new(ErrorCode::RATE_LIMIT_EXCEEDED, message)
            .with_details(json!({"limit": limit}))
            .with_header(http::header::RETRY_AFTER, reset_s.to_string())
    }

    /// 429: the account exceeded its DNS lookups.
    pub fn dns_lookups_limited(retry_after: Duration) -> Self {
        let seconds = retry_after.as_millis().div_ceil(1_000).max(1);
        let message = format!("Too many DNS lookups; try again in {seconds} s");
        Self::new(ErrorCode::RATE_LIMIT_EXCEEDED, message)
            .with_details(json!({"reason": "dns_questions"}))
            .with_header(http::header::RETRY_AFTER, seconds.to_string())
    }

    /// 503: the memory budget is exhausted.
    pub fn busy() -> Self {
        Self::unavailable("The service is busy; try again shortly", RETRY_AFTER_S)
    }

    /// 413: the emails of a request that waits for approval are larger than what is held.
    pub fn held_content_too_large() -> Self {
        let text = format!(
            "A request that waits for approval can have at most {CONTENT_BYTES_MAX} bytes, including the emails that \
             it sends"
        );
        Self::new(ErrorCode::PAYLOAD_TOO_LARGE, text)
    }

    /// 400: one invalid field.
    pub fn field(name: &str, message: impl Into<String>) -> Self {
        let mut fields = FieldErrors::default();
        fields.add(name, message);
        fields.into()
    }

    /// Replaces the details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Adds one member to the details.
    #[must_use]
    pub fn with_detail(mut self, name: &str, value: Value) -> Self {
        match &mut self.0.details {
            Some(Value::Object(details)) => {
                details.insert(name.to_owned(), value);
            }
            other => *other = Some(json!({name: value})),
        }
        self
    }

    /// Adds a header field to the response.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Sets `upgrade_url`, if the operator configured one.
    #[must_use]
    pub fn with_upgrade_url(mut self, url: Option<&str>) -> Self {
        self.0.upgrade_url = url.map(str::to_owned);
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The cause of a fault, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Additional header fields of the response.
    pub fn headers(&self) -> &[(HeaderName, String)] {
        &self.0.headers
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The response body.
    pub fn body(&self, request_id: RequestId, base_url: &str) -> Bytes {
        let envelope = ErrorEnvelope {
            error: ErrorBody {
                message: &self.0.message,
                code: self.0.code.word,
                details: self.0.details.as_ref(),
                upgrade_url: self.0.upgrade_url.as_deref(),
                request_id,
                doc_url: doc_url(base_url, &self.0.code.name()),
            },
        };
        serde_json::to_vec(&envelope).unwrap_or_default().into()
    }

    /// The error of one entry of a batch response.
    pub fn batch_entry_error(&self) -> BatchEntryError {
        BatchEntryError {
            message: self.0.message.clone(),
            code: self.0.code.word.to_owned(),
            details: self.0.details.clone(),
            upgrade_url: self.0.upgrade_url.clone(),
        }
    }

    /// True if the same request may succeed later unchanged. Such an error is not stored under an idempotency key.
    pub fn is_transient(&self) -> bool {
        matches!(self.0.code.status, 429 | 500 | 502 | 503) || self.0.code == ErrorCode::IDEMPOTENCY_IN_PROGRESS
    }

    /// The error of a batch that is accepted whole or not at all; `details.errors` lists each refused email by its
    /// index. If all refusals have the same status, the response has that status, their header fields and their
    /// common details; else it is 400.
    pub fn from_batch(refused: &[(usize, Self)]) -> Self {
        let mut fields = FieldErrors::default();
        let mut errors = Vec::with_capacity(refused.len());
        for (index, problem) in refused {
            fields.add(&format!("emails[{index}]"), &problem.0.message);
            errors.push(json!(RefusedEmail { index: *index, error: problem.batch_entry_error() }));
        }
        let combined = Self::from(fields).with_detail("errors", Value::Array(errors));
        match refused {
            [(_, first), rest @ ..] if rest.iter().all(|(_, p)| p.status() == first.status()) => {
                combined.with_code_of(first, rest)
            }
            _ => combined,
        }
    }

    /// Takes the code of the first of several problems with one status, and the details that all of them share.
    fn with_code_of(mut self, first: &Self, rest: &[(usize, Self)]) -> Self {
        let alike = |same: &dyn Fn(&Self) -> bool| rest.iter().all(|(_, problem)| same(problem));
        (self.0.code, self.0.cause) = (first.0.code, first.0.cause.clone());
        self.0.upgrade_url.clone_from(&first.0.upgrade_url);
        for (name, value) in first.0.details.iter().filter_map(Value::as_object).flatten() {
            let is_new = self.0.details.as_ref().is_some_and(|details| details.get(name).is_none());
            if is_new && alike(&|other| other.0.details.as_ref().and_then(|d| d.get(name)) == Some(value)) {
                self = self.with_detail(name, value.clone());
            }
        }
        // `Retry-After`: the longest wait suits all of them.
        let seconds = |(_, value): &(HeaderName, String)| value.parse::<u32>().unwrap_or_default();
        let mut headers = first.0.headers.clone();
        for header in rest.iter().flat_map(|(_, problem)| &problem.0.headers) {
            match headers.iter_mut().find(|(name, _)| *name == header.0) {
                Some(known) if seconds(header) > seconds(known) => known.1.clone_from(&header.1),
                Some(_) => {}
                None => headers.push(header.clone()),
            }
        }
        self.0.headers = headers;
        self
    }

    /// 403: a rule of the client's policy does not permit the request.
    pub fn policy_violation(rule: &str, text: impl Into<String>) -> Self {
        Self::new(ErrorCode::POLICY_VIOLATION, text).with_details(json!({"rule": rule}))
    }
}

impl From<ReadError> for Problem {
    /// Damage lasts: 500, because a retry cannot succeed. Other failures are outages.
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Corrupt(_) => Self::internal(error),
            ReadError::Io(_) | ReadError::Away(_) => Self::outage(error),
        }
    }
}

/// URL of a code's entry in the API reference (crate `pages`).
fn doc_url(base_url: &str, word: &str) -> String {
    format!("{base_url}/docs/errors#{word}")
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade_url: Option<&'a str>,
    request_id: RequestId,
    doc_url: String,
}

/// The invalid fields of a request, collected so that one response names all of them.
#[derive(Debug, Default)]
pub struct FieldErrors {
    fields: BTreeMap<String, String>,
    first: Option<String>,
    left_out: usize,
    /// Warnings about ignored fields: a required field may have been sent under a wrong name.
    ignored: Vec<String>,
}

impl FieldErrors {
    /// Adds a warning about an ignored field.
    pub fn add_ignored(&mut self, text: String) {
        self.ignored.push(text);
    }

    /// Adds an error; the first error of a field wins.
    pub fn add(&mut self, name: &str, message: impl Into<String>) {
        if self.fields.contains_key(name) {
            return;
        }
        if self.fields.len() == FIELD_ERRORS_MAX {
            self.left_out += 1;
            return;
        }
        let message = message.into();
        if self.first.is_none() {
            // A message that starts with a field name is not prefixed again.
            let prefixed = if message.starts_with('`') { message.clone() } else { format!("`{name}`: {message}") };
            self.first = Some(prefixed);
        }
        self.fields.insert(name.to_owned(), message);
    }

    /// Adds the errors of an object inside the body; `path` is its name.
    pub fn add_nested(&mut self, path: &str, nested: Self) {
        nested.fields.into_iter().for_each(|(name, message)| self.add(&format!("{path}.{name}"), message));
        self.left_out += nested.left_out;
    }

    /// Returns whether no field is invalid.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

impl From<FieldErrors> for Problem {
    /// `details` has the errors by field name, repeated under `details.fields`;
    /// `details.warnings` lists ignored fields.
    fn from(errors: FieldErrors) -> Self {
        let hidden_count = errors.fields.len().saturating_sub(1) + errors.left_out;
        let first = errors.first.unwrap_or_else(|| "The request is not valid".to_owned());
        let message = match hidden_count {
            0 => first,
            1 => format!("{first} (and 1 more error)"),
            n => format!("{first} (and {n} more errors)"),
        };
        let fields: Map<String, Value> =
            errors.fields.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
        let mut details = fields.clone();
        details.insert("fields".to_owned(), Value::Object(fields));
        if !errors.ignored.is_empty() {
            details.insert("warnings".to_owned(), json!(errors.ignored));
        }
        Self::new(ErrorCode::VALIDATION_ERROR, message).with_details(Value::Object(details))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_an_internal_error_and_an_outage_is_not() {
        let code = |error: ReadError| Problem::from(error).code();
        assert_eq!(code(ReadError::Corrupt("checksum".into())), ErrorCode::INTERNAL_ERROR);
        assert_eq!(code(ReadError::Io("timeout".into())), ErrorCode::SERVICE_UNAVAILABLE);
        assert_eq!(code(ReadError::Away("gone".into())), ErrorCode::SERVICE_UNAVAILABLE);
    }
}
