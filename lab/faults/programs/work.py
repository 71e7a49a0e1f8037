"""Uses processors, memory, locks, descriptors or processes in one way, for ever."""

import argparse
import ctypes
import fcntl
import os
import resource
import socket
import subprocess
import threading
import time

from shared import Pace, be_called


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("path", nargs="?", default="")
    parser.add_argument("--name", default="work")
    parser.add_argument("--count", type=int, default=1, help="processes, threads or megabytes")
    parser.add_argument("--rate", type=float, default=0, help="operations a second")
    parser.add_argument("--hold", type=float, default=0.005, help="seconds of a lock")
    parser.add_argument("--priority", type=int, default=0, help="of SCHED_FIFO")
    return parser.parse_args()


def compute_alone(options):
    if options.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.priority))
    while True:
        started = time.monotonic()
        while time.monotonic() - started < 0.08:
            sum(range(2000))
        if options.rate:
            # The rate is a share of the time here.
            time.sleep(0.08 / options.rate - 0.08)


def compute(options):
    """So many busy processes. They end with the first, whose group they are in."""
    for _ in range(options.count - 1):
        if os.fork() == 0:
            break
    compute_alone(options)


def sleep(options):
    while True:
        time.sleep(0.05)


def lock(options):
    """Threads that need one mutex (of the C library) for nearly all that they do."""
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)

    def contend():
        while True:
            libc.pthread_mutex_lock(mutex)
            time.sleep(options.hold)
            libc.pthread_mutex_unlock(mutex)

    for _ in range(options.count):
        threading.Thread(target=contend, daemon=True).start()
    sleep(options)


def lock_file(options):
    """Holds the lock of a file for most of the time, or waits for it."""
    file = os.open(options.path, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(options.hold)
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.001)


def descriptors(options):
    """Accepts until it has no descriptor left, and keeps what it has."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", int(options.path)))
    listener.listen(128)
    kept = []
    while True:
        try:
            kept.append(listener.accept()[0])
        except OSError:
            time.sleep(0.1)


def touch_memory(options):
    """Goes through its memory again and again, a page at a time."""
    memory = bytearray(options.count << 20)
    pace = Pace(options.rate)
    value = 0
    while True:
        value = (value + 1) % 256
        for place in range(0, len(memory), 4096):
            memory[place] = value
            if place % 65536 == 0:
                pace.take(16)


def be_killed(options):
    """Starts a child that takes memory until it is killed, once a second or so."""
    while True:
        child = os.fork()
        if child == 0:
            be_called(options.name + "-kid")
            kept = []
            while True:
                kept.append(bytearray(os.urandom(4096)) * 256)
                time.sleep(0.002)
        os.waitpid(child, 0)
        time.sleep(0.7)


def run_programs(options):
    pace = Pace(options.rate)
    while True:
        subprocess.run(["/bin/true"], check=False)
        pace.take()


def write_bytes(options):
    """Writes a file in pieces of a few bytes, without a buffer of its own."""
    file = os.open(options.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    pace = Pace(options.rate)
    count = 0
    while True:
        os.pwrite(file, b"row 17;", count % 1000000)
        count += 7
        if count % 70 == 0:
            pace.take(10)


def read_bytes(options):
    """Reads a file in pieces of a few bytes, without a buffer of its own."""
    file = os.open(options.path, os.O_RDONLY)
    pace = Pace(options.rate)
    while True:
        for _ in range(10):
            if not os.read(file, 8):
                os.lseek(file, 0, os.SEEK_SET)
        pace.take(10)


def look_for_missing(options):
    """Looks for a configuration in folder after folder."""
    pace = Pace(options.rate)
    while True:
        for folder in range(20):
            try:
                os.stat(f"{options.path}/plugins{folder}/settings.conf")
            except FileNotFoundError:
                pass
        pace.take(20)


def wait_for_pipe(options):
    """A parent asks its child over pipes, and the child takes its time."""
    down, up = os.pipe(), os.pipe()
    if os.fork() == 0:
        be_called(options.name + "-kid")
        while os.read(down[0], 1):
            time.sleep(options.hold)
            os.write(up[1], b"y")
    while True:
        os.write(down[1], b"x")
        os.read(up[0], 1)


def write_to_slow_reader(options):
    """Writes all the time to a pipe, whose reader takes its time."""
    down = os.pipe()
    if os.fork() == 0:
        be_called(options.name + "-kid")
        while os.read(down[0], 4096):
            time.sleep(options.hold)
    while True:
        os.write(down[1], bytes(4096))


def lock_itself_in(options):
    """A program that has opened all that it needs, and may open nothing more."""
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(6)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    while kept:
        time.sleep(0.05)


def start_too_many(options):
    """Has as many children as it may, and tries to start one more ten times a second."""
    while True:
        try:
            if os.fork() == 0:
                be_called(options.name + "-kid")
                time.sleep(1e6)
        except OSError:
            time.sleep(0.1)


def open_pipe(options):
    """Waits until somebody opens a named pipe for writing."""
    os.mkfifo(options.path)
    os.open(options.path, os.O_RDONLY)


WAYS = {way.__name__.replace("_", "-"): way for way in (
    compute, sleep, lock, lock_file, descriptors, touch_memory, be_killed, run_programs,
    write_bytes, read_bytes, look_for_missing, wait_for_pipe, write_to_slow_reader,
    lock_itself_in, start_too_many, open_pipe)}


def main():
    options = arguments()
    be_called(options.name)
    WAYS[options.way](options)


main()
