//! Network namespaces: one of our own for this thread, and work inside of another one.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]
#![expect(unsafe_code, reason = "unshare may take descriptors from other threads")]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::Error;

/// Moves this thread, and those and the programs that it starts from now on, into an empty network
/// namespace; as an ordinary user, where the kernel permits it, inside of a user namespace.
/// Call it before there is another thread.
pub fn enter_namespace() -> Result<(), Error> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let new = UnshareFlags::NEWNET;
    // SAFETY: the table of descriptors stays shared.
    let entered = match unsafe { unshare_unsafe(new) } {
        // SAFETY: as above.
        Err(Errno::PERM) => match unsafe { unshare_unsafe(new | UnshareFlags::NEWUSER) } {
            Ok(()) => map_to_root(user, group),
            Err(errno) => Err(errno.into()),
        },
        entered => entered.map_err(io::Error::from),
    };
    entered.map_err(|source| Error::Namespace { source })?;
    silence_interfaces();
    Ok(())
}

/// Interfaces that are made in the namespace of this thread send nothing by themselves, as those
/// with IPv6 would. Where there is no IPv6 there is no such file.
fn silence_interfaces() {
    drop(fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"));
}

/// Programs started in a user namespace have its rights if they run as its root
/// (`user_namespaces(7)`).
fn map_to_root(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// An empty one, in which nobody is yet. Only root may make it: programs inside are to reach the
/// world.
pub(crate) fn new_namespace() -> Result<File, Error> {
    on_a_thread(|| {
        // SAFETY: the table of descriptors stays shared.
        let entered = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
        entered.map_err(|errno| match errno {
            Errno::PERM => Error::NotPermitted,
            errno => Error::system("make a network namespace", errno),
        })?;
        silence_interfaces();
        let path = Path::new("/proc/thread-self/ns/net");
        File::open(path).map_err(|error| Error::path("open", path, error))
    })?
}

/// On a thread that has entered the namespace and ends with the work.
pub(crate) fn within<T: Send>(
    namespace: &File,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    on_a_thread(|| {
        // To enter the one that we are in takes as many rights as to enter another one.
        if !is_here(namespace) {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| match errno {
                    Errno::PERM => Error::OtherNamespace,
                    errno => Error::system("enter a network namespace", errno),
                })?;
        }
        Ok(work())
    })?
}

/// Whether this thread is in it already.
fn is_here(namespace: &File) -> bool {
    let key = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let here = fs::metadata("/proc/thread-self/ns/net").map(key);
    here.is_ok_and(|here| namespace.metadata().map(key).is_ok_and(|it| it == here))
}

/// Does something on a thread of its own, which what it changes for itself goes away with.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".to_owned());
        let started = thread.spawn_scoped(scope, work);
        let started = started.map_err(|error| Error::system("start a thread", error))?;
        Ok(started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
