//! Workers that a simulation plays: they speak with their owner as real ones do, in the time of the
//! stage, count packets where those lie, and make segments without rows.
//!
//! What a worker makes of packets is tested elsewhere; here it is a part of the recorder that takes
//! its time, dies, hangs or lies on command.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use device::Pool;
use format::directory::Summary;
use format::piece::packets;
use host::Heard;
use stage::{Key, lock};
use units::Timestamp;
use units::number::to_u64;

use crate::faulty::{Fate, Seen};
use crate::launch::{Ended, Launch, Line, Process};
use crate::message::{
    Answer, Closing, FRAME_BYTES, Request, SegmentHead, StripeAt, Taken, VERSION, frame_head,
};

/// How long a played worker takes for something that it is given, and what becomes of it then.
pub type Plays = dyn Fn(Seen) -> (Duration, Option<Fate>) + Send + Sync;

/// Starts workers that are played.
#[derive(Clone)]
pub struct Played(Arc<Plays>);

impl Played {
    /// Before each frame `plays` says how long it takes, and what the worker does instead of
    /// answering it, if anything.
    pub fn new(plays: impl Fn(Seen) -> (Duration, Option<Fate>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(plays))
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Played")
    }
}

impl Launch for Played {
    fn start(&self, _: OwnedFd, _: &[Pool]) -> io::Result<Box<dyn Process>> {
        Err(io::Error::other("a played worker has no descriptors"))
    }

    fn connect(&self, memories: &[Pool]) -> io::Result<(Box<dyn Line>, Box<dyn Process>)> {
        let state = Arc::new(Mutex::new(State::default()));
        let line = Own {
            plays: Arc::clone(&self.0),
            memories: memories.to_vec(),
            input: Vec::new(),
            frames: 0,
            free_ns: 0,
            state: Arc::clone(&state),
        };
        Ok((Box::new(line), Box::new(Role(state))))
    }
}

/// What the line and the process have in common.
#[derive(Debug, Default)]
struct State {
    /// Bytes that are said from these times on.
    answers: VecDeque<(i64, Vec<u8>)>,
    /// How it ends, and when.
    ends: Option<(i64, Ended)>,
    /// Nothing is said any more.
    is_silent: bool,
}

/// The owner's end.
struct Own {
    plays: Arc<Plays>,
    memories: Vec<Pool>,
    input: Vec<u8>,
    frames: u32,
    /// When it has done what it was given.
    free_ns: i64,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("frames", &self.frames).finish_non_exhaustive()
    }
}

fn now_ns() -> i64 {
    stage::current().expect("workers are played on a stage").now_ns()
}

impl Line for Own {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.extend_from_slice(bytes);
        while let Some((head, rest)) = self.input.split_first_chunk::<FRAME_BYTES>() {
            let (length, kind) = frame_head(*head);
            let Some(content) = rest.get(..length) else { break };
            let request = (self.frames > 0).then(|| Request::decode(kind, content));
            let request = request.transpose().map_err(io::Error::other)?;
            let file = request.as_ref().map_or(0, Request::file_bytes);
            let end = usize::try_from(file).ok().and_then(|file| length.checked_add(file));
            let Some(end) = end.filter(|end| *end <= rest.len()) else { break };
            self.input.drain(..FRAME_BYTES + end);
            self.take(request)?;
            self.frames = self.frames.saturating_add(1);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        into: &mut Vec<u8>,
        most: usize,
        patience: Duration,
    ) -> io::Result<Heard> {
        let current = stage::current().expect("workers are played on a stage");
        let until_ns = now_ns().saturating_add(units::nanos(patience));
        loop {
            let mut state = lock(&self.state);
            let State { answers, ends, .. } = &mut *state;
            let due_ns = match (answers.front_mut(), &*ends) {
                (Some((due_ns, bytes)), _) if *due_ns <= now_ns() => {
                    let said: Vec<u8> = bytes.drain(..bytes.len().min(most)).collect();
                    if bytes.is_empty() {
                        answers.pop_front();
                    }
                    into.extend_from_slice(&said);
                    return Ok(Heard::Bytes(said.len()));
                }
                (Some((due_ns, _)), _) => *due_ns,
                (None, Some((ends_ns, _))) if *ends_ns <= now_ns() => return Ok(Heard::Closed),
                (None, Some((ends_ns, _))) => *ends_ns,
                (None, None) => i64::MAX,
            };
            drop(state);
            if now_ns() >= until_ns {
                return Ok(Heard::Nothing);
            }
            current.wait_until(due_ns.min(until_ns));
        }
    }
}

impl Own {
    fn take(&mut self, request: Option<Request>) -> io::Result<()> {
        if lock(&self.state).is_silent {
            return Ok(());
        }
        let (stripe, closes) = match &request {
            Some(Request::Stripe(stripe)) => (Some(stripe.stripe), false),
            Some(Request::Close(_)) => (None, true),
            _ => (None, false),
        };
        let (takes, fate) = (self.plays)(Seen { frames: self.frames, stripe, closes });
        let takes_ns = units::nanos(takes);
        self.free_ns = self.free_ns.max(now_ns()).saturating_add(takes_ns);
        if let Some(fate) = fate {
            self.meet(fate);
            return Ok(());
        }
        match request {
            None => self.answer(&Answer::Hello { version: VERSION, notes: Vec::new() }, &[]),
            Some(Request::Stripe(stripe)) => {
                let counted = self.count(&stripe)?;
                self.answer(&Answer::Taken(stripe.stripe, counted), &[]);
            }
            Some(Request::Close(closing)) => {
                let file = file_of(&closing);
                let parquet_bytes = to_u64(file.len());
                let summary = summary_of(&closing);
                self.answer(&Answer::Segment(SegmentHead { summary, parquet_bytes }), &file);
            }
            Some(Request::UseThreads(_) | Request::Before(_)) => {}
        }
        Ok(())
    }

    fn meet(&mut self, fate: Fate) {
        let (by_itself, how) = match &fate {
            Fate::Crashes => (true, "it crashed on command"),
            _ => (false, "it was killed on command"),
        };
        let mut state = lock(&self.state);
        state.is_silent = true;
        match fate {
            Fate::Crashes | Fate::IsKilled => {
                let ended = Ended { by_itself, how: how.to_owned(), cpu: Duration::ZERO };
                state.ends = Some((self.free_ns, ended));
            }
            Fate::Hangs => {}
            Fate::Says(bytes) => state.answers.push_back((self.free_ns, bytes)),
        }
    }

    fn answer(&mut self, answer: &Answer, file: &[u8]) {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        bytes.extend_from_slice(file);
        lock(&self.state).answers.push_back((self.free_ns, bytes));
    }

    /// Counts the packets where they lie, which must not change meanwhile.
    fn count(&self, stripe: &StripeAt) -> io::Result<Taken> {
        let mut taken = Taken::default();
        for piece in &stripe.pieces {
            let memory = self.memories.get(usize::from(piece.memory));
            let held = memory.and_then(|memory| memory.shared_at(piece.buffer));
            let held = held.ok_or(io::Error::other("a piece that the pool does not hold"))?;
            let body = usize::try_from(piece.begin).ok().zip(usize::try_from(piece.end).ok());
            let body = body.and_then(|(begin, end)| held.get(begin..end));
            let walk = packets(body.ok_or(io::Error::other("a piece outside of its memory"))?);
            taken.packets += to_u64(walk.flatten().count());
        }
        taken.rows = taken.packets;
        Ok(taken)
    }
}

/// What fills the file of a segment: it differs from all others.
fn file_of(closing: &Closing) -> Vec<u8> {
    let Closing { first, last, packets, .. } = closing;
    let text = format!("{first} to {last}, {packets} packets; ");
    let len = 200 + usize::try_from(packets % 64).expect("a small number") * 211;
    text.bytes().cycle().take(len).collect()
}

fn summary_of(closing: &Closing) -> Summary {
    let packets = closing.packets.saturating_sub(closing.missed_packets);
    let no_times = closing.packets == 0;
    Summary {
        first: closing.first,
        last: closing.last,
        time_min: if no_times { Timestamp::MAX } else { closing.times.min },
        time_max: if no_times { Timestamp::MIN } else { closing.times.max },
        sessions: packets,
        packets,
        unindexed: closing.missed_packets > 0 || !closing.left_out.is_empty(),
        gaps: false,
        unread: false,
    }
}

/// The process, for its owner.
#[derive(Debug)]
struct Role(Arc<Mutex<State>>);

impl Process for Role {
    fn kill(&mut self) {
        let mut state = lock(&self.0);
        state.is_silent = true;
        let how = "was killed".to_owned();
        let killed = Ended { by_itself: false, how, cpu: Duration::ZERO };
        state.ends.get_or_insert((now_ns(), killed));
    }

    fn ended(&mut self, patience: Duration) -> Option<Ended> {
        let current = stage::current().expect("workers are played on a stage");
        let is_over = || {
            let state = lock(&self.0);
            // One whose owner has closed the stream ends by itself.
            let ended = state.ends.clone().filter(|(ends_ns, _)| *ends_ns <= now_ns());
            let is_done = Arc::strong_count(&self.0) == 1;
            let how = "ended".to_owned();
            let in_order = || Ended { by_itself: false, how, cpu: Duration::ZERO };
            ended.map(|(_, ended)| ended).or_else(|| is_done.then(in_order))
        };
        current.wait_for((Key::NONE, "the end of a worker"), Some(patience), is_over)
    }
}
