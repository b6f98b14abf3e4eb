"""`Page` and `AsyncPage`: answers of lists."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Generator, Generic, Iterator, List, Optional, TypeVar

from ._exchange import Operation
from ._steps import items_of_page

T = TypeVar("T")


class _Content(Dict[str, Any], Generic[T]):
    """The answer of a list, as a dict. It is iterated by items, not by keys."""

    def __init__(self, content: Dict[str, Any], operation: Operation, fetch: Callable[[str], Any]) -> None:
        super().__init__(content)
        self._operation, self._fetch = operation, fetch

    @property
    def data(self) -> List[T]:
        """The items of this page."""
        return items_of_page(self._operation, self, None)[0]


class Page(_Content[T]):
    """A page of a list: the answer as a dict. Iterating gives the items of this page and of all that follow."""

    def next_page(self) -> Optional[Page[T]]:
        """Fetches the next page, if there is one."""
        cursor = items_of_page(self._operation, self, None)[1]
        return self._fetch(cursor) if cursor else None

    def __iter__(self) -> Iterator[T]:  # type: ignore[override]
        page: Page[T] = self
        cursor: Optional[str] = None
        while True:
            items, cursor = items_of_page(self._operation, page, cursor)
            yield from items
            if cursor is None:
                return
            page = self._fetch(cursor)


class AsyncPage(_Content[T]):
    """As `Page`, for `async for`."""

    async def next_page(self) -> Optional[AsyncPage[T]]:
        """Fetches the next page, if there is one."""
        cursor = items_of_page(self._operation, self, None)[1]
        return await self._fetch(cursor) if cursor else None

    async def __aiter__(self) -> AsyncIterator[T]:
        page: AsyncPage[T] = self
        cursor: Optional[str] = None
        while True:
            items, cursor = items_of_page(self._operation, page, cursor)
            for item in items:
                yield item
            if cursor is None:
                return
            page = await self._fetch(cursor)


class AsyncList(Generic[T]):
    """The call of a list: `await` gives the first page, `async for` the items of all pages."""

    def __init__(self, fetch: Callable[[], Awaitable[AsyncPage[T]]]) -> None:
        self._fetch = fetch

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._fetch().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self._fetch():
            yield item
