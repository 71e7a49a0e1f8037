//! What threads do at this moment, by `/proc`: of those that make no call while they are listened
//! to nothing would be known.

use std::fs;
use std::path::{Path, PathBuf};

use host::processes::{Stat, place};

/// What a thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NowIn {
    /// The number of the call.
    pub number: u32,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// It waits, and no signal wakes it.
    pub is_blocked: bool,
}

/// The call that a thread waits in (`proc_pid_syscall(5)`); `None` of one that is in none, runs, is
/// gone, or may not be looked at.
pub fn now_in(thread: u32) -> Option<NowIn> {
    let text = fs::read_to_string(place(thread).join("syscall")).ok()?;
    // One that has ended, and was not waited for, is in its last call for ever.
    let is_blocked = Stat::of(thread).filter(|stat| stat.is_alive)?.is_waiting;
    parse(&text).map(|(number, arguments)| NowIn { number, arguments, is_blocked })
}

/// The function of the kernel that a thread waits in (`/proc/PID/wchan`); `None` of one that runs,
/// or where that is not told.
pub fn stands_in(thread: u32) -> Option<String> {
    let name = fs::read_to_string(place(thread).join("wchan")).ok()?;
    (!matches!(&*name, "" | "0")).then_some(name)
}

/// `7 0x7ffd 0x1 0xffff 0x0 0x0 0x0 0x7ffc 0x7f11`, `-1 0x7ffc 0x7f11` outside of a call, or
/// `running`.
fn parse(text: &str) -> Option<(u32, [u64; 6])> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((number, [next()?, next()?, next()?, next()?, next()?, next()?]))
}

/// The place where the file system of a path is mounted, and its kind: `(/mnt, fuse.sshfs)`.
pub fn filesystem_of(path: &Path) -> Option<(PathBuf, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    longest(&mounts, path)
}

/// The disk that a path is on, as its file system names it: `/dev/sda1`. `None` of one that is on
/// none.
pub fn disk_of(path: &Path) -> Option<String> {
    if path.starts_with("/dev") {
        return Some(path.display().to_string());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (_, what) = above(&mounts, path)?;
    let source = what.split(' ').nth(1)?;
    source.starts_with("/dev/").then(|| source.replace("\\040", " "))
}

fn longest(mounts: &str, path: &Path) -> Option<(PathBuf, String)> {
    let (place, what) = above(mounts, path)?;
    Some((place, what.split(' ').next()?.to_owned()))
}

/// Where the file system of a path is mounted, and what stands behind that in its line: kind, what
/// it is on, options.
fn above<'a>(mounts: &'a str, path: &Path) -> Option<(PathBuf, &'a str)> {
    let mount = |line: &'a str| {
        let (head, tail) = line.split_once(" - ")?;
        // Blanks in names are written as `\040`.
        let place = head.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(place), tail))
    };
    // Of several at one place the last one is seen.
    let above = mounts.lines().filter_map(mount).filter(|(place, _)| path.starts_with(place));
    above.max_by_key(|(place, _)| place.as_os_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_is_in_a_call() {
        let line = "7 0x7ffd 0x1 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f11\n";
        assert_eq!(parse(line), Some((7, [0x7ffd, 1, 0xffff_ffff, 0, 0, 0])));
        for other in ["-1 0x7ffc 0x7f11", "running", "", "7 0x1"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let sleeps = || now_in(child.id()).and_then(|now| super::super::call_name(now.number));
        let deadline_ns = crate::tracepoints::monotonic_ns() + 20_000_000_000;
        let mut in_sleep = None;
        while in_sleep.is_none() && crate::tracepoints::monotonic_ns() < deadline_ns {
            in_sleep = sleeps().filter(|name| *name == "clock_nanosleep");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(in_sleep.is_some());
    }

    #[test]
    fn the_nearest_mount_is_that_of_a_path() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:9 / /mnt/my\\040files rw shared:1 - fuse.sshfs host: rw\n";
        let of = |path: &str| longest(mounts, Path::new(path)).unwrap().1;
        assert_eq!((of("/mnt/my files/a"), of("/mnt/other")), ("fuse.sshfs".into(), "ext4".into()));
    }
}
