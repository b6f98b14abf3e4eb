"""The errors of this package. All inherit from `PostriderError`; no message contains the API key."""

from __future__ import annotations

from typing import Any, Dict, Type

from . import _error_classes
from ._codes import CLASSES_BY_CODE
from ._error_bases import ApiError, ConnectionError, PostriderError, SendUnconfirmedError, UnexpectedResponseError
from ._error_classes import *  # noqa: F403
from ._error_classes import SuppressedRecipientError

__all__ = ["ApiError", "ConnectionError", "PostriderError", "SendUnconfirmedError", "UnexpectedResponseError"]
__all__ += _error_classes.__all__
for _name in __all__:
    globals()[_name].__module__ = __name__


def from_answer(status: int, headers: Dict[str, str], error: Dict[str, Any]) -> ApiError:
    """Makes the error of an answer `{"error": {message, code, details, …}}`."""
    code, details = str(error.get("code") or ""), error.get("details")
    details = details if isinstance(details, dict) else {}
    error_class: Type[ApiError] = globals()[CLASSES_BY_CODE.get(code, "ServerError" if status >= 500 else "ApiError")]
    if code == "validation_error" and (details.get("suppressed") or details.get("category_unsubscribed")):
        error_class = SuppressedRecipientError
    request_id = error.get("request_id") or headers.get("x-request-id")
    made = error_class(
        str(error.get("message") or code), status=status, code=code, headers=headers, details=details,
        request_id=request_id, doc_url=error.get("doc_url"),
    )  # fmt: skip
    made._read(error)
    return made
