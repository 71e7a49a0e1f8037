"""Against a made-up service: problems, retries, answers that are cut, and hostile values."""

from __future__ import annotations

import io
import json
import struct
import threading
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from support import MadeUp, chunked, http, write_capture

from wirespool import (
    Broken,
    Client,
    Error,
    Incomplete,
    Problem,
    Statement,
    Unreachable,
    read_packets,
)
from wirespool._statement import parse

WHOLE = {"state": "complete", "text": "2 sessions, complete", "completeness": {}}
ROWS = b'{"session_id":"1.0-0","start_ns":5}\n{"session_id":"1.0-1","start_ns":6}\n'
SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


def known(count: int = 2, **changes: Any) -> bytes:
    said = {"id": "a1", "query": "", "state": "done", "count": count, "statement": WHOLE}
    return http(json.dumps({**said, **changes}).encode())


def streams(stream: bytes, answer: bytes, manifest: bytes = b"") -> MadeUp:
    """A service with one stream, and what it says of it."""

    def reply(method: str, target: str) -> bytes:
        if target.endswith("/manifest"):
            return manifest
        return answer if target.startswith("/api/v1/answers/") else stream

    return MadeUp(reply)


def interface(link_type: int = 1, options: bytes = b"") -> bytes:
    size = 20 + len(options)
    return struct.pack("<IIHHI", 1, size, link_type, 0, 0) + options + struct.pack("<I", size)


def packet(data: bytes = b"abcd", time_ns: int = 7, number: int = 0) -> bytes:
    padded = data + bytes(-len(data) % 4)
    size = 32 + len(padded)
    ticks = time_ns >> 32, time_ns & 0xFFFFFFFF
    head = struct.pack("<IIIIIII", 6, size, number, *ticks, len(data), len(data))
    return head + padded + struct.pack("<I", size)


NANOSECONDS = struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
STREAM = SECTION + interface(1, NANOSECONDS) + packet() + packet(b"efghi", 8)


def manifest(stream: bytes = STREAM, packets: int = 2, **changes: Any) -> bytes:
    import hashlib

    output = {
        "packets": packets,
        "bytes": len(stream),
        "sha256": hashlib.sha256(stream).hexdigest(),
    }
    return http(json.dumps({"outputs": [{**output, **changes}]}).encode())


# Sessions


def test_lines_are_whole_wherever_they_are_cut() -> None:
    for size in range(1, len(ROWS), 7):
        parts = [ROWS[at : at + size] for at in range(0, len(ROWS), size)]
        with streams(chunked(*parts), known()) as made_up:
            sessions = made_up.client().sessions("port 53", complete=True)
            assert [row["start_ns"] for row in sessions] == [5, 6]
            assert made_up.asked == [
                "GET /api/v1/sessions?query=port%2053",
                "GET /api/v1/answers/a1",
            ]


def test_the_first_session_is_there_before_the_last_is_sent() -> None:
    go_on = threading.Event()
    first, second = ROWS.splitlines(keepends=True)

    class Slow(MadeUp):
        def _answer(self, connection: Any, file: Any) -> None:
            while file.readline() not in (b"\r\n", b""):
                pass
            connection.sendall(chunked(first, has_end=False))
            if go_on.wait(10):
                connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(second), second))

    with Slow(lambda *_: b"") as made_up:
        sessions = made_up.client().sessions()
        assert next(sessions)["start_ns"] == 5
        go_on.set()
        assert next(sessions)["start_ns"] == 6


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(chunked(ROWS, has_end=False), id="no last chunk"),
        pytest.param(chunked(ROWS)[:-30], id="cut in a chunk"),
        pytest.param(chunked(ROWS[:-1]), id="no end of the last line"),
        pytest.param(chunked(ROWS[:-10]), id="cut in a line"),
        pytest.param(http(ROWS, length=len(ROWS) + 1), id="shorter than its length"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + ROWS, id="no length at all"),
        pytest.param(http(ROWS, headers={"Content-Length": "-1"}), id="negative length"),
        pytest.param(chunked(ROWS, has_end=False) + b"zz\r\n", id="no chunk"),
        pytest.param(chunked(ROWS, b"\n"), id="an empty line"),
        pytest.param(chunked(ROWS, b"[1]\n"), id="no object"),
        pytest.param(chunked(ROWS, b'{"a":NaN}\n'), id="no number"),
        pytest.param(chunked(ROWS, b'{"a":"\xff"}\n'), id="no UTF-8"),
        pytest.param(chunked(ROWS, b"[" * 100_000 + b"\n"), id="too deep"),
        pytest.param(chunked(ROWS, b"1" * 5000 + b"\n"), id="a long number"),
        pytest.param(chunked(ROWS, answer_id="../../health"), id="an id that is a path"),
        pytest.param(chunked(ROWS.splitlines(keepends=True)[0]), id="fewer than were sent"),
    ],
)
def test_sessions_that_are_cut_or_wrong(stream: bytes) -> None:
    pytest.importorskip("pyarrow")
    for take in (list, lambda sessions: sessions.to_arrow()):
        with streams(stream, known()) as made_up:
            sessions = made_up.client().sessions()
            with pytest.raises(Broken):
                take(sessions)
            assert sessions.statement.state == "unknown"
            # Asked again it does not look like an end.
            with pytest.raises(Error):
                take(sessions)


@pytest.mark.parametrize("state", ["broken_off", "going", "", None, 3])
def test_an_answer_that_its_service_has_not_finished(state: Any) -> None:
    with streams(chunked(ROWS), known(state=state)) as made_up, pytest.raises(Broken):
        list(made_up.client().sessions())


def test_an_answer_that_is_not_remembered_is_not_complete() -> None:
    gone = http(b"{}", "404 Not Found")
    for stream, answer in [
        (chunked(ROWS), gone),
        (chunked(ROWS, answer_id=None), known()),
        (chunked(ROWS), known(statement=None)),
        (chunked(ROWS), http(b'{"state":"done","count":2}')),
        (chunked(ROWS), known(statement={"state": "complete"})),
    ]:
        with streams(stream, answer) as made_up:
            sessions = made_up.client().sessions()
            assert len(list(sessions)) == 2
            assert sessions.statement.state == "unknown"
            with pytest.raises(Incomplete):
                list(made_up.client().sessions(complete=True))


def test_endless_lines_are_refused() -> None:
    chunks = [b"x" * (1 << 20)] * 17
    with streams(chunked(*chunks), known()) as made_up, pytest.raises(Broken, match="too long"):
        list(made_up.client().sessions())


@pytest.mark.parametrize(
    "row",
    [{"start_ns": 2**63}, {"start_ns": "x"}, {"dns_names": 3}, {"orig_ip": 3}, {"app": "\ud800"}],
)
def test_a_table_of_wrong_values(row: dict[str, Any]) -> None:
    pytest.importorskip("pyarrow")
    line = json.dumps(row).encode() + b"\n"
    with streams(chunked(line), known(1)) as made_up, pytest.raises(Broken):
        made_up.client().sessions().to_arrow()


def test_fields_of_a_newer_service() -> None:
    pytest.importorskip("pyarrow")
    line = b'{"session_id":"1.0-0","mood":["good"]}\n'
    with streams(chunked(line), known(1)) as made_up:
        table = made_up.client().sessions().to_arrow()
    assert table["other_fields"].to_pylist() == ['{"mood": ["good"]}']


@pytest.mark.parametrize(
    ("said", "state", "reasons"),
    [
        (WHOLE, "complete", ()),
        ({**WHOLE, "cut_by": "limit"}, "incomplete", ("cut: by limit",)),
        ({**WHOLE, "state": "splendid"}, "unknown", ()),
        (
            {"state": "incomplete", "text": "1 session, incomplete\ngap: 3 packets\nrecorded: x"},
            "incomplete",
            ("gap: 3 packets",),
        ),
        (None, "unknown", ("the service made no statement",)),
        ({"state": "complete", "text": 3}, "unknown", ("the service made no statement",)),
        ([], "unknown", ("the service made no statement",)),
    ],
)
def test_statements(said: Any, state: str, reasons: tuple[str, ...]) -> None:
    statement = parse(said)
    assert (statement.state, statement.reasons) == (state, reasons)
    assert statement.is_complete == (state == "complete")
    assert isinstance(statement, Statement)


# Extracts and packets


def test_an_extract_and_its_packets() -> None:
    with streams(chunked(STREAM), known(), manifest()) as made_up:
        client = made_up.client()
        assert b"".join(client.extract("", complete=True)) == STREAM
        packets = list(client.packets("", "raw", complete=True))
        assert [(it.time_ns, it.data) for it in packets] == [(7, b"abcd"), (8, b"efghi")]


@pytest.mark.parametrize("kind", ["raw", "dpkt", "scapy"])
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(chunked(STREAM, has_end=False), id="no last chunk"),
        pytest.param(chunked(STREAM[:-3]), id="cut in a block"),
        pytest.param(chunked(STREAM[:-40]), id="cut between blocks"),
        pytest.param(chunked(STREAM[:-40], has_end=False), id="cut between blocks, no last chunk"),
        pytest.param(http(STREAM, length=len(STREAM) + 8), id="shorter than its length"),
        pytest.param(chunked(b"not a capture at all"), id="no pcapng"),
        pytest.param(chunked(b""), id="empty"),
        pytest.param(chunked(STREAM, packet(number=9)), id="no such interface"),
        pytest.param(chunked(STREAM, struct.pack("<II", 6, 0xFFFFFFFC)), id="a block of 4 GiB"),
        pytest.param(chunked(STREAM, struct.pack("<IIII", 6, 8, 8, 8)), id="a block of 8 bytes"),
    ],
)
def test_packets_that_are_cut_or_wrong(stream: bytes, kind: str, tmp_path: Path) -> None:
    if kind != "raw":
        pytest.importorskip(kind)
    with streams(stream, known(), manifest()) as made_up:
        packets = made_up.client().packets("", kind)
        with pytest.raises(Broken):
            list(packets)
        with pytest.raises(Broken):
            list(packets)
        assert packets.statement.state == "unknown"
        with pytest.raises(Broken):
            made_up.client().extract("", tmp_path / "a.pcapng")
        assert list(tmp_path.iterdir()) == []


def test_an_extract_goes_on_behind_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib
    from urllib.parse import parse_qs, urlsplit

    waits: list[float] = []
    monkeypatch.setattr("wirespool._http.Transport._sleep", staticmethod(waits.append))
    parts = [STREAM[:40], b"", STREAM[40:70], STREAM[70:]]
    moved = http(json.dumps({"type": "urn:wirespool:problem:moved-on"}).encode(), "409 Conflict")

    def reply(method: str, target: str) -> bytes:
        if target.endswith("/manifest"):
            return manifest()
        if target.startswith("/api/v1/answers/"):
            return known()
        given = parse_qs(urlsplit(target).query)
        offset = int(given.get("offset", ["0"])[0])
        if offset:
            assert given["now_ns"] == ["77"]
            if given["sha256"] != [hashlib.sha256(STREAM[:offset]).hexdigest()]:
                return moved
        part = parts.pop(0)
        assert STREAM[offset : offset + len(part)] == part
        return chunked(part, has_end=not parts, now_ns=77)

    with MadeUp(reply) as made_up:
        extract = made_up.client().extract("", tmp_path / "a.pcapng")
        assert (tmp_path / "a.pcapng").read_bytes() == STREAM
        assert extract.packets == 2 and extract.statement.state == "complete"
        assert waits == [0.5, 1.0, 0.5]

    def gone(method: str, target: str) -> bytes:
        part = b"" if "offset" in target else STREAM[:40]
        return chunked(part, has_end=False, now_ns=77)

    waits.clear()
    with MadeUp(gone) as made_up, pytest.raises(Broken):
        list(made_up.client().extract(""))
    assert waits == [0.5, 1.0, 2.0, 4.0]

    def other(method: str, target: str) -> bytes:
        return moved if "offset" in target else chunked(STREAM[:40], has_end=False, now_ns=77)

    with MadeUp(other) as made_up, pytest.raises(Problem) as problem:
        list(made_up.client().extract(""))
    assert problem.value.type == "moved-on"


@pytest.mark.parametrize(
    "said",
    [
        manifest(sha256="0" * 64),
        manifest(bytes=len(STREAM) + 1),
        manifest(packets=3),
        http(b"{}"),
        http(b"[]"),
        http(b'{"outputs":[]}'),
        http(b'{"outputs":[{"sha256":3}]}'),
        http(b"no JSON"),
    ],
)
def test_a_manifest_of_other_packets(said: bytes, tmp_path: Path) -> None:
    with streams(chunked(STREAM), known(), said) as made_up:
        with pytest.raises(Broken):
            made_up.client().extract("", tmp_path / "a.pcapng")
        with pytest.raises(Broken):
            made_up.client().extract("", io.BytesIO())
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_packets_out_is_noticed() -> None:
    stream = STREAM + packet(number=0)
    with streams(chunked(stream), known(4), manifest(stream, 4)) as made_up:
        packets = made_up.client().packets("", "raw")
        with pytest.raises(Broken, match="3 packets of 4"):
            list(packets)


def test_without_a_manifest_nothing_is_complete(tmp_path: Path) -> None:
    gone = http(b"{}", "404 Not Found")
    with streams(chunked(STREAM), known(), gone) as made_up:
        extract = made_up.client().extract("", io.BytesIO())
        assert (extract.statement.state, extract.manifest) == ("unknown", None)
        with pytest.raises(Incomplete):
            made_up.client().extract("", io.BytesIO(), complete=True)
        # That of another extract does not stay beside it.
        path = tmp_path / "a.pcapng"
        Path(f"{path}.json").write_text("{}")
        made_up.client().extract("", path, overwrite=True)
        assert list(tmp_path.iterdir()) == [path]


def test_frames_that_nobody_can_read() -> None:
    for data in [b"", b"\xff" * 5, bytes(14) + b"\x45", b"\xff" * 64]:
        stream = SECTION + b"".join(
            interface(link_type, NANOSECONDS) + packet(data, number=number)
            for number, link_type in enumerate([0, 1, 101, 113, 228, 229, 276, 147])
        )
        with streams(chunked(stream), known(8), manifest(stream, 8)) as made_up:
            client = made_up.client()
            assert [it.data for it in client.packets("", "raw")] == [data] * 8
            pytest.importorskip("dpkt")
            assert len(list(client.packets("", "dpkt"))) == 8
            pytest.importorskip("scapy")
            assert len(list(client.packets("", "scapy"))) == 8


def test_a_large_packet_is_whole_in_scapy() -> None:
    pytest.importorskip("scapy")
    data = bytes(200_000)
    stream = SECTION + interface(147, NANOSECONDS) + packet(data)
    with streams(chunked(stream), known(1), manifest(stream, 1)) as made_up:
        assert [bytes(it) for it in made_up.client().packets("")] == [data]


def test_a_block_of_4_gib_is_not_waited_for() -> None:
    block = struct.pack("<II", 6, 0xFFFFFFFC)
    with pytest.raises(Broken, match="has 4294967292 bytes"):
        list(read_packets(io.BytesIO(STREAM + block)))


def test_resolutions_and_byte_orders() -> None:
    def big(block: bytes) -> bytes:
        """A block of 32-bit words in the other order."""
        return struct.pack(f">{len(block) // 4}I", *struct.unpack(f"<{len(block) // 4}I", block))

    microseconds = SECTION + interface() + packet(time_ns=1_000_001)
    assert [it.time_ns for it in read_packets(io.BytesIO(microseconds))] == [1_000_001_000]
    binary = struct.pack("<HHBxxx", 9, 1, 0x80 | 10) + struct.pack("<HHq", 14, 8, -1)
    stream = SECTION + interface(1, binary) + packet(time_ns=1024)
    assert [it.time_ns for it in read_packets(io.BytesIO(stream))] == [0]
    section = struct.pack(">IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    idb = struct.pack(">IIHHII", 1, 20, 101, 0, 0, 20)
    # A second section forgets the interfaces of the first.
    stream = microseconds + section + idb + big(packet(b"", 3))
    assert [it.link_type for it in read_packets(io.BytesIO(stream))] == [1, 101]
    with pytest.raises(Broken):
        list(read_packets(io.BytesIO(microseconds + section + big(packet(b"", 3)))))


# Requests


def busy(after: str = "0", status: str = "503 Service Unavailable", kind: str = "busy") -> bytes:
    said = {"type": f"urn:wirespool:problem:{kind}", "title": "busy", "status": 503}
    return http(json.dumps(said).encode(), status, {"Retry-After": after} if after else {})


def in_turn(*replies: bytes) -> Callable[[str, str], bytes]:
    left = list(replies)
    return lambda *_: left.pop(0) if len(left) > 1 else left[0]


def test_requests_are_sent_again_after_the_time_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("wirespool._http.Transport._sleep", staticmethod(slept.append))
    replies = busy("3"), busy("4", "429 Too Many Requests"), http(b'{"name":"me"}')
    with MadeUp(in_turn(*replies)) as made_up:
        assert made_up.client().whoami() == {"name": "me"}
    assert slept == [3, 4]
    # At most so many, and so long together.
    for client, expected in [({"retries": 2}, 3), ({"retry_wait_s": 7}, 3), ({"retries": 0}, 1)]:
        with MadeUp(in_turn(busy("3"))) as made_up:
            with pytest.raises(Problem) as raised:
                made_up.client(**client).whoami()
            assert raised.value.status == 503
            assert raised.value.retry_after_s == 3
            assert len(made_up.asked) == expected


@pytest.mark.parametrize(
    "after", ["", "61", "-1", "9" * 5000, "nan", "inf", "1e9", "soon", "\u0663"]
)
def test_no_time_and_too_much_time_are_not_waited_for(after: str) -> None:
    with MadeUp(in_turn(busy(after))) as made_up:
        begin = time.monotonic()
        with pytest.raises(Problem):
            made_up.client().whoami()
        assert len(made_up.asked) == 1
        assert time.monotonic() - begin < 5


def test_what_changes_something_is_sent_again_only_if_it_was_not_begun() -> None:
    held = http(b'{"hold":{"file":"h"},"statement":{}}')
    with MadeUp(in_turn(busy(), held)) as made_up:
        assert made_up.client().hold("port 53")["hold"]["file"] == "h"
        assert made_up.asked == ["POST /api/v1/holds?query=port%2053"] * 2
        assert b"X-Wirespool: 1" in made_up.heads[0]
    with MadeUp(in_turn(busy(kind="no-audit"), held)) as made_up, pytest.raises(Problem):
        made_up.client().hold("port 53")


def test_other_statuses_are_not_sent_again() -> None:
    for status in [
        "400 Bad",
        "401 No",
        "500 Ouch",
        "504 Late",
        "302 Found",
        "204 None",
        "206 Part",
    ]:
        with MadeUp(in_turn(http(b"", status, {"Retry-After": "0", "Location": "/"}))) as made_up:
            with pytest.raises(Problem) as raised:
                made_up.client().whoami()
            assert raised.value.status == int(status[:3])
            assert len(made_up.asked) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b'{"title":3,"query":{"at":"x"}}', b'{"query":[]}', b"\xff"],
)
def test_problems_that_are_none(body: bytes) -> None:
    with MadeUp(in_turn(http(body, "400 Bad Request"))) as made_up:
        with pytest.raises(Problem) as raised:
            made_up.client().whoami()
        assert raised.value.status == 400
        assert raised.value.title == "HTTP status 400"
        assert raised.value.query is None


def test_health_that_is_not_well_is_an_answer() -> None:
    with MadeUp(in_turn(http(b'{"ok":false}', "503 Service Unavailable"))) as made_up:
        assert made_up.client().health() == {"ok": False}


def test_a_service_that_does_not_answer() -> None:
    with MadeUp(lambda *_: b"") as made_up, pytest.raises(Unreachable):
        made_up.client().whoami()
    url = made_up.url
    with pytest.raises(Unreachable):
        Client(url, "t").whoami()
    for wrong in [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200, b"\xff" * 99]:
        with MadeUp(in_turn(wrong)) as made_up, pytest.raises(Unreachable):
            made_up.client().whoami()


def test_a_service_that_stands_still() -> None:
    still = threading.Event()

    def reply(*_: str) -> bytes:
        still.wait(10)
        return b""

    with MadeUp(reply) as made_up:
        with pytest.raises(Unreachable):
            made_up.client(timeout=0.2).whoami()
        still.set()


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("http://recorder.example:8420", {}),
        ("http://10.0.0.1:8420", {}),
        ("http://127.0.0.1.example", {}),
        ("ftp://127.0.0.1", {}),
        ("127.0.0.1:8420", {}),
        ("http://me:secret@127.0.0.1", {}),
        ("http://127.0.0.1/?a=b", {}),
        ("http://127.0.0.1:99999", {}),
        ("http://127.0.0.1", {"token": ""}),
        ("http://127.0.0.1", {"token": "a\r\nX: b"}),
        ("http://127.0.0.1", {"token": "\u00e9"}),
        ("http://127.0.0.1", {"token": "a", "token_file": "b"}),
        ("http://127.0.0.1", {"ca": "ca.pem"}),
        ("http://127.0.0.1", {"client_cert": "c.pem"}),
    ],
)
def test_what_a_client_refuses_at_once(url: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        Client(url, **given)
    assert "secret" not in str(raised.value)
    assert "X: b" not in str(raised.value)


def test_the_loopback_may_be_plain() -> None:
    for url in [
        "http://127.0.0.1:1",
        "http://127.9.9.9",
        "http://[::1]:2",
        "http://localhost/base/",
    ]:
        Client(url, "t")
    with pytest.raises(ValueError, match="1 or more"):
        Client("http://127.0.0.1").sessions(limit=0)
    with pytest.raises(ValueError, match="kind is one of"):
        Client("http://127.0.0.1").packets("", "tcpdump")


def test_a_path_before_the_interface() -> None:
    with MadeUp(in_turn(http(b"{}"))) as made_up:
        Client(made_up.url + "/recorder/", "t").whoami()
        assert made_up.asked == ["GET /recorder/api/v1/whoami"]
        assert b"Authorization: Bearer t" in made_up.heads[0]
        Client(made_up.url, "t").release("a/../b?c#d e\r\n")
        assert made_up.asked[1] == "DELETE /api/v1/holds/a%2F..%2Fb%3Fc%23d%20e%0D%0A"


def test_an_example_capture_is_one(tmp_path: Path) -> None:
    write_capture(tmp_path / "a.pcap", count=3)
    assert (tmp_path / "a.pcap").stat().st_size == 24 + 3 * (16 + 76)
