"""The client: a method for each endpoint that programs have a use for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Optional, Union, cast

from ._errors import Broken
from ._extract import Extract, Packets, Target
from ._http import Transport, parse_json, path_part
from ._sessions import Sessions
from ._statement import Statement, parse

# The service ends an answer after 15 min, and a request waits for its turn for 30 s: whoever waits
# so long for the next bytes waits in vain.
_TIMEOUT_S = 960.0


class Answer(dict[str, Any]):
    """An answer as JSON has it, with the statement of what is missing from it."""

    @property
    def statement(self) -> Statement:
        return parse(self.get("statement"))


class Summary(Answer):
    """What sessions sum up to."""

    @property
    def timeline(self) -> list[tuple[int, dict[str, int]]]:
        """Start of each bucket in nanoseconds, and its counts by series: protocols, or values."""
        try:
            traffic = self["traffic"]
            return [(at, dict(zip(traffic["series"], sums))) for at, sums in traffic["buckets"]]
        except (KeyError, TypeError, ValueError) as error:
            raise Broken(f"the summary is not as the API describes it: {error!r}") from error

    def top(self, field: str) -> list[dict[str, Any]]:
        """The values of a field with the most, each with the query that selects it."""
        for top in self.get("top", []):
            if top["field"] == field:
                return cast("list[dict[str, Any]]", top["values"])
        raise KeyError(field)


class Client:
    """A service at `url`: `http` on the loopback, else `https`.

    - `token`, or `token_file` with its text: a bearer token;
    - `ca`: the file of the certificates to trust, in PEM; those of the system without it;
    - `client_cert`: a file with certificate and key, or one of each;
    - `timeout`: seconds without a byte after which a request is given up;
    - `retries`, `retry_wait_s`: how often a request that has to wait (429, 503) is sent again, and
      how many seconds that may take together.

    Each request has a connection of its own. Proxies of the environment are not used, and
    redirections are not followed.
    """

    def __init__(
        self,
        url: str,
        token: Optional[str] = None,
        ca: Optional[str] = None,
        client_cert: Union[str, tuple[str, str], None] = None,
        timeout: float = _TIMEOUT_S,
        *,
        token_file: Union[str, os.PathLike[str], None] = None,
        retries: int = 5,
        retry_wait_s: float = 60.0,
    ) -> None:
        if token_file is not None:
            if token is not None:
                raise ValueError("give the token or its file, not both")
            token = Path(token_file).read_text(encoding="utf-8").strip()
        waits = (retries, retry_wait_s)
        self._transport = Transport(url, token, (ca, client_cert), timeout, waits)

    def sessions(
        self,
        query: str = "",
        limit: Optional[int] = None,
        newest: bool = False,
        *,
        sort: Optional[str] = None,
        complete: bool = False,
        cursor: Optional[str] = None,
        volume: Optional[str] = None,
    ) -> Sessions:
        """Sessions by their start, as they arrive, or by a field (`sort`: `FIELD` or `FIELD:desc`)
        once all were looked at. A `limit` that cuts makes them incomplete."""
        order = "newest" if newest else None
        parameters = {"query": query, "order": order, "cursor": cursor, "volume": volume}
        parameters["sort"] = sort
        return Sessions(self._transport, parameters, _positive(limit), complete)

    def extract(
        self,
        query: str = "",
        path_or_file: Optional[Target] = None,
        *,
        only_range: bool = False,
        whole_sessions: bool = False,
        limit: Optional[int] = None,
        limit_packets: Optional[int] = None,
        limit_bytes: Optional[int] = None,
        around_ms: Optional[int] = None,
        packet_filter: Optional[str] = None,
        payload: Optional[str] = None,
        comments: bool = False,
        complete: bool = False,
        overwrite: bool = False,
        volume: Optional[str] = None,
    ) -> Extract:
        """Packets as pcapng: written to a path or file, or else an iterator of bytes. `limit`
        counts sessions; the others are as the flags of `wirespool extract`."""
        parameters = {
            "query": query,
            "only_range": only_range,
            "whole_sessions": whole_sessions,
            "limit": _positive(limit),
            "limit_packets": _positive(limit_packets),
            "limit_bytes": _positive(limit_bytes),
            "around_ms": _positive(around_ms),
            "packet_filter": packet_filter,
            "payload": payload,
            "comments": comments,
            "volume": volume,
        }
        extract = Extract(self._transport, parameters, complete)
        return extract if path_or_file is None else extract.write(path_or_file, overwrite)

    def packets(
        self,
        query: str = "",
        kind: str = "scapy",
        *,
        only_range: bool = False,
        limit_packets: Optional[int] = None,
        limit_bytes: Optional[int] = None,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Packets:
        """Packets as objects of `scapy` or `dpkt`, or `raw`, as they arrive."""
        extract = self.extract(
            query,
            only_range=only_range,
            limit_packets=limit_packets,
            limit_bytes=limit_bytes,
            complete=complete,
            volume=volume,
        )
        return Packets(extract, kind)

    def summary(
        self,
        query: str = "",
        fields: Iterable[str] = (),
        limit: Optional[int] = None,
        by: Optional[str] = None,
        *,
        series: Optional[str] = None,
        over_time: Optional[str] = None,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Summary:
        """Traffic over time (`over_time`: bytes, packets or sessions) by protocol or by the
        largest values of the field `series`, and the values of `fields` with the most (`by`: the
        same three)."""
        names = fields if isinstance(fields, str) else ",".join(fields)
        parameters = {"query": query, "fields": names or None, "limit": limit, "by": by}
        parameters |= {"series": series, "over_time": over_time}
        return Summary(self._whole("summary", {**parameters, "volume": volume}, complete))

    def sql(
        self,
        query: str,
        limit: Optional[int] = None,
        *,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """Rows of an SQL query in `rows`, 10 000 at most: `pandas.DataFrame(answer["rows"])`."""
        parameters = {"query": query, "limit": _positive(limit), "volume": volume}
        return self._whole("sql", parameters, complete)

    def decoded_packets(
        self,
        query: str = "",
        limit: Optional[int] = None,
        *,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """Packets with what their headers say, and their bytes in base64: few, to look at."""
        parameters = {"query": query, "limit": limit, "volume": volume}
        return self._whole("packets", parameters, complete)

    def tshark_packets(
        self,
        query: str = "",
        limit: Optional[int] = None,
        packet: Optional[int] = None,
        *,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """The same packets as tshark decodes them, in `xml`: a line of each (PSML), or all fields
        of the one with the number `packet`, from 1 (PDML). The service needs `--tshark`."""
        parameters = {"query": query, "limit": limit, "packet": packet, "volume": volume}
        return self._whole("decode", parameters, complete)

    def holds(self, volume: Optional[str] = None) -> dict[str, Any]:
        """Packets that were put aside beyond the reach of the ring."""
        return self._object("GET", "holds", {"volume": volume})

    def hold(
        self,
        query: str,
        *,
        only_range: bool = False,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """Puts the packets of a query aside. An incomplete hold stays, also where it raises."""
        parameters = {"query": query, "only_range": only_range, "volume": volume}
        return self._whole("holds", parameters, complete, "POST")

    def release(self, name: str) -> dict[str, Any]:
        """Removes a hold."""
        return self._object("DELETE", f"holds/{path_part(name)}")

    def ask_extract(
        self,
        query: str,
        case: str,
        purpose: str,
        *,
        only_range: bool = False,
        valid_for_s: Optional[int] = None,
        volume: Optional[str] = None,
    ) -> dict[str, Any]:
        """Asks for an extract that somebody else has to approve; its `id` is for the others."""
        parameters = {"query": query, "case": case, "purpose": purpose, "only_range": only_range}
        parameters.update(valid_for_s=_positive(valid_for_s), volume=volume)
        return self._object("POST", "requests", parameters)

    def requests(self, state: Optional[str] = None, limit: Optional[int] = None) -> dict[str, Any]:
        """Extracts that were asked for in `requests`, the newest first: `waiting`, `approved`,
        `expired`, `withdrawn` or `refused` ones, or all."""
        return self._object("GET", "requests", {"state": state, "limit": _positive(limit)})

    def request(self, request_id: str) -> dict[str, Any]:
        """What was asked, and how it stands."""
        return self._object("GET", f"requests/{path_part(request_id)}")

    def approve(self, request_id: str, note: Optional[str] = None) -> dict[str, Any]:
        """Approves what somebody else has asked for."""
        return self._object("POST", f"requests/{path_part(request_id)}/approve", {"note": note})

    def end_request(self, request_id: str, note: Optional[str] = None) -> dict[str, Any]:
        """Withdraws a request of one's own, or refuses one of somebody else."""
        return self._object("DELETE", f"requests/{path_part(request_id)}", {"note": note})

    def approved_extract(
        self,
        request_id: str,
        path_or_file: Optional[Target] = None,
        *,
        only_range: bool = False,
        limit: Optional[int] = None,
        limit_packets: Optional[int] = None,
        limit_bytes: Optional[int] = None,
        packet_filter: Optional[str] = None,
        payload: Optional[str] = None,
        comments: bool = False,
        complete: bool = False,
        overwrite: bool = False,
    ) -> Extract:
        """The packets that were asked for, as `extract` gives them, once they are approved."""
        parameters = {
            "only_range": only_range,
            "limit": _positive(limit),
            "limit_packets": _positive(limit_packets),
            "limit_bytes": _positive(limit_bytes),
            "packet_filter": packet_filter,
            "payload": payload,
            "comments": comments,
        }
        path = f"/api/v1/requests/{path_part(request_id)}/extract"
        extract = Extract(self._transport, parameters, complete, path)
        return extract if path_or_file is None else extract.write(path_or_file, overwrite)

    def inspection(
        self, volume: Optional[str] = None, *, with_map: bool = False
    ) -> dict[str, Any]:
        """What a volume holds, as `wirespool inspect --json` prints it, also with `--map`."""
        return self._object("GET", "inspection", {"volume": volume, "map": with_map})

    def ring(
        self,
        columns: Optional[int] = None,
        rows: Optional[int] = None,
        *,
        volume: Optional[str] = None,
    ) -> dict[str, Any]:
        """The ring over the surface of its members, in cells, with its members."""
        parameters = {"columns": _positive(columns), "rows": _positive(rows), "volume": volume}
        return self._object("GET", "ring", parameters)

    def recordings(self, volume: Optional[str] = None) -> list[dict[str, Any]]:
        """Recordings that the ring holds something of, oldest first."""
        return self._list("recordings", {"volume": volume})

    def gaps(
        self,
        query: str = "",
        limit: Optional[int] = None,
        *,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """Stretches in which packets are missing within the times of a query, and sums by cause."""
        parameters = {"query": query, "limit": _positive(limit), "volume": volume}
        return self._whole("gaps", parameters, complete)

    def qualification(self, volume: Optional[str] = None) -> dict[str, Any]:
        """What the disks of a volume were measured for, and what is asked of them now."""
        return self._object("GET", "qualification", {"volume": volume})

    def findings(
        self, for_ms: Optional[int] = None, *, volume: Optional[str] = None
    ) -> list[dict[str, Any]]:
        """What is wrong with the recorder of a volume, as `diagnose recorder` finds it."""
        return self._list("findings", {"for_ms": _positive(for_ms), "volume": volume})

    def tags(
        self,
        session: Optional[str] = None,
        tag: Optional[str] = None,
        limit: Optional[int] = None,
        *,
        volume: Optional[str] = None,
    ) -> dict[str, Any]:
        """Tags of sessions in `tags`, the newest first; `cut_by` where there are more."""
        parameters = {"session": session, "tag": tag, "limit": _positive(limit), "volume": volume}
        return self._object("GET", "tags", parameters)

    def add_tags(
        self,
        query: Optional[str] = None,
        tag: Optional[str] = None,
        severity: Optional[int] = None,
        *,
        event: Optional[str] = None,
        complete: bool = False,
        volume: Optional[str] = None,
    ) -> Answer:
        """Tags the sessions that match a query, or that a line of a log (`event`) names."""
        parameters = {"query": query, "tag": tag, "severity": severity, "event": event}
        return self._whole("tags", {**parameters, "volume": volume}, complete, "POST")

    def remove_tag(self, tag_id: str) -> dict[str, Any]:
        """Removes a tag."""
        return self._object("DELETE", f"tags/{path_part(tag_id)}")

    def jobs(self) -> list[dict[str, Any]]:
        """Jobs that run or wait, and the newest that have ended."""
        return self._list("jobs")

    def start_job(
        self,
        kind: str,
        query: Optional[str] = None,
        *,
        dry_run: bool = False,
        only_range: bool = False,
        volume: Optional[str] = None,
    ) -> dict[str, Any]:
        """Starts `verify`, `scrub` or `hold`, which goes on when this client ends."""
        parameters = {"kind": kind, "query": query, "dry_run": dry_run, "only_range": only_range}
        return self._object("POST", "jobs", {**parameters, "volume": volume})

    def job(self, job_id: str) -> dict[str, Any]:
        """How a job stands, and its result."""
        return self._object("GET", f"jobs/{path_part(job_id)}")

    def watch_job(self, job_id: str) -> Iterator[dict[str, Any]]:
        """How a job goes on, to its end: the last one has the result."""
        path = f"/api/v1/jobs/{path_part(job_id)}/events"
        with self._transport.open("GET", path, accept="text/event-stream") as response:
            for line in response.lines():
                if line.startswith(b"data: "):
                    said = parse_json(line.removeprefix(b"data: "))
                    if not isinstance(said, dict):
                        raise Broken("the event is no object")
                    yield said

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        """Ends a job early."""
        return self._object("DELETE", f"jobs/{path_part(job_id)}")

    def health(self) -> dict[str, Any]:
        """Whether the service is well (`ok`). That it is not is an answer, not an error."""
        return self._object("GET", "health", also=(503,))

    def volumes(self) -> list[dict[str, Any]]:
        """Volumes, members and recorders, as `wirespool status --json` prints them."""
        return self._list("volumes")

    def fields(self) -> list[dict[str, Any]]:
        """The fields of the query language."""
        return self._list("fields")

    def whoami(self) -> dict[str, Any]:
        """Name and scopes of the credential, and the volumes."""
        return self._object("GET", "whoami")

    def answer(self, answer_id: str) -> Answer:
        """How far an answer is, and what is missing from it."""
        return Answer(self._object("GET", f"answers/{path_part(answer_id)}"))

    def manifest(self, answer_id: str) -> str:
        """The sealed manifest of an extract, byte for byte."""
        path = f"/api/v1/answers/{path_part(answer_id)}/manifest"
        with self._transport.open("GET", path) as response:
            return response.body().decode()

    def openapi(self) -> dict[str, Any]:
        """The interface as OpenAPI 3.1."""
        return self._object("GET", "openapi.json")

    def metrics(self) -> str:
        """Metrics in the text format of Prometheus."""
        with self._transport.open("GET", "/metrics", accept="text/plain") as response:
            return response.body().decode()

    def _object(
        self,
        method: str,
        path: str,
        parameters: Optional[dict[str, Any]] = None,
        also: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        with self._transport.open(method, f"/api/v1/{path}", parameters, also=also) as response:
            said = parse_json(response.body())
        if not isinstance(said, dict):
            raise Broken("the answer is no object")
        return said

    def _list(
        self, name: str, parameters: Optional[dict[str, Any]] = None
    ) -> list[dict[str, Any]]:
        found = self._object("GET", name, parameters).get(name)
        if not isinstance(found, list):
            raise Broken(f"the answer has no {name}")
        return found

    def _whole(
        self, path: str, parameters: dict[str, Any], complete: bool, method: str = "GET"
    ) -> Answer:
        answer = Answer(self._object(method, path, parameters))
        if complete:
            answer.statement.require_complete()
        return answer


def _positive(number: Optional[int]) -> Optional[int]:
    if number is not None and number < 1:
        raise ValueError(f"a limit is 1 or more, not {number}")
    return number
