//! The system calls of a program of others that makes text of packets.

use libc::c_long;

/// What a decoder may call besides what all may: it loads libraries and reads what Landlock leaves.
pub(super) const CALLS: &[c_long] = &[
    libc::SYS_dup,
    libc::SYS_execve,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getuid,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_readlinkat,
    libc::SYS_set_tid_address,
    // Without capabilities it stays who it is.
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_statx,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
];
