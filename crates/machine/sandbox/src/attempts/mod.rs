//! What must not be possible from inside, tried from inside.
//!
//! Each attempt is one system call with fixed arguments, made by a process of its own that was
//! confined as the real one is. It is refused when the process is ended for it, or when the answer
//! says that it is not permitted or not there; every other error means that the call went further
//! than it should. What must go on is tried as well, or a process that can do nothing at all would
//! pass.

#![expect(unsafe_code, reason = "attempts are system calls of all kinds")]

mod play;
mod table;

use core::ffi::CStr;
use core::fmt;
use std::ffi::CString;
use std::os::fd::RawFd;

use libc::{c_int, c_long};

pub use play::{Confined, Tried, play, self_test};

/// Something that a process tries.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// What it would achieve.
    name: &'static str,
    call: c_long,
    arguments: &'static [Argument],
    /// Which of the processes it is about.
    whom: Whom,
}

/// Whom an attempt is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whom {
    /// Recorder, indexer and launcher.
    All,
    /// Recorder and indexer: a launcher may, for it starts processes, and what it does not allow
    /// itself is lost to them.
    NotLauncher,
    /// Indexer and launcher: a recorder opens files and answers at a socket.
    NotRecorder,
    /// The recorder alone.
    Recorder,
    /// The launcher alone.
    Launcher,
}

/// An argument of a system call.
#[derive(Clone, Copy, Debug)]
enum Argument {
    Number(i64),
    Text(&'static CStr),
    /// The path of a file that every user may read and write, as far as its mode goes.
    Secret,
    /// A path that does not exist beside that.
    New,
    /// A process of the same user that does nothing.
    Victim,
    /// The sealed memory that was handed over.
    Pool,
    /// A socket that was handed over.
    Socket,
    /// A page of zeros of this process.
    Page,
    /// The path of a member of the volume.
    Member,
    /// A path in the index directory that does not exist.
    InIndex,
    /// The arguments of a program that is this one, and ends at once.
    Words,
}

/// Where an attempt takes place.
#[derive(Clone, Debug)]
struct Situation {
    /// A file that a confined process must not read.
    secret: CString,
    /// A path beside it.
    new: CString,
    /// The member of a volume.
    member: CString,
    /// A path in the index directory.
    in_index: CString,
    /// The number of a process.
    victim: i32,
    /// Sealed memory.
    pool: RawFd,
    /// A connected socket.
    socket: RawFd,
    /// The word with which this program was started.
    verb: CString,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It was done.
    Done,
    /// The kernel refused, for this reason.
    Refused(i32),
    /// The kernel did not refuse, and failed for this reason.
    Reached(i32),
}

/// A page of its own, so that changes of its protection change nothing else.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

impl Attempt {
    /// Tries it, in this process, which is fit for nothing else afterwards.
    fn try_it(&self, situation: &Situation) -> Outcome {
        let mut page = Box::new(Page([0; 4096]));
        let mut words = [0_i64; 6];
        for (word, argument) in words.iter_mut().zip(self.arguments) {
            *word = argument.word(situation, &mut page);
        }
        let [first, second, third, fourth, more @ ..] = words;
        let [fifth, sixth] = more;
        let own = std::process::id();
        // SAFETY: the table has no call that frees or moves memory of this process; addresses are
        // those of texts and of the page, which live longer than the call.
        let answer =
            unsafe { libc::syscall(self.call, first, second, third, fourth, fifth, sixth) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        if std::process::id() != own {
            // The copy that should not be there.
            // SAFETY: ends it, and runs nothing of the other one.
            unsafe { libc::_exit(0) }
        }
        drop(page);
        match answer {
            -1 if matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                Outcome::Refused(errno)
            }
            -1 => Outcome::Reached(errno),
            _ => Outcome::Done,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = |errno: &i32| std::io::Error::from_raw_os_error(*errno);
        match self {
            Self::Done => write!(f, "done"),
            Self::Refused(errno) => write!(f, "refused: {}", reason(errno)),
            Self::Reached(errno) => write!(f, "reached the kernel: {}", reason(errno)),
        }
    }
}

impl Argument {
    fn word(self, situation: &Situation, page: &mut Page) -> i64 {
        let address = |text: &CStr| place(text.as_ptr().addr());
        match self {
            Self::Number(number) => number,
            Self::Text(text) => address(text),
            Self::Secret => address(&situation.secret),
            Self::New => address(&situation.new),
            Self::Member => address(&situation.member),
            Self::InIndex => address(&situation.in_index),
            Self::Victim => situation.victim.into(),
            Self::Pool => situation.pool.into(),
            Self::Socket => situation.socket.into(),
            Self::Page => place(page.0.as_mut_ptr().expose_provenance()),
            Self::Words => {
                let words = [c"wirespool", situation.verb.as_c_str()];
                #[expect(clippy::host_endian_bytes, reason = "they are addresses")]
                let words = words.map(|word| word.as_ptr().expose_provenance().to_ne_bytes());
                page.0.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
                place(page.0.as_mut_ptr().expose_provenance())
            }
        }
    }
}

fn place(address: usize) -> i64 {
    u64::try_from(address).unwrap_or(0).cast_signed()
}

#[expect(clippy::as_conversions, reason = "there is no other way in a constant")]
const fn number(value: c_int) -> Argument {
    Argument::Number(value as i64)
}
