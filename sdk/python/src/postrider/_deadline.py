"""`Deadline` and `Cancellation`: what ends a call before its answer."""

from __future__ import annotations

import threading
import time
from typing import Callable, Set

from . import errors


class Deadline:
    """A point in time; calling it gives the remaining seconds. Raises `TimeoutError` if it has passed."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock, self._end = seconds, clock, clock() + seconds

    def left(self) -> float:
        return self._end - self._clock()

    def __call__(self) -> float:
        left = self.left()
        if left <= 0:
            raise self.error()
        return left

    def error(self) -> errors.TimeoutError:
        advice = "raise `timeout`, or look at the server and the network"
        return errors.TimeoutError(f"The call took longer than {self._seconds:g} s: {advice}")


class Cancellation:
    """Cancels calls that it was passed to, from another thread: `client.emails.list(cancellation=cancellation)`."""

    def __init__(self) -> None:
        self._event, self._lock = threading.Event(), threading.Lock()
        self._interrupts: Set[Callable[[], None]] = set()

    def cancel(self) -> None:
        self._event.set()
        with self._lock:  # Held, so that no interrupt follows its `detach`.
            for interrupt in self._interrupts:
                interrupt()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Waits until cancelled, at most so many seconds. Raises `CancelledError`."""
        self._event.wait(seconds)
        self.check()

    def check(self) -> None:
        if self._event.is_set():
            raise errors.CancelledError("The call was cancelled")

    def attach(self, interrupt: Callable[[], None]) -> None:
        """Calls `interrupt` when cancelled, until `detach`."""
        with self._lock:
            self._interrupts.add(interrupt)
        if self._event.is_set():
            interrupt()

    def detach(self, interrupt: Callable[[], None]) -> None:
        with self._lock:
            self._interrupts.discard(interrupt)
