"""Sessions as they arrive, and as tables."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Generator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from ._errors import Broken
from ._http import Transport, parse_json
from ._once import Once
from ._schema import COLUMNS, Session
from ._statement import Statement, merge, parse, unknown, without_cut

if TYPE_CHECKING:
    import pandas
    import pyarrow

_ID = re.compile("[0-9A-Za-z_-]{1,128}")
NDJSON = "application/x-ndjson"
# Newest first, the service answers with so many at most.
_NEWEST_MAX = 10_000
_BATCH_ROWS = 10_000


def import_extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'wirespool[{extra}]'") from error


class Answers:
    """What the service remembers of an answer that was a stream."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def known(self, answer_id: str, part: str = "") -> Optional[bytes]:
        """`None` where the service does not remember it: it keeps the newest 256."""
        if not _ID.fullmatch(answer_id):
            raise Broken(f"{answer_id!r} is no id of an answer")
        path = f"/api/v1/answers/{answer_id}{part}"
        with self._transport.open("GET", path, also=(404,)) as response:
            body = response.body()
            return body if response.status == 200 else None

    def end(self, answer_id: Optional[str], count: Optional[int]) -> dict[str, Any]:
        """What is known of an answer that was read to its end; `Broken` where that was none."""
        body = self.known(answer_id) if answer_id is not None else None
        known = parse_json(body) if body is not None else {}
        if not isinstance(known, dict):
            raise Broken("the service does not say how its answer ended")
        if body is not None and known.get("state") != "done":
            raise Broken(f"the answer has no end: it is {known.get('state')!r}")
        if count is not None and known.get("count", count) != count:
            raise Broken(f"{count} arrived of {known['count']!r} that were sent")
        return known


class Sessions(Once[Session]):
    """The sessions of a query, as they arrive. The request is sent with the first one taken.

    Iteration raises `Broken` where the answer is cut. `statement` says what is missing, once the
    last session was taken; with `complete=True` iteration ends with `Incomplete` where anything is.
    """

    def __init__(
        self,
        transport: Transport,
        parameters: dict[str, Any],
        limit: Optional[int],
        complete: bool,
    ) -> None:
        self._transport, self._parameters = transport, parameters
        self._limit, self._complete = limit, complete
        super().__init__(self._take())
        self.statement: Statement = unknown("the answer was not read to its end")
        self.count = 0
        """Sessions that were taken."""
        self.next_cursor: Optional[str] = None
        """Where an answer that was cut goes on: the `cursor` of another request."""

    def _take(self) -> Generator[Session, None, None]:
        parts: list[Statement] = []
        is_newest = self._parameters.get("order") == "newest"
        parameters = dict(self._parameters)
        while True:
            left = None if self._limit is None else self._limit - self.count
            if is_newest:
                left = _NEWEST_MAX if left is None else min(left, _NEWEST_MAX)
            before = self.count
            parameters["limit"] = left
            with self._transport.open(
                "GET", "/api/v1/sessions", parameters, accept=NDJSON
            ) as response:
                for line in response.lines():
                    row = parse_json(line)
                    if not isinstance(row, dict):
                        raise Broken("a line of the answer is no session")
                    self.count += 1
                    yield cast(Session, row)
                answer_id = response.answer_id
            known = Answers(self._transport).end(answer_id, self.count - before)
            part = parse(known.get("statement")) if known else _forgotten()
            cursor = known.get("next_cursor")
            self.next_cursor = cursor if isinstance(cursor, str) else None
            is_page = is_newest and part.cut_by == "limit" and self.count > before
            if self.next_cursor is None or not is_page or self.count == self._limit:
                break
            parts.append(without_cut(part))
            parameters["cursor"] = self.next_cursor
        self.statement = merge([*parts, part], self.count)
        if self._complete:
            self.statement.require_complete()

    def batches(self, rows: int = _BATCH_ROWS) -> Iterator[pyarrow.RecordBatch]:
        """The sessions as Arrow record batches of so many rows, as they arrive."""
        arrow = import_extra("pyarrow", "pyarrow")
        schema = arrow_schema(arrow)
        while batch := list(islice(self, rows)):
            yield _record_batch(arrow, schema, cast("list[dict[str, Any]]", batch))

    def to_arrow(self) -> pyarrow.Table:
        """All sessions as a table. Its metadata has the statement under `wirespool.statement`."""
        self._begin()
        arrow = import_extra("pyarrow", "pyarrow")
        table = arrow.Table.from_batches(list(self.batches()), schema=arrow_schema(arrow))
        statement = json.dumps(self.statement.as_dict())
        return table.replace_schema_metadata({"wirespool.statement": statement})

    def to_pandas(self) -> pandas.DataFrame:
        """All sessions as a data frame; `attrs["wirespool_statement"]` has the statement."""
        pd, arrow = import_extra("pandas", "pandas"), import_extra("pyarrow", "pandas")
        table = self.to_arrow()
        # As floating point numbers, whole ones with absent values would be rounded.
        types = {arrow.int64(): pd.Int64Dtype(), arrow.bool_(): pd.BooleanDtype()}
        frame: pandas.DataFrame = table.replace_schema_metadata(None).to_pandas(
            types_mapper=types.get
        )
        frame.attrs["wirespool_statement"] = self.statement.as_dict()
        return frame


def _forgotten() -> Statement:
    return unknown("the service does not remember this answer")


def arrow_schema(arrow: Any) -> pyarrow.Schema:
    """The columns of all tables of sessions, whatever an answer has."""
    types: dict[str, Callable[[], Any]] = {
        "flag": arrow.bool_,
        "integer": arrow.int64,
        "text": arrow.string,
        "time": lambda: arrow.timestamp("ns", tz="UTC"),
        "duration": lambda: arrow.duration("ns"),
        "integers": lambda: arrow.list_(arrow.int64()),
        "texts": lambda: arrow.list_(arrow.string()),
    }
    fields = [(name, types[kind]()) for name, kind in COLUMNS.items()]
    # What a newer service has besides.
    return arrow.schema([*fields, ("other_fields", arrow.string())])


def _record_batch(arrow: Any, schema: Any, rows: list[dict[str, Any]]) -> Any:
    columns = []
    # Most sessions have few of the fields.
    there = {name for row in rows for name in row}
    others = there.difference(COLUMNS)
    try:
        for field in schema:
            name = field.name
            if name == "other_fields" and others:
                texts = [{key: row[key] for key in others if key in row} for row in rows]
                values = [json.dumps(text) if text else None for text in texts]
            elif name in there and name in COLUMNS:
                values = [row.get(name) for row in rows]
            else:
                columns.append(arrow.nulls(len(rows), field.type))
                continue
            columns.append(arrow.array(values, type=field.type))
        return arrow.record_batch(columns, schema=schema)
    except (arrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise Broken(f"a session is not as the API describes it: {error}") from error
