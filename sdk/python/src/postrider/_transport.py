"""HTTP/1.1 over the standard library: reused connections, and one deadline for everything that a call waits for."""

from __future__ import annotations

import base64
import http.client
import io
import ipaddress
import os
import queue
import selectors
import socket
import ssl
import threading
import time
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional, Tuple, Union
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from . import errors
from ._deadline import Cancellation, Deadline
from ._exchange import ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX, Request, Response

IDLE_CONNECTIONS_MAX = 10
IDLE_SECONDS_MAX = 60
INTERIM_ANSWERS_MAX = 100
Remaining = Callable[[], float]


class _Proxy:
    """The proxy of the environment. No NamedTuple, because its `repr` would show the credentials."""

    def __init__(self, address: Tuple[str, int], authorization: Optional[str]) -> None:
        self.address, self.authorization = address, authorization

    def connect_head(self, target: str) -> bytes:
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"Proxy-Authorization: {self.authorization}"] if self.authorization else []
        return "\r\n".join([*lines, "", ""]).encode()


def _proxy_of(scheme: str) -> Union[_Proxy, Literal[False], None]:
    """The proxy; None without one, False if it cannot be used. No error begins here: reports of errors show variables."""
    text = getproxies().get(scheme, "")
    url = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = url.port or 80
    except ValueError:
        return False
    if url.scheme != "http" or not url.hostname:
        return False if text else None
    user = f"{unquote(url.username or '')}:{unquote(url.password or '')}".encode()
    return _Proxy((url.hostname, port), f"Basic {base64.b64encode(user).decode()}" if url.username else None)


class _Connection:
    """A connection to the server. `remaining` gives the seconds that the next operation may take."""

    def __init__(self, sock: socket.socket, remaining: Remaining) -> None:
        self.sock, self.remaining, self.idle_since, self.process = sock, remaining, 0.0, os.getpid()

    def send(self, view: memoryview) -> None:
        """Sends bytes. They are no variable of their own: reports of errors show variables, and requests have the API key."""
        while view:
            self.sock.settimeout(self.remaining())
            view = view[self.sock.send(view):]  # fmt: skip

    def makefile(self, mode: str) -> io.BufferedReader:
        """For `http.client.HTTPResponse`. Closing the file keeps the connection."""
        return io.BufferedReader(_Reader(self))

    def interrupt(self) -> None:
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # Not SSLSocket's: it drops state that a reader uses.
        except OSError:
            pass

    def is_usable(self) -> bool:
        """False if the server closed the idle connection, or sent what nobody asked for."""
        if time.monotonic() - self.idle_since > IDLE_SECONDS_MAX:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            return not selector.select(0)

    def close(self) -> None:
        self.sock.close()


class _Reader(io.RawIOBase):
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.sock.settimeout(self._connection.remaining())
        return self._connection.sock.recv_into(buffer)


class Exchange(NamedTuple):
    """An answer whose body is still to be read."""

    connection: _Connection
    answer: http.client.HTTPResponse
    headers: Dict[str, str]
    cancellation: Cancellation

    def readline(self, bytes_max: int) -> bytes:
        """A line of the body; empty at its end, and if the connection is lost."""
        try:
            return self.answer.readline(bytes_max)
        except (OSError, http.client.HTTPException, ValueError):
            self.cancellation.check()
            return b""

    def close(self) -> None:
        self.cancellation.detach(self.connection.interrupt)
        self.connection.close()


class Transport:
    """Sends requests to one server. Safe for threads and after a fork."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._url: SplitResult = urlsplit(base_url)
        self._authorization = f"Bearer {api_key}"
        self._address = self._url.hostname or "", self._url.port or (443 if self._url.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if self._url.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: List[_Connection] = []

    def read(self, exchange: Exchange, deadline: Deadline) -> Response:
        """Reads the body. Keeps the connection if it can be used again."""
        connection, answer = exchange.connection, exchange.answer
        limit = ANSWER_BYTES_MAX if answer.status < 300 else ERROR_BODY_BYTES_MAX
        chunks, size, is_complete = [], 0, False
        try:
            while size <= limit:
                chunk = answer.read(64 << 10)
                if not chunk:
                    is_complete = not answer.length
                    break
                chunks.append(chunk)
                size += len(chunk)
        except (OSError, http.client.HTTPException, ValueError) as error:
            _raise_if_stopped(error, deadline, exchange.cancellation)
        finally:
            exchange.cancellation.detach(connection.interrupt)
            # After too many interim answers (1xx) the final one may follow: it must not be the next call's.
            if is_complete and not answer.will_close and answer.status >= 200:
                self._keep(connection)
            else:
                connection.close()
        exchange.cancellation.check()
        return Response(answer.status, exchange.headers, b"".join(chunks)[: limit + 1], is_complete)

    def open(self, request: Request, deadline: Deadline, cancellation: Cancellation) -> Exchange:
        """Sends a request and reads the head of the answer."""
        proxy = self._proxy()
        connection = self._take_idle() or self._connect(deadline, proxy, cancellation)
        connection.remaining = deadline
        cancellation.attach(connection.interrupt)
        try:
            failure: Optional[OSError] = None
            try:
                connection.send(memoryview(self._head(request, proxy) + (request.body or b"")))
            except ConnectionError as error:  # The server may have answered before it read everything.
                failure = error
            answer = http.client.HTTPResponse(connection, method=request.method)  # type: ignore[arg-type]
            try:
                _read_head(answer)
            except ConnectionError as error:
                raise failure or error from None
            return Exchange(connection, answer, _lower_case(answer.headers.items()), cancellation)
        except BaseException as error:
            cancellation.detach(connection.interrupt)
            connection.close()
            _raise_if_stopped(error, deadline, cancellation)
            if isinstance(error, (OSError, http.client.IncompleteRead)):
                text = "The connection was lost before the answer: the call may have been carried out"
                raise errors.ConnectionError(text, reason="reset", _sent=True) from None
            if isinstance(error, (http.client.HTTPException, ValueError)):
                text = "The answer is not HTTP: are the base URL and its scheme the ones of the API?"
                raise errors.UnexpectedResponseError(text) from None
            raise

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _head(self, request: Request, proxy: Optional[_Proxy]) -> bytes:
        prefix = self._url.path.rstrip("/")
        headers = {**request.headers, "host": self._url.netloc, "authorization": self._authorization}
        if proxy and not self._tls:
            prefix = f"http://{self._url.netloc}{prefix}"
            headers.update({"proxy-authorization": proxy.authorization} if proxy.authorization else {})
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(request.body or b""))
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([f"{request.method} {prefix}{request.target} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    def _take_idle(self) -> Optional[_Connection]:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            # A forked process must not use its parent's connections.
            if connection.process == os.getpid() and connection.is_usable():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def _proxy(self) -> Optional[_Proxy]:
        if is_loopback(self._address[0]) or proxy_bypass(self._url.netloc):
            return None
        proxy = _proxy_of(self._url.scheme)
        if proxy is False:
            raise errors.ConfigurationError(f"The proxy of {self._url.scheme}_proxy must be an http:// address")
        return proxy or None

    def _connect(self, remaining: Remaining, proxy: Optional[_Proxy], cancellation: Cancellation) -> _Connection:
        host, port = proxy.address if proxy else self._address
        addresses = _resolve(host, port, remaining, cancellation)
        for position, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = socket.socket(family, kind, protocol)
            connection = _Connection(sock, remaining)
            cancellation.attach(connection.interrupt)
            try:
                sock.settimeout(remaining() / (len(addresses) - position))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls:
                    if proxy:
                        self._open_tunnel(connection, proxy)
                    sock.settimeout(remaining())
                    connection.sock = sock = self._tls.wrap_socket(sock, server_hostname=self._address[0])
                cancellation.check()
                return connection
            except (OSError, http.client.HTTPException) as error:
                sock.close()
                cancellation.check()
                if isinstance(error, errors.PostriderError):
                    raise
                if position == len(addresses) - 1:
                    if isinstance(error, socket.timeout):
                        remaining()  # Raises if the deadline has passed.
                    raise connect_error(error, f"{host}:{port}") from None
            except BaseException:
                sock.close()
                raise
            finally:
                cancellation.detach(connection.interrupt)
        raise connect_error(socket.gaierror("no address"), f"{host}:{port}")

    def _open_tunnel(self, connection: _Connection, proxy: _Proxy) -> None:
        host, port = self._address
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        connection.send(memoryview(proxy.connect_head(target)))
        answer = http.client.HTTPResponse(connection, method="CONNECT")  # type: ignore[arg-type]
        _read_head(answer)
        if answer.status != 200:
            text = f"The proxy refused a connection to {target} (HTTP {answer.status}): correct https_proxy or no_proxy"
            raise errors.ConnectionError(text, reason="other")


def _read_head(answer: http.client.HTTPResponse) -> None:
    """Reads the head of the final answer, after interim ones (RFC 9110, 15.2), of which `begin` skips only 100."""
    for _ in range(INTERIM_ANSWERS_MAX):
        answer.headers = None  # type: ignore[assignment]  # `begin` then reads another head from the same buffer.
        answer.begin()
        if answer.status == 101 or not 100 <= answer.status < 200:
            return


def _raise_if_stopped(error: BaseException, deadline: Deadline, cancellation: Cancellation) -> None:
    cancellation.check()
    if isinstance(error, errors.PostriderError):
        raise error
    if isinstance(error, socket.timeout):
        raise deadline.error() from None


def connect_error(error: BaseException, address: str) -> errors.ConnectionError:
    """Describes why no connection was made."""
    reason, advice = "other", "look at the network"
    if isinstance(error, socket.gaierror):
        reason, advice = "dns", "the host name does not resolve; correct the base URL"
    elif isinstance(error, ssl.SSLCertVerificationError):
        reason, advice = (
            "tls",
            "the certificate is not trusted or has another name; correct the base URL or the certificate",
        )
    elif isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        reason, advice = "tls", "the server does not speak TLS here; correct the scheme or the port of the base URL"
    elif isinstance(error, ConnectionRefusedError):
        reason, advice = "refused", "nothing listens there; start the server, or correct the base URL"
    elif isinstance(error, (ConnectionError, ssl.SSLError, http.client.RemoteDisconnected)):
        reason, advice = "reset", "the connection was closed while it was made; look at the server's log"
    detail = getattr(error, "strerror", None) or type(error).__name__
    return errors.ConnectionError(f"No connection to {address} ({detail}): {advice}", reason=reason)


def _resolve(host: str, port: int, remaining: Remaining, cancellation: Cancellation) -> List[Any]:
    """`getaddrinfo`, which has no timeout, in a thread of its own. Addresses need no thread."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        pass
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    def interrupt() -> None:
        answers.put(None)

    threading.Thread(target=look_up, name="postrider-dns", daemon=True).start()
    cancellation.attach(interrupt)
    try:
        answer = answers.get(timeout=remaining())
    except queue.Empty:
        remaining()
        raise
    finally:
        cancellation.detach(interrupt)
    cancellation.check()
    if isinstance(answer, Exception):
        raise connect_error(answer if isinstance(answer, OSError) else socket.gaierror(str(answer)), host) from None
    return list(answer)


def _lower_case(pairs: Any) -> Dict[str, str]:
    headers: Dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
