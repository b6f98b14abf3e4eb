"""The errors of this package. All inherit from `PostriderError`; no message contains the API key."""

from __future__ import annotations

from . import _error_classes
from ._error_bases import ApiError, ConnectionError, PostriderError, SendUnconfirmedError, UnexpectedResponseError
from ._error_classes import *  # noqa: F403

__all__ = ["ApiError", "ConnectionError", "PostriderError", "SendUnconfirmedError", "UnexpectedResponseError"]
__all__ += _error_classes.__all__
for _name in __all__:
    globals()[_name].__module__ = __name__
