"""A TCP client with a habit of choice, on one or more connections."""

import argparse
import errno
import socket
import threading
import time

from shared import Pace, be_called

MODES = ["idle", "push", "pull", "ask", "ask-in-two", "ask-corked", "ask-then-push", "ask-anew",
         "attempt", "attempt-and-keep", "burst"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--name", default="client")
    parser.add_argument("--mode", choices=MODES, default="push")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--from", dest="source", default="", help="a local address")
    parser.add_argument("--send-buffer", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0,
                        help="of each connection: bytes, questions or attempts a second")
    parser.add_argument("--question", type=int, default=100)
    parser.add_argument("--answer", type=int, default=100)
    parser.add_argument("--patience", type=float, default=0, help="seconds for an attempt")
    parser.add_argument("--nodelay", action="store_true")
    return parser.parse_args()


def connect(options, host=None):
    host = host or options.host
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if options.send_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer)
    if options.nodelay:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if options.patience:
        connection.settimeout(options.patience)
    try:
        if options.source:
            connection.bind((options.source, 0))
        connection.connect((host, options.port))
    except OSError:
        connection.close()
        raise
    connection.settimeout(None)
    return connection


def read_exactly(connection, size):
    while size:
        piece = connection.recv(min(size, 65536))
        if not piece:
            raise ConnectionError("closed")
        size -= len(piece)


def ask_anew(options):
    """A connection for each question: connects, asks, reads the answer, closes."""
    pace = Pace(options.rate)
    while True:
        pace.take()
        for host in options.host.split(","):
            try:
                with connect(options, host) as connection:
                    connection.sendall(bytes(options.question))
                    read_exactly(connection, options.answer)
                break
            except OSError:
                pass


def burst(options):
    """So many connections at once, each second; closes them before the next."""
    while True:
        begun = []
        for _ in range(int(options.rate)):
            connection = socket.socket()
            connection.setblocking(False)
            try:
                connection.connect((options.host, options.port))
            except BlockingIOError:
                pass
            begun.append(connection)
        time.sleep(1)
        for connection in begun:
            connection.close()


def attempt(options):
    """Connects again and again, and closes what it was given at once, or keeps it."""
    pace = Pace(options.rate)
    kept = []
    while True:
        pace.take()
        try:
            kept.append(connect(options))
            if options.mode == "attempt":
                kept.pop().close()
        except OSError as error:
            if error.errno not in (None, errno.ECONNREFUSED, errno.EADDRNOTAVAIL,
                                   errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.EAGAIN):
                raise


def talk(options):
    connection = connect(options)
    pace = Pace(options.rate)
    block = bytes(16384 if options.rate else 65536)
    if options.mode == "ask-corked":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    first = bytes(options.question // 2)
    rest = bytes(options.question - len(first))
    while options.mode == "idle":
        time.sleep(60)
    if options.mode == "ask-then-push":
        connection.sendall(first + rest)
        read_exactly(connection, options.answer)
    while options.mode in ("push", "ask-then-push"):
        connection.sendall(block)
        pace.take(len(block))
    while options.mode == "pull":
        size = len(connection.recv(65536))
        if not size:
            return
        pace.take(size)
    while True:
        pace.take()
        if options.mode == "ask-in-two":
            connection.sendall(first)
            connection.sendall(rest)
        else:
            connection.sendall(first + rest)
        read_exactly(connection, options.answer)


def keep_talking(options):
    while True:
        try:
            talk(options)
        except OSError:
            time.sleep(0.5)


def main():
    options = arguments()
    be_called(options.name)
    works = {"attempt": attempt, "attempt-and-keep": attempt, "ask-anew": ask_anew, "burst": burst}
    work = works.get(options.mode, keep_talking)
    for _ in range(options.connections):
        threading.Thread(target=work, args=(options,), daemon=True).start()
    while True:
        time.sleep(60)


main()
