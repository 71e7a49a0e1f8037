//! A recorder that runs, and who asks it: for how it stands, and that readers see up to now.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ::record::{Control, HandOver, Progress, TakeOver, Taken};
use host::{Adopted, ControlSocket, LastResort, Said, SystemClock, Talk, ask, control_sockets};
use units::{Clock, Sleep, Timestamp};

use crate::progress::say;

const STATUS: &str = "status";
const SYNC: &str = "sync";
/// A talk: it is answered with a time in nanoseconds, or with nothing, and once the volume is free
/// with [`FREE`], or with [`CLOCK_WAS_SET`]. Who asks says [`STORED`] when it has stored something.
const HAND_OVER: &str = "hand-over";
const FREE: &str = "free";
const CLOCK_WAS_SET: &str = "clock-was-set";
const STORED: &str = "stored";
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
/// Between two looks whether the other end of a hand-over is there.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Who takes over ends itself where it has stored nothing for so long since the volume was free,
/// also when it is stopped: the one that runs then goes on.
const STORES_WITHIN: Duration = Duration::from_secs(10);
/// Longer than that: it has ended by then.
const STORED_PATIENCE: Duration = Duration::from_secs(12);
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
        let state = Arc::new(Mutex::new(None::<Progress>));
        let is_ending = Arc::new(AtomicBool::new(false));
        let (shown, ends) = (Arc::clone(&state), Arc::clone(&is_ending));
        let is_over = move || ends.load(Ordering::Relaxed);
        let body = move || {
            let next_sync_ns = AtomicI64::new(0);
            let handed = Mutex::new(None::<HandOver>);
            let answer = |question: &str| match question {
                STATUS => {
                    let state = stage::lock(&shown).clone();
                    let hand_over = stage::lock(&handed).clone();
                    let state = state.map(|state| Progress { hand_over, ..state });
                    let going = |state| volume_view::going_json(std::process::id(), &state);
                    state.map(going).unwrap_or_default()
                }
                SYNC => sync(&control, &next_sync_ns),
                _ => String::new(),
            };
            let converse = |question: &str, talk: Talk| {
                if question != HAND_OVER {
                    return Some(talk);
                }
                hand_over(talk, (&control, &socket), &handed, &is_over);
                None
            };
            socket.serve((&answer, &converse), &is_over);
        };
        let thread = match thread::Builder::new().name("control".to_owned()).spawn(body) {
            Ok(thread) => thread,
            Err(error) => {
                say(&format!("cannot start a thread: {error}; readers see durable packets only"));
                return None;
            }
        };
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

/// Hands this recording over to who asks, until that one has stored something, or is gone.
fn hand_over(
    mut talk: Talk,
    (control, socket): (&Control, &ControlSocket),
    handed: &Mutex<Option<HandOver>>,
    is_ending: &dyn Fn() -> bool,
) {
    let Some(at) = control.hand_over(&SystemClock) else {
        talk.say("");
        return;
    };
    talk.say(&at.0.to_string());
    let before = stage::lock(handed).take().unwrap_or_default();
    let now = HandOver { process: talk.process(), from_ns: at.0, taken_back: None, ..before };
    *stage::lock(handed) = Some(now.clone());
    let take_back = |why: &str| {
        let (taken_back, times_taken_back) = (Some(why.to_owned()), now.times_taken_back + 1);
        *stage::lock(handed) = Some(HandOver { taken_back, times_taken_back, ..now.clone() });
    };
    let has_let_go = loop {
        if is_ending() {
            return;
        }
        if let Some(has_let_go) = control.has_let_go(BETWEEN_LOOKS) {
            break has_let_go;
        }
    };
    if !has_let_go {
        talk.say(CLOCK_WAS_SET);
        take_back("the clock was set meanwhile");
        return;
    }
    // The other one answers at a socket of this name from now on, if it is of the same user.
    let is_hidden = socket.hide();
    talk.say(FREE);
    let said = talk.hear(STORED_PATIENCE);
    let is_stored = said == Said::Line(STORED.to_owned());
    if !is_stored && is_hidden {
        socket.show();
    }
    match said {
        _ if is_stored => {}
        Said::Gone => take_back("it ended before it had stored anything"),
        _ => take_back("it said nothing"),
    }
    control.is_taken(is_stored);
}

/// Takes the interfaces over from the recorder of a volume, if one runs, for the recording that
/// `control` is of.
pub fn take_over(volume: PathBuf, members: Vec<PathBuf>, control: Control) -> TakeOver {
    TakeOver::new(move || {
        let Some(socket) = socket_of(&volume, &members) else { return Ok(Taken::Nobody) };
        let process = host::answering_process(&socket).and_then(Adopted::watch);
        let Some(process) = process else { return Ok(Taken::Nobody) };
        let talk = Talk::begin(&socket, HAND_OVER, SYNC_PATIENCE);
        let talk = talk.map_err(|error| crate::failure::line(&error.into()))?;
        let Some(mut talk) = talk else { return Ok(Taken::Nobody) };
        let from = match talk.hear(SYNC_PATIENCE + MARGIN) {
            Said::Line(line) => line.parse().ok().map(Timestamp),
            Said::Nothing | Said::Gone => None,
        };
        let number = process.id();
        let refused = || {
            format!(
                "process {number} does not hand over: it is of an older version, records by AF_XDP \
                 or with the adapter's time, or hands over already"
            )
        };
        let from = from.ok_or_else(refused)?;
        let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(END_PATIENCE));
        while SystemClock.boottime_ns() < until_ns {
            match talk.hear(BETWEEN_LOOKS) {
                Said::Line(line) if line == CLOCK_WAS_SET => return Ok(Taken::ClockWasSet),
                Said::Line(_) => {
                    let told = confirm(talk, control.clone()).map(|()| Taken::From(from));
                    return told.map_err(|error| error.to_string());
                }
                Said::Nothing => {}
                // It ends, for whatever reason: its disks may be slow.
                Said::Gone if process.has_ended() => return Ok(Taken::From(from)),
                Said::Gone => SystemClock.sleep_until(after(BETWEEN_LOOKS)),
            }
        }
        let seconds = END_PATIENCE.as_secs();
        Err(format!("process {number} did not let go within {seconds} s"))
    })
}

/// Tells the recorder before as soon as this one has stored something.
fn confirm(mut talk: Talk, control: Control) -> std::io::Result<()> {
    let last_resort = LastResort::after(STORES_WITHIN);
    let body = move || {
        // Asked once, as soon as there is who answers: disks may be slow.
        while !control.sync(STORES_WITHIN) {}
        talk.say(STORED);
        drop(last_resort);
    };
    // Without a thread this one ends, and the recorder before goes on.
    thread::Builder::new().name("stored".to_owned()).spawn(body).map(drop)
}

fn after(time: Duration) -> i64 {
    SystemClock.boottime_ns().saturating_add(units::nanos(time))
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
