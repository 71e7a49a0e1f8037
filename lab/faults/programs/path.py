"""A path between two namespaces: frames of one tap device come out of the other after a while,
from the tenth second on after another while, if one is given."""

import collections
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

from shared import be_called

TUNSETIFF = 0x400454CA
IFF_TAP_WITHOUT_HEADER = 0x0002 | 0x1000
CLONE_NEWNET = 0x40000000


def opened(namespace, interface):
    """The tap device of that name in a network namespace."""
    place = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(place, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", interface.encode(), IFF_TAP_WITHOUT_HEADER))
    return tap


def main():
    be_called("path")
    near, far, interface = sys.argv[1:4]
    delays = [float(delay_ms) / 1000 for delay_ms in sys.argv[4:6]]
    begun = time.monotonic()
    taps = [opened(near, interface), opened(far, interface)]
    # Frames on their way: when they arrive, where, what.
    under_way = collections.deque()
    while True:
        now = time.monotonic()
        delay = delays[0] if now - begun < 10 else delays[-1]
        while under_way and under_way[0][0] <= now:
            _, tap, frame = under_way.popleft()
            try:
                os.write(tap, frame)
            except OSError:
                pass
        wait = under_way[0][0] - now if under_way else 10
        readable, _, _ = select.select(taps if len(under_way) < 4096 else [], [], [], wait)
        for tap in readable:
            other = taps[1] if tap == taps[0] else taps[0]
            try:
                under_way.append((time.monotonic() + delay, other, os.read(tap, 65536)))
            except OSError:
                pass


main()
