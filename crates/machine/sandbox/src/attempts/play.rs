//! The parts of a self-test: who starts the processes that try, and those processes.

use core::time::Duration;
use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};

use super::table::{ALLOWED, FORBIDDEN};
use super::{Attempt, Outcome, Situation, Whom};
use crate::confine::confine_launcher;
use crate::{
    Child, Ended, Error, Handed, How, IndexerLimits, Notes, Program, RecorderRights, Request,
    confine_indexer, confine_recorder, handed, spawn,
};

/// How long an attempt may take, with the start of its process.
const PATIENCE: Duration = Duration::from_secs(20);
/// As long as a victim has to be there at most.
const VICTIM_LIFE_S: i64 = 600;
const POOL_BYTES: u64 = 4096;
const MEMORY_BYTES: u64 = 1 << 30;

/// Who is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confined {
    /// A process confined as a recorder.
    Recorder,
    /// A process confined as an indexer.
    Indexer,
    /// A process confined as a launcher of indexers.
    Launcher,
    /// A process that is not confined at all: for comparison.
    Nobody,
}

/// What came of one attempt.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What would have been achieved.
    pub name: &'static str,
    /// It must be refused; otherwise it must be possible.
    pub is_forbidden: bool,
    /// It is as it must be.
    pub is_right: bool,
    /// What happened, in words.
    pub outcome: String,
}

/// The parts, by the words that name them.
const PARTS: [(&str, Confined); 4] = [
    ("recorder", Confined::Recorder),
    ("indexer", Confined::Indexer),
    ("launcher", Confined::Launcher),
    ("nobody", Confined::Nobody),
];
const VICTIM: &str = "victim";
const NOTES: &str = "notes";
const DONE: &str = "done";
const REFUSED: &str = "refused";
const REACHED: &str = "reached";

/// Tries everything, each in a process of its own: the running executable with `verb` and words for
/// [`play`]. Also gives what could not be given up here.
///
/// # Errors
/// When processes cannot be started.
pub fn self_test(who: Confined, verb: &str) -> Result<(Vec<Tried>, Notes), Error> {
    let failed = |error| Error::system("prepare a self-test", error);
    let ground = Ground::new().map_err(failed)?;
    let start = |words: &[&str]| ground.start(verb, words);
    let (mut victim, mut said) = start(&[VICTIM])?;
    said.read_exact(&mut [0]).map_err(failed)?;
    let part = PARTS.iter().find(|(_, part)| *part == who).map(|(word, _)| *word);
    let part = part.expect("each has a word");
    let victim_pid = victim.pid().to_string();
    let words = |list: &'static str, number: usize| {
        [part.to_owned(), victim_pid.clone(), list.to_owned(), number.to_string()]
    };
    let (_, text) = end_of(start(&words(NOTES, 0).each_ref().map(String::as_str))?)?;
    let notes = text.lines().map(str::to_owned).collect();
    let mut tried = Vec::new();
    for (list, attempts) in [("forbidden", FORBIDDEN), ("allowed", ALLOWED)] {
        for (number, attempt) in attempts.iter().enumerate() {
            if !attempt.is_for(who) {
                continue;
            }
            ground.prepare().map_err(failed)?;
            let (ended, text) =
                end_of(start(&words(list, number).each_ref().map(String::as_str))?)?;
            tried.push(attempt.judge(list == "forbidden", ended, &text));
        }
    }
    victim.kill();
    drop(victim.wait_timeout(PATIENCE));
    Ok((tried, notes))
}

/// How it ended, and what it said.
fn end_of((mut child, mut said): (Child, UnixStream)) -> Result<(Option<How>, String), Error> {
    let failed = |error| Error::system("hear of an attempt", error);
    let ended = child.wait_timeout(PATIENCE)?.map(|Ended { how, .. }| how);
    said.set_nonblocking(true).map_err(failed)?;
    let mut bytes = Vec::new();
    match said.read_to_end(&mut bytes) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(failed(error)),
        _ => Ok((ended, String::from_utf8_lossy(&bytes).into_owned())),
    }
}

impl Attempt {
    fn is_for(&self, who: Confined) -> bool {
        match who {
            Confined::Nobody => true,
            Confined::Recorder => !matches!(self.whom, Whom::NotRecorder | Whom::Launcher),
            Confined::Indexer => !matches!(self.whom, Whom::Recorder | Whom::Launcher),
            Confined::Launcher => !matches!(self.whom, Whom::Recorder | Whom::NotLauncher),
        }
    }

    fn judge(&self, is_forbidden: bool, how: Option<How>, said: &str) -> Tried {
        let errno = said.split(' ').nth(1).and_then(|errno| errno.parse().ok());
        // What is written by the attempt itself stands in front.
        let word = said.trim_start_matches('\0').split(' ').next().unwrap_or_default();
        let (was_done, outcome) = match (word, errno, how) {
            (REFUSED, Some(errno), _) => (Some(false), Outcome::Refused(errno).to_string()),
            (REACHED, Some(errno), _) => (None, Outcome::Reached(errno).to_string()),
            // Another program, or the end of this one, which is what was tried.
            (DONE, ..) | (_, _, Some(How::Exited(_))) => (Some(true), Outcome::Done.to_string()),
            (_, _, Some(How::Signalled { signal, .. })) if signal == libc::SIGSYS => {
                (Some(false), "the process was ended".to_owned())
            }
            (_, _, Some(how)) => (None, format!("{how:?}")),
            (_, _, None) => (None, "the process hung".to_owned()),
        };
        let is_right = was_done == Some(!is_forbidden);
        Tried { name: self.name, is_forbidden, is_right, outcome }
    }
}

/// Files to try things with.
struct Ground {
    folder: PathBuf,
    pool: OwnedFd,
}

impl Ground {
    fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("wirespool-test-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let pool = rustix::fs::memfd_create(c"pool", flags)?;
        let ground = Self { folder, pool };
        rustix::fs::ftruncate(&ground.pool, POOL_BYTES)?;
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&ground.pool, seals)?;
        Ok(ground)
    }

    /// Everything is as it was before the last attempt.
    fn prepare(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.folder)?;
        let places = Places::of(&self.folder);
        for folder in [&places.elsewhere, &places.members, &places.index] {
            fs::create_dir_all(folder)?;
        }
        fs::write(places.secret(), b"not yours to read")?;
        fs::write(places.member(), b"member")
    }

    fn start(&self, verb: &str, words: &[&str]) -> Result<(Child, UnixStream), Error> {
        let failed = |error| Error::system("prepare a self-test", error);
        let (here, there) = UnixStream::pair().map_err(failed)?;
        let mut arguments = vec![OsString::from(verb), self.folder.clone().into_os_string()];
        arguments.extend(words.iter().map(OsString::from));
        let program = Program::Myself(arguments);
        let child = spawn(&Request::new(&program, &[there.as_fd(), self.pool.as_fd()]))?;
        Ok((child, here))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

/// Where things are on the ground.
struct Places {
    elsewhere: PathBuf,
    members: PathBuf,
    index: PathBuf,
}

impl Places {
    fn of(folder: &Path) -> Self {
        let [elsewhere, members, index] =
            ["elsewhere", "members", "index"].map(|name| folder.join(name));
        Self { elsewhere, members, index }
    }

    fn secret(&self) -> PathBuf {
        self.elsewhere.join("secret")
    }

    fn member(&self) -> PathBuf {
        self.members.join("member")
    }

    fn situation(&self, victim: i32, pool: &OwnedFd, socket: &UnixStream) -> Situation {
        let text = |path: PathBuf| {
            CString::new(path.into_os_string().into_vec()).expect("paths and words have no zeros")
        };
        Situation {
            secret: text(self.secret()),
            new: text(self.elsewhere.join("new")),
            member: text(self.member()),
            in_index: text(self.index.join("new")),
            victim,
            pool: pool.as_raw_fd(),
            socket: socket.as_raw_fd(),
            verb: text(std::env::args_os().nth(1).unwrap_or_default().into()),
        }
    }
}

/// Plays one part of a self-test, as its words say: confines this process and tries one thing.
///
/// # Errors
/// When no self-test started this process.
pub fn play(words: &[OsString]) -> Result<(), Error> {
    let mut handed = handed()?;
    let (Some(pool), Some(socket)) = (handed.descriptors.pop(), handed.descriptors.pop()) else {
        return Err(Error::NothingHanded);
    };
    let mut socket = UnixStream::from(socket);
    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let say = |socket: &mut UnixStream, text: &str| {
        // No reader is left: the test ends with a process that said nothing.
        socket.write_all(text.as_bytes()).unwrap_or_default();
    };
    match *words {
        [_, VICTIM] => {
            say(&mut socket, "!");
            stand_by();
            Ok(())
        }
        [folder, part, victim, list, number] => {
            let places = Places::of(Path::new(folder));
            let victim = victim.parse().map_err(|_| Error::NothingHanded)?;
            let situation = places.situation(victim, &pool, &socket);
            let attempts = if list == "allowed" { ALLOWED } else { FORBIDDEN };
            let attempt = number.parse().ok().and_then(|number: usize| attempts.get(number));
            let attempt = attempt.ok_or(Error::NothingHanded)?;
            let notes = confine(part, &places, &handed);
            if list == NOTES {
                say(&mut socket, &notes.join("\n"));
                return Ok(());
            }
            let text = match attempt.try_it(&situation) {
                Outcome::Done => DONE.to_owned(),
                Outcome::Refused(errno) => format!("{REFUSED} {errno}"),
                Outcome::Reached(errno) => format!("{REACHED} {errno}"),
            };
            say(&mut socket, &text);
            Ok(())
        }
        _ => Err(Error::NothingHanded),
    }
}

/// A process kills a bystander.
fn stand_by() {
    let life = Timespec { tv_sec: VICTIM_LIFE_S, tv_nsec: 0 };
    // Nothing is polled: it sleeps.
    poll(&mut [], Some(&life)).map(drop).unwrap_or_default();
}

fn confine(part: &str, places: &Places, handed: &Handed) -> Notes {
    let part = PARTS.iter().find(|(word, _)| *word == part).map(|(_, part)| *part);
    match part {
        Some(Confined::Indexer) => {
            confine_indexer(IndexerLimits { memory_bytes: MEMORY_BYTES }, handed)
        }
        Some(Confined::Launcher) => confine_launcher(),
        Some(Confined::Recorder) => {
            // A recorder has threads before it is confined.
            std::thread::Builder::new()
                .name("earlier".to_owned())
                .spawn(stand_by)
                .map(drop)
                .unwrap_or_default();
            confine_recorder(&RecorderRights {
                read: Vec::new(),
                write: vec![places.members.clone()],
                create: vec![places.index.clone()],
            })
        }
        _ => Notes::new(),
    }
}
