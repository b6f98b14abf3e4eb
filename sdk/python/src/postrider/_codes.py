# Generated from sdk/operations.json by sdk/generate; do not edit.

"""The class of each error code."""

from typing import Dict

CLASSES_BY_CODE: Dict[str, str] = {
    "account_suspended": "PermissionError",
    "approval_required": "ApprovalRequiredError",
    "bad_request": "ValidationError",
    "conflict": "ConflictError",
    "domain_claimed": "ConflictError",
    "domain_not_verified": "PermissionError",
    "forbidden": "PermissionError",
    "gone": "ApiError",
    "headers_too_large": "ValidationError",
    "idempotency_conflict": "IdempotencyConflictError",
    "idempotency_in_progress": "ConflictError",
    "internal_error": "ServerError",
    "invalid_cursor": "ValidationError",
    "invalid_idempotency_key": "ValidationError",
    "invalid_json": "ValidationError",
    "ip_not_allowed": "PermissionError",
    "mail_server_error": "ServerError",
    "method_not_allowed": "ValidationError",
    "not_found": "NotFoundError",
    "payload_too_large": "ValidationError",
    "plan_limit": "PlanLimitError",
    "policy_violation": "PermissionError",
    "production_access_required": "PermissionError",
    "rate_limit_exceeded": "RateLimitError",
    "reauthentication_required": "AuthenticationError",
    "request_timeout": "ServerError",
    "sandbox_restricted": "PermissionError",
    "send_unconfirmed": "SendUnconfirmedError",
    "service_unavailable": "ServerError",
    "unauthorized": "AuthenticationError",
    "unsupported_media_type": "ValidationError",
    "upstream_error": "UpstreamError",
    "validation_error": "ValidationError",
}
