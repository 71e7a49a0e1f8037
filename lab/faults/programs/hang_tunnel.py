"""Opens a tap device and never reads from it."""

import fcntl
import os
import struct
import sys
import time

from shared import be_called


def main():
    be_called("hung-tunnel")
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", sys.argv[1].encode(), 0x1002))
    while True:
        time.sleep(60)


main()
