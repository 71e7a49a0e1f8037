"""What can go wrong, by what the caller can do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._statement import Statement

_PREFIX = "urn:wirespool:problem:"


class Error(Exception):
    """Any failure of this package."""


class Unreachable(Error):
    """No connection, or no answer over it: refused, wrong certificate, timeout."""


class Broken(Error):
    """An answer was cut, or is not what the API describes. What was read of it is not whole."""


class Incomplete(Error):
    """The answer is not complete, and `complete=True` asked for one that is."""

    def __init__(self, statement: Statement) -> None:
        super().__init__(statement.text)
        self.statement = statement


@dataclass(frozen=True)
class QueryPlace:
    """Where a query is wrong."""

    at: int
    """Bytes of UTF-8 from the start of the query."""
    shown: str
    """The query with a caret under the place."""
    suggestion: Optional[str]


class Problem(Error):
    """The service refused a request and said why (RFC 9457)."""

    def __init__(self, status: int, said: dict[str, Any], retry_after_s: Optional[float]) -> None:
        def text(name: str) -> Optional[str]:
            value = said.get(name)
            return value if isinstance(value, str) else None

        self.status = status
        self.type = (text("type") or "").replace(_PREFIX, "", 1)
        """A word that scripts may rely on, such as `wrong-query`."""
        self.title = text("title") or f"HTTP status {status}"
        self.detail = text("detail")
        self.retry_after_s = retry_after_s
        """After so many seconds the service may answer."""
        place, self.query = said.get("query"), None
        if isinstance(place, dict) and type(place.get("at")) is int:
            shown, suggestion = place.get("shown"), place.get("suggestion")
            self.query = QueryPlace(
                place["at"],
                shown if isinstance(shown, str) else "",
                suggestion if isinstance(suggestion, str) else None,
            )
        why = self.query.shown if self.query and self.query.shown else self.detail
        super().__init__(f"{self.title}: {why}" if why else self.title)
