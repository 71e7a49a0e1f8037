use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate,
    memfd_create, openat,
};
use rustix::mm::{MapFlags, MprotectFlags, mmap, mprotect};

use super::super::Pool;
use super::*;

/// Set in the process that plays the reader; the memory is its standard input.
const READER: &str = "WIRESPOOL_TEST_POOL_READER";
const COUNT: u32 = 5;
const SIZE: usize = 12_288;

/// A pool in which every byte of buffer `n` is `n + 1`, all of them taken.
fn filled() -> (Pool, Vec<super::super::Shared>) {
    let pool = Pool::shared(usize_of(COUNT), SIZE).unwrap();
    let taken = core::iter::from_fn(|| pool.take());
    let shared = taken.map(|mut buffer| {
        let value = u8::try_from(buffer.index()).unwrap() + 1;
        buffer.fill(value);
        buffer.freeze()
    });
    let shared = shared.collect();
    (pool, shared)
}

#[test]
fn another_process_sees_a_pool_and_can_neither_write_nor_shorten_it() {
    let (pool, shared) = filled();
    assert!(shared.iter().zip(0..).all(|(buffer, index)| buffer.index() == index));
    let name = "pool::shared::tests::reader_in_another_process";
    let fd = pool.memory_fd().expect("this kernel has files in memory");
    let mut reader = Command::new(std::env::current_exe().unwrap());
    reader.args([name, "--exact", "--nocapture"]).env(READER, "1");
    reader.stdin(Stdio::from(fd.try_clone_to_owned().unwrap()));
    let output = reader.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(shared.iter().zip(1..).all(|(buffer, value)| buffer.iter().all(|byte| *byte == value)));
}

/// The other half of the test above; alone it has nothing to look at.
#[test]
fn reader_in_another_process() {
    if std::env::var_os(READER).is_none() {
        return;
    }
    let input = std::io::stdin();
    let fd = input.as_fd();
    let pool = SharedPool::map(fd, COUNT, SIZE).unwrap();
    assert_eq!((pool.count(), pool.buffer_size()), (COUNT, SIZE));
    // Large pages of the file are large pages here, too.
    assert!(pool.start.as_ptr().addr().is_multiple_of(HUGE_PAGE_SIZE));
    for (index, value) in (0..COUNT).zip(1..) {
        let piece = pool.piece(index, SIZE).unwrap();
        assert!(piece.len() == SIZE && piece.iter().all(|byte| *byte == value), "{index}");
    }
    assert_eq!(pool.piece(1, 7), Some(&[2; 7][..]));
    assert!(pool.piece(COUNT, 1).is_none() && pool.piece(u32::MAX, 1).is_none());
    assert!(pool.piece(0, SIZE + 1).is_none() && pool.piece(0, usize::MAX).is_none());
    for (count, size) in [(COUNT + 1, SIZE), (0, SIZE), (COUNT, 0), (u32::MAX, usize::MAX)] {
        let refused = SharedPool::map(fd, count, size);
        assert!(matches!(refused, Err(SharedPoolError::Size { .. })), "{count} {size}");
    }
    refuses_every_change(fd);
    // The same file, opened anew.
    let again = openat(rustix::fs::CWD, "/proc/self/fd/0", OFlags::RDWR, Mode::empty()).unwrap();
    refuses_every_change(again.as_fd());
    let writable = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: it is refused; if not, nothing is written.
    let changed = unsafe { mprotect(pool.start.as_ptr().cast(), SIZE, writable) };
    assert_eq!(changed, Err(Errno::ACCESS));
    assert_eq!(pool.piece(4, SIZE).map(<[u8]>::to_vec), Some(vec![5; SIZE]));
}

#[track_caller]
fn refuses_every_change(fd: BorrowedFd<'_>) {
    let (place, protection) = (core::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: it is refused; if not, it is not used.
    let mapped = unsafe { mmap(place, SIZE, protection, MapFlags::SHARED, fd, 0) };
    assert_eq!(mapped, Err(Errno::PERM));
    for len in [0, 4096, 1 << 30] {
        assert_eq!(ftruncate(fd, len), Err(Errno::PERM));
    }
    assert_eq!(rustix::io::pwrite(fd, &[9], 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(fd, hole, 0, 4096), Err(Errno::PERM));
    assert_eq!(fcntl_add_seals(fd, SealFlags::WRITE), Err(Errno::PERM));
}

#[test]
fn a_process_does_not_map_its_own_pool_a_second_time() {
    let (pool, shared) = filled();
    let fd = pool.memory_fd().unwrap().try_clone_to_owned().unwrap();
    let refused = SharedPool::map(&fd, COUNT, SIZE).unwrap_err();
    assert_eq!(refused, SharedPoolError::OwnPool);
    // A buffer outlives the pool, and may still be written.
    drop(pool);
    assert_eq!(SharedPool::map(&fd, COUNT, SIZE).unwrap_err(), SharedPoolError::OwnPool);
    drop(shared);
    // No process is left that could write.
    let mapped = SharedPool::map(&fd, COUNT, SIZE).unwrap();
    assert_eq!(mapped.piece(3, 1), Some(&[4][..]));
}

#[test]
fn memory_that_somebody_could_change_is_refused() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = |seals: SealFlags| -> OwnedFd {
        let file = memfd_create(c"test", flags).unwrap();
        ftruncate(&file, 4096).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    };
    for missing in SEALS.iter() {
        let refused = SharedPool::map(file(SEALS & !missing), 1, 4096).unwrap_err();
        assert_eq!(refused, SharedPoolError::NotSealed, "{missing:?}");
    }
    let ordinary = tempfile::tempfile().unwrap();
    let refused = SharedPool::map(&ordinary, 1, 4096).unwrap_err();
    assert_eq!(refused, SharedPoolError::NotSealed);
    assert!(SharedPool::map(file(SEALS), 1, 4096).is_ok());
}

#[test]
fn a_pool_that_is_not_shared_has_no_file() {
    assert!(Pool::new(1, 4096).unwrap().memory_fd().is_none());
}

#[test]
fn memory_of_a_shared_pool_that_is_not_there_is_an_error() {
    assert!(matches!(Pool::shared(1 << 20, 1 << 40), Err(crate::Error::Memory { .. })));
}

#[test]
fn a_shared_pool_can_be_registered_with_a_ring_and_written_from() {
    let mut ring = match io_uring::IoUring::new(4) {
        Ok(ring) => ring,
        Err(error) => return println!("not run: no io_uring here: {error}"),
    };
    let (_pool, shared) = filled();
    let part = libc::iovec { iov_base: shared[2].as_ptr().cast_mut().cast(), iov_len: SIZE };
    // SAFETY: the buffer outlives the ring's use of it, which ends with this test.
    if let Err(error) = unsafe { ring.submitter().register_buffers(&[part]) } {
        return println!("not run: memory cannot be registered: {error}");
    }
    let file = tempfile::tempfile().unwrap();
    let target = io_uring::types::Fd(std::os::fd::AsRawFd::as_raw_fd(&file));
    let len = u32::try_from(SIZE).unwrap();
    let write = io_uring::opcode::WriteFixed::new(target, shared[2].as_ptr(), len, 0).build();
    // SAFETY: the buffer is held until the completion has arrived.
    unsafe { ring.submission().push(&write) }.unwrap();
    ring.submit_and_wait(1).unwrap();
    assert_eq!(ring.completion().next().unwrap().result(), i32::try_from(SIZE).unwrap());
    let mut read = vec![0; SIZE];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut read, 0).unwrap();
    assert!(read.iter().all(|byte| *byte == 3));
}
