"""Announces an IPv4 address as this interface's own, three times a second."""

import socket
import sys
import time

from shared import be_called


def main():
    be_called("announce")
    interface, address = sys.argv[1:3]
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((interface, 0x0806))
    own = link.getsockname()[4]
    everyone = b"\xff" * 6
    ip = socket.inet_aton(address)
    request = b"\x00\x01\x08\x00\x06\x04\x00\x01" + own + ip + bytes(6) + ip
    while True:
        link.send(everyone + own + b"\x08\x06" + request)
        time.sleep(0.35)


main()
