"""`ClientBase`: what `Postrider` and `AsyncPostrider` have in common."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Optional, Tuple
from urllib.parse import urlsplit

from ._exchange import LastResponse
from ._steps import Core, Steps
from ._transport import is_loopback
from .errors import ConfigurationError


class ClientBase:
    """The settings of a client, and the state of its calls."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        *,
        timeout: float = 30,
        max_retries: int = 2,
        on_warning: Optional[Callable[[str], None]] = None,
        allow_insecure_http: bool = False,
    ) -> None:
        key, self._base_url = read_settings(api_key, base_url, allow_insecure_http)
        self._core = Core(lambda body: body.replace(key.encode(), b"[API key]"), timeout, max_retries, on_warning)
        self._core.run_resolve = lambda error, seconds: self._run(self._core.resolve(error, seconds))
        self._prepare(key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._base_url!r})"

    @property
    def last_response(self) -> Optional[LastResponse]:
        """Status, request id, rate limit, headers and warnings of the last answer in this thread or task."""
        return self._core.last_response()

    def _prepare(self, api_key: str) -> None:
        """Makes what carries out steps."""
        raise NotImplementedError

    def _run(self, steps: Steps) -> Any:
        """Carries out steps and returns their result."""
        raise NotImplementedError


def read_settings(api_key: Optional[str], base_url: Optional[str], allow_insecure_http: bool) -> Tuple[str, str]:
    """Returns the API key and the base URL. Raises `ConfigurationError`, which does not show them."""
    api_key = os.environ.get("POSTRIDER_API_KEY", "") if api_key is None else api_key
    base_url = os.environ.get("POSTRIDER_BASE_URL", "") if base_url is None else base_url
    wanted = "like https://mail.example.com"
    if not api_key:
        raise ConfigurationError("There is no API key: pass api_key, or set POSTRIDER_API_KEY")
    if not re.fullmatch(r"[!-~]+", api_key):
        raise ConfigurationError("The API key has a space, a line break or a character that no key has: copy it again")
    if not base_url:
        raise ConfigurationError(f"There is no base URL: pass base_url, or set POSTRIDER_BASE_URL, {wanted}")
    if not re.fullmatch(r"https?://[!-~]+", base_url):
        raise ConfigurationError(f"The base URL must begin with https:// and have no spaces, {wanted}")
    try:
        url = urlsplit(base_url)
        host, _ = url.hostname or "", url.port
    except ValueError:
        host = ""
    if not host or url.username is not None or url.query or url.fragment:
        raise ConfigurationError(f"The base URL must have a host and no user name, query or fragment, {wanted}")
    if url.scheme == "http" and not allow_insecure_http and not is_loopback(host):
        advice = "set allow_insecure_http=True if the network is your own"
        raise ConfigurationError(f"http:// shows the API key to the network: use https://, or {advice}")
    return api_key, base_url.rstrip("/")
