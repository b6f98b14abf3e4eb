"""Django: an e-mail backend, and a decorator for a view that receives webhooks.

    EMAIL_BACKEND = "postrider.django.EmailBackend"
    POSTRIDER_API_KEY = "rnl_…"
    POSTRIDER_BASE_URL = "https://mail.example.com"
    POSTRIDER_WEBHOOK_SECRET = "whsec_…"

With Django 6.1 or newer, MAILERS replaces EMAIL_BACKEND; api_key and base_url are accepted as OPTIONS.
"""

from __future__ import annotations

import functools
import mimetypes
import re
import threading
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ._client import Postrider
from .errors import ConfigurationError, PostriderError, SendUnconfirmedError, SignatureError
from .webhooks import construct_event

IDEMPOTENCY_KEY = "idempotency-key"
# Header fields that the server writes itself, from the other fields of the message.
OWN_HEADERS = frozenset((
    "from", "to", "cc", "bcc", "sender", "subject", "date", "message-id", "reply-to", "return-path", "mime-version",
    "content-type", "content-transfer-encoding", "content-disposition", "content-id", "content-description",
))  # fmt: skip

# RFC 2045 section 5.1. Names with `*` or `%` have another meaning in RFC 2231; the API does not take them.
TOKEN = re.compile(r"[!#$%&'*+.^_`{|}~0-9A-Za-z-]+")
PARAMETER_NAME = re.compile(r"[!#$&'+.^_`{|}~0-9A-Za-z-]+")


class EmailBackend(BaseEmailBackend):  # type: ignore[misc]
    """Sends Django's emails through the API.

    Attributes of a message that are used beside Django's own: `tags` (dict, list of `{name, value}` or list of words),
    `metadata` (dict, added to the tags), `esp_extra` (dict of further fields of `emails.send`, such as `category`,
    `template` and `scheduled_at`), and `idempotency_key` (or the header `Idempotency-Key`). After sending,
    `message.postrider_id` is the id of the email.

    Headers of the message are sent with it, except those that the server writes itself (`OWN_HEADERS`). Of these,
    `From` and `Reply-To` replace the message's fields, as with SMTP.
    """

    def __init__(
        self, fail_silently: bool = False, api_key: Optional[str] = None, base_url: Optional[str] = None, **options: Any
    ) -> None:
        # Mailers of Django 6.1 have an alias and check options; others get those of SMTP, such as a user name.
        super().__init__(**(options if options.get("alias") is not None else {}))
        self.fail_silently = fail_silently
        self._api_key = api_key or getattr(settings, "POSTRIDER_API_KEY", None)
        self._base_url = base_url or getattr(settings, "POSTRIDER_BASE_URL", None)
        self._client: Optional[Postrider] = None
        self._lock = threading.RLock()

    def open(self) -> bool:
        """Makes the client, whose connections are reused until `close`. Returns whether there was none."""
        with self._lock:
            if self._client is not None:
                return False
            try:
                self._client = Postrider(self._api_key, self._base_url)
            except PostriderError:
                if not self.fail_silently:
                    raise
            return self._client is not None

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def send_messages(self, email_messages: Sequence[Any]) -> int:
        """Sends the messages one by one, and returns how many were accepted."""
        if not email_messages:
            return 0
        is_new = self.open()
        client, count = self._client, 0
        try:
            for message in email_messages if client is not None else ():
                try:
                    count += self._send(client, message)
                except PostriderError:
                    if not self.fail_silently:
                        raise
        finally:
            if is_new:
                self.close()
        return count

    @staticmethod
    def _send(client: Any, message: Any) -> bool:
        if not message.recipients():
            return False
        params, key = email_params(message)
        try:
            message.postrider_id = client.emails.send(params, idempotency_key=key)["id"]
        except SendUnconfirmedError as error:
            message.postrider_id = error.email_id
            raise
        return True


def email_params(message: Any) -> Tuple[Dict[str, Any], Optional[str]]:
    """The params of `emails.send` for a message of Django, and its idempotency key."""
    headers = {str(name): str(value) for name, value in (message.extra_headers or {}).items()}
    special = {name.lower(): headers.pop(name) for name in list(headers)
               if name.lower() == IDEMPOTENCY_KEY or name.lower() in OWN_HEADERS}  # fmt: skip
    params: Dict[str, Any] = {
        "from": special.get("from", str(message.from_email)),
        "to": [str(one) for one in message.to],
        "cc": [str(one) for one in message.cc],
        "bcc": [str(one) for one in message.bcc],
        "reply_to": [special["reply-to"]] if "reply-to" in special else [str(one) for one in message.reply_to],
        "subject": str(message.subject),
        "headers": headers,
        "tags": _tags(getattr(message, "tags", None), getattr(message, "metadata", None)),
        "attachments": [_attachment(one, number) for number, one in enumerate(message.attachments or (), 1)],
        **_bodies(message),
    }
    params = {name: value for name, value in params.items() if value not in (None, [], {}, "")}
    params.update(getattr(message, "esp_extra", None) or {})
    return params, getattr(message, "idempotency_key", None) or special.get(IDEMPOTENCY_KEY)


def _bodies(message: Any) -> Dict[str, str]:
    bodies = {"html" if message.content_subtype == "html" else "text": str(message.body)}
    for content, media_type in getattr(message, "alternatives", None) or ():
        kind = {"text/html": "html", "text/plain": "text"}.get(media_type)
        if kind is None or bodies.get(kind):
            raise ConfigurationError(f"An alternative of type {media_type} cannot be sent: attach it instead")
        bodies[kind] = str(content)
    return bodies


def _tags(
    tags: Union[None, Mapping[str, Any], Sequence[Any]], metadata: Optional[Mapping[str, Any]]
) -> List[Dict[str, str]]:
    pairs: List[Tuple[Any, Any]] = list(tags.items()) if isinstance(tags, Mapping) else []
    if tags and not isinstance(tags, Mapping):
        pairs = [(one["name"], one["value"]) if isinstance(one, Mapping) else (one, "true") for one in tags]
    pairs += (metadata or {}).items()
    return [{"name": str(name), "value": str(value)} for name, value in pairs]


def _attachment(attachment: Any, number: int) -> Dict[str, Any]:
    content_id = None
    if isinstance(attachment, Message):
        name, content_type = attachment.get_filename(), _content_type(attachment)
        content_id = str(attachment.get("Content-ID") or "").strip("<> ") or None
        content: Any = (
            attachment.get_payload(0)
            if attachment.get_content_type() == "message/rfc822"
            else attachment.get_payload(decode=True)
        )
    else:
        name, content, content_type = attachment
        part = Message()
        part["Content-Type"] = content_type or mimetypes.guess_type(name or "")[0] or "application/octet-stream"
        content_type = _content_type(part)
    if isinstance(content, Message):
        content = content.as_bytes()
    elif hasattr(content, "message"):  # An EmailMessage of Django.
        content = content.message().as_bytes()
    return {
        "name": name or f"attachment-{number}{mimetypes.guess_extension(content_type.split(';')[0]) or ''}",
        "content_type": content_type,
        "data": content.encode() if isinstance(content, str) else bytes(content or b""),
        **({"content_id": content_id} if content_id else {}),
    }


def _content_type(part: Message) -> str:
    """The type with its parameters, except those that the API refuses.

    These name the file, separate parts, or have a value that is no token, such as a list of codecs. A malformed type
    is kept: the API refuses it.
    """
    (media_type, _), *parameters = part.get_params([(part.get_content_type(), "")])
    kept = [f"{name}={value}" for name, value in ((name, collapse_rfc2231_value(value)) for name, value in parameters)
            if PARAMETER_NAME.fullmatch(name) and TOKEN.fullmatch(value)
            and name.lower() not in ("name", "filename", "boundary")]  # fmt: skip
    return "; ".join([media_type.lower(), *kept])


def webhook_view(view: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a view that receives webhooks of `view(request, event)`, which may return a response.

    The secret, or a list of secrets, is the setting POSTRIDER_WEBHOOK_SECRET. Wrong signatures are answered 401.
    """

    @csrf_exempt  # type: ignore[untyped-decorator]
    @functools.wraps(view)
    def receive(request: Any, *arguments: Any, **keywords: Any) -> Any:
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        try:
            event = construct_event(request.body, request.headers, settings.POSTRIDER_WEBHOOK_SECRET)
        except SignatureError as error:
            return HttpResponse(str(error), status=401, content_type="text/plain")
        response = view(request, event, *arguments, **keywords)
        return HttpResponse(status=204) if response is None else response

    return receive  # type: ignore[no-any-return]
