"""Packets out of a pcapng stream, block by block, with exact times (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Optional

from ._errors import Broken

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_IF_NAME, _IF_TSRESOL, _IF_TSOFFSET = 2, 9, 14
_BLOCK_SIZE_MAX = 64 << 20


@dataclass(frozen=True)
class Packet:
    """A packet as it was captured."""

    time_ns: int
    """Nanoseconds since 1970 UTC."""
    data: bytes
    original_len: int
    """Bytes on the wire; more than those of `data` where it was truncated."""
    link_type: int
    """What `data` begins with: a number of the LINKTYPE_ registry."""
    interface: Optional[str]


@dataclass(frozen=True)
class _Interface:
    link_type: int
    name: Optional[str]
    ticks_per_s: int
    offset_s: int


def read_packets(file: BinaryIO) -> Iterator[Packet]:
    """The packets of a stream; `Broken` where it is no pcapng or ends inside of a block."""
    order, interfaces = "<", list[_Interface]()
    try:
        while head := file.read(8):
            kind = struct.unpack(order + "I", head[:4])[0]
            if kind == _SECTION:
                magic = file.read(4)
                order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}[magic]
                interfaces = []
                head += magic
            size = struct.unpack(order + "I", head[4:8])[0]
            if size < 12 or size % 4 or size > _BLOCK_SIZE_MAX:
                raise Broken(f"a block of the pcapng stream has {size} bytes")
            rest = file.read(size - len(head))
            if struct.unpack(order + "I", rest[-4:])[0] != size or len(rest) != size - len(head):
                raise Broken("a block of the pcapng stream has no end")
            body = rest[:-4]
            if kind == _INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind == _PACKET:
                number, high, low, length, original_len = struct.unpack_from(order + "5I", body)
                interface, data = interfaces[number], body[20 : 20 + length]
                if len(data) != length:
                    raise Broken("a packet is longer than its block")
                ticks = high << 32 | low
                time_ns = ticks * 1_000_000_000 // interface.ticks_per_s
                time_ns += interface.offset_s * 1_000_000_000
                yield Packet(time_ns, data, original_len, interface.link_type, interface.name)
    except (struct.error, KeyError, IndexError) as error:
        raise Broken(f"this is no pcapng stream: {error!r}") from error


def _interface(order: str, body: bytes) -> _Interface:
    link_type, options, at = struct.unpack_from(order + "H", body)[0], dict[int, bytes](), 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == 0:
            break
        options[code] = body[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
    name, resolution = options.get(_IF_NAME), options.get(_IF_TSRESOL, b"\x06")[0]
    return _Interface(
        link_type,
        name.decode("utf-8", "replace") if name is not None else None,
        (2 if resolution & 0x80 else 10) ** (resolution & 0x7F),
        struct.unpack(order + "q", options.get(_IF_TSOFFSET, bytes(8)))[0],
    )
