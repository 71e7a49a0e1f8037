//! Which process has a socket.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use host::processes;

/// A process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// Process id.
    pub process: u32,
    /// Its name, as the kernel has it.
    pub name: String,
}

impl Owner {
    /// A process by its number; without a name where it has ended.
    pub fn of_process(process: u32) -> Self {
        Self { process, name: processes::name(process).unwrap_or_default() }
    }
}

/// `server (process 77)`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.process)
    }
}

/// Owners by the number of the socket. Descriptors are listed only when there are sockets that are
/// not known yet: it is the most expensive part of a look.
#[derive(Debug, Default)]
pub struct Owners {
    known: BTreeMap<u32, Arc<Owner>>,
    /// The sockets of the last look.
    asked: BTreeSet<u32>,
    unseen_processes: usize,
    preferred: BTreeSet<u32>,
}

impl Owners {
    /// Of a socket that several processes have, one of these counts.
    pub fn prefer(&mut self, processes: &BTreeSet<u32>) {
        self.preferred.clone_from(processes);
    }

    /// Learns the owners of these sockets; forgets those of others.
    pub fn learn(&mut self, inodes: impl Iterator<Item = u32>) {
        let wanted: BTreeSet<u32> = inodes.filter(|&inode| inode != 0).collect();
        self.known.retain(|inode, _| wanted.contains(inode));
        // Whose owner could not be seen the last time, cannot be seen now.
        if !wanted.is_subset(&self.asked) {
            self.list(&wanted);
        }
        self.asked = wanted;
    }

    /// The owner of a socket; of several processes the first.
    pub fn get(&self, inode: u32) -> Option<&Arc<Owner>> {
        self.known.get(&inode)
    }

    /// Processes whose descriptors could not be listed the last time.
    pub fn unseen_processes(&self) -> usize {
        self.unseen_processes
    }

    fn list(&mut self, wanted: &BTreeSet<u32>) {
        self.unseen_processes = 0;
        let (first, others): (Vec<u32>, Vec<u32>) =
            processes::processes().into_iter().partition(|it| self.preferred.contains(it));
        for process in first.into_iter().chain(others) {
            match sockets_of(process) {
                Ok(inodes) => {
                    let mut owner = None;
                    for inode in inodes.into_iter().filter(|inode| wanted.contains(inode)) {
                        let owner =
                            owner.get_or_insert_with(|| Arc::new(Owner::of_process(process)));
                        self.known.entry(inode).or_insert_with(|| Arc::clone(owner));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    self.unseen_processes += 1;
                }
                // It has ended.
                Err(_) => {}
            }
        }
    }
}

fn sockets_of(process: u32) -> std::io::Result<Vec<u32>> {
    let inode = |entry: std::io::Result<fs::DirEntry>| {
        let link = fs::read_link(entry.ok()?.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    Ok(fs::read_dir(processes::place(process).join("fd"))?.filter_map(inode).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_of_ours_is_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let link = link.to_str().unwrap().to_owned();
        let inode = link.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        let mut owners = Owners::default();
        owners.learn([inode, 0].into_iter());
        assert_eq!(owners.get(inode).map(|owner| owner.process), Some(std::process::id()));
        owners.learn(core::iter::empty());
        assert_eq!(owners.get(inode), None);
    }
}
