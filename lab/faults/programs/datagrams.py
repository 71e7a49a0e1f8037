"""Sends UDP datagrams at a rate, or has a socket that is not read."""

import argparse
import socket
import time

from shared import Pace, be_called


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    receive = actions.add_parser("receive")
    send = actions.add_parser("send")
    send.add_argument("host")
    send.add_argument("--rate", type=float, default=100, help="datagrams a second")
    send.add_argument("--burst", type=int, default=1, help="so many at once")
    send.add_argument("--ports", type=int, default=1, help="so many ports, one after the other")
    send.add_argument("--size", type=int, default=200)
    for action in (receive, send):
        action.add_argument("port", type=int)
        action.add_argument("--name", default="datagrams")
    return parser.parse_args()


def main():
    options = arguments()
    be_called(options.name)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if options.action == "receive":
        datagrams.bind(("", options.port))
        while True:
            time.sleep(60)
    pace = Pace(options.rate)
    port = 0
    while True:
        for _ in range(options.burst):
            try:
                datagrams.sendto(bytes(options.size), (options.host, options.port + port))
            except OSError:
                pass
            port = (port + 1) % options.ports
        pace.take(options.burst)


main()
