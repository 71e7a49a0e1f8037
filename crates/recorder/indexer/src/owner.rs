//! The owner's side: one worker at a time, what it has in hand, and what becomes of that when it
//! dies.
//!
//! A worker may end at any instant, by its own fault, by what it was given, or killed. The owner
//! then has every stripe that was not answered still in its memory, reports to its caller which
//! answered ones are lost with the worker ([`Event::Died`]), and starts another one after a pause.
//! The first stripe without an answer is the *suspect*: the next worker gets it alone. A stripe
//! that ended two workers by itself is *poison* and is never handed over again ([`Event::Poison`]).
//!
//! Nothing that comes back is trusted: frames are bounded and parsed, answers must be owed, counts
//! cannot be more than was handed over, and a worker that breaks a rule, or says nothing for a
//! minute although it owes an answer, is killed. The bytes of a segment's file are not looked at.

use std::collections::VecDeque;
use std::io;

use core::mem;
use core::ops::Range;
use core::time::Duration;

use device::{Pool, Shared};
use format::directory::SegmentEntry;
use format::head::{StripeId, VolumeId};
use host::Heard;
use index::Encoded;
use session::Config;
use units::number::to_u64;
use units::{Clock, Epoch, NANOS_PER_SECOND, Timestamp};

use crate::launch::{Ended, Line, Process, Workers};
use crate::message::{
    ANSWER_BYTES_MAX, Answer, BEFORE_BYTES_MAX, Before, Begin, Closing, FRAME_BYTES, MemoryShape,
    PARQUET_BYTES_MAX, PieceAt, Request, RunKind, SegmentHead, StripeAt, Taken, Times, VERSION,
    frame_head,
};
use crate::suspects::Suspects;

/// Stripes handed over at a time: enough that the worker never waits for the next.
pub const IN_HAND_MAX: usize = 4;
/// Longest silence of a worker that owes an answer. The worst stripe of the corpus takes a
/// thousandth of it.
const SILENCE_NS: i64 = 60 * NANOS_PER_SECOND;
/// Of the time between two looks at most this counts as silence: when the machine was paused, the
/// worker was, too.
const LOOK_NS_MAX: i64 = NANOS_PER_SECOND;
/// Pause before another worker starts: doubled while workers end without one answer.
const PAUSE_NS_MIN: i64 = NANOS_PER_SECOND / 20;
const PAUSE_NS_MAX: i64 = 5 * NANOS_PER_SECOND;
/// Workers in a row that never were ready: then stripes are given back instead of waiting.
const UNREADY_MAX: u32 = 5;
/// How long a killed worker may take to go.
const BURIAL: Duration = Duration::from_secs(5);
/// Sessions of a table at most: rows that a segment may have besides one for each of its packets.
const ROWS_BEFORE_MAX: u64 = 1 << 32;
/// Bytes that are taken from the stream at a time.
const READ_BYTES: usize = 256 << 10;

/// What a worker is started for.
#[derive(Debug)]
pub struct Setup {
    /// Volume that the segments belong to.
    pub volume: VolumeId,
    /// Chooses the places of sessions in memory: a secret.
    pub hash_seed: u64,
    /// The key and the timeouts of sessions; `None` makes segments without rows.
    pub sessions: Option<Config>,
    /// Memories that pieces lie in.
    pub memories: Vec<Pool>,
    /// Starts the workers.
    pub workers: Workers,
}

/// A piece of a stripe.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Which of the [`Setup::memories`] it lies in.
    pub memory: u8,
    /// Its bytes; they do not change while this is held.
    pub buffer: Shared,
    /// Column of the stripe.
    pub column: u8,
    /// The body within the buffer.
    pub body: Range<usize>,
    /// Where the packets' blocks begin in the body, as far as that is known: a hint, which the
    /// first worker gets and no later one.
    pub starts: Vec<u32>,
}

/// A stripe to be indexed, all of it or one piece.
#[derive(Clone, Debug)]
pub struct Stripe {
    /// Kind of the run that the stripe belongs to.
    pub run_kind: RunKind,
    /// Id of the stripe.
    pub id: StripeId,
    /// Opening of the volume that wrote it.
    pub epoch: Epoch,
    /// It comes behind later ones.
    pub is_late: bool,
    /// Payload is not looked at for names.
    pub without_names: bool,
    /// Packets in the stripe.
    pub packets: u64,
    /// Times of the packets.
    pub times: Times,
    /// `CID` of the first stripe in its slot, by which the segment is identified.
    pub slot_cid: Option<[u8; 32]>,
    /// What there is of it.
    pub pieces: Vec<Piece>,
}

/// Segments from which sessions go on in a run.
#[derive(Clone, Debug)]
pub struct SegmentsBefore {
    /// Opening of the volume that wrote their stripes, and those of the run.
    pub epoch: Epoch,
    /// No packet of the run came before.
    pub at: Timestamp,
    /// Their files, the newest first.
    pub files: Vec<Vec<u8>>,
}

impl SegmentsBefore {
    /// Those of some segments, the newest first, that lie before the stripe `first`, and whose
    /// packets came not longer before `at` than sessions may be silent: as many as are handed over.
    pub fn among(
        newest_first: &[SegmentEntry],
        first: StripeId,
        at: Timestamp,
    ) -> Vec<SegmentEntry> {
        let timeout = Config::default().tcp_timeout_ns.unwrap_or(i64::MAX);
        let may_go_on = |entry: &&SegmentEntry| {
            entry.summary.last < first && at.since(entry.summary.time_max) <= timeout
        };
        let mut bytes = 0_u64;
        let fits = |entry: &&SegmentEntry| {
            bytes = bytes.saturating_add(entry.bytes);
            bytes <= BEFORE_BYTES_MAX
        };
        newest_first.iter().filter(may_go_on).take_while(fits).copied().collect()
    }
}

/// What came of what was handed over.
#[derive(Debug)]
pub enum Event {
    /// The packets of a stripe have rows, or will have them at the end of their segment.
    Taken(Box<Stripe>, Taken),
    /// A segment is made.
    Segment(Closing, Encoded),
    /// A segment could not be encoded; why.
    Failed(Closing, String),
    /// The worker ended. Rows of all stripes that were answered, and whose segment has not come
    /// back, are lost with it, as are the segments under way; stripes without an answer are kept.
    Died(Death),
    /// A stripe that ended two workers; it is not handed over again.
    Poison(Box<Stripe>),
    /// No worker can be started at present: the stripe is given back.
    Unavailable(Box<Stripe>),
}

/// How a worker ended, and what with it.
#[derive(Debug)]
pub struct Death {
    /// How, in a few words.
    pub how: String,
    /// Segments that were being made.
    pub closings: Vec<Closing>,
    /// It was to blame itself, or what it was given.
    pub by_itself: bool,
    /// It ended by itself while it did nothing but make these segments.
    pub are_closings_to_blame: bool,
}

/// A worker that runs.
#[derive(Debug)]
struct Worker {
    process: Box<dyn Process>,
    stream: Box<dyn Line>,
    received: Vec<u8>,
    /// Bytes of `received` that were read.
    read: usize,
    is_ready: bool,
    /// A segment whose file comes.
    file: Option<(SegmentHead, Vec<u8>)>,
    /// Why nothing can be sent to it any more. What it answered before is still taken.
    is_deaf: Option<io::Error>,
    /// How long it has been silent, as far as that counts.
    silent_ns: i64,
    looked_ns: i64,
}

/// What is handed over.
#[derive(Debug)]
struct InHand {
    stripe: Box<Stripe>,
    is_sent: bool,
}

/// One worker after the other, and what they have in hand.
#[derive(Debug)]
pub struct Owner {
    setup: Setup,
    worker: Option<Worker>,
    in_hand: VecDeque<InHand>,
    closings: VecDeque<Closing>,
    suspects: Suspects,
    /// No worker starts before.
    not_before_ns: i64,
    pause_ns: i64,
    unready: u32,
    /// Why the last one could not be started, if it could not.
    unstarted: Option<String>,
    /// Threads that encode, once nothing else needs the processors.
    encode_threads: Option<u32>,
    /// Segments before a run that the worker has not been sent, with their files.
    before: Vec<(Before, Vec<u8>)>,
    deaths: u64,
    /// Processor time of workers that are gone.
    cpu: Duration,
    notes: Vec<String>,
}

/// Why a worker must go.
enum Fault {
    /// It closed its end.
    Closed,
    /// It broke a rule.
    Broke(&'static str),
    /// The stream does not work.
    Stream(io::Error),
    /// The recording goes on without it.
    NoTime,
}

impl Owner {
    /// Nothing is started before there is something to do.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            worker: None,
            in_hand: VecDeque::new(),
            closings: VecDeque::new(),
            suspects: Suspects::default(),
            not_before_ns: i64::MIN,
            pause_ns: PAUSE_NS_MIN,
            unready: 0,
            unstarted: None,
            encode_threads: None,
            before: Vec::new(),
            deaths: 0,
            cpu: Duration::ZERO,
            notes: Vec::new(),
        }
    }

    /// Whether another stripe may be handed over now.
    pub fn has_room(&self) -> bool {
        self.in_hand.len() < IN_HAND_MAX
    }

    /// Stripes without an answer.
    pub fn in_hand(&self) -> usize {
        self.in_hand.len()
    }

    /// Whether [`Self::poll`] has something to wait for.
    pub fn is_idle(&self) -> bool {
        self.in_hand.is_empty() && self.closings.is_empty()
    }

    /// Workers that ended before their time.
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Whether the stripe ended two workers.
    pub fn is_poison(&self, id: StripeId) -> bool {
        self.suspects.is_poison(id)
    }

    /// What the confinement of workers lacks on this machine, one line each.
    pub fn take_notes(&mut self) -> Vec<String> {
        mem::take(&mut self.notes)
    }

    /// Before the first stripe of a run: sessions of segments that were made before go on in it,
    /// as many as fit ([`BEFORE_BYTES_MAX`]).
    ///
    /// The next worker knows them, and no later one: who begins the run again says it again.
    pub fn resume(&mut self, run_kind: RunKind, segments: SegmentsBefore) {
        let SegmentsBefore { epoch, at, files } = segments;
        let mut room = BEFORE_BYTES_MAX;
        for (file, number) in files.into_iter().zip(0..) {
            let parquet_bytes = to_u64(file.len());
            let Some(left) = room.checked_sub(parquet_bytes) else { break };
            room = left;
            let before = Before { run_kind, epoch, number, at, parquet_bytes };
            self.before.push((before, file));
        }
    }

    /// Hands over a stripe: one event for it comes from [`Self::poll`].
    ///
    /// # Panics
    /// Without [`Self::has_room`].
    pub fn push(&mut self, stripe: Stripe) {
        assert!(self.has_room(), "the caller has checked for space");
        self.in_hand.push_back(InHand { stripe: Box::new(stripe), is_sent: false });
    }

    /// Ends a run's segment: it comes from [`Self::poll`].
    ///
    /// # Panics
    /// While stripes are in hand: a worker that dies would take some of the segment's with it.
    pub fn close(&mut self, closing: Closing, clock: &dyn Clock) -> Option<Event> {
        assert!(self.in_hand.is_empty(), "a segment ends when all of its stripes are answered");
        if self.worker.is_none() {
            // It has no rows, or they died with the last one; a new worker makes it all the same.
            if let Err(error) = self.start(clock) {
                let how = format!("cannot be started: {error}");
                return Some(Event::Died(self.death(how, vec![closing], clock)));
            }
        }
        self.send(&Request::Close(closing.clone()));
        self.closings.push_back(closing);
        None
    }

    /// Nothing else needs the processors from now on: so many threads encode.
    pub fn use_threads(&mut self, threads: u32) {
        self.encode_threads = Some(threads);
        self.send(&Request::UseThreads(threads));
    }

    /// Takes back stripes that no worker has, in their order.
    pub fn forget(&mut self, is_meant: impl Fn(&Stripe) -> bool) -> Vec<Stripe> {
        let is_meant = |held: &InHand| !held.is_sent && is_meant(&held.stripe);
        let (forgotten, kept) = mem::take(&mut self.in_hand).into_iter().partition(is_meant);
        self.in_hand = kept;
        let forgotten: VecDeque<InHand> = forgotten;
        forgotten.into_iter().map(|held| *held.stripe).collect()
    }

    /// Ends the worker though it has done nothing wrong: its memory is needed. What it had in hand
    /// is [`Self::forget`]'s; the rest is lost with it, as when it ends by itself.
    pub fn give_up(&mut self, clock: &dyn Clock) -> Option<Death> {
        self.worker.as_ref()?;
        Some(self.bury(&Fault::NoTime, clock))
    }

    /// No worker could be started for a while: what is handed over is given back.
    pub fn is_unavailable(&self) -> bool {
        self.unready >= UNREADY_MAX && self.worker.is_none()
    }

    /// Why none can be started, where that has been so for a while.
    pub fn why_unavailable(&self) -> Option<&str> {
        let none = "each ends before it is ready";
        self.is_unavailable().then(|| self.unstarted.as_deref().unwrap_or(none))
    }

    /// Has the worker end in order, as there is nothing more to do, and gives the processor time of
    /// all of them, where that is not this process's own.
    ///
    /// # Panics
    /// While there is something to wait for.
    pub fn end(&mut self) -> Duration {
        assert!(self.is_idle(), "a worker ends when it has answered everything");
        if let Some(Worker { stream, mut process, .. }) = self.worker.take() {
            drop(stream);
            let ended = process.ended(BURIAL);
            self.cpu = self.cpu.saturating_add(ended.map(|ended| ended.cpu).unwrap_or_default());
        }
        self.cpu
    }

    /// The next event, waiting up to `patience` for it.
    pub fn poll(&mut self, clock: &dyn Clock, patience: Duration) -> Option<Event> {
        if let Some(event) = self.poisoned() {
            return Some(event);
        }
        if self.is_idle() {
            return None;
        }
        if self.worker.is_none() && !self.is_started(clock, patience) {
            return self.unavailable();
        }
        match self.exchange(clock, patience) {
            Ok(event) => event,
            Err(fault) => Some(Event::Died(self.bury(&fault, clock))),
        }
    }

    /// The first stripe, if it is poison.
    fn poisoned(&mut self) -> Option<Event> {
        let first = self.in_hand.front()?.stripe.id;
        let is_poison = self.is_poison(first);
        let poison = if is_poison { self.in_hand.pop_front() } else { None };
        poison.map(|it| Event::Poison(it.stripe))
    }

    fn unavailable(&mut self) -> Option<Event> {
        let given_back = if self.unready >= UNREADY_MAX { self.in_hand.pop_front() } else { None };
        given_back.map(|it| Event::Unavailable(it.stripe))
    }

    /// Starts a worker when it is time to; false while it is not.
    fn is_started(&mut self, clock: &dyn Clock, patience: Duration) -> bool {
        let wait_ns = self.not_before_ns.saturating_sub(clock.boottime_ns());
        if wait_ns > 0 {
            let wait = Duration::from_nanos(wait_ns.unsigned_abs());
            if self.unready < UNREADY_MAX {
                stage::sleep(wait.min(patience));
            }
            return false;
        }
        match self.start(clock) {
            Ok(()) => {
                self.unstarted = None;
                true
            }
            Err(error) => {
                self.unstarted = Some(error.to_string());
                if self.unready == 0 {
                    self.notes.push(format!("the indexer cannot be started: {error}"));
                }
                self.unready = self.unready.saturating_add(1);
                self.pause(clock);
                false
            }
        }
    }

    fn start(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let shapes = self.setup.memories.iter().map(|pool| {
            Some(MemoryShape {
                count: pool.mapped_count().try_into().ok()?,
                size: pool.buffer_size().try_into().ok()?,
            })
        });
        let begin = Begin {
            volume: self.setup.volume,
            hash_seed: self.setup.hash_seed,
            sessions: self.setup.sessions,
            memories: shapes.collect::<Option<_>>().expect("a pool's shape has 32-bit numbers"),
        };
        let (stream, process) = self.setup.workers.connect(&self.setup.memories)?;
        let worker = Worker {
            process,
            stream,
            received: Vec::new(),
            read: 0,
            is_ready: false,
            file: None,
            is_deaf: None,
            silent_ns: 0,
            looked_ns: clock.boottime_ns(),
        };
        let worker = self.worker.insert(worker);
        let mut frame = Vec::new();
        begin.encode(&mut frame);
        if let Some(threads) = self.encode_threads {
            Request::UseThreads(threads).encode(&mut frame);
        }
        worker.stream.send(&frame)
    }

    fn send(&mut self, request: &Request) {
        let mut frame = Vec::new();
        request.encode(&mut frame);
        if let Some(worker) = &mut self.worker {
            worker.send(&frame);
        }
    }

    /// Sends what may go out, and takes one answer: what a worker said before it ended counts, or
    /// a stripe that it had answered would be suspected.
    fn exchange(&mut self, clock: &dyn Clock, patience: Duration) -> Result<Option<Event>, Fault> {
        self.send_stripes();
        if let Some(event) = self.answered()? {
            return Ok(Some(event));
        }
        let worker = self.worker.as_mut().expect("it was started");
        let patience = if worker.is_deaf.is_some() { Duration::ZERO } else { patience };
        let heard = match &mut worker.file {
            Some((head, file)) => {
                let missing = usize_of(head.parquet_bytes).saturating_sub(file.len());
                worker.stream.receive(file, missing.min(READ_BYTES), patience)
            }
            None => worker.stream.receive(&mut worker.received, READ_BYTES, patience),
        };
        match heard.map_err(Fault::Stream)? {
            Heard::Closed => return Err(Fault::Closed),
            Heard::Bytes(_) => (worker.silent_ns, worker.looked_ns) = (0, clock.boottime_ns()),
            Heard::Nothing => {
                if let Some(error) = worker.is_deaf.take() {
                    return Err(Fault::Stream(error));
                }
                let now = clock.boottime_ns();
                let since = now.saturating_sub(worker.looked_ns).clamp(0, LOOK_NS_MAX);
                worker.silent_ns = worker.silent_ns.saturating_add(since);
                worker.looked_ns = now;
                if worker.silent_ns >= SILENCE_NS {
                    return Err(Fault::Broke("said nothing for a minute"));
                }
            }
        }
        self.answered()
    }

    /// Sends stripes, and none before the worker is ready: how it begins is no stripe's fault.
    fn send_stripes(&mut self) {
        if self.worker.as_ref().is_none_or(|worker| !worker.is_ready || worker.is_deaf.is_some()) {
            return;
        }
        let most = self.stripes_at_a_time();
        let mut frames = Vec::new();
        for (before, file) in self.before.drain(..) {
            Request::Before(before).encode(&mut frames);
            frames.extend(file);
        }
        for held in self.in_hand.iter_mut().take(most).filter(|held| !held.is_sent) {
            Request::Stripe(place_of(&mut held.stripe)).encode(&mut frames);
            held.is_sent = true;
        }
        let worker = self.worker.as_mut().expect("it was started");
        if !frames.is_empty() {
            worker.send(&frames);
        }
    }

    /// A suspected stripe is tried alone, and so is a suspected segment.
    fn stripes_at_a_time(&self) -> usize {
        let is_suspect = |held: &InHand| self.suspects.has_stripe(held.stripe.id);
        let is_alone = self.in_hand.front().is_some_and(is_suspect);
        let mut closings = self.closings.iter();
        if closings.any(|closing| is_alone || self.suspects.has_segment(closing.first)) {
            return 0;
        }
        if is_alone {
            return 1;
        }
        // Poison comes to the front and goes; it comes again when its stretch is made anew.
        let is_harmless =
            |held: &&InHand| !is_suspect(held) && !self.suspects.is_poison(held.stripe.id);
        self.in_hand.iter().take_while(is_harmless).count()
    }

    /// The next event among the answers that have come whole.
    fn answered(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            let worker = self.worker.as_mut().expect("it was started");
            if let Some((head, file)) = worker.file.take() {
                if file.len() < usize_of(head.parquet_bytes) {
                    worker.file = Some((head, file));
                    return Ok(None);
                }
                let closing = self.closings.pop_front().expect("it was looked at");
                self.suspects.clear_segment(closing.first);
                self.pause_ns = PAUSE_NS_MIN;
                let encoded = Encoded { parquet: file, summary: head.summary };
                return Ok(Some(Event::Segment(closing, encoded)));
            }
            match worker.next_answer()? {
                None => return Ok(None),
                Some(Answer::Hello { version, notes }) => {
                    if worker.is_ready || version != VERSION {
                        return Err(Fault::Broke("is of another version"));
                    }
                    worker.is_ready = true;
                    self.unready = 0;
                    if self.deaths == 0 {
                        self.notes.extend(notes);
                    }
                }
                Some(Answer::Taken(stripe, taken)) => return self.taken(stripe, taken).map(Some),
                Some(Answer::Segment(head)) => {
                    let closing = self.closings.front();
                    check(&head, closing.ok_or(Fault::Broke("sent a segment too many"))?)?;
                    worker.begin_file(head);
                }
                Some(Answer::Failed(why)) => {
                    let closing = self.closings.pop_front();
                    let closing = closing.ok_or(Fault::Broke("sent a segment too many"))?;
                    self.suspects.clear_segment(closing.first);
                    return Ok(Some(Event::Failed(closing, why)));
                }
            }
        }
    }

    fn taken(&mut self, id: StripeId, taken: Taken) -> Result<Event, Fault> {
        let is_owed = self.in_hand.front().is_some_and(|held| held.is_sent && held.stripe.id == id);
        let held = if is_owed { self.in_hand.pop_front() } else { None };
        let InHand { stripe, .. } = held.ok_or(Fault::Broke("answered what it was not asked"))?;
        if taken.packets > stripe.packets || taken.unread > taken.packets {
            self.in_hand.push_front(InHand { stripe, is_sent: true });
            return Err(Fault::Broke("counted packets that there are not"));
        }
        self.suspects.clear_stripe(stripe.id);
        self.pause_ns = PAUSE_NS_MIN;
        Ok(Event::Taken(stripe, taken))
    }

    /// The worker goes, and what it had in hand is suspected, unless it goes because time is short.
    fn bury(&mut self, fault: &Fault, clock: &dyn Clock) -> Death {
        let Some((ended, was_ready)) = self.worker.take().map(|worker| worker.end(fault)) else {
            return self.death("is gone".to_owned(), Vec::new(), clock);
        };
        self.before.clear();
        self.cpu = self.cpu.saturating_add(ended.cpu);
        if !was_ready {
            self.unready = self.unready.saturating_add(1);
        }
        let by_itself = ended.by_itself;
        let is_suspected = !matches!(fault, Fault::NoTime);
        let first = self.in_hand.front().filter(|held| held.is_sent && is_suspected);
        let first = first.map(|held| held.stripe.id);
        let is_poison = first.is_some_and(|first| self.suspects.stripe(first, by_itself));
        self.in_hand.iter_mut().for_each(|held| held.is_sent = false);
        let closings: Vec<Closing> = self.closings.drain(..).collect();
        if by_itself {
            closings.iter().map(|closing| closing.first).for_each(|it| self.suspects.segment(it));
        }
        let death = self.death(ended.how, closings, clock);
        if is_poison && self.suspects.are_to_blame() {
            // As good as an answer: it ends no further worker.
            self.pause_ns = PAUSE_NS_MIN;
        }
        Death { by_itself, are_closings_to_blame: by_itself && first.is_none(), ..death }
    }

    fn death(&mut self, how: String, closings: Vec<Closing>, clock: &dyn Clock) -> Death {
        self.deaths = self.deaths.saturating_add(1);
        self.pause(clock);
        Death { how, closings, by_itself: true, are_closings_to_blame: true }
    }

    fn pause(&mut self, clock: &dyn Clock) {
        self.not_before_ns = clock.boottime_ns().saturating_add(self.pause_ns);
        self.pause_ns = self.pause_ns.saturating_mul(2).min(PAUSE_NS_MAX);
    }
}

impl Worker {
    /// Sends to it as long as that is possible.
    fn send(&mut self, frames: &[u8]) {
        if self.is_deaf.is_none() {
            self.is_deaf = self.stream.send(frames).err();
        }
    }

    /// The next answer that has come whole.
    fn next_answer(&mut self) -> Result<Option<Answer>, Fault> {
        let unread = self.received.get(self.read..).unwrap_or_default();
        let Some((head, rest)) = unread.split_first_chunk::<FRAME_BYTES>() else {
            self.received.drain(..self.read);
            self.read = 0;
            return Ok(None);
        };
        let (length, kind) = frame_head(*head);
        if length > ANSWER_BYTES_MAX {
            return Err(Fault::Broke("sent an answer too long"));
        }
        let Some(content) = rest.get(..length) else {
            self.received.drain(..self.read);
            self.read = 0;
            return Ok(None);
        };
        let answer = Answer::decode(kind, content).map_err(|_| Fault::Broke("sent no answer"))?;
        self.read += FRAME_BYTES + length;
        Ok(Some(answer))
    }

    /// The file of a segment follows; some of it may have come already.
    fn begin_file(&mut self, head: SegmentHead) {
        let come = self.received.get(self.read..).unwrap_or_default();
        let file = come.get(..usize_of(head.parquet_bytes)).unwrap_or(come).to_vec();
        self.read += file.len();
        self.file = Some((head, file));
    }

    /// Ends it, and says how it ended and whether it was ready.
    fn end(mut self, fault: &Fault) -> (Ended, bool) {
        // Closed, it may have ended by itself: then that says why.
        let patience = if matches!(fault, Fault::Closed) { BURIAL } else { Duration::ZERO };
        drop(self.stream);
        let by_itself = self.process.ended(patience);
        self.process.kill();
        let (is_to_blame, how) = match (fault, &by_itself) {
            (Fault::Broke(what), _) => (true, (*what).to_owned()),
            (Fault::NoTime, _) => (false, "the recording went on without it".to_owned()),
            (_, Some(ended)) => (ended.by_itself, ended.how.clone()),
            (Fault::Stream(error), None) => (true, error.to_string()),
            (Fault::Closed, None) => (true, "closed its end and went on".to_owned()),
        };
        // Its memory may still be read until it is gone.
        let ended = by_itself.or_else(|| self.process.ended(BURIAL));
        let cpu = ended.map(|ended| ended.cpu).unwrap_or_default();
        (Ended { by_itself: is_to_blame, how, cpu }, self.is_ready)
    }
}

/// A segment that cannot be one that was asked for.
fn check(head: &SegmentHead, closing: &Closing) -> Result<(), Fault> {
    let summary = &head.summary;
    let is_it = (summary.first, summary.last) == (closing.first, closing.last);
    let is_told = closing.missed_packets == 0 || summary.unindexed;
    // Rows of sessions that began before count, too.
    let rows_max = closing.packets.saturating_add(ROWS_BEFORE_MAX);
    let counts = summary.packets <= closing.packets && summary.sessions <= rows_max;
    // What has no rows is not passed over when a query asks for its time.
    let Times { min, max } = closing.times;
    let has_times = summary.time_min <= min && summary.time_max >= max;
    let has_times = has_times && (summary.packets == 0 || summary.time_min <= summary.time_max);
    let most = closing.index_bytes_max.min(PARQUET_BYTES_MAX);
    let fits = head.parquet_bytes <= most;
    if is_it && is_told && counts && has_times && fits {
        Ok(())
    } else {
        Err(Fault::Broke("sent a segment that was not asked for"))
    }
}

fn place_of(stripe: &mut Stripe) -> StripeAt {
    let within = |offset| u32::try_from(offset).expect("a buffer has at most 2 MiB");
    let pieces = stripe.pieces.iter_mut().map(|piece| PieceAt {
        memory: piece.memory,
        buffer: piece.buffer.index(),
        column: piece.column,
        begin: within(piece.body.start),
        end: within(piece.body.end),
        starts: mem::take(&mut piece.starts),
    });
    StripeAt {
        run_kind: stripe.run_kind,
        stripe: stripe.id,
        epoch: stripe.epoch,
        is_late: stripe.is_late,
        without_names: stripe.without_names,
        pieces: pieces.collect(),
    }
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
