//! The system calls that are left, by seccomp.
//!
//! Two filters lie on each other. The outer one refuses politely what libraries try without need:
//! they have another way. The inner one is a list; what is not on it ends the indexer, which can be
//! started again, and is unknown to the recorder and the launcher, which must not end for a call
//! that a newer C library makes.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompFilter, TargetArch, apply_filter_all_threads,
};

use super::rules::{
    NAMESPACES, OF_DESCRIPTORS, Result, Rules, each_of, no_address, number, rule, whole,
};
use super::{decoder_calls, launcher_calls};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// The process that is confined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Indexer,
    Recorder,
    Launcher,
    Decoder,
}

/// Threads, memory, time, and what is open already.
const ALL: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_set_robust_list,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

/// What a recorder does besides: it opens what Landlock leaves, writes, and answers at its socket.
const RECORDER: &[c_long] = &[
    libc::SYS_accept4,
    // How well the clock is kept; to change it takes CAP_SYS_TIME, which is given up.
    libc::SYS_adjtimex,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_getuid,
    libc::SYS_io_uring_enter,
    libc::SYS_linkat,
    libc::SYS_memfd_create,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_sched_setaffinity,
    libc::SYS_sendfile,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sync_file_range,
    // Who takes over ends itself unless it stores soon; this ends that.
    libc::SYS_timer_delete,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// What libraries try in an indexer, and do without.
const POLITELY: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_ioctl,
    libc::SYS_openat,
    libc::SYS_readlinkat,
    libc::SYS_sched_setaffinity,
    libc::SYS_statx,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
];

/// Questions to interfaces, terminals, files and disks, and discards: numbers of linux/sockios.h,
/// asm-generic/ioctls.h and linux/fs.h.
const QUESTIONS: &[u64] = &[
    0x8913,      // SIOCGIFFLAGS
    0x8915,      // SIOCGIFADDR
    0x8921,      // SIOCGIFMTU
    0x8927,      // SIOCGIFHWADDR
    0x8933,      // SIOCGIFINDEX
    0x8946,      // SIOCETHTOOL
    0x5401,      // TCGETS
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x1260,      // BLKGETSIZE
    0x1268,      // BLKSSZGET
    0x1277,      // BLKDISCARD
    0x1278,      // BLKIOMIN
    0x1279,      // BLKIOOPT
    0x127b,      // BLKPBSZGET
    0x127e,      // BLKROTATIONAL
    0x8008_1272, // BLKGETSIZE64
    0xc020_660b, // FS_IOC_FIEMAP
];

/// Installs both filters in every thread.
pub(super) fn install(who: Who) -> Result<()> {
    let polite = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let outer = filter(politely(who)?, SeccompAction::Allow, polite.clone())?;
    let otherwise = if who == Who::Indexer { SeccompAction::KillProcess } else { polite };
    let inner = filter(allowed(who)?, otherwise, SeccompAction::Allow)?;
    apply_filter_all_threads(&outer)?;
    apply_filter_all_threads(&inner)
}

/// The filter of a program of others, to be applied before its first instruction.
pub(super) fn of_decoder() -> Result<BpfProgram> {
    let polite = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    filter(allowed(Who::Decoder)?, polite, SeccompAction::Allow)
}

fn filter(rules: Rules, otherwise: SeccompAction, matching: SeccompAction) -> Result<BpfProgram> {
    let filter = SeccompFilter::new(rules, otherwise, matching, ARCHITECTURE)?;
    Ok(filter.try_into()?)
}

fn politely(who: Who) -> Result<Rules> {
    let mut rules = Rules::new();
    if who != Who::Indexer {
        rules.extend(whole(&[libc::SYS_clone3]));
        return Ok(rules);
    }
    rules.extend(whole(POLITELY));
    // Of an open file it is asked by descriptor.
    let by_descriptor = u64::from(libc::AT_EMPTY_PATH.unsigned_abs());
    rules.insert(libc::SYS_newfstatat, vec![rule([number(3, SeccompCmpOp::Ne, by_descriptor)])?]);
    // The second is what comes before every filter, the inner one's too.
    let [named, no_more] = [libc::PR_SET_NAME, libc::PR_SET_NO_NEW_PRIVS]
        .map(|option| number(0, SeccompCmpOp::Ne, option.unsigned_abs().into()));
    rules.insert(libc::SYS_prctl, vec![rule([named, no_more])?]);
    Ok(rules)
}

fn allowed(who: Who) -> Result<Rules> {
    let mut rules: Rules = whole(ALL).collect();
    // Only a thread, in no other namespace.
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let flags = SeccompCmpOp::MaskedEq(NAMESPACES | thread);
    rules.insert(libc::SYS_clone, vec![rule([number(0, flags, thread)])?]);
    // Memory is never code.
    let code = u64::from(libc::PROT_EXEC.unsigned_abs());
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule([number(2, SeccompCmpOp::MaskedEq(code), 0)])?]);
    }
    // Only of itself: how an assertion ends a process.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![rule([number(0, SeccompCmpOp::Eq, own)])?]);
    // Limits are asked for and not set.
    rules.insert(libc::SYS_prlimit64, vec![rule([number(0, SeccompCmpOp::Eq, 0), no_address(2)])?]);
    match who {
        Who::Indexer => allow_indexer(&mut rules)?,
        Who::Recorder => allow_recorder(&mut rules)?,
        Who::Launcher => launcher_calls::allow(&mut rules)?,
        Who::Decoder => allow_decoder(&mut rules)?,
    }
    Ok(rules)
}

fn allow_indexer(rules: &mut Rules) -> Result<()> {
    rules.extend(whole(POLITELY));
    rules.extend(whole(&[libc::SYS_newfstatat, libc::SYS_prctl]));
    // To the other end of what it was handed, and to no address.
    rules.insert(libc::SYS_sendto, vec![rule([no_address(4)])?]);
    let commands = OF_DESCRIPTORS.iter().map(|command| u64::from(command.unsigned_abs()));
    rules.insert(libc::SYS_fcntl, each_of(1, commands)?);
    Ok(())
}

/// It starts threads, and no process: Landlock leaves one program, which is started already.
fn allow_decoder(rules: &mut Rules) -> Result<()> {
    rules.extend(whole(decoder_calls::CALLS));
    rules.extend(launcher_calls::of_libraries()?);
    let commands = OF_DESCRIPTORS.iter().map(|command| u64::from(command.unsigned_abs()));
    rules.insert(libc::SYS_fcntl, each_of(1, commands)?);
    rules.insert(libc::SYS_ioctl, each_of(1, QUESTIONS.iter().copied())?);
    let named = [libc::PR_SET_NAME, libc::PR_GET_NAME].map(|option| option.unsigned_abs().into());
    rules.insert(libc::SYS_prctl, each_of(0, named.into_iter())?);
    Ok(())
}

fn allow_recorder(rules: &mut Rules) -> Result<()> {
    rules.extend(whole(RECORDER));
    rules.extend(whole(&[libc::SYS_clone3]));
    rules.insert(libc::SYS_ioctl, each_of(1, QUESTIONS.iter().copied())?);
    let named = [libc::PR_SET_NAME, libc::PR_GET_NAME].map(|option| option.unsigned_abs().into());
    rules.insert(libc::SYS_prctl, each_of(0, named.into_iter())?);
    // A program at a driver lets go of it at the end: `BPF_LINK_DETACH`.
    rules.insert(libc::SYS_bpf, each_of(0, [34].into_iter())?);
    // A line for the system log, and threads of one process; whatever takes connections as root
    // could be talked into more.
    let local = u64::from(libc::AF_UNIX.unsigned_abs());
    let kind = u64::from(0xf_u32);
    let datagram = u64::from(libc::SOCK_DGRAM.unsigned_abs());
    let socket = rule([
        number(0, SeccompCmpOp::Eq, local),
        number(1, SeccompCmpOp::MaskedEq(kind), datagram),
    ])?;
    rules.insert(libc::SYS_socket, vec![socket]);
    rules.insert(libc::SYS_socketpair, vec![rule([number(0, SeccompCmpOp::Eq, local)])?]);
    Ok(())
}
