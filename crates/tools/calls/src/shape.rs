//! What system calls take, what they do, and what a thread in them waits for.

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    Descriptor,
    /// The folder that a relative path is below.
    Folder,
    Path,
    /// Bytes.
    Length,
    Offset,
    OpenFlags,
    Number,
    Signed,
    Hex,
    /// Of a socket.
    Address,
    /// An array of descriptors.
    Polled,
    FutexOperation,
    FcntlOperation,
    LockOperation,
    /// Nothing that says much: where the program's buffer is.
    Buffer,
}

/// What a thread in a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// That depends on what its descriptor leads to.
    Descriptor,
    File,
    Futex,
    FileLock,
    Timer,
    Events,
    /// Requests that were given to the kernel before.
    Requests,
    Accept,
    Child,
    Memory,
    Network,
    Unknown,
}

/// What a call is for, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Work {
    /// It reads, from what a descriptor leads to.
    Read,
    /// It writes.
    Write,
    /// It makes files durable.
    Sync,
    /// It takes a path.
    Lookup,
    /// It connects a socket.
    Connect,
    /// It waits for one of several descriptors.
    Poll,
    /// It waits for requests that were given to the kernel before (aio, `io_uring`).
    Requests,
    /// Anything else.
    Other,
}

/// What is known of a system call.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub(crate) arguments: &'static [Argument],
    pub(crate) waits: Waits,
    /// What it is for.
    pub work: Work,
}

use Argument::{
    Address, Buffer, Descriptor, FcntlOperation, Folder, FutexOperation, Hex, Length,
    LockOperation, Number, Offset, OpenFlags, Path, Polled, Signed,
};

const UNKNOWN: Shape =
    Shape { arguments: &[Hex, Hex, Hex], waits: Waits::Unknown, work: Work::Other };

/// Names, separated by blanks.
type Row = (&'static str, &'static [Argument], Waits, Work);

const SHAPES: &[Row] = &[
    ("read", &[Descriptor, Buffer, Length], Waits::Descriptor, Work::Read),
    ("recvfrom recvmsg recvmmsg", &[Descriptor, Buffer, Length], Waits::Descriptor, Work::Read),
    ("pread64", &[Descriptor, Buffer, Length, Offset], Waits::Descriptor, Work::Read),
    ("readv", &[Descriptor, Buffer, Number], Waits::Descriptor, Work::Read),
    ("preadv preadv2", &[Descriptor, Buffer, Number, Offset], Waits::Descriptor, Work::Read),
    ("write", &[Descriptor, Buffer, Length], Waits::Descriptor, Work::Write),
    ("sendto", &[Descriptor, Buffer, Length, Hex, Address], Waits::Descriptor, Work::Write),
    ("sendmsg sendmmsg", &[Descriptor, Buffer, Number], Waits::Descriptor, Work::Write),
    ("pwrite64", &[Descriptor, Buffer, Length, Offset], Waits::Descriptor, Work::Write),
    ("writev", &[Descriptor, Buffer, Number], Waits::Descriptor, Work::Write),
    ("pwritev pwritev2", &[Descriptor, Buffer, Number, Offset], Waits::Descriptor, Work::Write),
    ("sendfile", &[Descriptor, Descriptor, Buffer, Length], Waits::Descriptor, Work::Write),
    ("copy_file_range splice", &[Descriptor, Buffer, Descriptor], Waits::Descriptor, Work::Write),
    ("fsync fdatasync syncfs", &[Descriptor], Waits::File, Work::Sync),
    ("sync_file_range", &[Descriptor, Offset, Length], Waits::File, Work::Sync),
    ("msync", &[Hex, Length], Waits::File, Work::Sync),
    ("sync", &[], Waits::File, Work::Sync),
    ("open creat", &[Path, OpenFlags], Waits::File, Work::Lookup),
    ("openat", &[Folder, Path, OpenFlags], Waits::File, Work::Lookup),
    ("openat2", &[Folder, Path], Waits::File, Work::Lookup),
    (
        "stat lstat access readlink chdir execve unlink rmdir mkdir rename chmod chown lchown \
         truncate statfs link symlink utimes getxattr lgetxattr",
        &[Path],
        Waits::File,
        Work::Lookup,
    ),
    (
        "newfstatat statx faccessat faccessat2 readlinkat unlinkat mkdirat execveat fchmodat \
         fchownat renameat renameat2 linkat utimensat inotify_add_watch",
        &[Folder, Path],
        Waits::File,
        Work::Lookup,
    ),
    (
        "fstat fstatfs getdents getdents64 ftruncate fallocate fchmod fchown fadvise64 fgetxattr \
         fsetxattr readahead close ioctl",
        &[Descriptor, Hex, Hex],
        Waits::Descriptor,
        Work::Other,
    ),
    ("lseek", &[Descriptor, Offset, Number], Waits::Descriptor, Work::Other),
    ("dup dup2 dup3", &[Descriptor, Number], Waits::Descriptor, Work::Other),
    ("fcntl", &[Descriptor, FcntlOperation, Hex], Waits::FileLock, Work::Other),
    ("flock", &[Descriptor, LockOperation], Waits::FileLock, Work::Other),
    ("connect", &[Descriptor, Address], Waits::Network, Work::Connect),
    ("bind", &[Descriptor, Address], Waits::Network, Work::Other),
    ("accept accept4", &[Descriptor], Waits::Accept, Work::Other),
    (
        "listen shutdown getsockname getpeername setsockopt getsockopt",
        &[Descriptor, Number, Number],
        Waits::Network,
        Work::Other,
    ),
    ("poll ppoll", &[Polled, Number, Signed], Waits::Events, Work::Poll),
    ("select pselect6", &[Number], Waits::Events, Work::Poll),
    (
        "epoll_wait epoll_pwait epoll_pwait2",
        &[Descriptor, Buffer, Number],
        Waits::Events,
        Work::Poll,
    ),
    ("epoll_ctl", &[Descriptor, Number, Descriptor], Waits::Unknown, Work::Other),
    ("pause rt_sigsuspend rt_sigtimedwait msgrcv mq_timedreceive", &[], Waits::Events, Work::Other),
    ("nanosleep restart_syscall", &[], Waits::Timer, Work::Other),
    ("clock_nanosleep", &[Number], Waits::Timer, Work::Other),
    ("futex", &[Hex, FutexOperation, Signed], Waits::Futex, Work::Other),
    ("futex_waitv", &[Hex], Waits::Futex, Work::Other),
    ("wait4", &[Signed], Waits::Child, Work::Other),
    ("waitid", &[Number, Number], Waits::Child, Work::Other),
    ("vfork clone clone3 fork", &[], Waits::Child, Work::Other),
    ("io_uring_enter", &[Descriptor, Number, Number], Waits::Requests, Work::Requests),
    ("io_getevents", &[Hex, Number, Number], Waits::Requests, Work::Requests),
    ("io_submit io_destroy", &[Hex, Number], Waits::File, Work::Other),
    ("mmap", &[Hex, Length, Hex, Hex, Descriptor, Offset], Waits::Memory, Work::Other),
    ("munmap mprotect madvise mremap brk mlock", &[Hex, Length, Hex], Waits::Memory, Work::Other),
    ("exit exit_group", &[Number], Waits::Unknown, Work::Other),
];

/// What is known of a call of this name.
pub fn shape_of(name: &str) -> Shape {
    let row = SHAPES.iter().find(|(names, ..)| names.split(' ').any(|known| known == name));
    row.map_or(UNKNOWN, |(_, arguments, waits, work)| Shape {
        arguments,
        waits: *waits,
        work: *work,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_shape_and_is_a_call() {
        let mut names: Vec<&str> = SHAPES.iter().flat_map(|(names, ..)| names.split(' ')).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let known: Vec<_> = (0..1024).filter_map(observe::tracepoints::calls::call_name).collect();
        // Processors differ in which they have.
        let absent: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
        assert!(cfg!(not(target_arch = "x86_64")) || absent.is_empty(), "{absent:?}");
    }
}
