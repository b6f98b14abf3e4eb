//! `CliError`: why a command failed, as JSON on standard error, and its exit status.

use std::fmt;

use serde_json::{Map, Value, json};

/// Exit statuses of the command line.
pub mod exit_status {
    /// The server refused the request.
    pub const REFUSED: u8 = 1;
    /// The command line or the configuration is wrong; nothing was sent.
    pub const USAGE: u8 = 2;
    /// Try again later, with the idempotency key if the error has one.
    pub const TRY_AGAIN: u8 = 3;
    /// The server could not confirm whether it took the email.
    pub const UNCONFIRMED: u8 = 4;
    /// `plan` found changes to make.
    pub const CHANGES: u8 = 5;
    /// The request waits for the approval of a person.
    pub const APPROVAL_REQUIRED: u8 = 6;
}

/// The code of a request that waits for an approval: its answer (202) is no result.
pub const APPROVAL_REQUIRED: &str = "approval_required";

/// An error answer of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: u16,
    pub code: String,
    pub message: String,
    /// The whole `error` object.
    pub fields: Map<String, Value>,
    /// Seconds to wait, from `retry-after`.
    pub retry_after: Option<u64>,
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFailure {
    Dns,
    Refused,
    Reset,
    Tls,
    Other,
}

impl ConnectionFailure {
    const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Tls => "tls",
            Self::Other => "other",
        }
    }
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliError {
    /// The command line or the configuration is wrong.
    Usage(String),
    Api(Box<ApiError>),
    /// No answer; the text says what to do.
    Connection(ConnectionFailure, String),
    Timeout(String),
    /// An answer that is not the API's.
    UnexpectedResponse {
        status: u16,
        message: String,
        /// Seconds to wait, from `retry-after`.
        retry_after: Option<u64>,
    },
    /// The request may have been carried out; repeated with this key, it takes effect once.
    Unconfirmed {
        error: Box<Self>,
        idempotency_key: String,
    },
    /// A file or the terminal failed.
    Io(String),
    /// A check of the command itself failed, for example `wait` without a match.
    Failed(String),
    /// The command printed differences; only its exit status tells them.
    Differences(u8),
}

impl CliError {
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// An answer that is not the API's, without advice on when to repeat the request.
    pub(crate) fn unexpected_response(status: u16, message: impl Into<String>) -> Self {
        Self::UnexpectedResponse { status, message: message.into(), retry_after: None }
    }

    /// An error of the API with the object that it is about before its message.
    pub(crate) fn about(self, object: &str) -> Self {
        let Self::Api(mut error) = self else { return self };
        error.message = format!("{object}: {}", error.message);
        error.fields.insert("message".to_owned(), json!(error.message));
        Self::Api(error)
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => exit_status::USAGE,
            Self::Api(error) if error.code == "send_unconfirmed" => exit_status::UNCONFIRMED,
            Self::Api(error) if error.code == APPROVAL_REQUIRED => exit_status::APPROVAL_REQUIRED,
            Self::Api(error) if error.is_temporary() => exit_status::TRY_AGAIN,
            Self::Connection(..) | Self::Timeout(_) => exit_status::TRY_AGAIN,
            Self::Differences(status) => *status,
            Self::UnexpectedResponse { status: 408 | 429 | 500.., .. } => exit_status::TRY_AGAIN,
            Self::Unconfirmed { error, .. } => match error.status() {
                exit_status::REFUSED => exit_status::TRY_AGAIN,
                status => status,
            },
            Self::Api(_) | Self::UnexpectedResponse { .. } | Self::Io(_) | Self::Failed(_) => exit_status::REFUSED,
        }
    }

    /// Returns whether the request may have been carried out.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Connection(ConnectionFailure::Reset, _) | Self::Unconfirmed { .. } => true,
            // 0: it is not HTTP.
            Self::UnexpectedResponse { status, .. } => matches!(status, 0 | 200..300 | 500..),
            Self::Api(error) => error.status >= 500 && !error.did_nothing(),
            Self::Connection(..) | Self::Usage(_) | Self::Io(_) | Self::Failed(_) | Self::Differences(_) => false,
        }
    }

    /// Returns whether the API refused the request for good.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Api(error) if !error.is_temporary())
    }

    /// Seconds to wait before the request is repeated, if the answer says so.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Api(error) => error.retry_after,
            Self::UnexpectedResponse { retry_after, .. } => *retry_after,
            Self::Unconfirmed { error, .. } => error.retry_after(),
            Self::Usage(_)
            | Self::Connection(..)
            | Self::Timeout(_)
            | Self::Io(_)
            | Self::Failed(_)
            | Self::Differences(_) => None,
        }
    }

    /// Adds the idempotency key of a request that may have been carried out, so that it can be repeated with it.
    #[must_use]
    pub(crate) fn with_idempotency_key(self, key: &str) -> Self {
        if !self.is_unconfirmed() {
            return self;
        }
        Self::Unconfirmed { error: Box::new(self), idempotency_key: key.to_owned() }
    }

    /// The error as one JSON object.
    pub fn to_json(&self) -> Value {
        let message = self.to_string();
        let error = match self {
            Self::Usage(_) => json!({"message": message, "code": "usage"}),
            Self::Api(error) => {
                let mut fields = error.fields.clone();
                fields.insert("status".to_owned(), json!(error.status));
                if let Some(seconds) = error.retry_after {
                    fields.insert("retry_after".to_owned(), json!(seconds));
                }
                Value::Object(fields)
            }
            Self::Connection(reason, _) => {
                json!({"message": message, "code": "connection_error", "reason": reason.name()})
            }
            Self::Timeout(_) => json!({"message": message, "code": "timeout"}),
            Self::UnexpectedResponse { status, retry_after, .. } => {
                let mut error = json!({"message": message, "code": "unexpected_response", "status": status});
                if let Some(seconds) = retry_after {
                    error["retry_after"] = json!(seconds);
                }
                error
            }
            Self::Unconfirmed { error, idempotency_key } => {
                let mut fields = error.to_json()["error"].take();
                fields["message"] = json!(message);
                fields["idempotency_key"] = json!(idempotency_key);
                fields
            }
            Self::Io(_) => json!({"message": message, "code": "io_error"}),
            Self::Failed(_) => json!({"message": message, "code": "failed"}),
            Self::Differences(_) => json!({"message": message, "code": "differences"}),
        };
        json!({"error": error})
    }

    /// The error for people: the message, the fields that it concerns, and where to read on.
    pub fn to_text(&self) -> String {
        // The message of the API does not name the key; other messages do.
        if let Self::Unconfirmed { error, idempotency_key } = self
            && matches!(**error, Self::Api(_))
        {
            return format!("{}\n  idempotency key: {idempotency_key}", error.to_text());
        }
        let mut text = format!("error: {self}");
        if let Self::Api(error) = self {
            text.push_str(&format!(" ({})", error.code));
            let fields = error.fields.get("details").and_then(|details| details["fields"].as_object());
            for (name, problem) in fields.into_iter().flatten() {
                text.push_str(&format!("\n  {name}: {}", problem.as_str().unwrap_or_default()));
            }
            if let Some(id) = error.approval_id() {
                text.push_str(&format!("\n  approval: {id}\n  wait for it: postrider approvals wait {id}"));
            }
            for (label, field) in [("upgrade", "upgrade_url"), ("read", "doc_url"), ("request", "request_id")] {
                if let Some(value) = error.fields.get(field).and_then(Value::as_str) {
                    text.push_str(&format!("\n  {label}: {value}"));
                }
            }
        }
        text
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Connection(_, message)
            | Self::Timeout(message)
            | Self::UnexpectedResponse { message, .. }
            | Self::Io(message)
            | Self::Failed(message) => f.write_str(message),
            Self::Api(error) => f.write_str(&error.message),
            Self::Unconfirmed { error, .. } if matches!(**error, Self::Api(_)) => write!(f, "{error}"),
            Self::Unconfirmed { error, idempotency_key } => write!(
                f,
                "{error}; the server may have carried out the request: to repeat it safely, add --idempotency-key \
                 {idempotency_key}"
            ),
            Self::Differences(_) => f.write_str("there are differences"),
        }
    }
}

impl std::error::Error for CliError {}

impl ApiError {
    /// The error of a request that waits for an approval, from the body of its answer (202); `None` for another body.
    pub fn approval_required(status: u16, body: &[u8]) -> Option<Self> {
        let body: Map<String, Value> = serde_json::from_slice(body).ok()?;
        if body.get("status").and_then(Value::as_str) != Some(APPROVAL_REQUIRED) {
            return None;
        }
        let message = body.get("message").and_then(Value::as_str).unwrap_or("a person must approve this request");
        let (code, message) = (APPROVAL_REQUIRED.to_owned(), message.to_owned());
        let fields = json!({"message": message, "code": code, "details": body});
        let Value::Object(fields) = fields else { return None };
        Some(Self { status, code, message, fields, retry_after: None })
    }

    /// The approval that the request waits for.
    pub fn approval_id(&self) -> Option<&str> {
        let details = self.fields.get("details").filter(|_| self.code == APPROVAL_REQUIRED)?;
        details["approval_id"].as_str()
    }

    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        let by_code = ["rate_limit_exceeded", "idempotency_in_progress"].contains(&self.code.as_str());
        by_code || (self.code != "plan_limit" && matches!(self.status, 408 | 429 | 500 | 502 | 503))
    }

    /// Returns whether a key was refused because it is valid for sending only.
    pub fn is_for_sending_only(&self) -> bool {
        self.status == 403 && self.fields.get("details").is_some_and(|details| details["required_key_scope"] == "full")
    }

    /// Returns whether the server says that it did nothing.
    pub fn did_nothing(&self) -> bool {
        ["rate_limit_exceeded", "service_unavailable", "mail_server_error"].contains(&self.code.as_str())
    }
}
