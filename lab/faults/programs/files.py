"""Reads or writes files in one way, for ever, at a rate."""

import argparse
import fcntl
import mmap
import os
import random
import struct
import time

from shared import Pace, be_called

PAGE = 4096
BLKDISCARD = 0x1277


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("path")
    parser.add_argument("--name", default="files")
    parser.add_argument("--rate", type=float, default=0, help="operations a second")
    parser.add_argument("--size", type=int, default=PAGE, help="bytes of an operation")
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--durable", action="store_true", help="each write by itself (O_SYNC)")
    return parser.parse_args()


def forget(descriptor):
    """Nothing of the file is in memory any more, so that reads go to the disk."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def opened(options, flags):
    flags |= (os.O_DIRECT if options.direct else 0) | (os.O_SYNC if options.durable else 0)
    return os.open(options.path, flags, 0o600)


def append_and_sync(options, pace):
    """A log of small records, each of them made durable."""
    log = opened(options, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        os.write(log, b"x" * options.size)
        os.fsync(log)
        pace.take()


def append(options, pace):
    """A log of small records."""
    log = opened(options, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        os.write(log, b"x" * options.size)
        pace.take()


def discard(options, pace):
    """Has a device forget a part of each of its megabytes, again and again."""
    device = opened(options, os.O_RDWR)
    megabytes = os.lseek(device, 0, os.SEEK_END) >> 20
    while True:
        for place in range(megabytes):
            fcntl.ioctl(device, BLKDISCARD, struct.pack("QQ", place << 20, options.size))
            pace.take()


def overwrite_and_sync(options, pace):
    """The same block again and again, each time with a flush of the disk's cache."""
    block = mmap.mmap(-1, PAGE)
    file = opened(options, os.O_WRONLY)
    while True:
        os.pwrite(file, block, 0)
        os.fdatasync(file)
        pace.take()


def sequential(options, pace, is_write):
    block = mmap.mmap(-1, options.size)
    file = opened(options, os.O_RDWR)
    end = os.lseek(file, 0, os.SEEK_END)
    place = 0
    while True:
        if is_write:
            os.pwrite(file, block, place)
        else:
            os.preadv(file, [block], place)
        place = (place + options.size) % (end // options.size * options.size)
        pace.take()


def read_direct(options, pace):
    sequential(options, pace, is_write=False)


def write_direct(options, pace):
    sequential(options, pace, is_write=True)


def read_again(options, pace):
    """Reads a whole file from its beginning to its end, again and again."""
    file = opened(options, os.O_RDONLY)
    while True:
        while os.read(file, options.size):
            pace.take()
        os.lseek(file, 0, os.SEEK_SET)


def read_randomly(options, pace):
    block = mmap.mmap(-1, options.size)
    file = opened(options, os.O_RDONLY)
    blocks = os.lseek(file, 0, os.SEEK_END) // options.size
    while True:
        os.preadv(file, [block], random.randrange(blocks) * options.size)
        pace.take()


def touch(options, pace, change):
    """Touches pages of a mapping here and there, and has most of them out of memory again."""
    file = os.open(options.path, os.O_RDWR if change else os.O_RDONLY)
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if change else 0)
    memory = mmap.mmap(file, 0, mmap.MAP_SHARED, protection)
    pages = len(memory) // PAGE
    count = 0
    while True:
        count += 1
        place = random.randrange(pages) * PAGE
        if change:
            memory[place] = count % 256
        elif memory[place] > 255:
            return
        if count % 200 == 0:
            if change:
                memory.flush()
            memory.madvise(mmap.MADV_DONTNEED)
            forget(file)
        pace.take()


def map_and_read(options, pace):
    """Looks at pages that lie all over a mapped file."""
    touch(options, pace, change=False)


def map_and_store(options, pace):
    """Sets counters that lie all over a mapped file, without a look at what they were."""
    touch(options, pace, change=True)


def write_parts(options, pace):
    """Writes a part of a page here and there, of a file that is not in memory."""
    file = opened(options, os.O_RDWR)
    pages = os.lseek(file, 0, os.SEEK_END) // PAGE
    count = 0
    while True:
        os.pwrite(file, b"x" * options.size, random.randrange(pages) * PAGE + 1000)
        count += 1
        if count % 200 == 0:
            os.fdatasync(file)
            forget(file)
        pace.take()


def read_heads(options, pace):
    """The first bytes of many files: what `file` or an indexer does."""
    names = sorted(os.listdir(options.path))
    while True:
        for name in names:
            file = os.open(os.path.join(options.path, name), os.O_RDONLY)
            forget(file)
            for _ in range(0, options.size, 16384):
                os.read(file, 16384)
            forget(file)
            os.close(file)
            pace.take()


def write_steadily(options, pace):
    """Buffered writes through a file, and from its beginning again at 100 MB."""
    file = opened(options, os.O_WRONLY | os.O_CREAT)
    place = 0
    while True:
        os.pwrite(file, bytes(options.size), place)
        place = (place + options.size) % (100 << 20)
        pace.take()


def create_and_remove(options, pace):
    """A spool: files come and go, and each is made durable."""
    count = 0
    while True:
        path = os.path.join(options.path, f"message{count % 8}")
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(file, bytes(options.size))
        os.fsync(file)
        os.close(file)
        os.unlink(path)
        folder = os.open(options.path, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        count += 1
        pace.take()


def fail_to_write(options, pace):
    """Tries to save a new file, ten times a second, whatever the error."""
    count = 0
    while True:
        count += 1
        path = f"{options.path}{count}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.write(file, bytes(options.size))
                os.fsync(file)
            finally:
                os.close(file)
                os.unlink(path)
        except OSError:
            pass
        time.sleep(0.1)


WAYS = {way.__name__.replace("_", "-"): way for way in (
    append_and_sync, append, discard, overwrite_and_sync, read_direct, write_direct, read_again,
    read_randomly, map_and_read, map_and_store, write_parts, read_heads, write_steadily,
    create_and_remove, fail_to_write)}


def main():
    options = arguments()
    be_called(options.name)
    WAYS[options.way](options, Pace(options.rate))


main()
