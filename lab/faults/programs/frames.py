"""Sends ten frames a second of a protocol that nobody takes, as switches send LLDP."""

import socket
import sys
import time

from shared import be_called


def main():
    be_called("frames")
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((sys.argv[1], 0))
    everyone = b"\xff" * 6
    while True:
        link.send(everyone + link.getsockname()[4] + b"\x88\xcc" + bytes(60))
        time.sleep(0.1)


main()
