//! Ctrl-C, termination and whatever else ends a process as a flag that long work looks at.

#![expect(unsafe_code, reason = "a handler of our own has no safe wrapper")]

use core::ops::{ControlFlow, RangeInclusive};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};

use crate::{Error, read_text};

/// 128 + SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// Signals that end a process which does nothing about them, and come from outside: from a terminal
/// that is closed, a limit of time, a script. Not those that our own mistakes raise. SIGPIPE is
/// ignored in every Rust program; a pipe without a reader shows in the write.
const ENDING: [i32; 14] = [
    SIGINT,
    SIGTERM,
    SIGHUP,
    SIGQUIT,
    SIGXCPU,
    SIGXFSZ,
    SIGALRM,
    SIGVTALRM,
    SIGPROF,
    SIGUSR1,
    SIGUSR2,
    SIGIO,
    POWER_FAILS,
    STACK_FAULT,
];
/// A supply of power that warns before it ends.
const POWER_FAILS: i32 = Signal::POWER.as_raw();
/// Which no processor of today raises.
const STACK_FAULT: i32 = Signal::STKFLT.as_raw();
/// Signals without a meaning of their own, which service managers and scripts give one (signal(7)).
/// The first of the kernel's, from 32 on, belong to the C library: two to glibc's, three to musl's.
const REAL_TIME: RangeInclusive<i32> = if cfg!(target_env = "musl") { 35..=64 } else { 34..=64 };
/// Heard also by who was started with them ignored, as shells start what runs in the background.
const ALWAYS_HEARD: [i32; 2] = [SIGINT, SIGTERM];

/// Signals by which a person says it again: after any other they end the process at once. A
/// terminal that closes sends two of SIGHUP, one of the kernel's and one of the shell's, and a
/// service manager one behind its SIGTERM; these say nothing new.
const HURRYING: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// A second signal within so long of the first says nothing new: coreutils' `timeout` sends one to
/// its child and one to the group that the child is in.
const ONE_WISH_MS: i64 = 200;

/// When the first signal came after any flag was installed, in milliseconds since the machine was
/// started; 0 before.
static FIRST_MS: AtomicI64 = AtomicI64::new(0);

/// Whether a signal that some [`StopFlag`] hears has come.
pub fn is_signalled() -> bool {
    FIRST_MS.load(Ordering::Relaxed) != 0
}

/// Set by the first signal that would end the process; SIGINT, SIGTERM or SIGQUIT some time after
/// it ends it at once with status 130. What the process was started to ignore (`nohup`) it ignores,
/// but for SIGINT and SIGTERM.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that signals set. The handlers stay for the life of the process.
    pub fn install() -> Result<Self, Error> {
        Self::install_but(&[])
    }

    /// The same, but SIGHUP ends the process at once: for what shows something on a terminal. One
    /// that is closed gives the end of input to whoever reads keys, over and over.
    pub fn install_on_terminal() -> Result<Self, Error> {
        Self::install_but(&[SIGHUP])
    }

    /// The same, with a flag of its own for SIGHUP, by which services read their files again.
    pub fn install_with_reload() -> Result<(Self, ReloadFlag), Error> {
        let reload = ReloadFlag::default();
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload.0))
            .map_err(|error| Error::system("install a signal handler", error))?;
        Ok((Self::install_but(&[SIGHUP])?, reload))
    }

    fn install_but(others: &[i32]) -> Result<Self, Error> {
        let flag = Self::default();
        let ignored = ignored();
        let is_heard = |signal: &i32| {
            !others.contains(signal) && (ALWAYS_HEARD.contains(signal) || !ignored.contains(signal))
        };
        for signal in ENDING.into_iter().chain(REAL_TIME).filter(is_heard) {
            hear(signal, &flag.0)
                .map_err(|error| Error::system("install a signal handler", error))?;
        }
        Ok(flag)
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether long work goes on.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Stops as a signal does.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn hear(signal: i32, flag: &Arc<AtomicBool>) -> io::Result<()> {
    let hurries = HURRYING.contains(&signal);
    // SAFETY: the handler reads a clock, changes an atomic and may call `_exit`, all of which
    // signal-safety(7) allows; it takes no lock, allocates nothing and does not unwind.
    unsafe { signal_hook::low_level::register(signal, move || came(hurries)) }?;
    signal_hook::flag::register(signal, Arc::clone(flag))?;
    Ok(())
}

/// A signal is here; runs in its handler.
fn came(hurries: bool) {
    let now = clock_gettime(ClockId::Monotonic);
    let now_ms = now.tv_sec.wrapping_mul(1000).wrapping_add(now.tv_nsec / 1_000_000).max(1);
    let first = FIRST_MS.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    if hurries && first.is_err_and(|first| now_ms.wrapping_sub(first) >= ONE_WISH_MS) {
        signal_hook::low_level::exit(INTERRUPTED);
    }
}

/// Set by SIGHUP.
#[derive(Debug, Clone, Default)]
pub struct ReloadFlag(Arc<AtomicBool>);

impl ReloadFlag {
    /// Whether a signal has come since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// The signals that this process ignores: `proc_pid_status(5)`. None where the kernel does not say.
fn ignored() -> Vec<i32> {
    let status = read_text("/proc/self/status".as_ref()).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).filter(|signal| mask & (1 << (signal - 1)) != 0).collect()
}
