//! Giving up rights in every thread.
//!
//! Capabilities and Landlock belong to threads, and some threads are there before everything is
//! open. The C library has the same need when a process changes its user, and does the same: each
//! thread gets a signal, and gives up in its handler. What is done there are system calls and
//! nothing else.

#![expect(unsafe_code, reason = "a handler makes system calls that have no safe wrappers")]

use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{Timespec, poll};
use rustix::thread::{CapabilitySet, capabilities};

use super::Notes;
use crate::deadline::Deadline;

/// How long all threads may take: each has only to be woken.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
/// More threads than a recorder has.
const THREADS_MAX: usize = 256;
/// Highest number of a capability that a kernel may know.
const CAPABILITY_MAX: libc::c_ulong = 63;
/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
const VERSION: u32 = 0x2008_0522;

/// The steps that failed in some thread.
pub(super) const CAPABILITIES: u32 = 1;
pub(super) const NO_NEW_PRIVILEGES: u32 = 1 << 1;
pub(super) const LANDLOCK: u32 = 1 << 2;

/// What every thread gives up.
#[derive(Debug)]
pub(super) struct Steps {
    keep: u64,
    permitted: u64,
    landlock: Option<RawFd>,
    failed: AtomicU32,
}

/// What did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct GivenUp {
    /// The steps that failed, where they were tried.
    pub(super) failed: u32,
    /// Threads that did not answer, and keep what they have.
    pub(super) silent: usize,
}

impl GivenUp {
    /// Says what could not be given up.
    pub(super) fn note(&self, has_landlock: bool, who: &str, notes: &mut Notes) {
        if !has_landlock || self.failed & LANDLOCK != 0 {
            notes.push(format!("the {who} may open every file of its user: no Landlock here"));
        }
        if self.failed & CAPABILITIES != 0 {
            notes.push(format!("the {who} keeps its capabilities"));
        }
        if self.failed & NO_NEW_PRIVILEGES != 0 {
            notes.push(format!("the {who} could gain rights by starting a program"));
        }
        if self.silent > 0 {
            notes.push(format!("{} threads of the {who} keep what they had", self.silent));
        }
    }
}

static STEPS: AtomicPtr<Steps> = AtomicPtr::new(ptr::null_mut());
static DONE: [AtomicI32; THREADS_MAX] = [const { AtomicI32::new(0) }; THREADS_MAX];
static DONE_COUNT: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Keeps these capabilities, as far as the process has them, and what the ruleset leaves of files.
pub(super) fn give_up(keep: CapabilitySet, landlock: Option<&OwnedFd>) -> GivenUp {
    let _one = stage::lock(&ONE_AT_A_TIME);
    let held = capabilities(None).map(|held| held.permitted.bits()).unwrap_or_default();
    let steps = Steps {
        keep: keep.bits() & held,
        permitted: held,
        landlock: landlock.map(AsRawFd::as_raw_fd),
        failed: AtomicU32::new(0),
    };
    // A thread that answers late must still find it.
    let steps: &'static Steps = Box::leak(Box::new(steps));
    STEPS.store(ptr::from_ref(steps).cast_mut(), Ordering::Release);
    let silent = in_other_threads();
    steps.take();
    GivenUp { failed: steps.failed.load(Ordering::Acquire), silent }
}

/// Has every other thread do it; gives the number of those that did not answer.
fn in_other_threads() -> usize {
    let signal = libc::SIGRTMAX() - 1;
    DONE_COUNT.store(0, Ordering::Release);
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let mut others = pending(own);
    if others.is_empty() {
        return 0;
    }
    if !install(signal) {
        return others.len();
    }
    let (mut asked, deadline) = (BTreeSet::new(), Deadline::after(PATIENCE));
    // A thread that has not given up yet may start another one, so it ends when none is left.
    while !others.is_empty() && !deadline.is_over() {
        for &thread in others.iter().filter(|thread| !asked.contains(*thread)) {
            // SAFETY: a signal to a thread of this process, or to none if it has ended.
            unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) };
        }
        asked.extend(others);
        // Nothing is polled: it sleeps.
        poll(&mut [], Some(&LOOK)).unwrap_or_default();
        others = pending(own);
    }
    others.len()
}

/// Threads that have not given up, without those of the kernel that work for a ring: these take
/// their rights from the thread that submits.
fn pending(own: i32) -> BTreeSet<i32> {
    let count = DONE_COUNT.load(Ordering::Acquire).min(THREADS_MAX);
    let done: BTreeSet<i32> =
        DONE.iter().take(count).map(|thread| thread.load(Ordering::Acquire)).collect();
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |thread: &i32| {
        let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        // One that has ended meanwhile has no name.
        name.is_ok_and(|name| !name.starts_with("iou-"))
    };
    threads.filter(|thread| *thread != own && !done.contains(thread) && is_ours(thread)).collect()
}

/// No program that is started in this thread gets a capability back, but those to keep. It takes
/// the right to do so; without it `no_new_privs` has to do.
pub(super) fn drop_bounding_set(keep: u64) {
    for capability in 0..=CAPABILITY_MAX {
        if keep >> capability & 1 == 0 {
            // A number that is none, or is dropped already, changes nothing.
            // SAFETY: numbers.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) };
        }
    }
}

fn install(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a value of it: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int) = on_signal;
    #[expect(clippy::as_conversions, reason = "the C library takes a handler as a number")]
    let handler = handler as *const () as libc::sighandler_t;
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler makes system calls only, and stays for ever.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) == 0 }
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: the address of this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; it is read and put back around what changes it.
    let before = unsafe { *errno };
    // SAFETY: null, or what was leaked for good.
    if let Some(steps) = unsafe { STEPS.load(Ordering::Acquire).as_ref() } {
        steps.take();
    }
    // SAFETY: it takes nothing.
    let own = unsafe { libc::syscall(libc::SYS_gettid) };
    let place = DONE_COUNT.load(Ordering::Acquire);
    note_done(place, i32::try_from(own).unwrap_or(0));
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// The count rises over a place only once it is filled.
fn note_done(mut place: usize, thread: i32) {
    while let Some(slot) = DONE.get(place) {
        let is_free = slot.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Acquire).is_ok();
        DONE_COUNT.fetch_max(place + usize::from(is_free), Ordering::AcqRel);
        if is_free {
            return;
        }
        place += 1;
    }
}

impl Steps {
    /// For the one thread of a process that keeps nothing, and gives up these files. It allocates
    /// nothing.
    pub(super) fn alone(landlock: RawFd) -> Self {
        let landlock = Some(landlock);
        Self { keep: 0, permitted: u64::MAX, landlock, failed: AtomicU32::new(0) }
    }

    /// Takes all of them; whether none failed.
    pub(super) fn are_taken(&self) -> bool {
        self.take();
        self.failed.load(Ordering::Acquire) == 0
    }

    /// In this thread; only system calls, for a handler calls it.
    fn take(&self) {
        self.drop_capabilities();
        // SAFETY: numbers.
        let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        self.note(done.into(), NO_NEW_PRIVILEGES);
        if let Some(ruleset) = self.landlock {
            // SAFETY: numbers, of which one is a descriptor that outlives this.
            let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
            self.note(done, LANDLOCK);
        }
    }

    fn drop_capabilities(&self) {
        let none: libc::c_ulong = 0;
        // SAFETY: numbers.
        let done = unsafe {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, none, none, none)
        };
        self.note(done.into(), CAPABILITIES);
        drop_bounding_set(self.keep);
        if self.permitted == self.keep {
            return;
        }
        let header = Header { version: VERSION, pid: 0 };
        let [low, high] = [self.keep & u64::from(u32::MAX), self.keep >> 32].map(|half| {
            let half = u32::try_from(half).unwrap_or(0);
            Data { effective: half, permitted: half, inheritable: 0 }
        });
        let data = [low, high];
        // SAFETY: both are as the kernel reads them: `capset(2)`, version 3.
        let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
        self.note(done, CAPABILITIES);
    }

    fn note(&self, answer: libc::c_long, step: u32) {
        if answer != 0 {
            self.failed.fetch_or(step, Ordering::AcqRel);
        }
    }
}
