//! The replay job: loads, starts the senders, waits for them, and adds up.

use core::convert::Infallible;
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use capture::Outlet;
use units::Sleep;
use units::number::to_u64;

use crate::error::Error;
use crate::frames::Chunk;
use crate::load::{Loaded, load};
use crate::options::{Input, Options, Rewrite};
use crate::reader::Read;
use crate::report::{Progress, Report, Tell, Totals};
use crate::sender::{Order, Run, Sender, SenderTally, Shared};
use crate::stream::{Piece, Stream};

/// From the start of the threads to the first packet: all of them have begun by then.
const LEAD_NS: i64 = 2_000_000;
/// Between two looks at the progress.
const LOOK: Duration = Duration::from_millis(50);
/// Chunks read ahead of a sender, at least and at most.
const AHEAD_MIN: u64 = 2;
const AHEAD_MAX: u64 = 4096;
/// About what a full chunk takes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Sends the packets of the input, in one thread for each outlet. `progress` is asked every 50 ms
/// and may stop the run in order.
///
/// # Panics
/// There is no outlet, or more than one for frames that are numbered.
pub fn replay(
    options: &Options,
    mut input: Input<'_>,
    outlets: Vec<Box<dyn Outlet>>,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    assert!(!outlets.is_empty(), "a replay needs a way out");
    let is_numbered = matches!(options.rewrite, Rewrite::Stamps { .. });
    assert!(!is_numbered || outlets.len() == 1, "one thread gives the numbers");
    let Some(loaded) = load(options, &mut input, outlets.len(), progress)? else {
        return Ok(Report { is_stopped: true, ..Report::default() });
    };
    let read = loaded.read();
    if let (0, Some(link_type)) = (read.packets, read.other_link_type) {
        return Err(Error::LinkType { link_type });
    }
    let drops_before = outlets.first().and_then(|outlet| outlet.interface_drops());
    let shared = Shared::default();
    let job = Job { options, clock, shared: &shared, start_ns: clock.boottime_ns() + LEAD_NS };
    let is_streamed = matches!(loaded, Loaded::Part { .. });
    let ended = job.run(loaded, input, outlets, progress)?;
    let drops = ended.drops.zip(drops_before);
    let interface_drops = drops.map(|(after, before)| after.saturating_sub(before));
    Ok(Report { interface_drops, is_streamed, ..ended.report() })
}

/// What a sender sends.
enum Work {
    /// All of it, again and again.
    Whole { chunks: Vec<Chunk>, end: u64 },
    /// What comes.
    Stream(Receiver<Piece>),
}

/// Where the work of the senders comes from.
enum Feed<'a> {
    /// It is all there.
    Whole(Read),
    Stream(Box<Stream<'a>>),
}

/// A replay that is about to run.
#[derive(Clone, Copy)]
struct Job<'a> {
    options: &'a Options,
    clock: &'a dyn Sleep,
    shared: &'a Shared,
    start_ns: i64,
}

/// What a sender's thread gives back.
struct SenderEnded {
    tally: SenderTally,
    drops: Option<u64>,
    error: Option<capture::Error>,
}

/// What all threads gave back.
struct Ended {
    totals: Totals,
    read: Read,
    drops: Option<u64>,
    errors: Vec<String>,
    is_stopped: bool,
}

impl<'a> Job<'a> {
    fn run(
        self,
        loaded: Loaded,
        input: Input<'a>,
        outlets: Vec<Box<dyn Outlet>>,
        progress: &mut Tell<'_>,
    ) -> Result<Ended, Error> {
        let total_packets = self.total_packets(&loaded);
        let (works, feed) = self.divide(loaded, input);
        // Nothing is ever sent: it hangs up when the last sender has ended.
        let (done, finished) = sync_channel(1);
        thread::scope(|scope| {
            let mut senders = Vec::new();
            for (number, (outlet, work)) in outlets.into_iter().zip(works).enumerate() {
                senders.push(self.start(scope, number, (outlet, work), done.clone())?);
            }
            drop(done);
            let (stream, whole) = match feed {
                Feed::Whole(read) => (None, Some(read)),
                Feed::Stream(stream) => (Some(self.spawn(scope, "read", || stream.run())?), None),
            };
            let is_stopped = self.watch(&finished, total_packets, progress);
            let streamed = stream.map(|thread| thread.join().expect("a panic aborts"));
            let read = streamed.or(whole).expect("it is one or the other");
            Ok(Ended::of(senders, read, is_stopped))
        })
    }

    /// Packets to be sent in all, where that is known.
    fn total_packets(&self, loaded: &Loaded) -> Option<u64> {
        let Loaded::Whole { read, .. } = loaded else { return None };
        self.options.loops?.get().checked_mul(read.packets)
    }

    /// The work of each sender, and who brings it.
    fn divide(self, loaded: Loaded, input: Input<'a>) -> (Vec<Work>, Feed<'a>) {
        match loaded {
            Loaded::Whole { chunks, read, end } => {
                let works = chunks.into_iter().map(|chunks| Work::Whole { chunks, end });
                (works.collect(), Feed::Whole(read))
            }
            Loaded::Part { chunks: first, reader } => {
                let count = to_u64(first.len());
                let ahead = self.options.memory_bytes / CHUNK_BYTES / count;
                let ahead = usize::try_from(ahead.clamp(AHEAD_MIN, AHEAD_MAX)).expect("a few");
                let queues = first.iter().map(|_| sync_channel(ahead));
                let (senders, receivers): (Vec<SyncSender<Piece>>, Vec<_>) = queues.unzip();
                let (loops, shared) = (self.options.loops, self.shared);
                let stream = Stream { first, reader, input, senders, loops, shared };
                let works = receivers.into_iter().map(Work::Stream).collect();
                (works, Feed::Stream(Box::new(stream)))
            }
        }
    }

    fn spawn<'s, 'e, T: Send + 's>(
        self,
        scope: &'s Scope<'s, 'e>,
        name: &str,
        run: impl FnOnce() -> T + Send + 's,
    ) -> Result<ScopedJoinHandle<'s, T>, Error> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        thread.map_err(|source| {
            // Those that run already have no thread to wait for.
            self.shared.stop();
            Error::Thread { source }
        })
    }

    fn start<'s, 'e>(
        self,
        scope: &'s Scope<'s, 'e>,
        number: usize,
        (outlet, work): (Box<dyn Outlet>, Work),
        done: SyncSender<Infallible>,
    ) -> Result<ScopedJoinHandle<'s, SenderEnded>, Error>
    where
        'a: 's,
    {
        self.spawn(scope, &format!("send-{number}"), move || {
            let ended = self.send(outlet, work);
            drop(done);
            ended
        })
    }

    /// The life of a sender's thread.
    fn send(self, outlet: Box<dyn Outlet>, work: Work) -> SenderEnded {
        let Options { pace, rewrite, .. } = *self.options;
        let order = Order { pace, rewrite, start_ns: self.start_ns };
        let mut sender = Sender::new(outlet, self.clock, order, self.shared);
        let sent = match work {
            Work::Whole { chunks, end } => {
                let loops = 0..self.options.loops.map_or(u64::MAX, NonZeroU64::get);
                sender.run(&Run { chunks: &chunks, loops, base: 0, end })
            }
            Work::Stream(pieces) => pieces.iter().try_for_each(|piece| {
                let Piece { chunk, loop_number, base } = piece;
                let loops = loop_number..loop_number + 1;
                sender.run(&Run { chunks: &[chunk], loops, base, end: 0 })
            }),
        };
        if sent.is_err() {
            self.shared.stop();
        }
        SenderEnded {
            drops: sender.outlet.interface_drops(),
            tally: sender.tally,
            error: sent.err(),
        }
    }

    /// Tells the progress until all senders have ended; true if it was stopped.
    fn watch(
        self,
        finished: &Receiver<Infallible>,
        total_packets: Option<u64>,
        progress: &mut Tell<'_>,
    ) -> bool {
        let mut is_stopped = false;
        loop {
            match finished.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Disconnected) => return is_stopped,
                Err(RecvTimeoutError::Timeout) => {
                    let (packets, bytes) = self.shared.sent();
                    let elapsed_ns = (self.clock.boottime_ns() - self.start_ns).max(0);
                    let state =
                        Progress { loaded_packets: 0, packets, bytes, elapsed_ns, total_packets };
                    if progress(&state).is_break() {
                        is_stopped = true;
                        self.shared.stop();
                    }
                }
            }
        }
    }
}

impl Ended {
    fn of(senders: Vec<ScopedJoinHandle<'_, SenderEnded>>, read: Read, is_stopped: bool) -> Self {
        let mut ended =
            Self { totals: Totals::default(), read, drops: None, errors: Vec::new(), is_stopped };
        for sender in senders {
            let sender = sender.join().expect("a panic aborts");
            ended.totals.add(&sender.tally);
            // All senders send on the same interface.
            ended.drops = sender.drops.or(ended.drops);
            ended.errors.extend(sender.error.map(|error| error.to_string()));
        }
        ended.errors.dedup();
        ended
    }

    fn report(self) -> Report {
        let Read { packets, skipped, mut broken_off, notes, .. } = self.read;
        broken_off.extend(self.errors);
        Report {
            loop_packets: packets,
            skipped,
            broken_off,
            notes,
            is_stopped: self.is_stopped,
            ..self.totals.report()
        }
    }
}
