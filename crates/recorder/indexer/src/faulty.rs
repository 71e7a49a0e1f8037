//! Workers that end, hang or lie on command, for tests and simulations.

use core::fmt;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use device::Pool;
use format::head::StripeId;

use crate::launch::{Ended, Launch, Process};
use crate::message::{Answer, FRAME_BYTES, Request, frame_head};
use crate::worker::{Memory, serve};

/// What a worker is about to be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// How many frames it was given before; the first says what it is for.
    pub frames: u32,
    /// The stripe, if it is one.
    pub stripe: Option<StripeId>,
    /// It ends a segment.
    pub closes: bool,
}

/// What it does instead of what it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Ends, as one that crashed.
    Crashes,
    /// Ends, as one that another process killed.
    IsKilled,
    /// Says nothing any more.
    Hangs,
    /// Says these bytes, and nothing any more.
    Says(Vec<u8>),
}

type Ends = dyn Fn(Seen) -> Option<Fate> + Send + Sync;

/// Workers that are threads, each with a fate.
#[derive(Clone)]
pub struct Faulty(Arc<Ends>);

impl Faulty {
    /// What each of them says to have used of the processors.
    pub const CPU: Duration = Duration::from_secs(1);

    /// Before each frame `ends` says what the worker does instead of getting it, if anything.
    pub fn new(ends: impl Fn(Seen) -> Option<Fate> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ends))
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl Launch for Faulty {
    fn start(&self, stream: OwnedFd, memories: &[Pool]) -> io::Result<Box<dyn Process>> {
        let (owner, (inner, of_worker)) = (UnixStream::from(stream), UnixStream::pair()?);
        let memories = memories.iter().cloned().map(Memory::OfThisProcess).collect();
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        // The proxy between reports how it ends.
        thread("sessions").spawn(move || drop(serve(of_worker, memories, Vec::new())))?;
        let (answers, back) = (inner.try_clone()?, owner.try_clone()?);
        let answered = Arc::new(Answered::default());
        let counts = Arc::clone(&answered);
        thread("answers").spawn(move || counts.hand_back(&answers, &back))?;
        let ends = Arc::clone(&self.0);
        let body = move || {
            let (fate, stripes) = relay(&owner, &inner, &*ends);
            // A process answers each stripe before it turns to the next.
            answered.wait_for(stripes);
            let by_itself = fate == Some(Fate::Crashes);
            if let Some(Fate::Says(bytes)) = &fate {
                // An owner that is gone need not hear it.
                (&owner).write_all(bytes).unwrap_or_default();
            }
            if matches!(fate, Some(Fate::Hangs | Fate::Says(_))) {
                // Until its owner gives it up.
                io::copy(&mut &owner, &mut io::sink()).unwrap_or_default();
            }
            for end in [inner, owner] {
                end.shutdown(Shutdown::Both).unwrap_or_default();
            }
            by_itself
        };
        Ok(Box::new(Mortal(Some(thread("between").spawn(body)?))))
    }
}

/// Hands frames on until the worker meets its fate; none when its owner is gone. Counts stripes.
fn relay(owner: &UnixStream, mut worker: &UnixStream, ends: &Ends) -> (Option<Fate>, u64) {
    let (mut frames, mut stripes) = (0, 0);
    while let Ok((kind, frame)) = frame_of(owner) {
        let content = frame.get(FRAME_BYTES..).unwrap_or_default();
        let request = Request::decode(kind, content);
        let file_bytes = request.as_ref().map_or(0, Request::file_bytes);
        let (stripe, closes) = match request {
            Ok(Request::Stripe(stripe)) => (Some(stripe.stripe), false),
            Ok(Request::Close(_)) => (None, true),
            _ => (None, false),
        };
        if let Some(fate) = ends(Seen { frames, stripe, closes }) {
            return (Some(fate), stripes);
        }
        let is_sent = worker.write_all(&frame).is_ok();
        if !is_sent || io::copy(&mut owner.take(file_bytes), &mut worker).is_err() {
            break;
        }
        frames += 1;
        stripes += u64::from(stripe.is_some());
    }
    (None, stripes)
}

/// The next frame, with its kind.
fn frame_of(mut stream: &UnixStream) -> io::Result<(u32, Vec<u8>)> {
    let mut frame = vec![0; FRAME_BYTES];
    stream.read_exact(&mut frame)?;
    let head = frame.first_chunk().expect("it was read");
    let (length, kind) = frame_head(*head);
    frame.resize(FRAME_BYTES + length, 0);
    stream.read_exact(frame.get_mut(FRAME_BYTES..).unwrap_or_default())?;
    Ok((kind, frame))
}

/// Answers to stripes that the owner can hear.
#[derive(Default)]
struct Answered {
    stripes: Mutex<u64>,
    more: Condvar,
}

impl Answered {
    /// Hands back what the worker says until it ends.
    fn hand_back(&self, worker: &UnixStream, mut owner: &UnixStream) {
        while let Ok((kind, frame)) = frame_of(worker) {
            let answer = Answer::decode(kind, frame.get(FRAME_BYTES..).unwrap_or_default());
            let file_bytes = match &answer {
                Ok(Answer::Segment(head)) => head.parquet_bytes,
                _ => 0,
            };
            let is_said = owner.write_all(&frame).is_ok();
            if !is_said || io::copy(&mut worker.take(file_bytes), &mut owner).is_err() {
                break;
            }
            self.count(u64::from(matches!(answer, Ok(Answer::Taken(..)))));
        }
        self.count(u64::MAX);
    }

    fn count(&self, more: u64) {
        let mut stripes = stage::lock(&self.stripes);
        *stripes = stripes.saturating_add(more);
        self.more.notify_all();
    }

    /// Until so many are answered, or no more answers come.
    fn wait_for(&self, stripes: u64) {
        let answered = stage::lock(&self.stripes);
        let too_few = |answered: &mut u64| *answered < stripes;
        drop(self.more.wait_while(answered, too_few));
    }
}

#[derive(Debug)]
struct Mortal(Option<JoinHandle<bool>>);

impl Process for Mortal {
    fn kill(&mut self) {}

    fn ended(&mut self, _patience: Duration) -> Option<Ended> {
        let by_itself = self.0.take()?.join().expect("it hands frames on");
        let how = if by_itself { "it crashed on command" } else { "it was killed on command" };
        Some(Ended { by_itself, how: how.to_owned(), cpu: Faulty::CPU })
    }
}
