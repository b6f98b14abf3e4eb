# Generated from sdk/operations.json by sdk/generate; do not edit.

"""The errors that follow from a table. `postrider.errors` has them all."""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Optional, Type

from ._codes import class_of
from ._error_bases import ApiError, PostriderError, SendUnconfirmedError, integer  # noqa: F401
from ._retry_after import retry_after

__all__ = [
    "ConfigurationError",
    "TimeoutError",
    "CancelledError",
    "SignatureError",
    "TimestampError",
    "ValidationError",
    "SuppressedRecipientError",
    "AuthenticationError",
    "PermissionError",
    "ApprovalRequiredError",
    "NotFoundError",
    "ConflictError",
    "IdempotencyConflictError",
    "PlanLimitError",
    "RateLimitError",
    "UpstreamError",
    "ServerError",
]


class ConfigurationError(PostriderError, ValueError):
    """The API key, the base URL or another argument cannot be used. Nothing was sent."""


class TimeoutError(PostriderError, builtins.TimeoutError):
    """The deadline of the call passed. The server may have carried it out."""


class CancelledError(PostriderError):
    """The caller cancelled the call. The server may have carried it out."""


class SignatureError(PostriderError):
    """The signature of a webhook is missing or wrong: answer 401 and do not use the payload."""


class TimestampError(SignatureError):
    """The time of a signed webhook is outside of the tolerance."""


class ValidationError(ApiError):
    """The request is not valid."""

    # Messages by the name of the field.
    fields: Dict[str, str] = {}

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.fields = self.details["fields"] if isinstance(self.details.get("fields"), dict) else {}


class SuppressedRecipientError(ValidationError):
    """Recipients are suppressed, or opted out of the category. The email was not sent."""

    # Addresses of these recipients.
    suppressed: List[str] = []
    # The category that they opted out of.
    category: Optional[str] = None
    # The stored email, which failed.
    email_id: Optional[str] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.suppressed = next((self.details[key] for key in ("suppressed", "category_unsubscribed", ) if isinstance(self.details.get(key), list)), [])
        self.category = self.details.get("category", error.get("category"))
        self.email_id = self.details.get("email_id", error.get("email_id"))


class AuthenticationError(ApiError):
    """The API key is missing, unknown, revoked or expired."""

    # Why, for example `expired`.
    reason: Optional[str] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.reason = self.details.get("reason", error.get("reason"))


class PermissionError(ApiError, builtins.PermissionError):
    """The API key, the domain or the account may not do this."""


class ApprovalRequiredError(ApiError):
    """The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a person approves it; `approvals.get` says what became of it."""

    # The approval, `apr_…`.
    approval_id: Optional[str] = None
    # The page on which a person decides.
    url: Optional[str] = None
    # End of the time for a decision, in ISO 8601.
    expires_at: Optional[str] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.approval_id = self.details.get("approval_id", error.get("approval_id"))
        self.url = self.details.get("url", error.get("url"))
        self.expires_at = self.details.get("expires_at", error.get("expires_at"))


class NotFoundError(ApiError):
    """There is no such object in this account."""


class ConflictError(ApiError):
    """The object is in another state, was changed meanwhile, or exists already."""


class IdempotencyConflictError(ConflictError):
    """The idempotency key was used with another request. A new request needs a new key."""


class PlanLimitError(ApiError):
    """A limit of the account's plan is reached. Retries do not help before it is reset."""

    # The limit's name, for example `daily`.
    limit: Optional[str] = None
    # How much of it is used.
    used: Optional[int] = None
    # How much the plan has.
    cap: Optional[int] = None
    # When it is reset, in ISO 8601.
    resets_at: Optional[str] = None
    # Where the plan can be changed.
    upgrade_url: Optional[str] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.limit = self.details.get("limit", error.get("limit"))
        self.used = self.details.get("used", error.get("used"))
        self.cap = self.details.get("cap", error.get("cap"))
        self.resets_at = self.details.get("resets_at", error.get("resets_at"))
        self.upgrade_url = self.details.get("upgrade_url", error.get("upgrade_url"))


class RateLimitError(ApiError):
    """The account makes too many calls at once, and retries did not help."""

    # Calls that are allowed.
    limit: Optional[int] = None
    # Calls that are left.
    remaining: Optional[int] = None
    # Seconds until all calls are allowed again.
    reset: Optional[int] = None
    # Time to wait before the next call.
    retry_after: Optional[float] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.limit = integer(self.headers.get("ratelimit-limit"))
        self.remaining = integer(self.headers.get("ratelimit-remaining"))
        self.reset = integer(self.headers.get("ratelimit-reset"))
        self.retry_after = retry_after(self.headers)


class UpstreamError(ApiError):
    """A service behind the server refused or failed, for example a DNS provider."""


class ServerError(ApiError):
    """The server has a fault, or is overloaded. Retries did not help."""


def from_answer(status: int, headers: Dict[str, str], error: Dict[str, Any]) -> ApiError:
    """Makes the error of an answer `{"error": {message, code, details, …}}`."""
    code, details = str(error.get("code") or ""), error.get("details")
    details = details if isinstance(details, dict) else {}
    error_class: Type[ApiError] = globals()[class_of(status, code, details)]
    request_id = error.get("request_id") or headers.get("x-request-id")
    made = error_class(
        str(error.get("message") or code), status=status, code=code, headers=headers, details=details,
        request_id=request_id, doc_url=error.get("doc_url"),
    )  # fmt: skip
    made._read(error)
    return made
