//! This process: random bytes for it, its processor time, its limits, its terminal.

#![expect(unsafe_code, reason = "getrusage and mallopt have no safe wrappers")]

use core::mem::MaybeUninit;
use core::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::Error;

/// Random bytes from the kernel's generator, fit for keys.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let (mut bytes, mut filled) = ([0; N], 0);
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::system("get random bytes", errno)),
        }
    }
    Ok(bytes)
}

/// Memory that is freed stays with the process, to be used again, where it is up to 32 MiB in one
/// piece; at most as many threads as there are processors have memory of their own. For a process
/// of milliseconds: a new page costs as much as filling it.
///
/// Nothing is done where the C library is not glibc.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        let arenas = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let settings = [
            (libc::M_MMAP_THRESHOLD, 32 << 20),
            (libc::M_TRIM_THRESHOLD, 256 << 20),
            (libc::M_TOP_PAD, 4 << 20),
            (libc::M_ARENA_MAX, libc::c_int::try_from(arenas).unwrap_or(libc::c_int::MAX)),
        ];
        for (parameter, value) in settings {
            // SAFETY: mallopt takes two numbers; one that it does not like changes nothing.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

/// Memory that can be taken without pushing out what others use, as the kernel estimates it
/// (`MemAvailable` of `proc_meminfo(5)`).
pub fn memory_available_bytes() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Processor time of all threads of this process since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// Time in the code of the process.
    pub user: Duration,
    /// In the kernel on our behalf.
    pub system: Duration,
}

impl CpuTime {
    /// Time of both together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// What was used since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// Processor time used so far.
pub fn cpu_time() -> Result<CpuTime, Error> {
    cpu_time_of(libc::RUSAGE_SELF)
}

/// Processor time of the children that have ended and were waited for.
pub fn children_cpu_time() -> Result<CpuTime, Error> {
    cpu_time_of(libc::RUSAGE_CHILDREN)
}

fn cpu_time_of(whose: libc::c_int) -> Result<CpuTime, Error> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage writes one rusage to the address given.
    let result = unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    if result != 0 {
        return Err(Error::system("get the processor time", std::io::Error::last_os_error()));
    }
    // SAFETY: getrusage succeeded, so it filled the structure.
    let usage = unsafe { usage.assume_init() };
    Ok(CpuTime { user: duration(usage.ru_utime), system: duration(usage.ru_stime) })
}

pub(crate) fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// How much memory this process may lock; `None` is without limit. Does not bind with
/// `CAP_IPC_LOCK`.
pub fn memlock_limit_bytes() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// How long a file may become that this process writes; `None` is without limit. What is written
/// beyond that ends the process.
pub fn file_size_limit_bytes() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// The number of this process.
pub fn own_process() -> u32 {
    std::process::id()
}

/// The width of the terminal that standard output is, or `None` if it is none.
pub fn terminal_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    // A terminal that does not know its width says 0.
    Some(if size.ws_col == 0 { 80 } else { size.ws_col })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ() {
        assert_ne!(random_bytes::<32>().unwrap(), random_bytes::<32>().unwrap());
        assert!(random_bytes::<0>().unwrap().is_empty());
    }

    #[test]
    fn processor_time_grows_with_work() {
        let before = cpu_time().unwrap();
        while cpu_time().unwrap().user + cpu_time().unwrap().system <= before.user + before.system {
        }
    }
}
