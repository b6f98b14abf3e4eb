"""`AsyncClient`: carries out steps with httpx."""

from __future__ import annotations

import socket
import ssl
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Mapping,
    Optional,
    Tuple,
)

try:
    import anyio
    import httpx
except ImportError as missing:
    raise ImportError("AsyncPostrider needs httpx: pip install 'httpx>=0.27,<1'") from missing

from . import _steps, errors
from ._base import ClientBase
from ._exchange import ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX, Operation, Request, Response
from ._pages import AsyncList, AsyncPage
from ._steps import Emit, Pause, ReadLine, Send, Step, Steps, split_options
from ._transport import connect_error, is_loopback

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncClient(ClientBase):
    """Base of `AsyncPostrider`. To cancel a call, cancel its task."""

    def _prepare(self, api_key: str) -> None:
        def authorize(request: httpx.Request) -> httpx.Request:
            request.headers["Authorization"] = f"Bearer {api_key}"
            return request

        # Deadlines of calls replace httpx's timeouts.
        try:
            is_local = is_loopback(httpx.URL(self._base_url).host)
            context = ssl.create_default_context()
            self._http = httpx.AsyncClient(timeout=None, verify=context, auth=authorize, trust_env=not is_local)
        except (ValueError, httpx.InvalidURL):  # Their texts show the proxy's address.
            text = "The proxies of the environment must be http:// addresses: correct http_proxy and https_proxy"
            raise errors.ConfigurationError(text) from None
        self._pause: Callable[[Pause], Awaitable[None]] = lambda pause: anyio.sleep(pause.seconds)
        self.dev = AsyncDev(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections. The client cannot be used afterwards."""
        await self._http.aclose()

    async def _call(
        self, operation: Operation, path: Tuple[str, ...], params: Any, fields: Mapping[str, object]
    ) -> Any:
        params, options = split_options(params, fields)
        return await self._run(self._core.call(operation, path, params, options))

    def _list(self, operation: Operation, path: Tuple[str, ...], params: Any, fields: Mapping[str, object]) -> Any:
        params, options = split_options(params, fields)

        async def fetch(cursor: Optional[str] = None) -> AsyncPage[Any]:
            place = {"cursor": cursor} if cursor else {}
            return AsyncPage(await self._call(operation, path, {**(params or {}), **place}, options), operation, fetch)

        return AsyncList(fetch)

    async def _run(self, steps: Steps) -> Any:
        result: Any = None
        async for one in self._drive(steps):
            result = one
        return result

    async def _drive(self, steps: Steps) -> AsyncGenerator[Any, None]:
        """Carries out steps: yields what they emit, and their result at last."""
        opened: Optional[_Lines] = None
        result: Any = None
        failure: Optional[Exception] = None
        try:
            while True:
                try:
                    step = steps.throw(failure) if failure else steps.send(result)
                except StopIteration as end:
                    yield end.value
                    return
                result = failure = None
                if isinstance(step, Emit):
                    yield step.event
                    continue
                if isinstance(step, (Send, Pause)) and opened:
                    await opened.response.aclose()
                    opened = None
                try:
                    result = await self._carry_out(step)
                except Exception as error:
                    failure = error
                if isinstance(step, Send) and result:
                    opened = result[0]
        finally:
            if opened:
                with anyio.CancelScope(shield=True):
                    await opened.response.aclose()

    async def _carry_out(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return await self._pause(step)
        if isinstance(step, ReadLine):
            return await step.stream.readline()
        if isinstance(step, Send):
            try:
                with anyio.fail_after(step.deadline()):
                    response = await self._send(step.request)
                    if step.is_stream(response.status_code, response.headers.get("content-type", "")):
                        return _Lines(response), None
                    return None, await self._read(response)
            except TimeoutError as error:
                raise step.deadline.error() from error
        raise TypeError(step)

    async def _send(self, request: Request) -> httpx.Response:
        try:
            url = self._base_url + request.target
            built = self._http.build_request(request.method, url, headers=request.headers, content=request.body)
            return await self._http.send(built, stream=True)
        except httpx.ProxyError as error:
            text = f"The proxy refused a connection to the server ({error}): correct https_proxy or no_proxy"
            raise errors.ConnectionError(text, reason="other") from None
        except httpx.ConnectError as error:
            raise connect_error(_cause(error), httpx.URL(self._base_url).host) from None
        except (httpx.RemoteProtocolError, httpx.LocalProtocolError) as error:
            if "disconnected" not in str(error):
                text = "The answer is not HTTP: are the base URL and its scheme the ones of the API?"
                raise errors.UnexpectedResponseError(text) from None
            raise _lost() from None
        except httpx.TransportError:
            raise _lost() from None

    async def _read(self, response: httpx.Response) -> Response:
        limit = ANSWER_BYTES_MAX if response.status_code < 300 else ERROR_BODY_BYTES_MAX
        body, is_complete = bytearray(), True
        try:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > limit:
                    is_complete = False
                    break
        except httpx.TransportError:
            is_complete = False
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Response(response.status_code, headers, bytes(body[: limit + 1]), is_complete)

    def _stream(self, operation: Operation, types: Any, after: Optional[str]) -> AsyncIterator[Any]:
        return self._drive(self._core.stream(operation, types, after, None))


class _Lines:
    """The lines of an answer, split at line feeds only."""

    def __init__(self, response: httpx.Response) -> None:
        self.response, self._chunks, self._buffer = response, response.aiter_raw(), b""

    async def readline(self) -> bytes:
        """A line; empty at the end, and if the connection is lost."""
        while b"\n" not in self._buffer and len(self._buffer) <= _steps.STREAM_EVENT_BYTES_MAX:
            try:
                with anyio.fail_after(_steps.STREAM_SILENCE_SECONDS_MAX):
                    self._buffer += await self._chunks.__anext__()
            except (StopAsyncIteration, TimeoutError, httpx.TransportError):
                return b""
        line, end, self._buffer = self._buffer.partition(b"\n")
        return line + end


class AsyncDev:
    """The inbox of `postrider dev`, for tests of applications."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def wait_for_email(
        self, *, to: Optional[str] = None, subject: Optional[str] = None, timeout: float = 30
    ) -> Dict[str, Any]:
        """Waits for a message and returns it. Raises `TimeoutError` if none arrives."""
        message: Dict[str, Any] = await self._client._run(self._client._core.wait_for_email(to, subject, timeout))
        return message


def _lost() -> errors.ConnectionError:
    text = "The connection was lost before the answer: the call may have been carried out"
    return errors.ConnectionError(text, reason="reset", _sent=True)


def _cause(error: BaseException) -> BaseException:
    """The operating system's error behind one of httpx."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if isinstance(cause, (ssl.SSLError, socket.gaierror, ConnectionError)):
            return cause
        if (
            isinstance(cause, OSError)
            and getattr(cause, "__cause__", None) is None
            and not isinstance(cause, httpx.HTTPError)
        ):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error
