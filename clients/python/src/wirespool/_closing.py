"""What ends a request when the block that uses it is left."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, TypeVar

Self = TypeVar("Self", bound="Closing")


class Closing:
    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
