"""A real service over a small volume, and a made-up one that says whatever a test wants."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Callable, Optional

import pytest

from wirespool import Client

BINARY = os.environ.get("WIRESPOOL") or shutil.which("wirespool")
START_S = 1_700_000_000


def dns_query(name: str, number: int) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    head = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0)
    return head + labels + b"\0" + struct.pack(">HH", 1, 1)


def udp_packet(orig: bytes, resp: bytes, ports: tuple[int, int], payload: bytes) -> bytes:
    ethernet = bytes.fromhex("0200000000020200000000010800")
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return ethernet + ip + orig + resp + udp


def write_capture(path: Path, count: int = 60, hosts: int = 5, link_type: int = 1) -> None:
    """DNS queries of some hosts for some names, as pcap with nanoseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link_type))
        for number in range(count):
            query = dns_query(f"www{number % 7}.example.com", number % 65536)
            hosts_ip = bytes([10, 0, 0, 1 + number % hosts]), bytes([10, 0, 1, 53])
            packet = udp_packet(*hosts_ip, (1024 + number % 60000, 53), query)
            packet = packet if link_type == 1 else packet[14:]
            time = START_S + number // 10, (number * 7919 + 1) % 1_000_000_000
            file.write(struct.pack("<IIII", *time, len(packet), len(packet)) + packet)


class Service:
    """`wirespool serve` over a volume in a folder of its own."""

    def __init__(
        self, folder: Path, captures: list[Path], scopes: str, flags: tuple[str, ...] = ()
    ) -> None:
        self.folder, self.volume, self.index = folder, folder / "volume", folder / "index"
        self.run("create", str(self.volume), "--size", "64M")
        reads = [word for capture in captures for word in ("--read", str(capture))]
        self.run("record", str(self.volume), *reads, *self.index_dir)
        self.tokens = folder / "tokens"
        # The service looks at its file of tokens once a second: all are there before it starts.
        self.token, self.poor_token = self.make_token("tester", scopes), self.make_token("poor", "")
        words = ["serve", str(self.volume), "--listen", "127.0.0.1:0", *self.index_dir]
        words += ["--token-file", str(self.tokens), "--hold-dir", str(folder / "holds")]
        words += ["--tags-file", str(folder / "tags")]
        words += ["--requests-file", str(folder / "requests")]
        words += ["--audit", str(folder / "audit"), *flags]
        self.child = subprocess.Popen(
            [str(BINARY), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stderr is not None
        said = []
        for line in self.child.stderr:
            said.append(line)
            if "listening at " in line:
                self.url = line.split("listening at ")[1].strip()
                break
        else:
            raise AssertionError("".join(said))
        # Its log must not fill the pipe.
        self._log = threading.Thread(target=self.child.stderr.read, daemon=True)
        self._log.start()

    @property
    def index_dir(self) -> list[str]:
        return ["--index-dir", str(self.index)]

    def run(self, *words: str, may_fail: bool = False) -> bytes:
        done = subprocess.run([str(BINARY), *words], capture_output=True, check=False)
        assert may_fail or done.returncode == 0, (words, done.stderr.decode())
        return done.stdout

    def make_token(self, name: str, scopes: str) -> str:
        words = ["serve", "token", "create", name, "--token-file", str(self.tokens)]
        return self.run(*words, *(["--scope", scopes] if scopes else [])).decode().strip()

    def client(self, **changes: Any) -> Client:
        return Client(self.url, **{"token": self.token, **changes})

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait(timeout=30)
        self._log.join(timeout=5)
        assert self.child.stderr is not None
        self.child.stderr.close()


def open_ssl(folder: Path, *words: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("not run: no openssl")
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@contextmanager
def service(
    *flags: str,
    link_types: tuple[int, ...] = (1,),
    **capture: int,
) -> Iterator[Service]:
    """A service over a capture of each link type."""
    if BINARY is None:
        pytest.skip("not run: no wirespool on PATH, and WIRESPOOL names none")
    with tempfile.TemporaryDirectory(prefix="wirespool-python-") as name:
        captures = [Path(name, f"{link_type}.pcap") for link_type in link_types]
        for path, link_type in zip(captures, link_types):
            write_capture(path, link_type=link_type, **capture)
        served = Service(Path(name), captures, "sessions,payload,extract,request,hold,admin", flags)
        try:
            yield served
        finally:
            served.stop()


Reply = Callable[[str, str], bytes]
"""The bytes to send for the request line's method and target."""


def http(
    body: bytes = b"",
    status: str = "200 OK",
    headers: Optional[dict[str, str]] = None,
    length: Optional[int] = None,
) -> bytes:
    """An answer with `Content-Length`."""
    given = {"Content-Length": str(len(body) if length is None else length), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def chunked(
    *chunks: bytes,
    has_end: bool = True,
    answer_id: Optional[str] = "a1",
    now_ns: Optional[int] = None,
) -> bytes:
    """An answer that is streamed."""
    head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    head += f"Wirespool-Now: {now_ns}\r\n" if now_ns is not None else ""
    head += f"Wirespool-Answer: {answer_id}\r\n" if answer_id is not None else ""
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks if chunk)
    return head.encode() + b"\r\n" + body + (b"0\r\n\r\n" if has_end else b"")


class MadeUp:
    """A service that answers each request with the bytes that a function gives."""

    def __init__(self, reply: Reply) -> None:
        self.asked: list[str] = []
        self.heads: list[bytes] = []
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                self._answer(connection, file)

    def _answer(self, connection: socket.socket, file: IO[bytes]) -> None:
        head = b""
        while (line := file.readline()) not in (b"\r\n", b""):
            head += line
        method, target = head.split(b" ")[:2]
        self.asked.append(f"{method.decode()} {target.decode()}")
        self.heads.append(head)
        try:
            connection.sendall(self._reply(method.decode(), target.decode()))
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def client(self, **changes: Any) -> Client:
        return Client(self.url, **{"token": "t", "timeout": 5.0, **changes})

    def __enter__(self) -> MadeUp:
        return self

    def __exit__(self, *_: object) -> None:
        # A thread in accept() is woken up by a shutdown only.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=5)
