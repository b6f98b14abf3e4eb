# Generated from sdk/operations.json by sdk/generate; do not edit.

"""The errors that follow from a table. `postrider.errors` has them all."""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Optional

from ._error_bases import ApiError, PostriderError

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
        self.fields = self._messages(error, "fields")


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
        self.suppressed = self._addresses(error, "suppressed", "category_unsubscribed")
        self.category = self._text(error, "category")
        self.email_id = self._text(error, "email_id")


class AuthenticationError(ApiError):
    """The API key is missing, unknown, revoked or expired."""

    # Why, for example `expired`.
    reason: Optional[str] = None

    def _read(self, error: Dict[str, Any]) -> None:
        super()._read(error)
        self.reason = self._text(error, "reason")


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
        self.approval_id = self._text(error, "approval_id")
        self.url = self._text(error, "url")
        self.expires_at = self._text(error, "expires_at")


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
        self.limit = self._text(error, "limit")
        self.used = self._integer(error, "used")
        self.cap = self._integer(error, "cap")
        self.resets_at = self._text(error, "resets_at")
        self.upgrade_url = self._text(error, "upgrade_url")


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
        self.limit = self._header(error, "ratelimit-limit")
        self.remaining = self._header(error, "ratelimit-remaining")
        self.reset = self._header(error, "ratelimit-reset")
        self.retry_after = self._wait(error, "retry-after")


class UpstreamError(ApiError):
    """A service behind the server refused or failed, for example a DNS provider."""


class ServerError(ApiError):
    """The server has a fault, or is overloaded. Retries did not help."""
