"""Verification of webhooks, and signatures for tests of receivers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from email.message import Message
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import ConfigurationError, SignatureError, TimestampError

if TYPE_CHECKING:
    from .types import WebhookEvent

Headers = Union[Mapping[str, Any], "Message[str, str]", Iterable[Tuple[Any, Any]]]


def construct_event(
    payload: Union[bytes, str],
    headers: Headers,
    secret: Union[str, Sequence[str]],
    *,
    tolerance: float = 300,
    now: Optional[float] = None,
) -> WebhookEvent:
    """Verifies a webhook and returns its event.

    `payload` is the body as received, before parsing. Several secrets are accepted during a rotation. `tolerance` is in
    seconds. Raises `SignatureError`, or `TimestampError` if only the time is wrong.
    """
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    secrets = [one.strip() for one in ([secret] if isinstance(secret, str) else secret or ()) if one and one.strip()]
    if not secrets:
        raise ConfigurationError(
            "The webhook's secret is empty: use the secret (whsec_…) that the endpoint was created with"
        )
    candidates = _candidates(_lower_case_names(headers))
    if not candidates:
        raise SignatureError(
            "The request has no Service-Signature and no webhook-signature header: it is not from postrider"
        )
    valid = [time_text for time_text, prefix, given, sign in candidates
             if any(hmac.compare_digest(sign(one, prefix + body), given) for one in secrets)]  # fmt: skip
    if not valid:
        raise SignatureError(
            "No signature matches: use the endpoint's current secret, and the body exactly as it was received"
        )
    now = time.time() if now is None else now
    if all(abs(now - int(time_text)) > tolerance for time_text in valid):
        raise TimestampError(
            f"The webhook was signed at {_utc(int(valid[0]))}, and this machine's clock says {_utc(now)}: "
            f"more than {tolerance:g} s apart; check the clock"
        )
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not (isinstance(event, dict) and isinstance(event.get("type"), str) and isinstance(event.get("data"), dict)):
        raise SignatureError("The signed body is not JSON with `type` and `data`: it is not an event of postrider")
    return event  # type: ignore[return-value]


def generate_test_header(
    payload: Union[bytes, str], secret: str, *, timestamp: Optional[float] = None, id: Optional[str] = None
) -> Dict[str, str]:
    """Returns the signature headers that the server would send with `payload`, for tests of receivers."""
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    seconds, event_id = (
        str(int(time.time() if timestamp is None else timestamp)),
        id or "evt_00000000000000000000000000",
    )
    signature = _standard_signature(secret, f"{event_id}.{seconds}.".encode() + body).decode()
    return {
        "service-signature": f"t={seconds},v1={_service_signature(secret, f'{seconds}.'.encode() + body).decode()}",
        "webhook-id": event_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{signature}",
    }


def _candidates(headers: Dict[str, str]) -> List[Tuple[str, bytes, bytes, Any]]:
    """The given signatures of both families: (time, signed text before the body, signature, function)."""
    candidates = []
    parts = [part.strip().partition("=")[::2] for part in headers.get("service-signature", "").split(",")]
    seconds = next((value for name, value in parts if name == "t"), "")
    if _is_time(seconds):
        prefix = f"{seconds}.".encode()
        candidates += [(seconds, prefix, value.encode(), _service_signature) for name, value in parts if name == "v1"]
    event_id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if event_id and _is_time(seconds):
        prefix = f"{event_id}.{seconds}.".encode()
        # Repeated headers are joined by commas.
        for value in re.findall(r"(?:^|(?<=[\s,]))v1,([A-Za-z0-9+/=]+)", headers.get("webhook-signature", "")):
            candidates.append((seconds, prefix, value.encode(), _standard_signature))
    return candidates


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def _service_signature(secret: str, signed: bytes) -> bytes:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()


def _standard_signature(secret: str, signed: bytes) -> bytes:
    encoded = secret[len("whsec_"):] if secret.startswith("whsec_") else secret  # fmt: skip
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    return key and base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())


def _lower_case_names(headers: Headers) -> Dict[str, str]:
    """Accepts mappings and pairs, of text or bytes, and the HTTP_ names of WSGI's environ.

    The values of a header that occurs several times are joined by commas (RFC 9110, 5.2).
    """
    pairs = headers.items() if isinstance(headers, (Mapping, Message)) else headers
    result: Dict[str, str] = {}
    for name, value in pairs:
        name = (name.decode("latin-1") if isinstance(name, bytes) else str(name)).lower()
        name = name[5:].replace("_", "-") if name.startswith("http_") else name
        values = value if isinstance(value, (list, tuple)) else [value]
        texts = [one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in values]
        result[name] = ", ".join([result[name], *texts] if name in result else texts)
    return result


def _utc(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f}"
