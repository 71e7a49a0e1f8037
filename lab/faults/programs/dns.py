"""A DNS server that answers after a while, and a program that looks up a name again and again."""

import argparse
import heapq
import select
import socket
import time

from shared import be_called


def answer(question):
    """Its header and question, then one address for the name."""
    head = question[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
    end = question.index(b"\x00", 12) + 5
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x07"
    return head + question[12:end] + record


def serve(delay):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Answers have the address that was asked.
    server.setsockopt(socket.IPPROTO_IP, 8, 1)
    server.bind(("", 53))
    due = []
    while True:
        wait = max(0, due[0][0] - time.monotonic()) if due else 60
        if select.select([server], [], [], wait)[0]:
            question, extra, _, peer = server.recvmsg(4096, 256)
            own = extra[0][2][4:8] if extra else bytes(4)
            heapq.heappush(due, (time.monotonic() + delay, len(due), question, own, peer))
        while due and due[0][0] <= time.monotonic():
            _, _, question, own, peer = heapq.heappop(due)
            source = [(socket.IPPROTO_IP, 8, bytes(4) + own + bytes(4))]
            server.sendmsg([answer(question)], source, 0, peer)


def ask(pause):
    count = 0
    while True:
        count += 1
        try:
            socket.getaddrinfo(f"host{count}.faults.example", 80, socket.AF_INET)
        except OSError:
            pass
        time.sleep(pause)


def ask_on_one_socket(server, pause):
    """As some resolvers do: one socket for three seconds, then another."""
    name = b"\x04host\x06faults\x07example\x00"
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect((server, 53))
            end = time.monotonic() + 3
            while time.monotonic() < end:
                asking.send(b"\x12\x34\x01\x00\x00\x01" + bytes(6) + name + b"\x00\x01\x00\x01")
                asking.recv(512)
                time.sleep(pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["serve", "ask"])
    parser.add_argument("--name", default="name-server")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--keep", default="", help="the server, asked on a socket that is kept")
    options = parser.parse_args()
    be_called(options.name)
    if options.action == "serve":
        serve(options.delay)
    if options.keep:
        ask_on_one_socket(options.keep, options.pause)
    ask(options.pause)


main()
