//! The system calls of a launcher, and of a child until it has confined itself.

use libc::{c_int, c_long};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::SeccompRule;

use super::capabilities::NOBODY;
use super::rules::{
    NAMESPACES, OF_DESCRIPTORS, Result, Rules, each_of, no_address, number, rule, whole,
};

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

/// Adds what a launcher and a child that begins may call, to what all may; takes the place of rules
/// that leave less.
pub(super) fn allow(rules: &mut Rules) -> Result<()> {
    let value = |value: c_int| u64::from(value.unsigned_abs());
    rules.extend(whole(LAUNCHER));
    // To the other end of what it was handed, as an indexer.
    rules.insert(libc::SYS_sendto, vec![rule([no_address(4)])?]);
    // Processes, in no other namespace.
    rules.insert(libc::SYS_clone, vec![rule([number(0, MaskedEq(NAMESPACES), 0)])?]);
    rules.extend(of_libraries()?);
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
    let commands = OF_DESCRIPTORS.iter().map(|command| value(*command));
    rules.insert(libc::SYS_fcntl, each_of(1, commands)?);
    rules.insert(libc::SYS_prctl, options_of_process()?);
    // A list that is for this process, and lets no other process decide: no `NEW_LISTENER`.
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
    rules.insert(libc::SYS_seccomp, vec![rule([number(0, Eq, mode), number(1, Eq, all_threads)])?]);
    Ok(())
}

/// What a program does that loads libraries, which may abort it.
pub(super) fn of_libraries() -> Result<Rules> {
    let value = |value: c_int| u64::from(value.unsigned_abs());
    let mut rules = Rules::new();
    // Code comes from files, which Landlock names, and is not written.
    let [code, written] = [libc::PROT_EXEC, libc::PROT_WRITE].map(value);
    let anonymous = value(libc::MAP_ANONYMOUS);
    let data = rule([number(2, MaskedEq(code), 0)])?;
    let library =
        rule([number(2, MaskedEq(code | written), code), number(3, MaskedEq(anonymous), 0)])?;
    rules.insert(libc::SYS_mmap, vec![data, library]);
    // How an assertion ends a process: each child has another number.
    rules.insert(libc::SYS_tgkill, vec![rule([number(2, Eq, value(libc::SIGABRT))])?]);
    Ok(rules)
}

/// A name, and what takes rights away.
fn options_of_process() -> Result<Vec<SeccompRule>> {
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
