//! Workers that end, hang or lie when they are told to, for tests and simulations.

use core::fmt;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use device::Pool;
use format::head::StripeId;

use crate::launch::{Ended, Launch, Process};
use crate::message::{FRAME_BYTES, Request, frame_head};
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
    /// Ends, as one that somebody killed.
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
        // How it ends is told by the one between.
        thread("sessions").spawn(move || drop(serve(of_worker, memories, Vec::new())))?;
        let (mut answers, mut back) = (inner.try_clone()?, owner.try_clone()?);
        thread("answers").spawn(move || drop(io::copy(&mut answers, &mut back)))?;
        let ends = Arc::clone(&self.0);
        let body = move || {
            let fate = relay(&owner, &inner, &*ends);
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

/// Hands frames on until the worker meets its fate; `None` when its owner is gone.
fn relay(mut owner: &UnixStream, mut worker: &UnixStream, ends: &Ends) -> Option<Fate> {
    let mut frames = 0;
    loop {
        let mut head = [0; FRAME_BYTES];
        owner.read_exact(&mut head).ok()?;
        let (length, kind) = frame_head(head);
        let mut content = vec![0; length];
        owner.read_exact(&mut content).ok()?;
        let (stripe, closes) = match Request::decode(kind, &content) {
            Ok(Request::Stripe(stripe)) => (Some(stripe.stripe), false),
            Ok(Request::Close(_)) => (None, true),
            _ => (None, false),
        };
        if let Some(fate) = ends(Seen { frames, stripe, closes }) {
            return Some(fate);
        }
        worker.write_all(&head).and_then(|()| worker.write_all(&content)).ok()?;
        frames += 1;
    }
}

#[derive(Debug)]
struct Mortal(Option<JoinHandle<bool>>);

impl Process for Mortal {
    fn kill(&mut self) {}

    fn ended(&mut self, _patience: Duration) -> Option<Ended> {
        let by_itself = self.0.take()?.join().expect("it hands frames on");
        let how = if by_itself { "it crashed, as told" } else { "it was killed, as told" };
        Some(Ended { by_itself, how: how.to_owned(), cpu: Faulty::CPU })
    }
}
