"""`Page` and `AsyncPage`: answers of lists."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Generator, Generic, Iterator, List, Optional, TypeVar

from . import errors
from ._exchange import JSON, Operation

T = TypeVar("T")


class _Content(Dict[str, Any], Generic[T]):
    """The answer of a list, as a dict. It is iterated by items, not by keys."""

    def __init__(self, content: Dict[str, Any], operation: Operation, fetch: Callable[[str], Any]) -> None:
        super().__init__(content)
        self._operation, self._fetch = operation, fetch
        # Position in the list, and the position that each cursor of the list led to.
        self._number, self._seen = 0, {}  # type: int, Dict[str, int]

    @property
    def data(self) -> List[T]:
        """The items of this page."""
        items = self.get(self._operation.items or "")
        return items if isinstance(items, list) else self._refuse("the page has no list")

    def _cursor(self) -> Optional[str]:
        """The next cursor. Raises if it leads back to an earlier page, because the list would never end."""
        cursor = self.get("next_cursor") if self.get("has_more") else None
        if cursor is None:
            return None
        if not isinstance(cursor, str) or self._seen.setdefault(cursor, self._number) < self._number:
            self._refuse("the server repeats a cursor, so the list would never end")
        return cursor

    def _follow(self, page: Any) -> Any:
        """Makes `page` the one after this."""
        page._number, page._seen = self._number + 1, self._seen
        return page

    def _refuse(self, text: str) -> Any:
        advice = f"{self._operation.name}: {text}; report it to the server's operator"
        raise errors.UnexpectedResponseError(advice, status=200, content_type=JSON)


class Page(_Content[T]):
    """A page of a list: the answer as a dict. Iterating gives the items of this page and of all that follow."""

    def next_page(self) -> Optional[Page[T]]:
        """Fetches the next page, if there is one."""
        cursor = self._cursor()
        return self._follow(self._fetch(cursor)) if cursor else None

    def __iter__(self) -> Iterator[T]:  # type: ignore[override]
        page: Optional[Page[T]] = self
        while page is not None:
            yield from page.data
            page = page.next_page()


class AsyncPage(_Content[T]):
    """As `Page`, for `async for`."""

    async def next_page(self) -> Optional[AsyncPage[T]]:
        """Fetches the next page, if there is one."""
        cursor = self._cursor()
        return self._follow(await self._fetch(cursor)) if cursor else None

    async def __aiter__(self) -> AsyncIterator[T]:
        page: Optional[AsyncPage[T]] = self
        while page is not None:
            for item in page.data:
                yield item
            page = await page.next_page()


class AsyncList(Generic[T]):
    """The call of a list: `await` gives the first page, `async for` the items of all pages."""

    def __init__(self, fetch: Callable[[], Awaitable[AsyncPage[T]]]) -> None:
        self._fetch = fetch

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._fetch().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self._fetch():
            yield item
