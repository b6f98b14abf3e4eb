# Generated from sdk/operations.json by sdk/generate; do not edit.

"""What follows from the codes of the API's errors."""

from typing import Any, Dict, Optional, Tuple

# The class of each code, and whether a call is repeated after it: `safe` if it does no harm that it was carried out.
CODES: Dict[str, Tuple[str, str]] = {
    "account_suspended": ("PermissionError", "never"),
    "approval_required": ("ApprovalRequiredError", "never"),
    "bad_request": ("ValidationError", "never"),
    "conflict": ("ConflictError", "never"),
    "domain_claimed": ("ConflictError", "never"),
    "domain_not_verified": ("PermissionError", "never"),
    "forbidden": ("PermissionError", "never"),
    "gone": ("ApiError", "never"),
    "headers_too_large": ("ValidationError", "never"),
    "idempotency_conflict": ("IdempotencyConflictError", "never"),
    "idempotency_in_progress": ("ConflictError", "safe"),
    "internal_error": ("ServerError", "safe"),
    "invalid_cursor": ("ValidationError", "never"),
    "invalid_idempotency_key": ("ValidationError", "never"),
    "invalid_json": ("ValidationError", "never"),
    "ip_not_allowed": ("PermissionError", "never"),
    "mail_server_error": ("ServerError", "safe"),
    "method_not_allowed": ("ValidationError", "never"),
    "not_found": ("NotFoundError", "never"),
    "payload_too_large": ("ValidationError", "never"),
    "plan_limit": ("PlanLimitError", "never"),
    "policy_violation": ("PermissionError", "never"),
    "production_access_required": ("PermissionError", "never"),
    "rate_limit_exceeded": ("RateLimitError", "always"),
    "reauthentication_required": ("AuthenticationError", "never"),
    "request_timeout": ("ServerError", "safe"),
    "sandbox_restricted": ("PermissionError", "never"),
    "send_unconfirmed": ("SendUnconfirmedError", "never"),
    "service_unavailable": ("ServerError", "always"),
    "unauthorized": ("AuthenticationError", "never"),
    "unsupported_media_type": ("ValidationError", "never"),
    "upstream_error": ("UpstreamError", "never"),
    "validation_error": ("ValidationError", "never"),
}


def class_of(status: int, code: str, details: Dict[str, Any]) -> str:
    """Returns the name of an error's class."""
    if code == "validation_error" and (details.get("suppressed") or details.get("category_unsubscribed")):
        return "SuppressedRecipientError"
    return CODES[code][0] if code in CODES else "ServerError" if status >= 500 else "ApiError"


def is_retried(status: int, code: str, is_safe: bool) -> bool:
    """Whether a call is repeated after an answer. `is_safe`: it does no harm that the first one was carried out."""
    retry = CODES[code][1] if code in CODES else "safe" if status in [408,500,502,503] else "never"
    return retry == "always" or (is_safe and retry == "safe")


def approval_required(body: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """The body of a request that waits for an approval (202), in the form of an error; None if it is another one."""
    if body is None or body.get("status") != "approval_required":
        return None
    text = body.get("message") or "A person must approve this call"
    return {"code": body["status"], "message": text, "details": body}
