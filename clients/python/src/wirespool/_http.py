"""Requests over http.client: one connection each, bounded retries, and answers with an end."""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

from ._closing import Closing
from ._errors import Broken, Problem, Unreachable

_CHUNK_SIZE = 1 << 16
_CONNECT_S = 10.0
# The service shows 32 MiB of packets at most, in base64, and keeps manifests of 64 MiB.
_JSON_SIZE_MAX = 128 << 20
_PROBLEM_SIZE_MAX = 1 << 20
_LINE_SIZE_MAX = 16 << 20


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


# `json.loads` would make one for each line.
_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse_json(data: bytes) -> Any:
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Broken(f"the answer is no JSON: {error}") from error


def path_part(text: str) -> str:
    """A name as one part of a path."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is no name")
    return quote(text, safe="")


class Response(Closing):
    """An answer of which the status is known and the bytes are still to come."""

    def __init__(self, connection: HTTPConnection, raw: HTTPResponse) -> None:
        self._connection, self._raw, self.status = connection, raw, raw.status
        length = raw.headers.get("Content-Length", "")
        self._left: Optional[int] = None
        if not raw.chunked:
            self._left = int(length) if length.isascii() and length.isdigit() else -1

    @property
    def answer_id(self) -> Optional[str]:
        return self._raw.headers.get("Wirespool-Answer")

    @property
    def now_ns(self) -> Optional[int]:
        """What relative times of an extract count from, where the service says so."""
        text = self._raw.headers.get("Wirespool-Now", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    def retry_after_s(self) -> Optional[float]:
        # The service sends seconds. A date would need a clock that agrees with its own.
        text = self._raw.headers.get("Retry-After", "").strip()
        return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def chunks(self) -> Iterator[bytes]:
        """The bytes as they arrive; `Broken` where they end before the answer does."""
        if self._left == -1:
            raise Broken("the answer does not say where it ends")
        while self._left != 0:
            size = _CHUNK_SIZE if self._left is None else min(self._left, _CHUNK_SIZE)
            try:
                chunk = self._raw.read1(size)
            except (OSError, HTTPException, ValueError) as error:
                raise Broken(f"the answer was cut: {error!r}") from error
            if not chunk:
                break
            if self._left is not None:
                self._left -= len(chunk)
            yield chunk
        if self._left:
            raise Broken(f"the answer was cut: {self._left} bytes are missing")

    def lines(self) -> Iterator[bytes]:
        """The lines, each of which has to have its end."""
        rest = bytearray()
        for chunk in self.chunks():
            rest += chunk
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                yield from map(bytes, lines)
            if len(rest) > _LINE_SIZE_MAX:
                raise Broken("a line of the answer is too long")
        if rest:
            raise Broken("the answer was cut in a line")

    def body(self, size_max: int = _JSON_SIZE_MAX) -> bytes:
        parts, size = [], 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > size_max:
                raise Broken("the answer is too long")
            parts.append(chunk)
        return b"".join(parts)

    def close(self) -> None:
        self._raw.close()
        self._connection.close()


class Transport:
    """Where the service is, and how one asks there. It may be used by several threads."""

    def __init__(
        self,
        url: str,
        token: Optional[str],
        tls: tuple[Optional[str], Union[str, tuple[str, str], None]],
        timeout: float,
        retries: tuple[int, float],
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the URL has to be http://HOST:PORT or https://HOST:PORT")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the URL has only a host, a port and a path")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError(f"{parts.hostname} is not the loopback: only https goes there")
        # Its text stays out of messages.
        if token is not None and not (token and token.isascii() and token.isprintable()):
            raise ValueError("the token is empty or has characters that no token has")
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._token, self._timeout, (self._retries, self._wait_s) = token, timeout, retries
        self._tls: Optional[ssl.SSLContext] = None
        ca, client_cert = tls
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca)
            if client_cert is not None:
                both = (client_cert,) if isinstance(client_cert, str) else client_cert
                self._tls.load_cert_chain(*both)
        elif ca is not None or client_cert is not None:
            raise ValueError("certificates need https")

    def open(
        self,
        method: str,
        path: str,
        parameters: Optional[Mapping[str, Union[bool, int, str, None]]] = None,
        accept: str = "application/json",
        also: tuple[int, ...] = (),
    ) -> Response:
        """Asks, and waits for the status; problems are raised, but for those of status `also`."""
        given = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (parameters or {}).items()
            if value is not None and value is not False
        }
        target = self._base + path + ("?" + urlencode(given, quote_via=quote) if given else "")
        headers = {"Accept": accept, "Connection": "close", "User-Agent": "wirespool-python"}
        if method != "GET":
            headers["X-Wirespool"] = "1"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        left, wait_s = self._retries, self._wait_s
        while True:
            response = self._send(method, target, headers)
            if response.status == 200 or response.status in also:
                return response
            with response:
                problem = _problem(response)
            after_s = problem.retry_after_s
            if not left or after_s is None or after_s > wait_s or not _may_repeat(method, problem):
                raise problem
            left, wait_s = left - 1, wait_s - after_s
            self._sleep(after_s)

    _sleep = staticmethod(time.sleep)

    def _send(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        connect_s = min(self._timeout, _CONNECT_S)
        connection = HTTPConnection(self._host, self._port, timeout=connect_s)
        if self._tls is not None:
            connection = HTTPSConnection(
                self._host, self._port, timeout=connect_s, context=self._tls
            )
        try:
            connection.connect()
            connection.sock.settimeout(self._timeout)
            connection.request(method, target, headers=headers)
            return Response(connection, connection.getresponse())
        except (OSError, HTTPException) as error:
            connection.close()
            raise Unreachable(f"{self._host}: {error or type(error).__name__}") from error
        except BaseException:
            connection.close()
            raise


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(response: Response) -> Problem:
    try:
        said = parse_json(response.body(_PROBLEM_SIZE_MAX))
    except Broken:
        said = None
    return Problem(
        response.status, said if isinstance(said, dict) else {}, response.retry_after_s()
    )


def _may_repeat(method: str, problem: Problem) -> bool:
    """Whether asking again is safe: what changes something must not have been done already."""
    return problem.status in (429, 503) and (
        method == "GET" or problem.type in ("busy", "own-queue-full")
    )
