//! The attempts. One line each: what, the call, its arguments.

use super::Argument::{
    InIndex, Member, New, Number, Page, Pool, Secret, Socket, Text, Victim, Words,
};
use super::Whom::{All, Launcher, NotLauncher, NotRecorder, Recorder};
use super::{Argument, Attempt, Whom, number};

use libc::c_long;

const CWD: Argument = number(libc::AT_FDCWD);
const NONE: Argument = Number(0);

const fn of(
    name: &'static str,
    call: c_long,
    arguments: &'static [Argument],
    whom: Whom,
) -> Attempt {
    Attempt { name, call, arguments, whom }
}

/// What must be refused.
pub(super) const FORBIDDEN: &[Attempt] = &[
    // Files.
    of("open a file for reading", libc::SYS_openat, &[CWD, Secret, NONE], All),
    of("open a file for writing", libc::SYS_openat, &[CWD, Secret, number(libc::O_WRONLY)], All),
    of(
        "make a file",
        libc::SYS_openat,
        &[CWD, New, number(libc::O_WRONLY | libc::O_CREAT), Number(0o600)],
        All,
    ),
    of(
        "make a file without a name",
        libc::SYS_openat,
        &[CWD, Text(c"/tmp"), number(libc::O_WRONLY | libc::O_TMPFILE), Number(0o600)],
        All,
    ),
    of("list a folder", libc::SYS_openat, &[CWD, Text(c"/etc"), number(libc::O_DIRECTORY)], All),
    of("open passwords", libc::SYS_openat, &[CWD, Text(c"/etc/shadow"), NONE], All),
    of(
        "open what runs on a crash for writing",
        libc::SYS_openat,
        &[CWD, Text(c"/proc/sys/kernel/core_pattern"), number(libc::O_WRONLY)],
        All,
    ),
    of(
        "open the own memory for writing",
        libc::SYS_openat,
        &[CWD, Text(c"/proc/self/mem"), number(libc::O_WRONLY)],
        All,
    ),
    of(
        "open a device for writing",
        libc::SYS_openat,
        &[CWD, Text(c"/dev/zero"), number(libc::O_WRONLY)],
        All,
    ),
    of("open with more rights", libc::SYS_openat2, &[CWD, Secret, Page, Number(24)], All),
    of("remove a file", libc::SYS_unlinkat, &[CWD, Secret, NONE], All),
    of("rename a file", libc::SYS_renameat2, &[CWD, Secret, CWD, New, NONE], All),
    of("link a file", libc::SYS_linkat, &[CWD, Secret, CWD, New, NONE], All),
    of("make a symbolic link", libc::SYS_symlinkat, &[Secret, CWD, New], All),
    of("make a folder", libc::SYS_mkdirat, &[CWD, New, Number(0o700)], All),
    of("make a device", libc::SYS_mknodat, &[CWD, New, Number(0o020_600), Number(259)], All),
    of("truncate a file", libc::SYS_truncate, &[Secret, NONE], All),
    of("give a file away", libc::SYS_fchownat, &[CWD, Secret, Number(1), Number(1), NONE], All),
    of(
        "set an attribute",
        libc::SYS_setxattr,
        &[Secret, Text(c"user.a"), Page, Number(1), NONE],
        All,
    ),
    of("change the folder", libc::SYS_chdir, &[Text(c"/etc")], NotLauncher),
    of("change the root", libc::SYS_chroot, &[Text(c"/")], All),
    of("make a handle of a file", libc::SYS_name_to_handle_at, &[CWD, Secret, Page, Page], All),
    of("open by a handle", libc::SYS_open_by_handle_at, &[CWD, Page, NONE], All),
    of("watch files", libc::SYS_inotify_init1, &[NONE], All),
    of("watch all files", libc::SYS_fanotify_init, &[NONE, NONE], All),
    // Programs and processes.
    of("execute a program", libc::SYS_execve, &[Text(c"/bin/true"), NONE, NONE], All),
    of(
        "execute memory",
        libc::SYS_execveat,
        &[Pool, Text(c""), NONE, NONE, number(libc::AT_EMPTY_PATH)],
        All,
    ),
    of(
        "copy the process",
        libc::SYS_clone,
        &[number(libc::SIGCHLD), NONE, NONE, NONE],
        NotLauncher,
    ),
    of("copy the process anew", libc::SYS_clone3, &[Page, Number(88)], All),
    of(
        "copy the process as another user",
        libc::SYS_clone,
        &[number(libc::CLONE_NEWUSER | libc::SIGCHLD), NONE, NONE, NONE],
        All,
    ),
    of("trace a process", libc::SYS_ptrace, &[Number(16), Victim, NONE, NONE], All),
    of("be traced", libc::SYS_ptrace, &[NONE, NONE, NONE, NONE], All),
    of(
        "read another process",
        libc::SYS_process_vm_readv,
        &[Victim, Page, Number(1), Page, Number(1), NONE],
        All,
    ),
    of(
        "write another process",
        libc::SYS_process_vm_writev,
        &[Victim, Page, Number(1), Page, Number(1), NONE],
        All,
    ),
    of("end another process", libc::SYS_kill, &[Victim, number(libc::SIGKILL)], All),
    of("signal everybody", libc::SYS_kill, &[Number(-1), NONE], All),
    of("signal a thread of others", libc::SYS_tgkill, &[Victim, Victim, NONE], All),
    of("get hold of a process", libc::SYS_pidfd_open, &[Victim, NONE], NotLauncher),
    of(
        "signal by a descriptor",
        libc::SYS_pidfd_send_signal,
        &[Socket, NONE, NONE, NONE],
        NotLauncher,
    ),
    of("take a descriptor of others", libc::SYS_pidfd_getfd, &[Socket, NONE, NONE], All),
    of(
        "take memory from others",
        libc::SYS_process_madvise,
        &[Socket, Page, Number(1), Number(21), NONE],
        All,
    ),
    of("compare processes", libc::SYS_kcmp, &[Victim, Victim, NONE, NONE, NONE], All),
    of("take over in front", libc::SYS_setpriority, &[NONE, NONE, Number(-20)], All),
    of("run before all others", libc::SYS_sched_setscheduler, &[NONE, Number(1), Page], All),
    of("lift a limit", libc::SYS_prlimit64, &[NONE, Number(7), Page, NONE], NotLauncher),
    of("limit another process", libc::SYS_prlimit64, &[Victim, Number(7), Page, NONE], All),
    // Users and rights.
    of("become root", libc::SYS_setuid, &[NONE], All),
    of("become root in all ways", libc::SYS_setresuid, &[NONE, NONE, NONE], All),
    of("join a group", libc::SYS_setgroups, &[Number(1), Page], All),
    of("take another group", libc::SYS_setgid, &[Number(1)], All),
    of("take capabilities", libc::SYS_capset, &[Page, Page], NotLauncher),
    of("be dumped again", libc::SYS_prctl, &[number(libc::PR_SET_DUMPABLE), Number(1)], All),
    of("keep capabilities", libc::SYS_prctl, &[number(libc::PR_SET_KEEPCAPS), Number(1)], All),
    of("outlive the parent", libc::SYS_prctl, &[number(libc::PR_SET_PDEATHSIG), NONE], All),
    of("lay another filter over this one", libc::SYS_seccomp, &[Number(1), Number(8), Page], All),
    of("change the personality", libc::SYS_personality, &[Number(0x0040_0000)], All),
    // Namespaces and mounts.
    of("leave a namespace", libc::SYS_unshare, &[number(libc::CLONE_NEWUSER)], All),
    of("leave the mounts", libc::SYS_unshare, &[number(libc::CLONE_NEWNS)], All),
    of("enter a namespace", libc::SYS_setns, &[Socket, NONE], All),
    of(
        "mount",
        libc::SYS_mount,
        &[Text(c"none"), Text(c"/nonexistent"), Text(c"tmpfs"), NONE, NONE],
        All,
    ),
    of("unmount", libc::SYS_umount2, &[Text(c"/nonexistent"), NONE], All),
    of("change the root mount", libc::SYS_pivot_root, &[Text(c"/"), Text(c"/")], All),
    of("open a tree of mounts", libc::SYS_open_tree, &[CWD, Text(c"/"), NONE], All),
    of("make a file system", libc::SYS_fsopen, &[Text(c"tmpfs"), NONE], All),
    // Sockets.
    of("open a TCP socket", libc::SYS_socket, &[Number(2), Number(1), NONE], All),
    of("open a UDP socket", libc::SYS_socket, &[Number(2), Number(2), NONE], All),
    of("open an IPv6 socket", libc::SYS_socket, &[Number(10), Number(1), NONE], All),
    of("open a raw socket", libc::SYS_socket, &[Number(2), Number(3), Number(1)], All),
    of("open a local stream", libc::SYS_socket, &[Number(1), Number(1), NONE], All),
    of(
        "open a local datagram socket",
        libc::SYS_socket,
        &[Number(1), Number(2), NONE],
        NotRecorder,
    ),
    of("open a packet socket", libc::SYS_socket, &[Number(17), Number(3), NONE], All),
    of("open a netlink socket", libc::SYS_socket, &[Number(16), Number(3), NONE], All),
    of("open a socket to the hypervisor", libc::SYS_socket, &[Number(40), Number(1), NONE], All),
    of("open a socket of ciphers", libc::SYS_socket, &[Number(38), Number(5), NONE], All),
    of("open an AF_XDP socket", libc::SYS_socket, &[Number(44), Number(3), NONE], All),
    of("connect", libc::SYS_connect, &[Socket, Page, Number(16)], All),
    of("bind", libc::SYS_bind, &[Socket, Page, Number(16)], All),
    of("listen", libc::SYS_listen, &[Socket, Number(1)], All),
    of("accept", libc::SYS_accept4, &[Socket, NONE, NONE, NONE], NotRecorder),
    of(
        "set an option of a socket",
        libc::SYS_setsockopt,
        &[Socket, Number(1), Number(2)],
        NotRecorder,
    ),
    of(
        "send to an address",
        libc::SYS_sendto,
        &[Socket, Page, Number(1), NONE, Page, Number(16)],
        NotRecorder,
    ),
    // Memory.
    of(
        "map memory as code",
        libc::SYS_mmap,
        &[NONE, Number(4096), Number(5), Number(0x22), Number(-1), NONE],
        All,
    ),
    of(
        "map memory as code that can be written",
        libc::SYS_mmap,
        &[NONE, Number(4096), Number(7), Number(0x22), Number(-1), NONE],
        All,
    ),
    of("make memory code", libc::SYS_mprotect, &[Page, Number(4096), Number(5)], All),
    of(
        "make memory code by a key",
        libc::SYS_pkey_mprotect,
        &[Page, Number(4096), Number(5), Number(-1)],
        All,
    ),
    of("handle the faults of memory", libc::SYS_userfaultfd, &[NONE], All),
    of("make a file of memory", libc::SYS_memfd_create, &[Text(c"a"), NONE], NotRecorder),
    of(
        "write to packets of the recorder",
        libc::SYS_mmap,
        &[NONE, Number(4096), Number(3), Number(1), Pool, NONE],
        NotRecorder,
    ),
    of("grow packets of the recorder", libc::SYS_ftruncate, &[Pool, Number(1 << 20)], NotRecorder),
    of(
        "seal packets of the recorder",
        libc::SYS_fcntl,
        &[Pool, Number(1033), Number(1)],
        NotRecorder,
    ),
    of("share memory by a key", libc::SYS_shmget, &[NONE, Number(4096), Number(0o1600)], All),
    of("make a queue of messages", libc::SYS_msgget, &[NONE, Number(0o1600)], All),
    of("open a queue of messages", libc::SYS_mq_open, &[Text(c"a"), Number(0o102), NONE], All),
    of("move pages of others", libc::SYS_migrate_pages, &[Victim, Number(1), Page, Page], All),
    // The kernel.
    of("load a program into the kernel", libc::SYS_bpf, &[Number(5), Page, Number(120)], All),
    of("count events", libc::SYS_perf_event_open, &[Page, NONE, NONE, Number(-1), NONE], All),
    of("set up a ring", libc::SYS_io_uring_setup, &[Number(8), Page], All),
    of("change a ring", libc::SYS_io_uring_register, &[Socket, Number(11), Page, Number(1)], All),
    of("ask a ring", libc::SYS_io_uring_enter, &[Socket, NONE, NONE, NONE], NotRecorder),
    of("add a key", libc::SYS_add_key, &[Text(c"user"), Text(c"a"), Page, Number(1)], All),
    of("read keys", libc::SYS_keyctl, &[NONE, Number(-3), NONE], All),
    of("ask for a key", libc::SYS_request_key, &[Text(c"user"), Text(c"a"), NONE, NONE], All),
    of("load a module", libc::SYS_init_module, &[Page, Number(16), Text(c"")], All),
    of("load a module of a file", libc::SYS_finit_module, &[Pool, Text(c""), NONE], All),
    of("unload a module", libc::SYS_delete_module, &[Text(c"none"), NONE], All),
    of("load another kernel", libc::SYS_kexec_load, &[NONE, NONE, NONE, NONE], All),
    // With a wrong first word, which no kernel takes for real.
    of("restart the machine", libc::SYS_reboot, &[Number(1), NONE, NONE, NONE], All),
    of("swap to a file", libc::SYS_swapon, &[Text(c"/nonexistent"), NONE], All),
    of("stop swapping", libc::SYS_swapoff, &[Text(c"/nonexistent")], All),
    of("set the clock", libc::SYS_settimeofday, &[Number(1), NONE], All),
    of("set a clock", libc::SYS_clock_settime, &[NONE, Number(1)], All),
    of("bend the clock", libc::SYS_adjtimex, &[Number(1)], NotRecorder),
    of("bend a clock", libc::SYS_clock_adjtime, &[NONE, Page], All),
    of("name the host", libc::SYS_sethostname, &[Text(c"a"), Number(-1)], All),
    of("name the domain", libc::SYS_setdomainname, &[Text(c"a"), Number(-1)], All),
    of("read the kernel's log", libc::SYS_syslog, &[Number(3), Page, Number(4096)], All),
    of("count for accounting", libc::SYS_acct, &[Text(c"/nonexistent")], All),
    of("set a quota", libc::SYS_quotactl, &[NONE, Text(c"/nonexistent"), NONE, Page], All),
    of("type at a terminal", libc::SYS_ioctl, &[NONE, Number(0x5412), Page], All),
    of("ask a disk for anything", libc::SYS_ioctl, &[Socket, Number(0x2285), Page], All),
    of("configure an interface", libc::SYS_ioctl, &[Socket, Number(0x8914), Page], All),
    #[cfg(target_arch = "x86_64")]
    of("copy the process as of old", libc::SYS_fork, &[], NotLauncher),
    #[cfg(target_arch = "x86_64")]
    of("open as of old", libc::SYS_open, &[Secret, NONE], All),
    #[cfg(target_arch = "x86_64")]
    of("talk to devices", libc::SYS_iopl, &[Number(3)], All),
    #[cfg(target_arch = "x86_64")]
    of("change segments", libc::SYS_modify_ldt, &[Number(1), Page, Number(16)], All),
    #[cfg(target_arch = "x86_64")]
    of("open as a program of 32 bits", 0x4000_0000 + libc::SYS_open, &[Secret, NONE], All),
];

/// What must go on, or the list above proves nothing.
pub(super) const ALLOWED: &[Attempt] = &[
    of("write to the other side", libc::SYS_write, &[Socket, Page, Number(1)], All),
    of(
        "read packets of the recorder",
        libc::SYS_mmap,
        &[NONE, Number(4096), Number(1), Number(1), Pool, NONE],
        All,
    ),
    of("look at a clock", libc::SYS_clock_gettime, &[Number(1), Page], All),
    of(
        "take memory",
        libc::SYS_mmap,
        &[NONE, Number(4096), Number(3), Number(0x22), Number(-1), NONE],
        All,
    ),
    of("get random bytes", libc::SYS_getrandom, &[Page, Number(8), NONE], All),
    of("name a thread", libc::SYS_prctl, &[number(libc::PR_SET_NAME), Text(c"a")], All),
    of("open a member", libc::SYS_openat, &[CWD, Member, number(libc::O_RDWR)], Recorder),
    of(
        "make a file in the index directory",
        libc::SYS_openat,
        &[CWD, InIndex, number(libc::O_WRONLY | libc::O_CREAT), Number(0o600)],
        Recorder,
    ),
    of("make a folder in it", libc::SYS_mkdirat, &[CWD, InIndex, Number(0o700)], Recorder),
    of(
        "read counters",
        libc::SYS_openat,
        &[CWD, Text(c"/sys/class/net/lo/statistics/rx_bytes"), NONE],
        Recorder,
    ),
    of("write a line to the log", libc::SYS_socket, &[Number(1), Number(2), NONE], Recorder),
    of("start a process", libc::SYS_clone, &[number(libc::SIGCHLD), NONE, NONE, NONE], Launcher),
    of("be the own program", libc::SYS_execve, &[Text(c"/proc/self/exe"), Words, NONE], Launcher),
    of("get hold of a child", libc::SYS_pidfd_open, &[Victim, NONE], Launcher),
    of(
        "make a pair of sockets",
        libc::SYS_socketpair,
        &[Number(1), Number(5), NONE, Page],
        Launcher,
    ),
    of(
        "open nothing",
        libc::SYS_openat,
        &[CWD, Text(c"/dev/null"), number(libc::O_RDWR)],
        Launcher,
    ),
    of("lower a limit", libc::SYS_prlimit64, &[NONE, Number(7), Page, NONE], Launcher),
    of("be dumped by nobody", libc::SYS_prctl, &[number(libc::PR_SET_DUMPABLE), NONE], Launcher),
    of(
        "end with the parent",
        libc::SYS_prctl,
        &[number(libc::PR_SET_PDEATHSIG), number(libc::SIGKILL)],
        Launcher,
    ),
];
