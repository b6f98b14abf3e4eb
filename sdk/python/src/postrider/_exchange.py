"""One call as data: the operation, its HTTP request, and the reading of its answer. No input or output happens here."""

from __future__ import annotations

import base64
import datetime
import json
import re
import uuid
from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from . import errors
from ._codes import approval_required
from ._error_bases import integer
from ._error_classes import from_answer
from ._version import SERVICE_VERSION, __version__

ERROR_BODY_BYTES_MAX = 1 << 20
ANSWER_BYTES_MAX = 256 << 20
EXCERPT_CHARS = 200
BYTES = (bytes, bytearray, memoryview)
JSON = "application/json"
# Headers that say where a request ends and how the connection is used.
FRAMING_HEADERS = re.compile(
    "connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade"
)


class Operation(NamedTuple):
    """An operation of the API."""

    name: str
    method: str
    path: str
    query: FrozenSet[str] = frozenset()
    # Query parameters that are repeated for several values; others have them separated by commas.
    repeated: FrozenSet[str] = frozenset()
    has_body: bool = False
    # Media type of the body's alternative, which is passed as text or bytes.
    raw_body: Optional[str] = None
    answer: str = JSON
    # Name of the array in the answer of a list.
    items: Optional[str] = None
    idempotent: bool = False
    retry: bool = False


class Request(NamedTuple):
    method: str
    target: str
    headers: Dict[str, str]
    body: Optional[bytes]


class Response(NamedTuple):
    """An answer; `is_complete` is false if the connection ended early or the body is above the limit."""

    status: int
    headers: Dict[str, str]
    body: bytes
    is_complete: bool = True


class RateLimit(NamedTuple):
    """The rate limit as of the last answer; `reset` is in seconds."""

    limit: Optional[int]
    remaining: Optional[int]
    reset: Optional[int]


class LastResponse(NamedTuple):
    """What the last answer said beside its data. Names in `headers` are in lower case."""

    status: int
    request_id: Optional[str]
    headers: Dict[str, str]
    rate_limit: RateLimit
    warnings: Tuple[str, ...]


def build_request(
    operation: Operation, path_parameters: Tuple[str, ...], params: Any, options: Mapping[str, Any]
) -> Request:
    """Builds the request of a call, without the API key. Raises `ConfigurationError` for what HTTP cannot carry."""
    values = iter(path_parameters)
    path = re.sub(r"\{[^}]*\}", lambda name: _path_segment(name.group(), next(values), operation), operation.path)
    headers = {name.lower(): str(value) for name, value in (options.get("extra_headers") or {}).items()}
    agents = (f"postrider-python/{__version__}", headers.get("user-agent", ""))
    headers.update({
        "accept": operation.answer, "accept-encoding": "identity", "service-version": SERVICE_VERSION,
        "user-agent": " ".join(filter(None, agents)),
    })  # fmt: skip
    body: Optional[bytes] = None
    if isinstance(params, (bytes, bytearray, str)) and operation.raw_body:
        body, query = params.encode() if isinstance(params, str) else bytes(params), {}
        headers["content-type"] = operation.raw_body
    else:
        fields = dict(params or {})
        query = {name: fields.pop(name) for name in list(fields) if name in operation.query or not operation.has_body}
        if operation.has_body:
            body, headers["content-type"] = _encode_json(fields), JSON
    pairs = [
        (name, _query_value(one))
        for name, value in query.items() if value is not None
        for one in (value if name in operation.repeated and isinstance(value, (list, tuple)) else [value])
    ]  # fmt: skip
    text = urlencode(pairs)
    if options.get("if_match") is not None:
        headers["if-match"] = str(options["if_match"])
    if options.get("idempotency_key") is not None:
        headers["idempotency-key"] = options["idempotency_key"]
    elif operation.idempotent:
        headers.setdefault("idempotency-key", str(uuid.uuid4()))
    for name, value in headers.items():
        if FRAMING_HEADERS.fullmatch(name):
            raise errors.ConfigurationError(f"The header {name!r} cannot be set: the SDK writes it itself")
        if not re.fullmatch(r"[!#-'*+.^-z|~0-9A-Z-]+", name) or not re.fullmatch(r"[\t -~\x80-\xff]*", value):
            raise errors.ConfigurationError(
                f"The value of the header {name!r} has a character that HTTP does not allow"
            )
    return Request(operation.method, f"{path}?{text}" if text else path, headers, body)


def _path_segment(name: str, value: Any, operation: Operation) -> str:
    if not isinstance(value, str) or value in ("", ".", ".."):
        raise errors.ConfigurationError(f"{operation.name}: {name} must be an id, not {value!r}")
    return quote(value, safe="")


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(_query_value(one) for one in value)
    return _extended_json(value) if isinstance(value, (datetime.date, *BYTES)) else str(value)


def _encode_json(fields: Dict[str, Any]) -> bytes:
    if isinstance(fields.get("attachments"), (list, tuple)):
        fields["attachments"] = [_with_base64(attachment) for attachment in fields["attachments"]]
    try:
        return json.dumps(fields, allow_nan=False, separators=(",", ":"), default=_extended_json).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.ConfigurationError(f"The parameters cannot be written as JSON: {error}") from None


def _with_base64(attachment: Any) -> Any:
    """Encodes the only field in base64 that the API has. Elsewhere, bytes are refused: recipients would read the base64."""
    data = attachment.get("data") if isinstance(attachment, dict) else None
    return {**attachment, "data": base64.b64encode(data).decode()} if isinstance(data, BYTES) else attachment


def _extended_json(value: Any) -> str:
    """Datetimes as RFC 3339 (without a zone: local time)."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    kind = type(value).__name__
    raise errors.ConfigurationError(f"{kind} has no JSON form; bytes are accepted as `data` of an attachment only")


def read_answer(
    operation: Operation, response: Response, hide: Callable[[bytes], bytes]
) -> Union[Dict[str, Any], bytes, str]:
    """Returns the data of an answer. Raises the error that it is. `hide` removes the API key from what errors show."""
    status, headers, body = response.status, response.headers, response.body
    content_type = _main_type(headers.get("content-type", ""))
    if not 200 <= status < 300:
        error = (_parse_object(hide(body)) or {}).get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            raise from_answer(status, headers, error)
        raise _unexpected(response, _advice(status, headers), hide)
    if not response.is_complete:
        advice = f"The answer is larger than {ANSWER_BYTES_MAX >> 20} MiB: ask for less"
        if len(body) <= ANSWER_BYTES_MAX:
            advice = "The connection was lost during the answer: the call may have been carried out"
        raise _unexpected(response, advice, hide, _ended_early=len(body) <= ANSWER_BYTES_MAX)
    if status == 202:
        held = approval_required(_parse_object(hide(body)))
        if held:
            raise from_answer(status, headers, held)
    wanted = _main_type(operation.answer)
    if wanted != JSON:
        if content_type != wanted and wanted != "application/octet-stream":
            raise _unexpected(response, f"The answer is not {wanted}: is the base URL the one of the API?", hide)
        return body.decode("utf-8", "replace") if wanted.startswith("text/") else body
    data = _parse_object(body)
    if data is None:
        text = "is not a JSON object" if body.strip() else "is empty"
        advice = "is the base URL the one of the API, and does a proxy change answers?"
        raise _unexpected(response, f"The answer {text}: {advice}", hide)
    return data


def _main_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _parse_object(body: bytes) -> Optional[Dict[str, Any]]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unexpected(
    response: Response, advice: str, hide: Callable[[bytes], bytes], **fields: Any
) -> errors.UnexpectedResponseError:
    excerpt = _printable(hide(response.body)[: 4 * EXCERPT_CHARS].decode("utf-8", "replace"))
    content_type = response.headers.get("content-type")
    return errors.UnexpectedResponseError(
        f"{advice} (HTTP {response.status}, {_printable(content_type or 'no content type')})",
        status=response.status, content_type=content_type, excerpt=excerpt, headers=response.headers, **fields,
    )  # fmt: skip


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text[:EXCERPT_CHARS])


def _advice(status: int, headers: Dict[str, str]) -> str:
    if 300 <= status < 400:
        target = _printable(headers.get("location", "")) or "another address"
        return f"The server redirects to {target}, which would give the API key to another host: correct the base URL"
    if status == 413:
        return "A proxy before the server refused the size of the request: raise the proxy's limit, or send less"
    if status in (502, 503, 504):
        return "A proxy before the server could not reach it: try again later, and look at the proxy's log"
    return "The answer is not in the API's format, perhaps a proxy's page: is the base URL the one of the API?"


def last_response(response: Response, data: Any) -> LastResponse:
    headers = response.headers
    numbers = [integer(headers.get(f"ratelimit-{name}")) for name in ("limit", "remaining", "reset")]
    warnings = data.get("warnings") if isinstance(data, dict) else None
    warnings = tuple(map(str, warnings)) if isinstance(warnings, list) else ()
    return LastResponse(response.status, headers.get("x-request-id"), headers, RateLimit(*numbers), warnings)
