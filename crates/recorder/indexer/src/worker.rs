//! The worker: reads sealed pieces, keeps the session tables, gives back segments.
//!
//! One loop takes requests in their order and answers each stripe at once; closed segments are
//! encoded by threads of their own and go out when they are ready, in the order of their closings.
//! It ends with its input. What its owner says is checked like anything else: a place outside of
//! the shared memory ends the worker, and so does anything that no owner sends.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use core::mem;
use core::ops::Deref;

use device::{Pool, Shared, SharedPool, SharedPoolError};
use format::head::VolumeId;
use format::piece::packets;
use index::Encoded;
use thiserror::Error;
use units::number::to_u64;

use crate::encoder::Encoder;
use crate::message::{
    Answer, Begin, Closing, FRAME_BYTES, Malformed, MemoryShape, PieceAt, REQUEST_BYTES_MAX,
    Request, Rest, RunKind, SegmentHead, StripeAt, Taken, VERSION, frame_head,
};
use crate::run::{Ending, PieceOf, Run, Sessions};

/// Why a worker gave up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The owner cannot be heard, or does not listen any more.
    #[error("cannot talk to the process that records or reads: {0}")]
    Stream(#[from] io::Error),
    /// What the owner says is not what owners say.
    #[error("was sent a {0}")]
    Malformed(#[from] Malformed),
    /// The memory is not there, or smaller than was said.
    #[error("cannot see the packets: {0}")]
    Memory(#[from] SharedPoolError),
    /// A piece that does not lie in it.
    #[error("a piece lies outside of the shared memory")]
    Outside,
    /// A file could not be begun.
    #[error("cannot encode a segment: {0}")]
    Index(#[from] index::Error),
}

/// Memory that pieces lie in.
#[derive(Debug)]
pub enum Memory {
    /// The descriptor of another process's pool.
    OfAnother(OwnedFd),
    /// A pool of this process.
    OfThisProcess(Pool),
}

/// Serves the owner at the other end of `stream` until that is closed. `memories` are what it
/// shares, in its order; `notes` are lines that it shows.
pub fn serve(
    stream: UnixStream,
    memories: Vec<Memory>,
    notes: Vec<String>,
) -> Result<(), WorkerError> {
    let output = Output(Arc::new(Mutex::new(stream.try_clone()?)));
    let mut input = Input { stream, content: Vec::new() };
    let Some((kind, content)) = input.frame()? else { return Ok(()) };
    let begin = Begin::decode(kind, content)?;
    let mut worker = Worker::new(&begin, memories, output.clone())?;
    output.send(&Answer::Hello { version: VERSION, notes })?;
    while let Some((kind, content)) = input.frame()? {
        match Request::decode(kind, content)? {
            Request::Before(before) => {
                let file = input.file(before.parquet_bytes)?;
                run(&mut worker.runs, before.run_kind).resume(&before, file.into());
            }
            Request::Stripe(stripe) => worker.stripe(&stripe)?,
            Request::Close(closing) => worker.close(&closing)?,
            Request::UseThreads(threads) => worker.use_threads(threads),
        }
    }
    Ok(())
}

struct Input {
    stream: UnixStream,
    content: Vec<u8>,
}

impl Input {
    /// The next frame; `None` where the owner has gone in between two.
    fn frame(&mut self) -> Result<Option<(u32, &[u8])>, WorkerError> {
        let mut head = [0; FRAME_BYTES];
        match self.stream.read(&mut head)? {
            0 => return Ok(None),
            read => {
                let rest = head.get_mut(read..).unwrap_or_default();
                self.stream.read_exact(rest)?;
            }
        }
        let (length, kind) = frame_head(head);
        if length > REQUEST_BYTES_MAX {
            return Err(WorkerError::Malformed(Malformed::LENGTH));
        }
        self.content.resize(length, 0);
        self.stream.read_exact(&mut self.content)?;
        Ok(Some((kind, &self.content)))
    }

    /// The bytes behind a frame; how many there are was checked with it.
    fn file(&mut self, bytes: u64) -> Result<Vec<u8>, WorkerError> {
        let mut file = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        self.stream.read_exact(&mut file)?;
        Ok(file)
    }
}

/// Answers of several threads, each whole.
#[derive(Clone)]
struct Output(Arc<Mutex<UnixStream>>);

impl Output {
    fn send(&self, answer: &Answer) -> io::Result<()> {
        self.send_with(answer, &[])
    }

    fn send_with(&self, answer: &Answer, file: &[u8]) -> io::Result<()> {
        let mut frame = Vec::new();
        answer.encode(&mut frame);
        let mut stream = stage::lock(&self.0);
        stream.write_all(&frame)?;
        stream.write_all(file)
    }

    /// An owner that is gone need not hear it: the input says so.
    fn deliver(&self, file: Result<Encoded, index::Error>) {
        let sent = match file {
            Ok(Encoded { parquet, summary }) => {
                let parquet_bytes = to_u64(parquet.len());
                let head = SegmentHead { summary, parquet_bytes };
                self.send_with(&Answer::Segment(head), &parquet)
            }
            Err(error) => self.send(&Answer::Failed(error.to_string())),
        };
        sent.unwrap_or_default();
    }
}

/// Memory that can be read.
enum Pieces {
    Mapped(SharedPool),
    OfThisProcess(Pool),
}

/// The bytes of a buffer.
enum Bytes<'a> {
    Mapped(&'a [u8]),
    Held(Shared, usize),
}

impl Pieces {
    /// The first `len` bytes of a buffer.
    fn piece(&self, index: u32, len: usize) -> Option<Bytes<'_>> {
        Some(match self {
            Self::Mapped(pool) => Bytes::Mapped(pool.piece(index, len)?),
            Self::OfThisProcess(pool) => {
                Bytes::Held(pool.shared_at(index).filter(|held| len <= held.len())?, len)
            }
        })
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Held(held, len) => held.get(..*len).unwrap_or_default(),
        }
    }
}

struct Worker {
    volume: VolumeId,
    memories: Vec<Pieces>,
    runs: [Run; RunKind::ALL.len()],
    encoder: Encoder,
    output: Output,
    /// Nothing else needs the processors.
    has_processors: bool,
}

impl Worker {
    fn new(begin: &Begin, memories: Vec<Memory>, output: Output) -> Result<Self, WorkerError> {
        if begin.memories.len() != memories.len() {
            return Err(WorkerError::Outside);
        }
        let shared = memories.into_iter().zip(&begin.memories);
        let map = |(memory, shape): (Memory, &MemoryShape)| match memory {
            Memory::OfAnother(fd) => {
                let size = usize::try_from(shape.size).unwrap_or(usize::MAX);
                SharedPool::map(fd, shape.count, size).map(Pieces::Mapped)
            }
            Memory::OfThisProcess(pool) => Ok(Pieces::OfThisProcess(pool)),
        };
        let hash_seed = begin.hash_seed;
        let sessions = begin.sessions.map(|config| Sessions { config, hash_seed });
        let past = sessions.map(Sessions::late);
        let of_encoder = output.clone();
        Ok(Self {
            volume: begin.volume,
            memories: shared.map(map).collect::<Result<_, _>>()?,
            runs: [Run::new(sessions), Run::new(past)],
            encoder: Encoder::start(Box::new(move |file| of_encoder.deliver(file)))?,
            output,
            has_processors: false,
        })
    }

    fn stripe(&mut self, stripe: &StripeAt) -> Result<(), WorkerError> {
        let mut taken = Taken::default();
        for piece in &stripe.pieces {
            let bytes = buffer(&self.memories, piece).ok_or(WorkerError::Outside)?;
            let body = usize::try_from(piece.begin).ok().and_then(|begin| bytes.get(begin..));
            let piece = PieceOf {
                stripe: stripe.stripe,
                column: piece.column,
                walk: packets(body.ok_or(WorkerError::Outside)?).with_starts(&piece.starts),
                is_late: stripe.is_late,
                without_names: stripe.without_names,
            };
            run(&mut self.runs, stripe.run_kind).take(piece, &mut taken);
        }
        Ok(self.output.send(&Answer::Taken(stripe.stripe, taken))?)
    }

    fn close(&mut self, closing: &Closing) -> Result<(), WorkerError> {
        let Ending { ended, table, meta } =
            run(&mut self.runs, closing.run_kind).end(closing, self.volume);
        let mut rows = self.encoder.begin(ended)?;
        match (&mut *table, closing.rest) {
            (Some(live), Rest::GoesOn) => live.cut(&mut rows),
            (Some(live), Rest::Last) => {
                live.finish(&mut rows);
                *table = None;
            }
            (Some(live), Rest::Elsewhere) => {
                live.cut(&mut rows);
                *table = None;
            }
            (None, _) => {}
        }
        rows.finish(meta);
        if self.has_processors {
            self.encoder.complete();
        }
        Ok(())
    }

    fn use_threads(&mut self, threads: u32) {
        if !mem::replace(&mut self.has_processors, true) {
            self.encoder.hire(usize::try_from(threads).unwrap_or(1).min(64));
        }
    }
}

fn run(runs: &mut [Run; RunKind::ALL.len()], run_kind: RunKind) -> &mut Run {
    let [live, past] = runs;
    match run_kind {
        RunKind::Live => live,
        RunKind::Past => past,
    }
}

/// The buffer of a piece, as far as the piece goes.
fn buffer<'a>(memories: &'a [Pieces], piece: &PieceAt) -> Option<Bytes<'a>> {
    let end = usize::try_from(piece.end).ok()?;
    memories.get(usize::from(piece.memory))?.piece(piece.buffer, end)
}
