"""Client of the postrider mail server: send email, receive webhooks, read the event stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors, webhooks
from ._client import Postrider
from ._deadline import Cancellation
from ._exchange import LastResponse, RateLimit
from ._pages import AsyncList, AsyncPage, Page
from ._version import __version__
from .errors import *  # noqa: F403
from .errors import __all__ as _error_names

if TYPE_CHECKING:
    from ._async_client import AsyncPostrider

__all__ = [
    "AsyncList", "AsyncPage", "AsyncPostrider", "Cancellation", "LastResponse", "Page", "Postrider", "RateLimit",
    "__version__", "errors", "webhooks",
]  # fmt: skip
__all__ += _error_names


def __getattr__(name: str) -> Any:
    """Loads `AsyncPostrider`, which needs httpx, when it is used."""
    if name == "AsyncPostrider":
        from ._async_client import AsyncPostrider

        return AsyncPostrider
    raise AttributeError(f"module 'postrider' has no attribute {name!r}")
