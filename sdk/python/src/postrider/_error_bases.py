"""The errors that have behaviour of their own. `postrider.errors` has them all."""

from __future__ import annotations

import builtins
from typing import Any, Callable, Dict, Optional


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

    def _read(self, error: Dict[str, Any]) -> None:
        """Sets the fields of the class from the answer's `error`."""


class SendUnconfirmedError(ApiError):
    """The server could not say whether it took the email; it may be delivered. Do not send again: call `resolve()`."""

    email_id: Optional[str] = None
    _resolve: Optional[Callable[[SendUnconfirmedError, float], Any]] = None

    def _read(self, error: Dict[str, Any]) -> None:
        self.email_id = self.details.get("email_id", error.get("email_id"))

    def resolve(self, timeout: float = 60) -> Any:
        """Asks for the email until its state is known, for at most `timeout` seconds, and returns it.

        Never sends. With `AsyncPostrider`, await the result. Raises `NotFoundError` if the email was not accepted.
        """
        if self._resolve is None:
            raise PostriderError("This error was copied to another process: call client.emails.get(email_id)")
        return self._resolve(self, timeout)

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_resolve"}

    def __reduce__(self) -> Any:
        return type(self), self.args, self.__getstate__()


class ConnectionError(PostriderError, builtins.ConnectionError):
    """There was no answer. `reason` is `dns`, `refused`, `reset`, `tls` or `other`."""

    reason: str = "other"
    # True if the server may have received the request.
    _sent: bool = False


class UnexpectedResponseError(PostriderError):
    """The answer is not one of the API, for example a proxy's page. `excerpt` has at most 200 characters of it."""

    status: int = 0
    content_type: Optional[str] = None
    excerpt: str = ""
    headers: Dict[str, str] = {}
    _ended_early: bool = False


def integer(text: Optional[str]) -> Optional[int]:
    """The number that a header has, if it has one."""
    return int(text) if text and text.isascii() and text.isdigit() else None
