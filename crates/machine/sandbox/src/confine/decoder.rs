//! A program of others that makes text of packets: what it gives up between its start and its first
//! instruction.
//!
//! Its parsers are many, and who sends packets chooses among them. So it is started with nothing
//! missing here: without Landlock or a filter of system calls it gets no packet.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{
    Gid, Resource, Rlimit, Signal, Uid, geteuid, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use seccompiler::{BpfProgram, apply_filter};

use super::capabilities::{Capability, NOBODY};
use super::files::{self, Left};
use super::filter;
use super::threads::Steps;
use crate::Error;

/// The kernel's own program that loads another one's libraries: `ld.so(8)`. It is executed, too.
const LOADERS: [&str; 3] =
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1"];
/// Libraries, and what they read as they begin. No folder of users, of settings or of data.
const READ: [&str; 11] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/share",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/dev/null",
    "/dev/urandom",
];
/// tshark 4 has 0.5 GiB after its start, of which 0.2 GiB are used.
const MEMORY_BYTES: u64 = 3 << 30;
/// 10 000 packets take less than a second.
const CPU_SECONDS: u64 = 20;
const DESCRIPTORS: u64 = 64;

/// All that a decoder gives up, made ready before it is started.
#[derive(Debug)]
pub(crate) struct Decoding {
    ruleset: OwnedFd,
    filter: BpfProgram,
    becomes_nobody: bool,
}

impl Decoding {
    /// For this program.
    ///
    /// # Errors
    /// When this kernel cannot confine it.
    pub(crate) fn of(program: &Path) -> Result<Self, Error> {
        let execute: Vec<PathBuf> =
            LOADERS.iter().map(PathBuf::from).chain([program.to_owned()]).collect();
        // Where it was installed: `/opt/wireshark/bin/tshark`.
        let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
        let own = ["lib", "lib64", "share"].map(|folder| prefix.join(folder));
        let read: Vec<PathBuf> = READ.iter().map(PathBuf::from).chain(own).collect();
        let left = Left { read: &read, execute: &execute, ..Left::default() };
        let ruleset = files::ruleset(&left).ok().flatten();
        let filter = filter::of_decoder();
        let becomes_nobody = geteuid().is_root() && Capability::ChangeUser.is_held();
        Ok(Self {
            ruleset: ruleset.ok_or(Error::NotConfined("Landlock"))?,
            filter: filter.map_err(|_| Error::NotConfined("a filter of system calls"))?,
            becomes_nobody,
        })
    }

    /// In the child, before it becomes the program; only system calls.
    ///
    /// # Errors
    /// With the first step that failed: the child ends then.
    pub(crate) fn give_up(&self) -> io::Result<()> {
        let limits = [
            (Resource::As, MEMORY_BYTES),
            (Resource::Cpu, CPU_SECONDS),
            (Resource::Core, 0),
            (Resource::Fsize, 0),
            (Resource::Nofile, DESCRIPTORS),
        ];
        for (resource, most) in limits {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        if self.becomes_nobody {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            set_thread_groups(&[])?;
            set_thread_res_gid(group, group, group)?;
            set_thread_res_uid(user, user, user)?;
        }
        // A change of user undoes it.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if !Steps::alone(self.ruleset.as_raw_fd()).are_taken() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        apply_filter(&self.filter).map_err(|_| io::ErrorKind::PermissionDenied.into())
    }
}
