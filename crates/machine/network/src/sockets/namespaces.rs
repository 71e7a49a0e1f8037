//! The network namespaces of this machine: those of processes, and those that `ip netns` named.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::processes::{network_of, processes};

use super::socket::{DatagramSocket, TcpSocket};
use super::tables::{Counters, Settings};
use super::{dump, tables};
use crate::Error;
use crate::namespace::within;
use crate::paths::{LinkMode, Monitor, Neighbour, PathLook, link_mode};

const NAMED: &str = "/run/netns";

/// What one namespace had at one moment.
#[derive(Clone, Debug, Default)]
pub struct NamespaceLook {
    /// Its sockets, in no order.
    pub sockets: Vec<TcpSocket>,
    /// Its counters, by the names of nstat(8).
    pub counters: Counters,
    /// Its settings.
    pub settings: Settings,
    /// Its UDP sockets, in no order.
    pub udp: Vec<DatagramSocket>,
    /// What its packets go through.
    pub paths: PathLook,
    /// Neighbours that have changed since the last look, in their order.
    pub neighbour_changes: Vec<Neighbour>,
    /// UDP sockets that were connected to port 53 at moments since the last look, with the time
    /// since boot.
    pub questions: Vec<(i64, DatagramSocket)>,
}

/// A network namespace that we may look into.
#[derive(Debug)]
pub struct Namespace {
    /// Its number in the kernel's file system of namespaces.
    pub inode: u64,
    /// The name that `ip netns` knows it by.
    pub name: Option<String>,
    /// Lowest number of a process in it.
    pub process: Option<u32>,
    /// It is the one that we are in.
    pub is_own: bool,
    handle: File,
}

/// All that were found.
#[derive(Debug, Default)]
pub struct Namespaces {
    /// Ours first, then by number.
    pub seen: Vec<Namespace>,
    /// Names of those that cannot be opened.
    pub unseen: Vec<String>,
    /// Processes whose namespace may not be known.
    pub unseen_processes: usize,
}

impl Namespaces {
    /// Only the one that we are in.
    pub fn own() -> Result<Self, Error> {
        let (handle, inode) = opened(Path::new("/proc/thread-self/ns/net"))?;
        let own = Namespace { inode, name: None, process: None, is_own: true, handle };
        Ok(Self { seen: vec![own], ..Self::default() })
    }

    /// All that can be found.
    pub fn all() -> Result<Self, Error> {
        let mut all = Self::own()?;
        let mut found: BTreeMap<u64, Namespace> =
            all.seen.drain(..).map(|own| (own.inode, own)).collect();
        for process in processes() {
            let path = network_of(process);
            match fs::metadata(&path) {
                Ok(metadata) => {
                    if let Some(namespace) = add(&mut found, metadata.ino(), &path) {
                        namespace.process.get_or_insert(process);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    all.unseen_processes += 1;
                }
                // It has ended.
                Err(_) => {}
            }
        }
        for entry in fs::read_dir(NAMED).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match File::open(entry.path()).and_then(|file| file.metadata()) {
                Ok(metadata) => {
                    if let Some(namespace) = add(&mut found, metadata.ino(), &entry.path()) {
                        namespace.name.get_or_insert(name);
                    }
                }
                Err(_) => all.unseen.push(name),
            }
        }
        all.seen.extend(found.into_values());
        all.seen.sort_by_key(|namespace| (!namespace.is_own, namespace.inode));
        Ok(all)
    }
}

/// A namespace at its place, and its number.
fn opened(path: &Path) -> Result<(File, u64), Error> {
    let handle = File::open(path).map_err(|error| Error::path("open", path, error))?;
    let inode = handle.metadata().map_err(|error| Error::path("look at", path, error))?.ino();
    Ok((handle, inode))
}

fn add<'f>(
    found: &'f mut BTreeMap<u64, Namespace>,
    inode: u64,
    path: &Path,
) -> Option<&'f mut Namespace> {
    match found.entry(inode) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(free) => {
            let handle = File::open(path).ok()?;
            let new = Namespace { inode, name: None, process: None, is_own: false, handle };
            Some(free.insert(new))
        }
    }
}

impl Namespace {
    /// Looks at its sockets, counters and settings.
    pub fn look(&self) -> Result<NamespaceLook, Error> {
        if self.is_own {
            return look();
        }
        self.within(look)?
    }

    /// Listens to what happens in it between two looks.
    pub fn monitor(&self) -> Result<Monitor, Error> {
        if self.is_own { Monitor::open() } else { self.within(Monitor::open)? }
    }

    /// Speed and duplex of these of its interfaces, in their order.
    pub fn link_modes(&self, names: &[&str]) -> Result<Vec<Option<LinkMode>>, Error> {
        let modes = || names.iter().map(|name| link_mode(name)).collect();
        if self.is_own { Ok(modes()) } else { self.within(modes) }
    }

    /// The one that a process is in.
    pub fn of_process(process: u32) -> Result<Self, Error> {
        let path = network_of(process);
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        if fs::metadata(&path).is_err_and(|error| denied(&error)) {
            return Err(Error::OtherUser { process });
        }
        let (handle, inode) = opened(&path)?;
        Ok(Self { inode, name: None, process: Some(process), is_own: false, handle })
    }

    /// Does something inside, on a thread that ends with it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        within(&self.handle, work)
    }
}

/// At the namespace of this thread.
fn look() -> Result<NamespaceLook, Error> {
    let sockets = dump::tcp_sockets();
    let sockets = sockets.map_err(|error| Error::system("list the TCP sockets", error))?;
    Ok(NamespaceLook {
        sockets,
        counters: tables::counters(),
        settings: tables::settings(),
        // A kernel without udp_diag lists none.
        udp: dump::udp_sockets().unwrap_or_default(),
        paths: PathLook::now(),
        ..NamespaceLook::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_namespace_is_first_and_has_counters() {
        let found = Namespaces::all().unwrap();
        let own = found.seen.first().unwrap();
        assert!(own.is_own);
        assert!(!own.look().unwrap().counters.is_empty());
        assert_eq!(found.seen.iter().filter(|namespace| namespace.is_own).count(), 1);
    }

    #[test]
    fn another_namespace_is_entered_and_left() {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let (end, ended) = std::sync::mpsc::sync_channel::<()>(1);
        let other = std::thread::Builder::new().spawn(move || {
            let entered = crate::enter_namespace();
            let inode = fs::metadata("/proc/thread-self/ns/net").map(|found| found.ino());
            let process = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            drop(send.send(entered.map(|()| (inode.unwrap(), process))));
            assert_eq!(ended.recv(), Ok(()));
        });
        let (inode, thread) = match receive.recv().unwrap() {
            Ok(found) => found,
            Err(error) => {
                println!("not run: {error}");
                return;
            }
        };
        // A thread is not listed among processes; its own folder is there even so.
        let mut found = BTreeMap::new();
        let namespace = add(&mut found, inode, &network_of(thread)).unwrap();
        let look = match namespace.look() {
            Ok(look) => look,
            Err(error) => {
                println!("not run: {error}");
                return;
            }
        };
        assert_eq!(look.sockets, []);
        assert_eq!(look.counters.get("TcpActiveOpens"), Some(&0));
        end.send(()).unwrap();
        other.unwrap().join().unwrap();
        assert_ne!(fs::metadata("/proc/thread-self/ns/net").unwrap().ino(), inode);
    }
}
