//! Children of others that the first process of a container inherits.

#![expect(unsafe_code, reason = "which child has ended has no safe wrapper")]

use core::mem::MaybeUninit;

use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, waitid};

/// The first process of a container inherits the children of all that end. As that, waits for those
/// that have ended and are not among `own`: whose end is asked for where they were started.
pub fn reap_orphans(own: &[u32]) {
    if !getpid().is_init() {
        return;
    }
    // One of ours is the first that the kernel names until its end is asked for; the next look is
    // behind that.
    while let Some(pid) = ended_child().filter(|pid| !is_among(*pid, own)) {
        let reap = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        // By its number: another one that ends meanwhile keeps its status.
        if waitid(WaitId::Pid(pid), reap).is_err() {
            return;
        }
    }
}

fn is_among(pid: Pid, own: &[u32]) -> bool {
    own.iter().any(|id| u32::try_from(pid.as_raw_pid()).is_ok_and(|pid| pid == *id))
}

/// A child that has ended and was not waited for, in whatever process group; it stays so.
fn ended_child() -> Option<Pid> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel writes no more than the structure that it is given for the call.
    let status = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), look) };
    if status != 0 {
        return None;
    }
    // SAFETY: it was zeroed, and all its bytes may be zero; the kernel has written more, maybe.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid(2) sets this field, to 0 where no child has ended.
    Pid::from_raw(unsafe { info.si_pid() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_ours_or_not() {
        let pid = Pid::from_raw(7).unwrap();
        assert!(is_among(pid, &[6, 7]) && !is_among(pid, &[6, 70]) && !is_among(pid, &[]));
    }
}
