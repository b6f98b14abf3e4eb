//! The class of each error code, as the table of sdk/README.md has it.

/// `SuppressedRecipientError` is not here: a `validation_error` becomes one by its details.
const CLASSES: &[(&str, &[&str])] = &[
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

pub fn class_of(code: &str, status: u16) -> &'static str {
    match CLASSES.iter().find(|(_, codes)| codes.contains(&code)) {
        Some((class, _)) => class,
        None if status >= 500 => "ServerError",
        None => "ApiError",
    }
}
