//! The process that starts the indexers.
//!
//! What it gives up its children give up with it, before their first instruction and for good: so
//! it keeps what they need, also until they have confined themselves, and what it takes to start
//! them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use libc::{c_int, c_long};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::CapabilitySet;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};

use super::capabilities::Capability;
use super::files::{self, Left};
use super::filter::{
    self, NAMESPACES, Result, Rules, Who, each_of, no_address, number, rule, whole,
};
use super::indexer::{ENDED_FIRST, NOBODY, OOM_SCORE};
use super::recorder::note;
use super::threads::give_up;
use super::{Notes, recorder};

const MYSELF: &str = "/proc/self/exe";
const NOTHING: &str = "/dev/null";
/// Where the loader finds libraries: `ld.so(8)`.
const LOADER: [&str; 2] = ["/etc/ld.so.cache", "/etc/ld.so.preload"];

/// What a launcher does, and a child from its begin until it has confined itself, besides what an
/// indexer does then.
const LAUNCHER: &[c_long] = &[
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_chdir,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_execve,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpriority,
    libc::SYS_getuid,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pipe2,
    libc::SYS_readlinkat,
    libc::SYS_set_tid_address,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_statx,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_wait4,
    libc::SYS_waitid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Confines a launcher of nothing but our own programs to starting these and ending them.
///
/// What is left: the executable that runs and the folders of its libraries, to be read and
/// executed; of root's capabilities those that an indexer needs to become `nobody`, and the
/// launcher to end it then; the system calls of both. To be called once, on the only thread.
pub(crate) fn confine_launcher() -> Notes {
    let mut notes = Notes::new();
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if setrlimit(Resource::Core, none).is_err() {
        notes.push("an indexer that crashes early may leave a core file".to_owned());
    }
    hide_launcher();
    let executable: Vec<PathBuf> =
        library_folders().into_iter().chain([PathBuf::from(MYSELF)]).collect();
    let read: Vec<PathBuf> = recorder::READ.iter().chain(&LOADER).map(PathBuf::from).collect();
    let write = [PathBuf::from(NOTHING)];
    let left = Left { read: &read, write: &write, execute: &executable, ..Left::default() };
    let ruleset = files::ruleset(&left).ok().flatten();
    let kept = [Capability::Kill, Capability::ChangeUser, Capability::GiveUp];
    let kept = kept.into_iter().fold(CapabilitySet::empty(), |all, one| all | one.set());
    let given_up = give_up(kept, ruleset.as_ref());
    note(&given_up, ruleset.is_some(), "launcher", &mut notes);
    if let Err(error) = filter::install(Who::Launcher) {
        notes.push(format!("the launcher may make every system call: {error}"));
    }
    notes
}

/// Only root looks into this process, and it leaves no core file. A program that it starts
/// does not inherit that, so that a launcher of a command can do it, too.
pub(crate) fn hide_launcher() {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or_default();
}

/// Folders of the libraries that this process has, as its children will. Folders, because an
/// update of the system replaces the files.
fn library_folders() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let own = fs::read_link(MYSELF).unwrap_or_default();
    // Range, rights, offset, device, inode, and the path behind spaces: `proc_pid_maps(5)`.
    let code =
        maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|it| it.contains('x')));
    let paths = code.filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    let libraries = paths.map(Path::new).filter(|path| *path != own);
    let mut folders: Vec<PathBuf> =
        libraries.filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Adds what a launcher and a child that begins may call, to what all may; takes the place of rules
/// that leave less.
pub(super) fn allow(rules: &mut Rules) -> Result<()> {
    let value = |value: c_int| u64::from(value.unsigned_abs());
    rules.extend(whole(LAUNCHER));
    // To the other end of what it was handed, as an indexer.
    rules.insert(libc::SYS_sendto, vec![rule([no_address(4)])?]);
    // Processes, in no other namespace.
    rules.insert(libc::SYS_clone, vec![rule([number(0, MaskedEq(NAMESPACES), 0)])?]);
    // Code comes from files, which Landlock names, and is not written.
    let [code, written] = [libc::PROT_EXEC, libc::PROT_WRITE].map(value);
    let anonymous = value(libc::MAP_ANONYMOUS);
    let data = rule([number(2, MaskedEq(code), 0)])?;
    let library =
        rule([number(2, MaskedEq(code | written), code), number(3, MaskedEq(anonymous), 0)])?;
    rules.insert(libc::SYS_mmap, vec![data, library]);
    // How an assertion ends a process: each child has another number.
    rules.insert(libc::SYS_tgkill, vec![rule([number(2, Eq, value(libc::SIGABRT))])?]);
    // Limits of its own, which nothing raises again.
    rules.insert(libc::SYS_prlimit64, vec![rule([number(0, Eq, 0)])?]);
    // `nobody`, and no other user.
    let nobody = u64::from(NOBODY);
    for call in [libc::SYS_setresuid, libc::SYS_setresgid] {
        let all = [0, 1, 2].map(|argument| number(argument, Eq, nobody));
        rules.insert(call, vec![rule(all)?]);
    }
    rules.insert(libc::SYS_setgroups, vec![rule([number(0, Eq, 0)])?]);
    let local = value(libc::AF_UNIX);
    rules.insert(libc::SYS_socketpair, vec![rule([number(0, Eq, local)])?]);
    let commands = filter::OF_DESCRIPTORS.iter().map(|command| value(*command));
    rules.insert(libc::SYS_fcntl, each_of(1, commands)?);
    rules.insert(libc::SYS_prctl, options_of_process()?);
    // A list that is for this process, and lets no other process decide: no `NEW_LISTENER`.
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
    rules.insert(libc::SYS_seccomp, vec![rule([number(0, Eq, mode), number(1, Eq, all_threads)])?]);
    Ok(())
}

/// A name, and what takes rights away.
fn options_of_process() -> Result<Vec<seccompiler::SeccompRule>> {
    let value = |value: c_int| u64::from(value.unsigned_abs());
    let options = [
        libc::PR_SET_NAME,
        libc::PR_GET_NAME,
        libc::PR_CAP_AMBIENT,
        libc::PR_CAPBSET_DROP,
        libc::PR_SET_NO_NEW_PRIVS,
    ];
    let mut rules = each_of(0, options.map(value).into_iter())?;
    for (option, only) in [(libc::PR_SET_DUMPABLE, 0), (libc::PR_SET_PDEATHSIG, libc::SIGKILL)] {
        rules.push(rule([number(0, Eq, value(option)), number(1, Eq, value(only))])?);
    }
    Ok(rules)
}

/// Has children begin as those that end first when memory is short. They inherit it: a launcher
/// that is confined opens no file of theirs, and they none that they could write.
#[derive(Debug)]
pub(crate) struct EndedFirst {
    score: File,
    own: String,
}

impl EndedFirst {
    /// Opens what says so, before this process is confined.
    pub(crate) fn new() -> io::Result<Self> {
        let own = fs::read_to_string(OOM_SCORE)?;
        let score = open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { score: score.into(), own })
    }

    /// What is started meanwhile is such a child.
    pub(crate) fn during<T>(&self, start: impl FnOnce() -> T) -> T {
        // Where that is refused the child says so.
        (&self.score).write_all(ENDED_FIRST.as_bytes()).unwrap_or_default();
        let started = start();
        (&self.score).write_all(self.own.trim().as_bytes()).unwrap_or_default();
        started
    }
}
