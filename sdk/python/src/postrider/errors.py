"""The errors of this package. All inherit from `PostriderError`; no message contains the API key."""

from __future__ import annotations

import builtins
from typing import Any, Callable, Dict, List, Optional, Type

from ._codes import CLASSES_BY_CODE

__all__ = [
    "ApiError", "AuthenticationError", "CancelledError", "ConfigurationError", "ConflictError", "ConnectionError",
    "IdempotencyConflictError", "NotFoundError", "PermissionError", "PlanLimitError", "PostriderError",
    "RateLimitError", "SendUnconfirmedError", "ServerError", "SignatureError", "SuppressedRecipientError",
    "TimeoutError", "TimestampError", "UnexpectedResponseError", "UpstreamError", "ValidationError",
]  # fmt: skip


class PostriderError(Exception):
    """Base class of all errors of this package."""

    message: str

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.__dict__.update(fields)


class ApiError(PostriderError):
    """The API answered with an error. `headers` have names in lower case."""

    status: int = 0
    code: str = ""
    request_id: Optional[str] = None
    doc_url: Optional[str] = None
    headers: Dict[str, str] = {}
    details: Dict[str, Any] = {}

    def __str__(self) -> str:
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message} (HTTP {self.status} {self.code}{request})"


class ValidationError(ApiError):
    """The request is invalid. `fields` maps the name of a field to what is wrong with it."""

    fields: Dict[str, str] = {}


class SuppressedRecipientError(ValidationError):
    """Recipients are suppressed, or opted out of the category. `email_id` is the stored, failed email."""

    suppressed: List[str] = []
    category: Optional[str] = None
    email_id: Optional[str] = None


class AuthenticationError(ApiError):
    """The API key is missing, unknown, revoked or expired; `reason` says which."""

    reason: Optional[str] = None


class PermissionError(ApiError, builtins.PermissionError):
    """The API key, or the account, may not do this."""


class NotFoundError(ApiError):
    """The object does not exist."""


class ConflictError(ApiError):
    """The object exists already, was changed by another request, or cannot be changed in its state."""


class IdempotencyConflictError(ConflictError):
    """The idempotency key was used for a different request: use a new one."""


class PlanLimitError(ApiError):
    """A limit of the plan is reached: upgrade at `upgrade_url`, or wait until `resets_at`."""

    upgrade_url: Optional[str] = None
    limit: Optional[str] = None
    used: Optional[int] = None
    cap: Optional[int] = None
    resets_at: Optional[str] = None


class RateLimitError(ApiError):
    """Too many requests. `reset` and `retry_after` are in seconds from now."""

    limit: Optional[int] = None
    remaining: Optional[int] = None
    reset: Optional[int] = None
    retry_after: Optional[float] = None


class UpstreamError(ApiError):
    """A remote mail server or provider rejected the request permanently."""


class SendUnconfirmedError(ApiError):
    """The server could not say whether it took the email; it may be delivered. Do not send again: call `resolve()`."""

    email_id: Optional[str] = None
    _resolve: Optional[Callable[[SendUnconfirmedError, float], Any]] = None

    def resolve(self, timeout: float = 60) -> Any:
        """Asks for the email until its state is known, for at most `timeout` seconds, and returns it.

        Never sends. With `AsyncPostrider`, await the result. Raises `NotFoundError` if the email was not accepted.
        """
        if self._resolve is None:
            raise ConfigurationError("This error was copied to another process: call client.emails.get(email_id)")
        return self._resolve(self, timeout)

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_resolve"}

    def __reduce__(self) -> Any:
        return type(self), self.args, self.__getstate__()


class ServerError(ApiError):
    """The server failed, or is temporarily unavailable."""


class ConnectionError(PostriderError, builtins.ConnectionError):
    """There was no answer. `reason` is `dns`, `refused`, `reset`, `tls` or `other`."""

    reason: str = "other"
    # True if the server may have received the request.
    _sent: bool = False


class TimeoutError(PostriderError, builtins.TimeoutError):
    """The deadline of the call passed. A call that sends may have been carried out."""


class CancelledError(PostriderError):
    """The caller cancelled the call. A call that sends may have been carried out."""


class UnexpectedResponseError(PostriderError):
    """The answer is not one of the API, for example a proxy's page. `excerpt` has at most 200 characters of it."""

    status: int = 0
    content_type: Optional[str] = None
    excerpt: str = ""
    headers: Dict[str, str] = {}
    _ended_early: bool = False


class ConfigurationError(PostriderError, ValueError):
    """The API key, the base URL or another argument cannot be used."""


class SignatureError(PostriderError):
    """The signature of a webhook is missing or wrong: answer 401 and ignore the body."""


class TimestampError(SignatureError):
    """The time of a webhook is outside the tolerance: an old copy, or a wrong clock on this machine."""


def from_answer(status: int, headers: Dict[str, str], error: Dict[str, Any], retry_after: Optional[float]) -> ApiError:
    """Makes the error of an answer `{"error": {message, code, details, …}}`."""
    code, details = str(error.get("code") or ""), error.get("details")
    details = details if isinstance(details, dict) else {}
    fields: Dict[str, Any] = {
        "status": status, "code": code, "headers": headers, "details": details,
        "request_id": error.get("request_id") or headers.get("x-request-id"), "doc_url": error.get("doc_url"),
    }  # fmt: skip
    error_class: Type[ApiError] = globals()[CLASSES_BY_CODE.get(code, "ServerError" if status >= 500 else "ApiError")]
    if error_class is ValidationError:
        by_field = details.get("fields")
        fields["fields"] = by_field if isinstance(by_field, dict) else {}
        suppressed = details.get("suppressed") or details.get("category_unsubscribed")
        if suppressed:
            error_class = SuppressedRecipientError
            fields.update(suppressed=suppressed, category=details.get("category"), email_id=details.get("email_id"))
    elif error_class is AuthenticationError:
        fields["reason"] = details.get("reason")
    elif error_class is PlanLimitError:
        fields.update({name: details.get(name) for name in ("limit", "used", "cap", "resets_at")})
        fields["upgrade_url"] = error.get("upgrade_url")
    elif error_class is RateLimitError:
        fields.update({name: integer(headers.get(f"ratelimit-{name}")) for name in ("limit", "remaining", "reset")})
        fields["retry_after"] = retry_after
    elif error_class is SendUnconfirmedError:
        fields["email_id"] = details.get("email_id")
    return error_class(str(error.get("message") or code), **fields)


def integer(text: Optional[str]) -> Optional[int]:
    """The number that a header has, if it has one."""
    return int(text) if text and text.isascii() and text.isdigit() else None
