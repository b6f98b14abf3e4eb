"""The steps of calls and of the event stream, without input or output.

The generators of `Core` yield steps. A client carries them out, and sends each result back or throws its error.
`Postrider` and `AsyncPostrider` differ only in how they carry out steps.
"""

from __future__ import annotations

import json
import logging
import random
import time
from contextvars import ContextVar
from typing import Any, Callable, Dict, Generator, Mapping, NamedTuple, Optional, Tuple, Union

from . import errors
from ._codes import is_retried
from ._deadline import Cancellation, Deadline
from ._exchange import LastResponse, Operation, Request, Response, build_request, last_response, read_answer
from ._retry_after import retry_after

logger = logging.getLogger("postrider")

STREAM_SILENCE_SECONDS_MAX = 60.0
STREAM_EVENT_BYTES_MAX = 1 << 20
GET_EMAIL = Operation("emails.get", "GET", "/emails/{id}", retry=True)
FIND_MESSAGES = Operation("dev.waitForEmail", "GET", "/messages", retry=True)
GET_MESSAGE = Operation("dev.waitForEmail", "GET", "/messages/{id}", retry=True)
OPTIONS = ("cancellation", "extra_headers", "idempotency_key", "if_match", "max_retries", "timeout")


class Pause(NamedTuple):
    seconds: float
    cancellation: Cancellation


class Send(NamedTuple):
    """Send a request: results in (stream, None) if `streams` and the answer is an event stream, else (None, `Response`)."""

    request: Request
    deadline: Deadline
    cancellation: Cancellation
    streams: bool = False

    def is_stream(self, status: int, content_type: str) -> bool:
        return self.streams and status == 200 and content_type.startswith("text/event-stream")


class ReadLine(NamedTuple):
    """Results in a line, empty at the end."""

    stream: Any


class Emit(NamedTuple):
    event: Dict[str, Any]


Step = Union[Pause, Send, ReadLine, Emit]
Steps = Generator[Step, Any, Any]
_last_response: ContextVar[Tuple[int, Optional[LastResponse]]] = ContextVar(
    "postrider_last_response", default=(0, None)
)


class Core:
    """Settings of a client, and the steps of its calls."""

    def __init__(
        self,
        hide: Callable[[bytes], bytes],
        timeout: float,
        max_retries: int,
        on_warning: Optional[Callable[[str], None]],
    ) -> None:
        self.timeout, self.max_retries = self._number(timeout, 30), self._number(max_retries, 2)
        self.hide, self.on_warning = hide, on_warning
        # Tests replace them.
        self.random, self.clock = random.random, time.monotonic
        self._newest: Optional[LastResponse] = None

    def last_response(self) -> Optional[LastResponse]:
        """The last answer in this thread or task; else the newest of all."""
        client, response = _last_response.get()
        return response if client == id(self) else self._newest

    def call(self, operation: Operation, path: Tuple[str, ...], params: Any, options: Mapping[str, Any]) -> Steps:
        """A call with its retries: returns the data."""
        request = build_request(operation, path, params, options)
        cancellation = options.get("cancellation") or Cancellation()
        deadline = Deadline(self._number(options.get("timeout"), self.timeout), self.clock)
        retries = int(self._number(options.get("max_retries"), self.max_retries))
        attempt = 0
        while True:
            try:
                _, response = yield Send(request, deadline, cancellation)
                return self._read(operation, response)
            except errors.PostriderError as error:
                wait = self._wait(attempt, error)
                if attempt >= retries or not _is_retried(operation, error) or wait >= deadline.left():
                    raise
                logger.info("%s: %s; retry in %.2f s", operation.name, type(error).__name__, wait)
            yield Pause(wait, cancellation)
            attempt += 1

    def _read(self, operation: Operation, response: Response) -> Any:
        hidden = {name: self.hide(text.encode("latin-1", "replace")) for name, text in response.headers.items()}
        response = response._replace(headers={name: text.decode("latin-1") for name, text in hidden.items()})
        data: Any = None
        try:
            data = read_answer(operation, response, self.hide)
        except errors.SendUnconfirmedError as error:
            error._resolve = self.run_resolve
            raise
        finally:
            self._newest = last_response(response, data)
            _last_response.set((id(self), self._newest))
            logger.debug("%s: HTTP %d, request %s", operation.name, response.status, self._newest.request_id)
        for warning in self._newest.warnings:
            try:
                (self.on_warning or (lambda text: logger.warning("%s: %s", operation.name, text)))(warning)
            except Exception:  # The call has succeeded: it must not look as if it had failed.
                logger.exception("on_warning failed")
        return data

    def _wait(self, attempt: int, error: errors.PostriderError) -> float:
        asked = retry_after(getattr(error, "headers", {}))
        return self.random() * min(8.0, 0.5 * 2.0 ** min(attempt, 9)) if asked is None else asked

    @staticmethod
    def _number(value: Any, default: float) -> float:
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise errors.ConfigurationError(f"timeout and max_retries must be numbers from 0, not {value!r}")
        return value

    # A client replaces it: carries out `resolve`.
    run_resolve: Callable[[errors.SendUnconfirmedError, float], Any]

    def resolve(self, error: errors.SendUnconfirmedError, timeout: float) -> Steps:
        """Asks for an email until it is no longer failed: returns the email as it is then, or at the end of the time."""
        deadline, wait, nothing = Deadline(timeout, self.clock), 0.25, Cancellation()
        while True:
            email: Optional[Dict[str, Any]] = None
            try:
                options = {"timeout": max(deadline.left(), 0.001)}
                email = (yield from self.call(GET_EMAIL, (error.email_id or "",), None, options)).get("email") or {}
                if email.get("status") != "failed":
                    return email
            except errors.NotFoundError:  # Not stored yet, or never.
                if wait >= deadline.left():
                    raise
            if wait >= deadline.left():
                return email
            yield Pause(wait, nothing)
            wait = min(2 * wait, 5.0)

    def wait_for_email(self, to: Optional[str], subject: Optional[str], timeout: float) -> Steps:
        """Waits for a message in the inbox of `postrider dev`: returns the newest that matches."""
        deadline = Deadline(timeout, self.clock)
        while True:
            wait = max(0.0, min(deadline.left(), 30.0))
            params = {"to": to, "subject": subject, "wait": f"{int(wait)}s" if wait >= 1 else f"{int(wait * 1000)}ms"}
            found = yield from self.call(FIND_MESSAGES, (), params, {"timeout": wait + self.timeout})
            if found.get("messages"):
                return (yield from self.call(GET_MESSAGE, (str(found["messages"][0]["id"]),), None, {}))
            if deadline.left() <= 0:
                raise errors.TimeoutError(f"No email to {to or 'anyone'} arrived in the inbox within {timeout:g} s")
            yield Pause(0.1, Cancellation())

    def stream(
        self, operation: Operation, types: Any, after: Optional[str], cancellation: Optional[Cancellation]
    ) -> Steps:
        """Events as they happen; connects again after a lost connection.

        Before the first connection it tries as often as a call, so that a wrong base URL is noticed.
        """
        cancellation, attempt, cursor, has_connected = cancellation or Cancellation(), 0, after, False
        params = {"types": types} if types else {}
        event_stream = operation._replace(answer="text/event-stream")
        while True:
            error: errors.PostriderError = errors.ConnectionError("The event stream was lost", reason="reset")
            try:
                resume = {"Last-Event-ID": cursor} if cursor else {}
                options = {"extra_headers": {**resume, "cache-control": "no-store"}}
                request = build_request(event_stream, (), params, options)
                deadline = Deadline(self.timeout, self.clock)
                stream, response = yield Send(request, deadline, cancellation, streams=True)
                if response is not None:
                    self._read(operation, response)
                    raise errors.UnexpectedResponseError("The answer is no event stream: is the base URL the API's?")
                has_connected = True
                fields: Dict[str, str] = {}
                size = 0
                while True:
                    line = yield ReadLine(stream)
                    size = size + len(line) if line.strip() else 0
                    if size > STREAM_EVENT_BYTES_MAX:
                        text = "An event of the stream is larger than 1 MiB: does a proxy change the answer?"
                        raise errors.UnexpectedResponseError(text, status=200)
                    if not line.endswith(b"\n"):  # The end.
                        break
                    event, cursor = _event_of_line(line.decode("utf-8", "replace").rstrip("\r\n"), fields, cursor)
                    if event is not None:
                        attempt = 0
                        yield Emit(event)
            except errors.PostriderError as lost:
                is_lost = _is_retried(operation, lost) or isinstance(lost, errors.TimeoutError)
                if not is_lost or (not has_connected and attempt >= self.max_retries):
                    raise
                error = lost
            wait = self._wait(attempt, error)
            logger.info("%s: %s; connects again in %.2f s", operation.name, type(error).__name__, wait)
            yield Pause(wait, cancellation)
            attempt += 1


def _is_retried(operation: Operation, error: errors.PostriderError) -> bool:
    if isinstance(error, errors.ConnectionError):
        return error.reason != "tls" and (operation.retry or not error._sent)
    status, code = getattr(error, "status", 0), getattr(error, "code", "")
    return is_retried(status, code, operation.retry) or (operation.retry and getattr(error, "_ended_early", False))


def _event_of_line(
    line: str, fields: Dict[str, str], cursor: Optional[str]
) -> Tuple[Optional[Dict[str, Any]], Optional[str]]:
    """Reads a line of server-sent events: (event if the line ends one, cursor)."""
    if line:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
        return None, cursor
    cursor, text = fields.get("id", cursor) or cursor, fields.get("data")
    fields.clear()
    try:
        event = json.loads(text) if text else None
    except (ValueError, RecursionError):
        event = None
    return ({**event, "cursor": cursor} if isinstance(event, dict) else None), cursor


def split_options(params: Any, fields: Mapping[str, object]) -> Tuple[Any, Dict[str, Any]]:
    """Separates the options of a call from params that were given as keywords."""
    options = {name: value for name, value in fields.items() if name in OPTIONS}
    keywords = {name: value for name, value in fields.items() if name not in OPTIONS}
    if keywords and params is not None:
        raise TypeError(f"Pass params either as a dict or as keywords; these are keywords: {', '.join(keywords)}")
    return (keywords or params), options
