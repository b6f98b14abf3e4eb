"""`SyncClient`: carries out steps with the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, Iterator, Mapping, Optional, Tuple

from . import _steps
from ._base import ClientBase
from ._deadline import Cancellation
from ._exchange import Operation
from ._pages import Page
from ._steps import Emit, Pause, ReadLine, Send, Step, Steps, split_options
from ._transport import Exchange, Transport

if TYPE_CHECKING:
    from typing_extensions import Self


class SyncClient(ClientBase):
    """Base of `Postrider`. Safe for threads; connections are reused until `close`."""

    def _prepare(self, api_key: str) -> None:
        self._transport = Transport(self._base_url, api_key)
        self._pause: Callable[[Pause], None] = lambda pause: pause.cancellation.wait(pause.seconds)
        self.dev = Dev(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client stays usable."""
        self._transport.close()

    def _call(self, operation: Operation, path: Tuple[str, ...], params: Any, fields: Mapping[str, object]) -> Any:
        params, options = split_options(params, fields)
        answer = self._run(self._core.call(operation, path, params, options))
        if operation.items is None:
            return answer

        def fetch(cursor: str) -> Any:
            return self._call(operation, path, {**(params or {}), "cursor": cursor}, options)

        return Page(answer, operation, fetch)

    def _run(self, steps: Steps) -> Any:
        try:
            next(self._drive(steps))
        except StopIteration as end:
            return end.value

    def _drive(self, steps: Steps) -> Generator[Any, None, Any]:
        """Carries out steps: yields what they emit and returns their result."""
        opened: Optional[Exchange] = None
        result: Any = None
        failure: Optional[Exception] = None
        try:
            while True:
                step = steps.throw(failure) if failure else steps.send(result)
                result = failure = None
                if isinstance(step, Emit):
                    yield step.event
                    continue
                if isinstance(step, (Send, Pause)) and opened:
                    opened.close()
                    opened = None
                try:
                    result = self._carry_out(step)
                except Exception as error:
                    failure = error
                if isinstance(step, Send) and result:
                    opened = result[0]
        except StopIteration as end:
            return end.value
        finally:
            if opened:
                opened.close()

    def _carry_out(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return self._pause(step)
        if isinstance(step, ReadLine):
            return step.stream.readline(_steps.STREAM_EVENT_BYTES_MAX + 1)
        if isinstance(step, Send):
            exchange = self._transport.open(step.request, step.deadline, step.cancellation)
            if not step.is_stream(exchange.answer.status, exchange.headers.get("content-type", "")):
                return None, self._transport.read(exchange, step.deadline)
            exchange.connection.remaining = lambda: _steps.STREAM_SILENCE_SECONDS_MAX
            return exchange, None
        raise TypeError(step)

    def _stream(
        self, operation: Operation, types: Any, after: Optional[str], cancellation: Optional[Cancellation]
    ) -> Iterator[Any]:
        return self._drive(self._core.stream(operation, types, after, cancellation))


class Dev:
    """The inbox of `postrider dev`, for tests of applications."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def wait_for_email(
        self, *, to: Optional[str] = None, subject: Optional[str] = None, timeout: float = 30
    ) -> Dict[str, Any]:
        """Waits for a message and returns it. Raises `TimeoutError` if none arrives."""
        message: Dict[str, Any] = self._client._run(self._client._core.wait_for_email(to, subject, timeout))
        return message
