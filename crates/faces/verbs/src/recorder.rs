//! A recorder that runs, and who asks it: for how it stands, and that readers see up to now.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ::record::{Control, Progress, TakeOver};
use host::{Adopted, ControlSocket, SystemClock, ask, control_sockets};
use units::{Clock, Sleep, Timestamp};

use crate::progress::say;

const STATUS: &str = "status";
const SYNC: &str = "sync";
/// Answered with a time in nanoseconds, or with nothing.
const HAND_OVER: &str = "hand-over";
const DONE: &str = "done";
const LATE: &str = "late";

/// A slower disk is reported as slow.
const SYNC_PATIENCE: Duration = Duration::from_secs(2);
/// What a question may take besides.
const MARGIN: Duration = Duration::from_secs(1);
/// Each time some rows are written that might have been shared: not more often than this.
const BETWEEN_SYNCS_NS: i64 = 100_000_000;
/// A recorder that hands over flushes what it took to disks that may be slow.
const END_PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks whether it has ended: packets wait meanwhile.
const BETWEEN_LOOKS_NS: i64 = 2_000_000;
/// Between two questions to one that does not answer yet.
const BETWEEN_ASKS_NS: i64 = 50_000_000;

/// Answers for a recording until it is dropped.
#[derive(Debug)]
pub struct Answering {
    /// How the recording stood a moment ago.
    state: Arc<Mutex<Option<Progress>>>,
    is_ending: Arc<AtomicBool>,
    socket: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    /// Begins to answer for the recording on a volume. Where that cannot be, the recording goes on
    /// without: that is said.
    pub fn start(volume: &Path, members: &[PathBuf], control: Control) -> Option<Self> {
        // The code that fails to open it reports why.
        let socket = match ControlSocket::bind(&socket_of(volume, members)?) {
            Ok(socket) => socket,
            Err(error) => {
                let error = crate::failure::line(&error.into());
                say(&format!("{error}; readers see durable packets only"));
                return None;
            }
        };
        let path = socket.path();
        let state = Arc::new(Mutex::new(None));
        let is_ending = Arc::new(AtomicBool::new(false));
        let (shown, ends) = (Arc::clone(&state), Arc::clone(&is_ending));
        let body = move || {
            let next_sync_ns = AtomicI64::new(0);
            let answer = |question: &str| match question {
                STATUS => {
                    let state = stage::lock(&shown);
                    let going = |state| volume_view::going_json(std::process::id(), state);
                    state.as_ref().map(going).unwrap_or_default()
                }
                SYNC => sync(&control, &next_sync_ns),
                HAND_OVER => {
                    let at = control.hand_over(&SystemClock);
                    at.map(|at| at.0.to_string()).unwrap_or_default()
                }
                _ => String::new(),
            };
            socket.serve(&answer, &|| ends.load(Ordering::Relaxed));
        };
        let thread = thread::Builder::new().name("control".to_owned()).spawn(body).ok()?;
        Some(Self { state, is_ending, socket: path, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes note of how the recording stands.
    pub fn note(&self, progress: &Progress) {
        *stage::lock(&self.state) = Some(progress.clone());
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic aborts");
        }
    }
}

/// Not too soon after the one before. Who asks at the same time shares one.
fn sync(control: &Control, next_ns: &AtomicI64) -> String {
    SystemClock.sleep_until(next_ns.load(Ordering::Relaxed));
    let is_done = control.sync(SYNC_PATIENCE);
    next_ns.fetch_max(SystemClock.boottime_ns() + BETWEEN_SYNCS_NS, Ordering::Relaxed);
    (if is_done { DONE } else { LATE }).to_owned()
}

/// Takes the interfaces over from the recorder of a volume, if one runs.
pub fn take_over(volume: PathBuf, members: Vec<PathBuf>) -> TakeOver {
    TakeOver::new(move || {
        let Some(socket) = socket_of(&volume, &members) else { return Ok(None) };
        let process = host::answering_process(&socket).and_then(Adopted::watch);
        let Some(process) = process else { return Ok(None) };
        let answer = ask(&socket, HAND_OVER, SYNC_PATIENCE + MARGIN);
        let answer = answer.map_err(|error| crate::failure::line(&error.into()))?;
        let from = answer.and_then(|answer| answer.parse().ok()).map(Timestamp);
        let number = process.id();
        let refused = || {
            format!(
                "process {number} does not hand over: it is of an older version, records by AF_XDP \
                 or with the adapter's time, or hands over already"
            )
        };
        let from = from.ok_or_else(refused)?;
        let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(END_PATIENCE));
        while !process.has_ended() {
            let now_ns = SystemClock.boottime_ns();
            if now_ns >= until_ns {
                return Err(format!(
                    "process {number} did not end within {} s",
                    END_PATIENCE.as_secs()
                ));
            }
            SystemClock.sleep_until(now_ns.saturating_add(BETWEEN_LOOKS_NS));
        }
        Ok(Some(from))
    })
}

/// The name of a volume's socket; `None` where it cannot be opened.
fn socket_of(volume: &Path, members: &[PathBuf]) -> Option<String> {
    Some(asked(volume, members)?.socket)
}

/// A volume, whose recorder is asked.
struct Asked {
    socket: String,
    /// Its superblocks say that the last recorder stopped in order, and none has begun since.
    is_stopped: bool,
}

fn asked(volume: &Path, members: &[PathBuf]) -> Option<Asked> {
    let reader = volume::open_superblocks(volume, members).ok()?;
    let socket = reader.superblock().volume_id.to_string();
    Some(Asked { socket, is_stopped: reader.has_stopped_in_order() })
}

/// Has the recorder of a volume, if one runs, make durable what it has taken so far, so that who
/// reads next sees it. Whether one runs, as far as it can be asked.
pub fn catch_up(volume: &Path, members: &[PathBuf]) -> bool {
    catch_up_telling(volume, members, &mut say)
}

/// The same, telling otherwise why the newest packets will be missing.
pub fn catch_up_telling(volume: &Path, members: &[PathBuf], tell: &mut dyn FnMut(&str)) -> bool {
    asked(volume, members).and_then(|asked| try_catch_up(&asked, tell)).unwrap_or(false)
}

/// The same of the recorder that answers there; `None` where none does.
fn try_catch_up(asked: &Asked, tell: &mut dyn FnMut(&str)) -> Option<bool> {
    let answer = ask(&asked.socket, SYNC, SYNC_PATIENCE + MARGIN);
    let is_there = matches!(answer, Ok(Some(_)));
    let why = match answer {
        Ok(None) => return None,
        // An ordinary user may not look whether root has a socket there; no recorder runs.
        Err(_) if asked.is_stopped => return None,
        Ok(Some(answer)) if answer == DONE => return Some(true),
        Ok(Some(_)) => format!("it has not stored them within {} s", SYNC_PATIENCE.as_secs()),
        Err(error) => crate::failure::line(&error.into()),
    };
    tell(&format!("the recorder's newest packets are not in the answer: {why}"));
    Some(is_there)
}

/// Asks for a recorder that may have begun a moment ago: until it answers, or for so long.
pub fn beginning(volume: PathBuf, members: Vec<PathBuf>) -> ::extract::Recorder {
    ::extract::Recorder::new(move |patience| {
        // One that has begun since is asked all the same.
        let Some(asked) = asked(&volume, &members) else { return false };
        let asked = Asked { is_stopped: false, ..asked };
        let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(patience));
        loop {
            if let Some(is_there) = try_catch_up(&asked, &mut say) {
                return is_there;
            }
            let now_ns = SystemClock.boottime_ns();
            if now_ns >= until_ns {
                return false;
            }
            SystemClock.sleep_until(now_ns.saturating_add(BETWEEN_ASKS_NS));
        }
    })
}

/// How the recording on a volume stands, as JSON, if one goes on and may be asked.
pub fn state(volume: &Path, members: &[PathBuf]) -> Option<String> {
    let answer = ask(&socket_of(volume, members)?, STATUS, SYNC_PATIENCE + MARGIN);
    answer.ok().flatten().filter(|state| !state.is_empty())
}

/// The process that records to a volume, if one does and is seen here.
pub fn process(volume: &Path, members: &[PathBuf]) -> Option<u32> {
    // Disks are not looked at where nobody records.
    let is_recording = |id: &String| host::answering_process(id).is_some();
    control_sockets().iter().find(|id| is_recording(id))?;
    host::answering_process(&socket_of(volume, members)?)
}

/// How every recording stands that goes on and may be asked, by the id of its volume.
pub fn states() -> Vec<(String, String)> {
    let state = |id: String| {
        let answer = ask(&id, STATUS, SYNC_PATIENCE).ok().flatten();
        answer.filter(|state| !state.is_empty()).map(|state| (id, state))
    };
    control_sockets().into_iter().filter_map(state).collect()
}
