"""Packets: as pcapng, checked against the manifest, and as objects of scapy and dpkt."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Optional, Union, cast

from ._errors import Broken, Error, Unreachable
from ._http import Transport, parse_json
from ._once import Once
from ._pcapng import Packet, read_packets
from ._sessions import Answers, import_extra
from ._statement import Statement, parse, unknown

PCAPNG = "application/x-pcapng"
# scapy cuts packets at 65535 bytes unless it is given another size.
_PACKET_SIZE_MAX = 1 << 26
# So often in a row an extract is asked for its rest without a further byte.
_ATTEMPTS = 4
_PAUSE_S = 0.5

Target = Union[str, "os.PathLike[str]", BinaryIO]


class Extract(Once[bytes]):
    """The packets of a query as bytes of pcapng. The request is sent with the first ones taken.

    Where the connection breaks, the request is sent again for the bytes behind those that are
    there. The service makes the extract anew and compares: where it does not begin with them any
    more, `Problem` (`moved-on`) is raised. At the end the bytes are compared with the manifest.
    Iteration raises `Broken` where they differ or were cut for good.
    """

    def __init__(
        self,
        transport: Transport,
        parameters: dict[str, Any],
        complete: bool,
        path: str = "/api/v1/extract",
    ) -> None:
        self._transport, self._parameters, self._complete = transport, parameters, complete
        self._path = path
        super().__init__(self._take())
        self.statement: Statement = unknown("the answer was not read to its end")
        self.packets: Optional[int] = None
        """Packets that were sent, known at the end."""
        self.bytes, self.sha256 = 0, ""
        self.manifest_text: Optional[str] = None
        """The sealed manifest as `wirespool verify-extract` takes it, known at the end."""

    @property
    def manifest(self) -> Optional[dict[str, Any]]:
        """The manifest as JSON has it. Changed in any way it does not fit its seal any more."""
        text = self.manifest_text
        return None if text is None else cast("dict[str, Any]", parse_json(text.encode()))

    def _take(self) -> Generator[bytes, None, None]:
        digest, parameters, broken = hashlib.sha256(), dict(self._parameters), None
        attempts = before = 0
        while True:
            try:
                with self._transport.open(
                    "GET", self._path, parameters, accept=PCAPNG
                ) as response:
                    now_ns = response.now_ns
                    for chunk in response.chunks():
                        digest.update(chunk)
                        self.bytes += len(chunk)
                        yield chunk
                    answer_id = response.answer_id
                break
            except (Broken, Unreachable) as error:
                broken = broken or error
                if self.bytes > before:
                    attempts, before = 0, self.bytes
                # A service that does not say what `now` was cannot be asked for the rest.
                if not self.bytes or now_ns is None or attempts == _ATTEMPTS:
                    raise broken
                self._transport._sleep(_PAUSE_S * 2**attempts)
                attempts += 1
                sha256 = digest.copy().hexdigest()
                parameters.update(now_ns=now_ns, offset=self.bytes, sha256=sha256)
        self.sha256 = digest.hexdigest()
        answers = Answers(self._transport)
        known = answers.end(answer_id, None)
        # The manifest may be gone earlier than the rest: it is kept for 64 MiB of them.
        text = answers.known(answer_id, "/manifest") if answer_id and known else None
        if text is None:
            self.statement = unknown("the service has no manifest to compare the packets with")
        else:
            self.packets = self._checked(parse_json(text), known.get("count"))
            self.manifest_text = text.decode()
            self.statement = parse(known.get("statement"))
        if self._complete:
            self.statement.require_complete()

    def _checked(self, manifest: Any, count: Any) -> int:
        try:
            (output,) = manifest["outputs"]
            said = (output["sha256"], output["bytes"], output["packets"])
        except (KeyError, TypeError, ValueError) as error:
            raise Broken(f"the manifest does not name one output: {error!r}") from error
        if said != (self.sha256, self.bytes, count) or type(count) is not int:
            raise Broken(f"the packets are not those of the manifest: {said!r}")
        return count

    def write(self, target: Target, overwrite: bool = False) -> Extract:
        """Takes all packets into a file.

        A path gets them once they are all there and checked, with the manifest in `PATH.json`
        beside; until then they are in a temporary file of its folder, which a failure removes. Only
        its owner may read it.
        """
        self._begin()
        if not isinstance(target, (str, os.PathLike)):
            for chunk in self:
                target.write(chunk)
            return self
        path, manifest = Path(target), Path(f"{os.fspath(target)}.json")
        for taken in (path, manifest):
            if taken.exists() and not overwrite:
                raise FileExistsError(f"{taken} is there already; overwrite=True replaces it")
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                for chunk in self:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            if self.manifest_text is not None:
                _write_private(manifest, self.manifest_text.encode())
            else:
                manifest.unlink(missing_ok=True)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        return self


def _write_private(path: Path, data: bytes) -> None:
    """Writes a file that only its owner may read, also in the place of one that others may."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class _File(io.RawIOBase):
    """An extract as a file that is read from its start to its end."""

    def __init__(self, extract: Extract) -> None:
        self._extract, self._rest = extract, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            try:
                self._rest = memoryview(next(self._extract))
            except StopIteration:
                return 0
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class Packets(Once[Any]):
    """The packets of a query as objects, read as they arrive; `kind` is one of

    - `raw`: `Packet`;
    - `scapy`: `scapy.packet.Packet`;
    - `dpkt`: pairs of `Packet` and the dpkt object of its frame, or its bytes where dpkt cannot
      read them.
    """

    KINDS = ("raw", "scapy", "dpkt")

    def __init__(self, extract: Extract, kind: str) -> None:
        if kind not in self.KINDS:
            raise ValueError(f"kind is one of {', '.join(self.KINDS)}, not {kind!r}")
        if kind == "scapy":
            import_extra("scapy.layers.all", "scapy")
        elif kind == "dpkt":
            import_extra("dpkt", "dpkt")
        self.extract = extract
        super().__init__(self._take(kind))

    @property
    def statement(self) -> Statement:
        """What is missing, once the last packet was taken."""
        return self.extract.statement

    def close(self) -> None:
        super().close()
        self.extract.close()

    def _take(self, kind: str) -> Generator[Any, None, None]:
        file, count = io.BufferedReader(_File(self.extract), 1 << 16), 0
        read = {"raw": read_packets, "scapy": _scapy, "dpkt": _dpkt}[kind]
        for packet in read(file):
            count += 1
            yield packet
        # A reader that stops early, or leaves packets out, must not look like the end.
        if file.read(1):
            raise Broken(f"{kind} does not read on behind packet {count}")
        if self.extract.packets not in (None, count):
            raise Broken(f"{kind} has read {count} packets of {self.extract.packets}")


def _scapy(file: BinaryIO) -> Iterator[Any]:
    utils = import_extra("scapy.utils", "scapy")
    try:
        reader = utils.PcapNgReader(file)
        while True:
            try:
                packet = reader.read_packet(_PACKET_SIZE_MAX)
            except EOFError:
                return
            yield packet
    except (Error, GeneratorExit):
        raise
    except Exception as error:
        raise Broken(f"scapy cannot read this: {error!r}") from error


def _dpkt(file: BinaryIO) -> Iterator[tuple[Packet, Any]]:
    dpkt = import_extra("dpkt", "dpkt")

    def ip(data: bytes) -> Any:
        return dpkt.ip6.IP6(data) if data[0] >> 4 == 6 else dpkt.ip.IP(data)

    # By numbers of the LINKTYPE_ registry.
    frames = {
        0: dpkt.loopback.Loopback,
        1: dpkt.ethernet.Ethernet,
        101: ip,
        113: dpkt.sll.SLL,
        228: dpkt.ip.IP,
        229: dpkt.ip6.IP6,
        276: dpkt.sll2.SLL2,
    }
    for packet in read_packets(file):
        frame: Any = packet.data
        if packet.link_type in frames:
            try:
                frame = frames[packet.link_type](packet.data)
            except Exception:
                # Its errors are of many types. The bytes are given out as they are.
                frame = packet.data
        yield packet, frame
