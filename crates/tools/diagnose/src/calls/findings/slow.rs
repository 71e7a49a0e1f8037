//! Files that are waited for.
//!
//! A read waits for what is not in memory. A write goes to memory, and waits for the disk for few
//! reasons, each with a sign of its own: the file is opened so that writes are durable, the kernel
//! holds writers back, or somebody has locked the file or frozen its file system. Where no sign is
//! seen, all of them are named, and what would tell them apart.

use ::calls::{CallWatch, Target, UsesOf, Work};
use units::ByteSize;

use super::measure::{disk_of, is_share, kind_of, long, reach, slowest, waited, wakers};
use findings::words::plural;
use findings::{Finding, Remedy, Severity};

/// Hundredths of the life of a process.
const WAITS: u64 = 20;

/// What a file is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// A program or another machine serves it.
    Server,
    /// The disk, or a lock of the file.
    Read,
    /// Folders and tables of the file system.
    Lookup,
    /// Each write is durable when it returns.
    Durable,
    /// Nobody may write to the file system for now.
    Frozen,
    /// More is written than the disk takes.
    HeldBack,
    /// A lock of the file within the kernel.
    Locked,
    /// Any of the last four.
    Write,
    /// Requests that were given to the kernel before.
    Requests,
}

pub(super) fn finding(watch: &CallWatch, of: &UsesOf, work: Work) -> Option<Finding> {
    let (count, waited_ns) = (of.all.count, of.all.file_ns);
    // A path that is looked up is no descriptor's.
    let has_none = matches!(work, Work::Lookup | Work::Requests);
    let is_file = of.target(watch).map_or(has_none, Target::is_file);
    if !is_file || !is_share(waited_ns, watch.life_ns(of.process), WAITS) {
        return None;
    }
    let (why, name) = (Why::of(watch, of, work), of.target_name(watch));
    let verb = match work {
        Work::Write => "writes to",
        Work::Lookup => "looking up",
        Work::Requests => "its requests to",
        _ => "reads of",
    };
    // Who waits for requests does not say how much they moved.
    let bytes = match work {
        Work::Requests => String::new(),
        _ => format!(", {}", ByteSize(of.all.bytes)),
    };
    let mut evidence = vec![format!(
        "{} of {}{bytes}, {} waiting for each in the mean",
        plural(usize::try_from(count).unwrap_or(usize::MAX), "call"),
        of.calls.join(" and "),
        long(waited_ns / count.max(1))
    )];
    evidence.extend(kind_of(watch, of));
    evidence.extend(disk_of(watch, of));
    let stands = of.all.stands_in.as_ref().filter(|_| why != Why::Server);
    evidence.extend(stands.map(|function| {
        format!("a call under way at the end waits in {function} of the kernel (/proc/PID/wchan)")
    }));
    evidence.extend(slowest(watch, |call| of.has(call, &name)));
    // Who ran when the disk's interrupt came is no one's.
    evidence.extend(wakers(&of.all.woken_by).filter(|_| matches!(why, Why::Server | Why::Locked)));
    Some(Finding {
        kind: "calls.slow_file",
        severity: Severity::Warning,
        reach: reach(waited_ns),
        what: format!(
            "{} for {verb} {name}",
            waited(watch, of.process, (waited_ns, of.all.threads.len()))
        ),
        evidence,
        cause: why.cause().to_owned(),
        remedies: why.remedies(of.process),
    })
}

impl Why {
    fn of(watch: &CallWatch, of: &UsesOf, work: Work) -> Self {
        let is_durable = of.target.is_some_and(|place| watch.durable.contains(&place));
        let stands = of.all.stands_in.as_deref().unwrap_or_default();
        match work {
            _ if of.is_of_server(watch) => Self::Server,
            Work::Lookup => Self::Lookup,
            Work::Requests => Self::Requests,
            Work::Write if stands.contains("percpu_rwsem") => Self::Frozen,
            Work::Write if is_durable => Self::Durable,
            Work::Write if stands.contains("balance_dirty_pages") => Self::HeldBack,
            Work::Write if stands.contains("rwsem_down") => Self::Locked,
            Work::Write => Self::Write,
            _ => Self::Read,
        }
    }

    fn cause(self) -> &'static str {
        match self {
            Self::Server => {
                "The file system is served by a program or another machine, which answers that \
                 late."
            }
            Self::Read => {
                "The data were not in memory, or went past it (O_DIRECT), and the disk takes that \
                 long; or another one had the file's lock."
            }
            Self::Lookup => {
                "The folders and tables that lead to the files were not in memory, and the disk \
                 takes that long; or another one changed the same folder and had its lock."
            }
            Self::Durable => {
                "The file was opened with O_SYNC or O_DSYNC: each write returns when the disk has \
                 it for good, with the journal, where the file has grown, and a flush of the \
                 disk's cache."
            }
            Self::Frozen => {
                "The file system is frozen (fsfreeze, a snapshot): nobody may write to it until it \
                 is let go again."
            }
            Self::HeldBack => {
                "More is written than the disk takes, and the kernel holds the writer back \
                 (balance_dirty_pages)."
            }
            Self::Locked => {
                "Another thread or process had the file's lock in the kernel, which each write \
                 takes: it writes the same file, or truncates it."
            }
            Self::Requests => {
                "The thread gave requests to the kernel (aio, io_uring) and waits until one of \
                 them is done: the disk takes that long for what it was asked."
            }
            Self::Write => {
                "Writes go to memory first, so that one that waits has a reason, and which it was \
                 cannot be told from here: more is written than the disk takes, and the kernel \
                 holds the writer back; a part of a page is written and the rest is read first; \
                 the file is written past memory (O_DIRECT) or durably (O_SYNC, a mount with \
                 sync); another one had the file's lock; or the file system was frozen \
                 (fsfreeze, a snapshot)."
            }
        }
    }

    fn remedies(self, process: u32) -> Vec<Remedy> {
        let disk = Remedy::by_hand(
            "wirespool diagnose io names the disk, its queue, who else uses it, and who waits for \
             durable writes",
        );
        match self {
            Self::Server => vec![Remedy::by_hand(
                "look at its server, with this command and the process that ended the waits",
            )],
            Self::Read => vec![
                disk,
                Remedy::by_hand(
                    "ask ahead of time: larger pieces, readahead (posix_fadvise), several threads, \
                     or io_uring",
                ),
            ],
            Self::Requests => vec![
                disk,
                Remedy::by_hand(
                    "more requests at a time where the disk can do several, or other work until \
                     they are done",
                ),
            ],
            Self::Lookup => vec![
                disk,
                Remedy::by_hand("fewer files in a folder, or names that are kept by the program"),
            ],
            Self::Durable => vec![
                Remedy::by_hand("larger writes: each costs the same"),
                Remedy::by_hand("no O_SYNC, and one fdatasync for several records"),
                disk,
            ],
            Self::Frozen => vec![Remedy::by_hand(
                "see who froze it, such as a backup that takes a snapshot; fsfreeze --unfreeze \
                 MOUNTPOINT lets writers on where that one has ended without doing so",
            )],
            Self::HeldBack => {
                vec![disk, Remedy::by_hand("write less, or to a faster disk")]
            }
            Self::Locked => vec![Remedy::by_hand(
                "several files, or one thread that writes for all; look at who ended the waits",
            )],
            Self::Write => vec![
                Remedy {
                    what: "see where it waits: balance_dirty_pages is held back, rwsem_down a \
                           lock, percpu_rwsem_wait a frozen file system"
                        .to_owned(),
                    now: vec![format!("cat /proc/{process}/task/*/wchan")],
                    for_good: Vec::new(),
                },
                disk,
            ],
        }
    }
}
