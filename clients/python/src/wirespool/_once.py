"""An answer that is taken once, and never looks finished where it was not."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Optional, TypeVar

from ._closing import Closing
from ._errors import Broken, Error

Item = TypeVar("Item")
Self = TypeVar("Self", bound="Once[Any]")


class Once(Closing, Iterator[Item]):
    """Items as they arrive. After a failure each further step fails in the same way."""

    def __init__(self, items: Generator[Item, None, None]) -> None:
        self._items = items
        self._has_begun, self._has_ended = False, False
        self._failure: Optional[Exception] = None

    def __iter__(self: Self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._failure is not None:
            raise self._failure
        self._has_begun = True
        try:
            return next(self._items)
        except StopIteration:
            self._has_ended = True
            raise
        except Exception as error:
            self._failure = error
            raise
        except BaseException:
            self._failure = Broken("reading the answer was interrupted")
            raise

    def close(self) -> None:
        """Ends the request, which ends its process at the service."""
        if not self._has_ended and self._failure is None:
            self._failure = Broken("the answer was closed before its end")
        self._items.close()

    def _begin(self) -> None:
        if self._has_begun:
            raise Error("this answer was taken already: ask again")
