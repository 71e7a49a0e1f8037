//! A standing hold: what matches is put aside before the ring's head comes round to it, by a thread
//! beside the recorder.
//!
//! The ring is taken in stretches of slots. Each packet lies in one slot, so each is held once,
//! whatever its time. A stretch is due when the head is an eighth of the ring away from it. How far
//! the work is lies in the folder of holds, so that the next recording goes on there. What cannot
//! be held, because space or time ran out, is reported and counted.

use core::fmt;
use core::ops::{ControlFlow, RangeInclusive};
use core::time::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use extract::{ExtractReport, Request};
use host::{Directory, SystemClock};
use query::Query;
use record::Progress;
use units::{ByteSize, Clock as _, Sequence};

use crate::{Aside, Error, Room, no_signature, put_aside, used_bytes};

/// Of the ring: how far ahead of the head what matches is put aside ...
const AHEAD: u64 = 8;
/// ... and how much of it at a time, at least.
const STRETCH: u64 = 32;
/// How often it is looked whether a stretch is due.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for the recorder at once.
const GIVE_WAY: Duration = Duration::from_millis(10);
/// After a failure, and while there is no space.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes the text of a manifest, on the thread of a standing hold.
pub type MakeManifestAside = dyn Fn(&ExtractReport, &[String]) -> String + Send + Sync;

/// What is held, and where.
pub struct Order {
    /// The query, which the caller has checked: its times are read anew for each hold.
    pub query_text: String,
    /// The folder of holds.
    pub folder: PathBuf,
    /// Bytes that all holds may take.
    pub budget: u64,
    /// The volume that is recorded.
    pub options: extract::Options,
    /// Packets come at their own pace: the recorder cannot wait for holds.
    pub is_live: bool,
    /// Says what happens: lines of harmless text.
    pub say: Box<dyn Fn(&str) + Send + Sync>,
    /// The text of a manifest.
    pub manifest: Box<MakeManifestAside>,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query_text, folder, budget, .. } = self;
        write!(f, "Order {{ {query_text:?}, {folder:?}, budget: {budget} }}")
    }
}

/// The thread, and the state that it reads.
#[derive(Debug)]
pub struct Standing {
    shared: Arc<Shared>,
    thread: JoinHandle<Done>,
    is_live: bool,
}

/// What a standing hold came to.
#[derive(Debug, Default)]
pub struct Done {
    holds: u64,
    packets: u64,
    /// Some hold names something that is missing from it.
    is_cut: bool,
    /// Slots of the ring that were overwritten and not held, because of these.
    missed: Vec<String>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What recorder and holder know of each other.
#[derive(Clone, Debug, Default)]
struct State {
    tail: Sequence,
    acknowledged: Sequence,
    slots: u64,
    is_calm: bool,
    has_ended: bool,
    /// Everything before it was put aside, or is lost.
    next: Sequence,
    /// The directory is full: the recorder does not wait.
    is_stuck: bool,
}

impl State {
    /// The stretch to be put aside now.
    fn due(&self) -> Option<RangeInclusive<Sequence>> {
        let reached = self.acknowledged + 1 + self.slots / AHEAD;
        let end = reached.checked_sub(self.slots)?.min(self.acknowledged.checked_sub(1)?);
        let least = (self.slots / STRETCH).max(1);
        let is_due = self.slots > 0 && self.next > Sequence(0) && end + 1 >= self.next + least;
        is_due.then_some(self.next..=end)
    }

    /// The head is near what is not put aside.
    fn is_urgent(&self) -> bool {
        let near = self.acknowledged + 1 + self.slots / AHEAD / 2;
        self.next > Sequence(0) && near >= self.next + self.slots
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        stage::lock(&self.state)
    }

    /// The directory is full: the recorder need not wait.
    fn stick(&self) {
        self.lock().is_stuck = true;
        self.changed.notify_all();
    }

    /// Waits, but not beyond the end of the recording.
    fn rest(&self, time: Duration) -> State {
        let state = self.lock();
        let goes_on = |state: &mut State| !state.has_ended;
        let waited = self.changed.wait_timeout_while(state, time, goes_on);
        waited.map_or_else(|error| error.into_inner().0.clone(), |(state, _)| state.clone())
    }
}

impl Standing {
    /// Starts the thread; it begins when it hears of the ring.
    pub fn start(order: Order) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let is_live = order.is_live;
        let holder = Holder {
            marks: Directory::open(&order.folder)?,
            mark: mark_of(&order)?,
            shared: Arc::clone(&shared),
            order,
            done: Done::default(),
            refused: None,
        };
        let thread = std::thread::Builder::new().name("hold".to_owned());
        let thread = thread.spawn(move || holder.run()).map_err(Error::Thread)?;
        Ok(Self { shared, thread, is_live })
    }

    /// Takes how far the recorder is. A recorder of files waits where the head would overtake.
    pub fn tell(&self, progress: &Progress) {
        let mut state = self.shared.lock();
        state.tail = progress.tail;
        state.acknowledged = progress.acknowledged.sequence;
        state.slots = progress.slots;
        state.is_calm =
            !self.is_live || progress.pool_columns_free * 4 >= progress.pool_columns * 3;
        self.shared.changed.notify_all();
        while !self.is_live && state.is_urgent() && !state.is_stuck && !self.thread.is_finished() {
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The recording is over: what is due of files is still put aside.
    pub fn finish(self, acknowledged: Sequence) -> Done {
        let mut state = self.shared.lock();
        state.acknowledged = acknowledged.max(state.acknowledged);
        state.tail = state.tail.max((state.acknowledged + 1).saturating_sub(state.slots));
        state.has_ended = true;
        drop(state);
        self.shared.changed.notify_all();
        self.thread.join().expect("a panic aborts")
    }
}

impl Done {
    /// Nothing that matched is lost.
    pub fn is_complete(&self) -> bool {
        self.missed.is_empty() && !self.is_cut
    }

    /// For the report.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.holds > 0 {
            let (holds, packets) = (self.holds, page::text::plural(self.packets, "packet"));
            lines.push(format!("hold: {} with {packets}", page::text::plural(holds, "hold")));
        }
        lines.extend(self.missed.iter().cloned());
        lines
    }
}

struct Holder {
    order: Order,
    marks: Directory,
    /// The file that says how far the work is: one for each volume.
    mark: String,
    shared: Arc<Shared>,
    done: Done,
    /// Bytes that were held when the next stretch did not fit.
    refused: Option<u64>,
}

impl Holder {
    fn run(mut self) -> Done {
        loop {
            let state = self.shared.rest(LOOK);
            if state.slots > 0 {
                self.note_missed(&state);
            }
            let state = self.shared.lock().clone();
            match state.due().filter(|_| !state.has_ended || !self.order.is_live) {
                Some(slots) => {
                    let goes_on = self.stretch(slots);
                    if !goes_on && state.has_ended {
                        return self.done;
                    }
                    if !goes_on {
                        self.shared.rest(PAUSE);
                    }
                }
                None if state.has_ended => return self.done,
                None => {}
            }
        }
    }

    /// Begins where an earlier recording stopped, and counts what the ring has overtaken.
    fn note_missed(&mut self, state: &State) {
        if state.next == Sequence(0) {
            let next = self.load().unwrap_or(state.tail);
            self.shared.lock().next = next;
        }
        let next = self.shared.lock().next;
        if next >= state.tail {
            return;
        }
        let last = state.tail - 1;
        let why = if self.refused.take().is_some() { ": the directory was full" } else { "" };
        let line = format!(
            "hold: slots {next} to {last} were overwritten before they could be put aside{why}"
        );
        host::log_warning(&page::safe::printable(&line));
        (self.order.say)(&line);
        self.done.missed.push(line);
        self.advance(state.tail);
    }

    /// Puts one stretch aside; false when it has to be tried again later.
    fn stretch(&mut self, slots: RangeInclusive<Sequence>) -> bool {
        let used = used_bytes(&self.order.folder).unwrap_or(0);
        if self.refused.is_some_and(|then| used >= then) {
            return false;
        }
        let aside = self.put_aside(&slots);
        let (first, last) = (slots.start(), slots.end());
        match aside {
            Ok(Aside::Held { path, packets, completeness, .. }) => {
                self.done.holds += 1;
                self.done.packets += packets;
                self.done.is_cut |= !completeness.is_complete();
                let packets = page::text::plural(packets, "packet");
                (self.order.say)(&format!(
                    "hold: {packets} in {}, {completeness}",
                    page::safe::path(&path)
                ));
            }
            Ok(Aside::Nothing) => {}
            Ok(Aside::Stopped) => return false,
            Ok(Aside::Full { used }) => {
                let (held, most) = (ByteSize(used), ByteSize(self.order.budget));
                let line = format!(
                    "hold: what matches in slots {first} to {last} does not fit: {held} of {most} \
                     are held in {}; remove some holds, or the ring overwrites it",
                    page::safe::path(&self.order.folder)
                );
                host::log_warning(&page::safe::printable(&line));
                (self.order.say)(&line);
                self.refused = Some(used);
                self.shared.stick();
                return false;
            }
            Err(error) => {
                (self.order.say)(&format!("hold: slots {first} to {last}: {}", line(&error)));
                self.shared.stick();
                return false;
            }
        }
        self.refused = None;
        self.advance(last.next());
        true
    }

    fn put_aside(&self, slots: &RangeInclusive<Sequence>) -> Result<Aside, Error> {
        let Order { query_text, folder, budget, options, is_live, manifest, .. } = &self.order;
        let query = Query::parse(query_text, SystemClock.realtime());
        let query = query.map_err(|error| Error::Query(error.render(query_text)))?;
        let slots = Some(slots.clone());
        let request = Request { slots, ..Request::new(&query, query_text) };
        let shared = &self.shared;
        let room = Room {
            folder,
            size_max: *budget,
            also_empty: false,
            manifest,
            signature: &no_signature,
        };
        put_aside(&room, options, &request, &mut |_| {
            // Recording comes first.
            while !shared.lock().is_calm && !shared.rest(GIVE_WAY).has_ended {}
            if *is_live && shared.lock().has_ended {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    /// Everything before `next` is done with.
    fn advance(&self, next: Sequence) {
        let mut state = self.shared.lock();
        (state.next, state.is_stuck) = (next, false);
        drop(state);
        self.shared.changed.notify_all();
        let text = format!("{next}\n{}\n", self.order.query_text);
        let stored = self.marks.write_atomic(&self.mark, text.as_bytes());
        if let Err(error) = stored.and_then(|()| self.marks.sync(&self.mark)) {
            (self.order.say)(&format!("hold: {error}; a restart holds the same packets again"));
        }
    }

    /// Where this query stands, if it is the one that was asked before.
    fn load(&self) -> Option<Sequence> {
        let bytes = self.marks.read(&self.mark).ok()??;
        let text = String::from_utf8(bytes).ok()?;
        let (next, query) = text.strip_suffix('\n')?.split_once('\n')?;
        (query == self.order.query_text).then(|| next.parse().ok()).flatten()
    }
}

/// The error and its causes.
fn line(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = core::error::Error::source(error);
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        cause = next.source();
    }
    text
}

fn mark_of(order: &Order) -> Result<String, Error> {
    let extract::Options { volume, members, .. } = &order.options;
    let opened = volume::open_superblocks(volume, members);
    let reader = opened.map_err(extract::Error::Volume)?;
    Ok(format!("standing.{}", reader.superblock().volume_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_due_an_eighth_of_the_ring_before_the_head() {
        let state = |acknowledged, next| {
            let (acknowledged, next) = (Sequence(acknowledged), Sequence(next));
            State { acknowledged, next, slots: 320, ..State::default() }
        };
        // On the first lap nothing is about to be overwritten.
        assert_eq!(state(320 + 200, 320).due(), None);
        // Behind 608 the head needs 40 slots more to 329: a whole stretch.
        assert_eq!(state(607, 320).due(), None);
        assert_eq!(state(608, 320).due(), Some(Sequence(320)..=Sequence(329)));
        assert_eq!(state(608, 321).due(), None);
        assert_eq!(state(608 + 320, 320).due(), Some(Sequence(320)..=Sequence(649)));
        assert!(!state(618, 320).is_urgent() && state(619, 320).is_urgent());
        assert_eq!(State::default().due(), None);
    }
}
