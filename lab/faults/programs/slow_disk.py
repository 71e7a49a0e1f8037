"""A file `disk` below a mount point, served from memory, one request after the other.

It is the disk that a situation needs: so many milliseconds for each request, and every so many
requests one that takes longer. Speaks the FUSE protocol (linux/fuse.h) on /dev/fuse.
"""

import argparse
import ctypes
import errno
import mmap
import os
import stat
import struct
import time

from shared import be_called

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS = 1, 2, 3, 4, 14, 15, 16, 17
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 18, 20, 25, 26, 27, 28, 29
ACCESS, INTERRUPT, DESTROY, BATCH_FORGET, FALLOCATE = 34, 36, 38, 42, 43
FOLDER, FILE = 1, 2
LARGEST = 131072
PAGE = 4096


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("megabytes", type=int)
    parser.add_argument("milliseconds", type=float, help="for each read and write")
    parser.add_argument("--rate", type=float, default=0, help="bytes a second besides")
    parser.add_argument("--flush", type=float, default=0, help="milliseconds for a flush")
    parser.add_argument("--discard", type=float, default=0, help="milliseconds for a discard")
    parser.add_argument("--every", type=int, default=0, help="each so manieth request ...")
    parser.add_argument("--long", type=float, default=200, help="... takes so many milliseconds")
    parser.add_argument("--name", default="slow-disk")
    return parser.parse_args()


class Disk:
    def __init__(self, options):
        self.options = options
        self.size = options.megabytes << 20
        self.memory = mmap.mmap(-1, self.size)
        self.requests = 0
        self.free_at = time.monotonic()

    def work(self, size):
        """The time that a request takes, less what sleeps before it took too long."""
        self.requests += 1
        options = self.options
        takes = options.milliseconds / 1000
        if options.rate:
            takes += size / options.rate
        if options.every and self.requests % options.every == 0:
            takes += options.long / 1000
        self.wait(takes)

    def wait(self, seconds):
        now = time.monotonic()
        self.free_at = max(self.free_at, now - 0.001) + seconds
        if self.free_at > now:
            time.sleep(self.free_at - now)

    def attributes(self, node):
        is_folder = node == FOLDER
        size = 0 if is_folder else self.size
        mode = stat.S_IFDIR | 0o755 if is_folder else stat.S_IFREG | 0o600
        return struct.pack("QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0,
                           mode, 2 if is_folder else 1, 0, 0, 0, 4096, 0)

    def answer(self, operation, node, body):
        """The answer's bytes, or the number of an error; None where none is wanted."""
        if operation == INIT:
            _, _, readahead, flags = struct.unpack_from("IIII", body)
            # Reads need not come one at a time (1), writes may be large (32).
            return struct.pack("IIIIHHIIHHI28x", 7, 31, readahead, flags & (1 | 32), 64, 48,
                               LARGEST, 1, 32, 0, 0)
        if operation in (GETATTR, SETATTR):
            return struct.pack("QII", 3600, 0, 0) + self.attributes(node)
        if operation == LOOKUP:
            if body.rstrip(b"\0") != b"disk":
                return errno.ENOENT
            return struct.pack("QQQQII", FILE, 0, 3600, 3600, 0, 0) + self.attributes(FILE)
        if operation in (OPEN, OPENDIR):
            return struct.pack("QII", 0, 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("QQI", body)
            self.work(size)
            return self.memory[offset:offset + size]
        if operation == WRITE:
            _, offset, size = struct.unpack_from("QQI", body)
            self.work(size)
            self.memory[offset:offset + size] = body[40:40 + size]
            return struct.pack("II", size, 0)
        if operation == FSYNC:
            self.wait(self.options.flush / 1000)
            return b""
        if operation == FALLOCATE:
            self.wait(self.options.discard / 1000)
            return b""
        if operation == READDIR:
            return b""
        if operation == STATFS:
            return struct.pack("QQQQQIII28x", self.size // PAGE, 0, 0, 2, 0, PAGE, 255, PAGE)
        if operation in (RELEASE, RELEASEDIR, FLUSH, ACCESS, DESTROY):
            return b""
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        return errno.ENOSYS


def main():
    options = arguments()
    be_called(options.name)
    disk = Disk(options)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    mount_options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,max_read={LARGEST}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"slow-disk", options.folder.encode(), b"fuse", 0, mount_options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    while True:
        try:
            request = os.read(fuse, LARGEST + 65536)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        _, operation, unique, node = struct.unpack_from("IIQQ", request)
        answer = disk.answer(operation, node, request[40:])
        if answer is None:
            continue
        failure = answer if isinstance(answer, int) else 0
        body = b"" if failure else answer
        try:
            os.write(fuse, struct.pack("IiQ", 16 + len(body), -failure, unique) + body)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINVAL):
                raise


main()
