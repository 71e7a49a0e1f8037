"""Against the real binary: what the client gives is what the command line gives."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import inspect
import io
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from endpoints import ENDPOINTS, LEFT_OUT
from support import START_S, Service, open_ssl, service

from wirespool import Broken, Client, Error, Incomplete, Problem, Unreachable, read_packets
from wirespool._schema import COLUMNS

QUERIES = ["", "host 10.0.0.1", "port 53 and host 10.0.0.2", "port 9"]


def found(served: Service, *words: str) -> list[Any]:
    out = served.run("find", str(served.volume), "--json", *served.index_dir, *words)
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("query", QUERIES)
def test_sessions_are_those_of_find(served: Service, query: str) -> None:
    sessions = served.client().sessions(query, complete=True)
    assert sessions.statement.state == "unknown"
    assert list(sessions) == found(served, query)
    assert sessions.statement.is_complete
    assert sessions.statement.reasons == ()
    assert f"{sessions.count} session" in sessions.statement.text


def test_the_order_of_a_field(served: Service) -> None:
    rows = list(served.client().sessions(sort="orig_port:desc", limit=5))
    ports = [row["orig_port"] for row in rows]
    everything = [row["orig_port"] for row in served.client().sessions()]
    assert ports == sorted(everything, reverse=True)[:5]


def test_what_an_extract_is_narrowed_by(served: Service) -> None:
    client = served.client()
    every, few = client.extract("port 53"), client.extract("port 53", limit=1)
    assert len(b"".join(few)) < len(b"".join(every))
    (one,) = client.packets("port 53", "raw", limit_packets=1)
    pattern = "hex:" + b"www3".hex()
    named = client.extract("port 53", payload=pattern, comments=True)
    assert b"".join(named).count(b"www3") == named.packets and named.packets
    assert one.data


def test_newest_first(served: Service) -> None:
    starts = [row["start_ns"] for row in served.client().sessions(newest=True)]
    assert starts == sorted((row["start_ns"] for row in found(served)), reverse=True)


def test_newest_first_goes_on_over_pages(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirespool._sessions._NEWEST_MAX", 7)
    whole = served.client().sessions(newest=True, complete=True)
    rows = list(whole)
    assert sorted(row["session_id"] for row in rows) == sorted(
        row["session_id"] for row in found(served)
    )
    assert len(rows) == 60
    assert whole.statement.is_complete
    assert whole.statement.text.startswith("60 sessions, complete")
    cut = served.client().sessions(newest=True, limit=10)
    assert list(cut) == rows[:10]
    assert cut.statement.state == "incomplete"
    assert cut.next_cursor is not None
    assert list(served.client().sessions(newest=True, cursor=cut.next_cursor)) == rows[10:]


def test_a_limit_makes_an_answer_incomplete(served: Service) -> None:
    sessions = served.client().sessions(limit=3)
    assert list(sessions) == found(served)[:3]
    assert sessions.statement.state == "incomplete"
    assert sessions.statement.cut_by == "limit"
    assert len(sessions.statement.reasons) == 1
    with pytest.raises(Incomplete) as raised:
        list(served.client().sessions(limit=3, complete=True))
    assert raised.value.statement.cut_by == "limit"
    pytest.importorskip("pyarrow")
    with pytest.raises(Incomplete):
        served.client().sessions(limit=3, complete=True).to_arrow()


def test_a_table_of_arrow(served: Service) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = served.client().sessions().to_arrow()
    expected = found(served)
    assert table.column_names == [*COLUMNS, "other_fields"]
    assert table.schema.field("start_ns").type == arrow.timestamp("ns", tz="UTC")
    assert table.schema.field("duration_ns").type == arrow.duration("ns")
    for name in COLUMNS:
        column = table[name]
        if COLUMNS[name] in ("time", "duration"):
            column = column.cast(arrow.int64())
        assert column.to_pylist() == [row.get(name) for row in expected], name
    assert table["other_fields"].null_count == 60
    statement = json.loads(table.schema.metadata[b"wirespool.statement"])
    assert statement["state"] == "complete"
    # Without a session the columns are the same.
    none = served.client().sessions("port 9").to_arrow()
    assert none.num_rows == 0
    assert none.schema.equals(table.schema)
    sizes = [batch.num_rows for batch in served.client().sessions().batches(25)]
    assert sizes == [25, 25, 10]


def test_a_frame_of_pandas(served: Service) -> None:
    pandas = pytest.importorskip("pandas")
    frame = served.client().sessions().to_pandas()
    assert str(frame["start_ns"].dtype) == "datetime64[ns, UTC]"
    assert frame["start_ns"].iloc[1].value == START_S * 1_000_000_000 + 7920
    assert str(frame["duration_ns"].dtype) == "timedelta64[ns]"
    assert str(frame["vlan"].dtype) == "Int64"
    assert frame["vlan"].isna().all()
    assert frame.attrs["wirespool_statement"]["state"] == "complete"
    names = frame.explode("dns_names").groupby("dns_names")["orig_frame_bytes"].sum()
    assert names["www0.example.com"] == 9 * 76
    later = frame[frame["start_ns"] >= pandas.Timestamp(START_S + 3, unit="s", tz="UTC")]
    assert len(later) == 30
    # Frames can be put together and copied, attributes and all.
    assert len(pandas.concat([frame, frame.copy()])) == 120


def test_an_answer_is_taken_once(served: Service) -> None:
    pytest.importorskip("pyarrow")
    sessions = served.client().sessions(limit=2)
    next(sessions)
    with pytest.raises(Error, match="ask again"):
        sessions.to_arrow()
    sessions.close()
    with pytest.raises(Broken):
        next(sessions)
    assert sessions.statement.state == "unknown"


@pytest.mark.parametrize("query", QUERIES)
def test_an_extract_is_that_of_the_command_line(
    served: Service, query: str, tmp_path: Path
) -> None:
    words = ["extract", str(served.volume), query, "-w", "-", *served.index_dir]
    expected = served.run(*words)
    extract = served.client().extract(query, complete=True)
    assert b"".join(extract) == expected
    assert extract.statement.is_complete
    assert extract.sha256 == hashlib.sha256(expected).hexdigest()
    assert extract.manifest is not None
    assert extract.manifest["outputs"][0]["packets"] == extract.packets
    path = tmp_path / "a.pcapng"
    served.client().extract(query, path)
    assert path.read_bytes() == expected
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "a.pcapng.json"]
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    served.run("verify-extract", f"{path}.json", str(path))
    with pytest.raises(FileExistsError):
        served.client().extract(query, path)
    few = served.client().extract("", path, limit_packets=3, overwrite=True)
    assert few.packets == 3
    assert few.statement.cut_by == "limit"
    # Its exit code is that of an incomplete answer; the file is the right one all the same.
    served.run("verify-extract", f"{path}.json", str(path), may_fail=True)
    file = io.BytesIO()
    served.client().extract(query, file)
    assert file.getvalue() == expected


def test_a_failure_leaves_no_file(served: Service, tmp_path: Path) -> None:
    with pytest.raises(Incomplete):
        served.client().extract("", tmp_path / "a.pcapng", limit_packets=3, complete=True)
    with pytest.raises(Problem):
        served.client().extract("prot 3", tmp_path / "a.pcapng")
    assert list(tmp_path.iterdir()) == []


def test_only_the_range_of_the_query(served: Service) -> None:
    query = "after 2023-11-14T22:13:22Z and before 2023-11-14T22:13:23Z"
    packets = list(served.client().packets(query, "raw", only_range=True))
    assert [packet.time_ns // 1_000_000_000 - START_S for packet in packets] == [2] * 10


def test_packets_as_objects(served: Service) -> None:
    client, query = served.client(), "host 10.0.0.1"
    expected = list(client.packets(query, "raw", complete=True))
    rows = list(client.sessions(query))
    assert [packet.time_ns for packet in expected] == [row["start_ns"] for row in rows]
    assert all(packet.original_len == len(packet.data) == 76 for packet in expected)
    pytest.importorskip("scapy")
    taken = client.packets(query)
    packets = list(taken)
    assert taken.statement.is_complete
    assert [bytes(packet) for packet in packets] == [packet.data for packet in expected]
    assert [int(packet.time * 10**9) for packet in packets] == [it.time_ns for it in expected]
    assert packets[0]["DNS"].qd[0].qname == b"www0.example.com."
    pytest.importorskip("dpkt")
    pairs = list(client.packets(query, "dpkt"))
    assert [packet for packet, _ in pairs] == expected
    assert {type(frame).__name__ for _, frame in pairs} == {"Ethernet"}
    assert pairs[0][1].ip.udp.dport == 53


def test_packets_of_several_link_types_have_their_own() -> None:
    with service(count=4, link_types=(1, 101)) as served:
        raw = list(served.client().packets("", "raw"))
        assert sorted(packet.link_type for packet in raw) == [1] * 4 + [101] * 4
        pytest.importorskip("dpkt")
        kinds = sorted(type(frame).__name__ for _, frame in served.client().packets("", "dpkt"))
        assert kinds == ["Ethernet"] * 4 + ["IP"] * 4
        pytest.importorskip("scapy")
        kinds = sorted(type(packet).__name__ for packet in served.client().packets(""))
        assert kinds == ["Ether"] * 4 + ["IP"] * 4


def test_an_answer_that_the_service_cuts() -> None:
    with service("--max-bytes", "4096") as served:
        sessions = served.client().sessions()
        rows = list(sessions)
        assert 0 < len(rows) < 60
        assert (sessions.statement.state, sessions.statement.cut_by) == ("incomplete", "bytes")
        assert sessions.next_cursor is not None
        assert (
            next(served.client().sessions(cursor=sessions.next_cursor)) == found(served)[len(rows)]
        )
        with pytest.raises(Incomplete):
            list(served.client().sessions(complete=True))
        extract = served.client().extract("", io.BytesIO())
        assert (extract.statement.state, extract.statement.cut_by) == ("incomplete", "limit")
        with pytest.raises(Incomplete):
            list(served.client().packets("", "raw", complete=True))


def test_a_volume_with_damage() -> None:
    with service() as served:
        data = bytearray(served.volume.read_bytes())
        at = data.rindex(b"\x04www3\x07example")
        with served.volume.open("r+b") as file:
            file.seek(at)
            file.write(b"WWWWW")
        extract = served.client().extract("", io.BytesIO())
        assert extract.statement.state == "incomplete"
        assert any(reason.startswith("damage:") for reason in extract.statement.reasons)
        assert extract.statement.completeness["damage"]
        with pytest.raises(Incomplete, match="damage"):
            list(served.client().packets("", "raw", complete=True))


def test_certificates_of_both_sides(tmp_path: Path) -> None:
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name, subject in [("ca", "authority"), ("other", "other")]:
        to = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={subject}"]
        # Python 3.13 and newer want both extensions.
        open_ssl(tmp_path, *request, *to, "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    for name, extension in [
        ("server", "subjectAltName=IP:127.0.0.1"),
        ("lab", "basicConstraints=CA:FALSE"),
    ]:
        (tmp_path / "extension").write_text(f"{extension}\nauthorityKeyIdentifier=keyid\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        to = ["-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"]
        open_ssl(tmp_path, "req", *key, *to)
        by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extension"]
        open_ssl(tmp_path, "x509", "-req", "-in", f"{name}.csr", *by, "-out", f"{name}.pem")
    both = (str(tmp_path / "lab.pem"), str(tmp_path / "lab.key"))
    ca, other = str(tmp_path / "ca.pem"), str(tmp_path / "other.pem")
    flags = ["--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key")]
    with service(*flags, "--client-ca", ca) as served:
        assert served.url.startswith("https://127.0.0.1:")
        assert served.client(ca=ca).whoami()["name"] == "tester"
        assert len(list(served.client(ca=ca).sessions(complete=True))) == 60
        for client in [served.client(), served.client(ca=other)]:
            with pytest.raises(Unreachable, match="certificate"):
                client.whoami()
        with pytest.raises(Unreachable, match="certificate"):
            Client(served.url.replace("127.0.0.1", "localhost"), served.token, ca=ca).whoami()
        # A certificate without a line in the file of tokens does not count.
        with pytest.raises(Problem) as raised:
            Client(served.url, ca=ca, client_cert=both).whoami()
        assert raised.value.type == "no-credential"
        with served.tokens.open("a") as file:
            file.write("lab:sessions:certificate\n")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                who = Client(served.url, ca=ca, client_cert=both).whoami()
                break
            except Problem:
                time.sleep(0.2)
        assert who["name"] == "lab"
        one = tmp_path / "both.pem"
        one.write_text((tmp_path / "lab.pem").read_text() + (tmp_path / "lab.key").read_text())
        assert len(list(Client(served.url, ca=ca, client_cert=str(one)).sessions())) == 60


def test_several_threads_share_a_client(served: Service) -> None:
    client = served.client()
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda _: len(list(client.sessions(complete=True))), range(16)))
    assert counts == [60] * 16


def test_a_summary(served: Service) -> None:
    summary = served.client().summary("host 10.0.0.1", ["dns_names", "app"], limit=2, by="packets")
    assert summary["total"] == {"sessions": 12, "packets": 12, "bytes": 12 * 76}
    assert sum(sums["dns"] for _, sums in summary.timeline) == 12 * 76
    assert summary.timeline[0][0] // 10**9 == START_S
    assert summary.statement.is_complete
    best = summary.top("dns_names")[0]
    assert best["packets"] == len(
        list(served.client().sessions(f"host 10.0.0.1 and {best['query']}"))
    )
    with pytest.raises(KeyError):
        summary.top("sni")
    by_field = served.client().summary("host 10.0.0.1", series="app", over_time="packets")
    assert sum(sums["dns"] for _, sums in by_field.timeline) == 12


def test_rows_of_sql(served: Service) -> None:
    client = served.client()
    count = len(list(client.sessions()))
    answer = client.sql("SELECT count(*) AS n FROM sessions", complete=True)
    assert answer["rows"] == [{"n": count}]
    cut = client.sql("SELECT start_ns FROM sessions", limit=2)
    assert len(cut["rows"]) == 2
    assert cut.statement.cut_by == "limit"
    with pytest.raises(Problem) as refused:
        client.sql("DROP TABLE sessions")
    assert refused.value.status == 400


def test_decoded_packets(served: Service) -> None:
    answer = served.client().decoded_packets("host 10.0.0.1", limit=2)
    first = next(served.client().packets("host 10.0.0.1", "raw"))
    assert answer["packets"][0]["time_ns"] == first.time_ns
    assert base64.b64decode(answer["packets"][0]["data"]) == first.data
    assert answer.statement.cut_by == "limit"
    with pytest.raises(Incomplete):
        served.client().decoded_packets("host 10.0.0.1", limit=2, complete=True)


def test_packets_by_tshark(served: Service) -> None:
    with pytest.raises(Problem) as raised:
        served.client().tshark_packets("host 10.0.0.1")
    assert (raised.value.status, raised.value.type) == (404, "not-found")
    tshark = "/usr/bin/tshark"
    if not Path(tshark).exists():
        return
    with service("--tshark", tshark) as decoding:
        client = decoding.client()
        lines = client.tshark_packets("", limit=3)
        assert lines["xml"].count("<packet>") == 3
        one = client.tshark_packets("", packet=2)
        assert one["xml"].count("<packet>") == 1
        assert 'name="num" pos="0" show="2"' in one["xml"]


def test_holds(served: Service) -> None:
    client = served.client()
    held = client.hold("host 10.0.0.3", complete=True)
    name = held["hold"]["file"]
    assert held.statement.is_complete
    assert [hold["file"] for hold in client.holds()["holds"]] == [name]
    client.release(name)
    assert client.holds()["holds"] == []
    with pytest.raises(Problem) as raised:
        client.release(name)
    assert (raised.value.status, raised.value.type) == (404, "not-found")
    for wrong in ["", ".", ".."]:
        with pytest.raises(ValueError, match="is no name"):
            client.release(wrong)
    with pytest.raises(Problem):
        client.release("../tokens")


def test_four_eyes(tmp_path: Path) -> None:
    with service() as other:
        lead = Client(other.url, token=other.make_token("lead", "approve"))
        client = other.client()
        asked = client.ask_extract("host 10.0.0.3", "2026/17", "a leak", valid_for_s=60)
        with pytest.raises(Problem) as raised:
            next(client.approved_extract(asked["id"]))
        assert (raised.value.status, raised.value.type) == (403, "not-approved")
        time.sleep(1.1)
        assert [one["id"] for one in lead.requests("waiting")["requests"]] == [asked["id"]]
        assert lead.approve(asked["id"], "once")["state"] == "approved"
        taken = client.approved_extract(asked["id"], tmp_path / "out.pcapng")
        assert taken.manifest and taken.manifest["request"]["approved"]["approved_by"]
        assert b"".join(client.extract("host 10.0.0.3")) == (tmp_path / "out.pcapng").read_bytes()
        assert client.end_request(asked["id"])["state"] == "withdrawn"
        assert client.request(asked["id"])["ended_by"]["name"] == "tester"


def test_looks(served: Service) -> None:
    client = served.client()
    inspected = client.inspection()
    printed = json.loads(served.run("inspect", str(served.volume), "--json"))
    assert inspected == printed
    assert client.recordings() == inspected["recordings"]
    ring = client.ring(columns=8, rows=2)
    assert sum(cell["slots"] for cell in ring["cells"]) == inspected["slots"]
    gaps = client.gaps()
    assert gaps["gaps"] == [] and gaps.statement.text
    assert client.qualification()["volume_id"] == inspected["volume_id"]
    assert isinstance(client.findings(for_ms=1), list)
    with pytest.raises(Problem):
        client.ring(columns=10_000)


def test_tags(served: Service) -> None:
    client = served.client()
    made = client.add_tags("host 10.0.0.3", "mine", 2)
    assert made["count"] == len(made["tags"]) > 0
    one = made["tags"][0]
    assert client.tags(session=one["session_id"])["tags"][0]["tag"] == "mine"
    assert client.tags(limit=1)["count"] == made["count"]
    for tag in made["tags"]:
        client.remove_tag(tag["id"])
    assert client.tags()["tags"] == []
    with pytest.raises(Problem) as raised:
        client.add_tags(event="{}")
    assert raised.value.type == "wrong-query"


def test_jobs(served: Service) -> None:
    client = served.client()
    job = client.start_job("verify")
    *_, last = client.watch_job(job["id"])
    assert (last["state"], last["is_clean"]) == ("done", True)
    assert client.job(job["id"]) == last
    assert client.jobs()[0]["id"] == job["id"]
    with pytest.raises(Problem) as raised:
        client.cancel_job(job["id"])
    assert (raised.value.status, raised.value.type) == (409, "job-ended")


def test_what_the_service_says_of_itself(served: Service) -> None:
    client = served.client()
    assert client.health()["ok"] is True
    assert Client(served.url).health() == {"ok": True}
    assert [volume["name"] for volume in client.volumes()] == ["volume"]
    assert client.whoami()["name"] == "tester"
    assert "dns_names" in {field["name"] for field in client.fields()}
    assert "wirespool_" in client.metrics()
    answer_id = client.summary()["answer"]
    known = client.answer(answer_id)
    assert known["state"] == "done"
    assert known.statement.is_complete
    with pytest.raises(Problem):
        client.manifest(answer_id)


def test_problems(served: Service) -> None:
    client = served.client()
    with pytest.raises(Problem) as raised:
        list(client.sessions("port 53 and prot 3"))
    problem = raised.value
    assert (problem.status, problem.type, problem.title) == (
        400,
        "wrong-query",
        "the query is wrong",
    )
    assert problem.query is not None
    assert (problem.query.at, problem.query.suggestion) == (12, "port")
    assert "^" in str(problem)
    for what, status, kind in [
        (lambda: next(Client(served.url).sessions()), 401, "no-credential"),
        (lambda: next(served.client(token="wrong").sessions()), 401, "no-credential"),
        (lambda: next(client.sessions(volume="none")), 404, "not-found"),
        (lambda: client.summary(fields=["nothing"]), 400, "wrong-parameter"),
        (lambda: next(client.sessions("x" * 33_000)), 413, "too-long"),
        (lambda: next(client.sessions("port 53", cursor="1_2_3")), 400, "wrong-parameter"),
    ]:
        with pytest.raises(Problem) as raised:
            what()  # type: ignore[no-untyped-call]
        assert (raised.value.status, raised.value.type) == (status, kind)
    poor = served.client(token=served.poor_token)
    with pytest.raises(Problem) as raised:
        poor.packets("", "raw").__next__()
    assert (raised.value.status, raised.value.type) == (403, "no-scope")


@pytest.mark.parametrize(
    "query", ["\x00", "\u202e", "a&limit=1", "%00", "#", "port 53;", "\r\nX: y"]
)
def test_hostile_queries_stay_queries(served: Service, query: str) -> None:
    with pytest.raises(Problem) as raised:
        list(served.client().sessions(query))
    assert raised.value.type == "wrong-query"


def test_a_token_from_a_file(served: Service, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(served.token + "\n")
    client = Client(served.url, token_file=path)
    assert client.whoami()["name"] == "tester"
    assert served.token not in repr(vars(client))


def test_a_service_that_ends_in_the_middle() -> None:
    with service(count=40_000) as served:
        sessions, extract = served.client().sessions(), served.client().extract()
        next(sessions)
        next(extract)
        served.child.kill()
        with pytest.raises((Broken, Unreachable)):
            list(sessions)
        assert sessions.statement.state == "unknown"
        with pytest.raises((Broken, Unreachable)):
            list(extract)
        with pytest.raises((Broken, Unreachable)):
            list(extract)


def test_each_endpoint_has_a_method_or_a_reason(served: Service) -> None:
    paths = served.client().openapi()["paths"]
    offered = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    assert offered == set(ENDPOINTS) | set(LEFT_OUT)
    assert not set(ENDPOINTS) & set(LEFT_OUT)
    # Words for what the API calls otherwise, and what the client does by itself.
    renamed = {"order": "newest", "id": "answer_id", "X-Wirespool": None}
    renamed.update({"map": "with_map", "width": None})
    renamed.update(dict.fromkeys(["offset", "sha256", "now_ns"]))
    for name, method in ENDPOINTS.items():
        verb, path = name.split(" ")
        asked = {parameter["name"] for parameter in paths[path][verb.lower()]["parameters"]}
        own = {"release": "name", "remove_tag": "tag_id", "job": "job_id"}
        own.update(dict.fromkeys(["watch_job", "cancel_job"], "job_id"))
        of_requests = ["request", "approve", "end_request", "approved_extract"]
        own.update(dict.fromkeys(of_requests, "request_id"))
        if method in own:
            asked = asked - {"id"} | {own[method]}
        taken = inspect.signature(getattr(Client, method)).parameters
        missing = {renamed.get(one, one) for one in asked} - set(taken) - {None}
        assert not missing, (method, missing)


def test_the_fields_are_those_of_the_service(served: Service) -> None:
    tool = Path(__file__).parent.parent / "tools" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", tool)
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.PLACE.read_text() == generate.generate(served.client())


def test_the_notebook_runs(
    served: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat = pytest.importorskip("nbformat")
    for module in ["pandas", "pyarrow", "scapy"]:
        pytest.importorskip(module)
    path = Path(__file__).parent.parent / "examples" / "first_look.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    (tmp_path / "token").write_text(served.token)
    monkeypatch.setenv("WIRESPOOL_URL", served.url)
    monkeypatch.setenv("WIRESPOOL_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    names: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, "first_look.ipynb", "exec"), names)
    assert len(names["frame"]) == 12
    assert "www0.example.com" in said.getvalue()
    assert (tmp_path / "first_look.pcapng").is_file()
    with (tmp_path / "first_look.pcapng").open("rb") as file:
        assert len(list(read_packets(file))) == 12
