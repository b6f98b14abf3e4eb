//! The classes of errors that follow from a table, as sdk/README.md has them. The others have behaviour of their own and are
//! written by hand in each language: `PostriderError`, `ApiError`, `SendUnconfirmedError`, `ConnectionError` and
//! `UnexpectedResponseError`.

use serde::Serialize;

#[derive(Debug, Clone, Copy, Serialize)]
pub struct ErrorClass {
    pub name: &'static str,
    pub parent: &'static str,
    pub doc: &'static str,
    /// Whether an answer of the API becomes one. Other errors have a message only.
    pub is_answer: bool,
    pub fields: &'static [ErrorField],
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct ErrorField {
    pub name: &'static str,
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Keys of the answer's `error.details` or `error`, or names of headers. The first that is there counts.
    pub keys: &'static [&'static str],
    pub doc: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    Text,
    Integer,
    /// A list of email addresses.
    Addresses,
    /// Texts by the name of a field.
    Messages,
    /// An integer in a header.
    Header,
    /// The time that the header `retry-after` asks for.
    Wait,
}

const fn answer(name: &'static str, doc: &'static str, fields: &'static [ErrorField]) -> ErrorClass {
    ErrorClass { name, parent: "ApiError", doc, is_answer: true, fields }
}

const fn local(name: &'static str, doc: &'static str) -> ErrorClass {
    ErrorClass { name, parent: "PostriderError", doc, is_answer: false, fields: &[] }
}

const fn field(name: &'static str, kind: FieldKind, keys: &'static [&'static str], doc: &'static str) -> ErrorField {
    ErrorField { name, kind, keys, doc }
}

/// Parents stand before their children.
pub const CLASSES: &[ErrorClass] = &[
    local("ConfigurationError", "The API key, the base URL or another argument cannot be used. Nothing was sent."),
    local("TimeoutError", "The deadline of the call passed. The server may have carried it out."),
    local("CancelledError", "The caller cancelled the call. The server may have carried it out."),
    local("SignatureError", "The signature of a webhook is missing or wrong: answer 401 and do not use the payload."),
    ErrorClass {
        parent: "SignatureError",
        ..local("TimestampError", "The time of a signed webhook is outside of the tolerance.")
    },
    answer(
        "ValidationError",
        "The request is not valid.",
        &[field("fields", FieldKind::Messages, &["fields"], "Messages by the name of the field.")],
    ),
    ErrorClass {
        parent: "ValidationError",
        ..answer(
            "SuppressedRecipientError",
            "Recipients are suppressed, or opted out of the category. The email was not sent.",
            &[
                field(
                    "suppressed",
                    FieldKind::Addresses,
                    &["suppressed", "category_unsubscribed"],
                    "Addresses of these recipients.",
                ),
                field("category", FieldKind::Text, &["category"], "The category that they opted out of."),
                field("email_id", FieldKind::Text, &["email_id"], "The stored email, which failed."),
            ],
        )
    },
    answer(
        "AuthenticationError",
        "The API key is missing, unknown, revoked or expired.",
        &[field("reason", FieldKind::Text, &["reason"], "Why, for example `expired`.")],
    ),
    answer("PermissionError", "The API key, the domain or the account may not do this.", &[]),
    answer(
        "ApprovalRequiredError",
        "The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a \
         person approves it; `approvals.get` says what became of it.",
        &[
            field("approval_id", FieldKind::Text, &["approval_id"], "The approval, `apr_…`."),
            field("url", FieldKind::Text, &["url"], "The page on which a person decides."),
            field("expires_at", FieldKind::Text, &["expires_at"], "End of the time for a decision, in ISO 8601."),
        ],
    ),
    answer("NotFoundError", "There is no such object in this account.", &[]),
    answer("ConflictError", "The object is in another state, was changed meanwhile, or exists already.", &[]),
    ErrorClass {
        parent: "ConflictError",
        ..answer(
            "IdempotencyConflictError",
            "The idempotency key was used with another request. A new request needs a new key.",
            &[],
        )
    },
    answer(
        "PlanLimitError",
        "A limit of the account's plan is reached. Retries do not help before it is reset.",
        &[
            field("limit", FieldKind::Text, &["limit"], "The limit's name, for example `daily`."),
            field("used", FieldKind::Integer, &["used"], "How much of it is used."),
            field("cap", FieldKind::Integer, &["cap"], "How much the plan has."),
            field("resets_at", FieldKind::Text, &["resets_at"], "When it is reset, in ISO 8601."),
            field("upgrade_url", FieldKind::Text, &["upgrade_url"], "Where the plan can be changed."),
        ],
    ),
    answer(
        "RateLimitError",
        "The account makes too many calls at once, and retries did not help.",
        &[
            field("limit", FieldKind::Header, &["ratelimit-limit"], "Calls that are allowed."),
            field("remaining", FieldKind::Header, &["ratelimit-remaining"], "Calls that are left."),
            field("reset", FieldKind::Header, &["ratelimit-reset"], "Seconds until all calls are allowed again."),
            field("retry_after", FieldKind::Wait, &["retry-after"], "Time to wait before the next call."),
        ],
    ),
    answer("UpstreamError", "A service behind the server refused or failed, for example a DNS provider.", &[]),
    answer("ServerError", "The server has a fault, or is overloaded. Retries did not help.", &[]),
];

/// The class of a code whose answer has one of some details.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ClassByDetails {
    pub code: &'static str,
    pub keys: &'static [&'static str],
    pub class: &'static str,
}

pub const BY_DETAILS: ClassByDetails = ClassByDetails {
    code: "validation_error",
    keys: &["suppressed", "category_unsubscribed"],
    class: "SuppressedRecipientError",
};

/// An answer with such a status and without a known code is worth another attempt.
pub const RETRIED_STATUSES: &[u16] = &[408, 500, 502, 503];

const CODES: &[(&str, &[&str])] = &[
    (
        "ValidationError",
        &[
            "validation_error",
            "bad_request",
            "invalid_json",
            "invalid_idempotency_key",
            "invalid_cursor",
            "payload_too_large",
            "unsupported_media_type",
            "headers_too_large",
            "method_not_allowed",
        ],
    ),
    ("AuthenticationError", &["unauthorized", "reauthentication_required"]),
    (
        "PermissionError",
        &[
            "forbidden",
            "domain_not_verified",
            "policy_violation",
            "sandbox_restricted",
            "production_access_required",
            "ip_not_allowed",
            "account_suspended",
        ],
    ),
    ("NotFoundError", &["not_found"]),
    ("ConflictError", &["conflict", "domain_claimed", "idempotency_in_progress", "precondition_failed"]),
    ("IdempotencyConflictError", &["idempotency_conflict"]),
    ("PlanLimitError", &["plan_limit"]),
    ("RateLimitError", &["rate_limit_exceeded"]),
    ("UpstreamError", &["upstream_error"]),
    ("SendUnconfirmedError", &["send_unconfirmed"]),
    ("ServerError", &["internal_error", "mail_server_error", "service_unavailable", "request_timeout"]),
];

/// The code of an answer whose status is no error (202): the request waits for an approval. Its body has the fields of an
/// error's details, with the code as `status`.
pub const APPROVAL_REQUIRED: (&str, &str) = ("approval_required", "ApprovalRequiredError");

/// The class of a code; an unknown one of an answer with a status from 500 is a `ServerError`.
pub fn class_of(code: &str, status: u16) -> &'static str {
    match CODES.iter().find(|(_, codes)| codes.contains(&code)) {
        Some((class, _)) => class,
        None if status >= 500 => "ServerError",
        None => "ApiError",
    }
}
