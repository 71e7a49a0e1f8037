"""A TCP server with a defect of choice."""

import argparse
import socket
import struct
import threading
import time

from shared import Pace, be_called

MODES = ["never-accept", "never-read", "never-close", "read", "answer", "send", "reset", "proxy"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--name", default="server")
    parser.add_argument("--mode", choices=MODES, default="read")
    parser.add_argument("--backlog", type=int, default=128)
    parser.add_argument("--receive-buffer", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0, help="bytes a second, of each connection")
    parser.add_argument("--request", type=int, default=100, help="bytes of a request")
    parser.add_argument("--answer", type=int, default=100, help="bytes of an answer")
    parser.add_argument("--source", type=int, default=0, help="port that a proxy passes on")
    parser.add_argument("--delay", type=float, default=0, help="seconds before an answer")
    parser.add_argument("--accept-delay", type=float, default=0, help="seconds after each accept")
    return parser.parse_args()


def read_exactly(connection, size):
    left = size
    while left:
        piece = connection.recv(min(left, 65536))
        if not piece:
            return False
        left -= len(piece)
    return True


def serve(connection, options):
    pace = Pace(options.rate)
    block = bytes(32768)
    try:
        while options.mode == "read":
            size = len(connection.recv(16384 if options.rate else 262144))
            if not size:
                return
            pace.take(size)
        while options.mode == "answer" and read_exactly(connection, options.request):
            time.sleep(options.delay)
            connection.sendall(bytes(options.answer))
        while options.mode == "send":
            connection.sendall(block)
            pace.take(len(block))
        while options.mode in ("never-read", "never-close"):
            time.sleep(60)
        if options.mode == "proxy":
            pass_on(options, connection)
        if options.mode == "reset":
            connection.recv(100)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    finally:
        connection.close()


def pass_on(options, connection):
    """Whatever comes from another port of this machine."""
    source = socket.create_connection(("127.0.0.1", options.source))
    while piece := source.recv(65536):
        connection.sendall(piece)


def main():
    options = arguments()
    be_called(options.name)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if options.receive_buffer:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer)
    listener.bind(("", options.port))
    listener.listen(options.backlog)
    while options.mode == "never-accept":
        time.sleep(60)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection, options), daemon=True).start()
        time.sleep(options.accept_delay)


main()
