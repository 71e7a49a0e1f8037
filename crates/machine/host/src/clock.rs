//! The system's clocks.

#![expect(unsafe_code, reason = "adjtimex(2) has no safe wrapper")]

use std::sync::LazyLock;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use units::{Clock, ClockState, NANOS_PER_SECOND, Sleep, Timestamp};

/// The real implementation of [`Clock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

fn nanos(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(time.tv_nsec)
}

impl Clock for SystemClock {
    fn realtime(&self) -> Timestamp {
        Timestamp(nanos(clock_gettime(ClockId::Realtime)))
    }

    fn boottime_ns(&self) -> i64 {
        nanos(clock_gettime(ClockId::Boottime))
    }

    fn boot(&self) -> u64 {
        static BOOT: LazyLock<u64> = LazyLock::new(crate::claimant::boot);
        *BOOT
    }

    fn state(&self) -> Option<ClockState> {
        // SAFETY: a structure of numbers, for which zeros are a value: no mode, so the call changes
        // nothing.
        let mut state: libc::timex = unsafe { core::mem::zeroed() };
        // The number, because the C library would make another call, which a recorder may not.
        // SAFETY: the structure is ours, and the kernel writes into it alone.
        let answer = unsafe { libc::syscall(libc::SYS_adjtimex, &raw mut state) };
        let micros = |value: libc::c_long| u64::try_from(value).ok();
        Some(ClockState {
            // An answer below zero is an error.
            is_synchronised: u64::try_from(answer).ok()? != TIME_ERROR
                && state.status & libc::STA_UNSYNC == 0,
            estimated_error_us: micros(state.esterror)?,
            largest_error_us: micros(state.maxerror)?,
        })
    }
}

/// The clock is not synchronised (`linux/timex.h`).
const TIME_ERROR: u64 = 5;

/// The end of a sleep that is spent awake: longer than the kernel takes to wake a thread (its timer
/// slack is 50 us).
const AWAKE_NS: i64 = 100_000;

/// To the microsecond, at the price of 0.1 ms of processor time for each sleep.
impl Sleep for SystemClock {
    fn sleep_until(&self, until_ns: i64) {
        let asleep_ns = until_ns.saturating_sub(AWAKE_NS);
        let wake = Timespec {
            tv_sec: asleep_ns.div_euclid(NANOS_PER_SECOND),
            tv_nsec: asleep_ns.rem_euclid(NANOS_PER_SECOND),
        };
        // A signal ends the sleep early; there is nothing else to fail at.
        while self.boottime_ns() < asleep_ns
            && clock_nanosleep_absolute(ClockId::Boottime, &wake).is_err()
        {}
        while self.boottime_ns() < until_ns {
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel's own rules have it: an error at most is at least the one that is likely.
    #[test]
    fn the_kernel_says_how_well_the_clock_is_kept() {
        let state = SystemClock.state().expect("a kernel that answers");
        assert!(state.largest_error_us <= 16_000_000, "NTP_PHASE_LIMIT: {state:?}");
        if state.is_synchronised {
            assert!(state.largest_error_us < 16_000_000, "{state:?}");
        }
    }

    #[test]
    fn a_sleep_ends_when_it_should_and_not_before() {
        let until = SystemClock.boottime_ns() + 2_000_000;
        SystemClock.sleep_until(until);
        assert!(SystemClock.boottime_ns() >= until);
        SystemClock.sleep_until(until - 1_000_000_000);
    }

    #[test]
    fn the_clocks_run_and_tell_this_century() {
        let (first, boot) = (SystemClock.realtime(), SystemClock.boottime_ns());
        assert!(first.to_string().starts_with("20"), "{first}");
        while SystemClock.boottime_ns() == boot {}
        assert!(SystemClock.boottime_ns() > boot);
    }
}
