"""HTTPS servers for MTA-STS policies and posted TLS reports, all on one address and port, selected by the host name.

    web.pages["mta-sts.a.test"] = Page(policy("enforce", "mx1.a.test"))
"""

import contextlib
import re
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field

WELL_KNOWN = "/.well-known/mta-sts.txt"
IDLE_S = 60


def policy(mode="enforce", *mx, max_age=86400, version="STSv1"):
    """The text of a policy; a field that is None is omitted."""
    fields = [("version", version), ("mode", mode), *(("mx", one) for one in mx), ("max_age", max_age)]
    return "".join(f"{key}: {value}\r\n" for key, value in fields if value is not None)


@dataclass
class Page:
    """The response to a request."""

    text: str | bytes = ""
    status: str = "200 OK"
    headers: dict = field(default_factory=lambda: {"content-type": "text/plain"})
    certificate: str = "good"
    # Number of bytes missing at the end of the body.
    cut: int = 0
    drips: bool = False
    # Never responds.
    is_silent: bool = False

    def __post_init__(self):
        self.request_count = 0
        # Posted requests: head and body.
        self.posted = []

    def send(self, stream):
        if self.is_silent:
            stream.recv(1)
            return
        body = self.text if isinstance(self.text, bytes) else self.text.encode()
        headers = {"content-length": len(body), "connection": "close"} | self.headers
        head = f"HTTP/1.1 {self.status}\r\n" + "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        stream.sendall(head.encode() + b"\r\n")
        if not self.drips:
            stream.sendall(body[: len(body) - self.cut])
            return
        for byte in body:
            stream.sendall(bytes([byte]))
            time.sleep(1)


class PolicyWeb:
    def __init__(self, port, address, contexts):
        self.pages, self.contexts, self.is_closed = {}, contexts, False
        self.listener = socket.create_server((address, port), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            with contextlib.suppress(OSError):
                stream, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def choose(self, stream, name, _):
        """Selects the certificate for a name."""
        stream.name = name
        page = self.pages.get(name)
        stream.context = self.contexts[page.certificate if page else "other"]

    def serve(self, stream):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self.choose
        with contextlib.suppress(OSError, ssl.SSLError, ValueError, AttributeError):
            stream.settimeout(IDLE_S)
            if self.is_closed:
                stream.close()
                return
            with context.wrap_socket(stream, server_side=True) as stream:
                request = b""
                while b"\r\n\r\n" not in request:
                    data = stream.recv(65536)
                    if not data:
                        return
                    request += data
                head, body = request.split(b"\r\n\r\n", 1)
                head = head.decode()
                length = re.search(r"(?im)^content-length: *(\d+)", head)
                while length and len(body) < int(length[1]):
                    body += stream.recv(65536)
                path = head.split(" ", 2)[1]
                page = self.pages.get(stream.name)
                if page is None or path != WELL_KNOWN:
                    # An unexpected path shows that a redirect was followed.
                    page = self.pages.get(path, Page(status="404 Not Found"))
                page.request_count += 1
                if head.startswith("POST "):
                    page.posted.append((head, body))
                page.send(stream)
                stream.unwrap()
