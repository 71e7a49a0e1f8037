//! A process that ends itself unless it says in time that all is well, also where it is stopped.

#![expect(unsafe_code, reason = "timers of a process have no safe interface")]

use core::mem::MaybeUninit;
use core::time::Duration;
use std::ptr;

/// The kernel kills this process when the time is over, unless this value is dropped before: a
/// process that was stopped, or hangs, lets go of what it has open.
#[derive(Debug)]
pub struct LastResort {
    timer: libc::timer_t,
}

// SAFETY: the number of a timer is good in every thread of its process.
unsafe impl Send for LastResort {}

impl LastResort {
    /// `None` where the kernel gives no timer.
    pub fn after(time: Duration) -> Option<Self> {
        // SAFETY: all of its fields may be zero.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both point to values of their types.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_BOOTTIME, &raw mut event, &raw mut timer) };
        if made != 0 {
            return None;
        }
        let own = Self { timer };
        let once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
        let after = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
        let setting = libc::itimerspec { it_interval: once, it_value: after };
        // SAFETY: the timer was made above, and the setting is one.
        let set = unsafe { libc::timer_settime(own.timer, 0, &raw const setting, ptr::null_mut()) };
        (set == 0).then_some(own)
    }
}

impl Drop for LastResort {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `after`, and is deleted once.
        let status = unsafe { libc::timer_delete(self.timer) };
        assert_eq!(status, 0, "a timer that was made can be deleted");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use units::{Clock as _, Sleep as _};

    use super::*;

    /// The process of this test alone would end: it starts itself for that.
    #[test]
    fn a_stopped_process_ends_and_one_that_was_in_time_does_not() {
        const STEP: &str = "WIRESPOOL_TEST_LAST_RESORT";
        if let Some(step) = std::env::var_os(STEP) {
            let last = LastResort::after(Duration::from_millis(300)).unwrap();
            if step == "in time" {
                drop(last);
                let now_ns = crate::SystemClock.boottime_ns();
                crate::SystemClock.sleep_until(now_ns + 600_000_000);
                return;
            }
            // Stops itself, and nobody continues it.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)
                .unwrap();
            unreachable!("it is ended while it is stopped");
        }
        let name = "last_resort::tests::a_stopped_process_ends_and_one_that_was_in_time_does_not";
        let run = |step: &str| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name, "--nocapture"]).env(STEP, step);
            command.output().unwrap().status
        };
        assert_eq!(run("stopped").signal(), Some(libc::SIGKILL));
        assert_eq!(run("in time").code(), Some(0));
    }
}
