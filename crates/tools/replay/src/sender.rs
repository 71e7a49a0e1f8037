//! One thread's way out: waits for each packet's time and sends what is due together.

use core::iter;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use capture::{Error, Outlet};
use units::number::to_u64;
use units::{Histogram, NANOS_PER_SECOND, Sleep};

use crate::frames::Chunk;
use crate::options::Rewrite;
use crate::schedule::Pace;
use crate::unique::renumber;

/// Frames offered in one call: the call's cost is small against theirs.
const BATCH: usize = 64;
/// Longest sleep, so that a stop is heard.
const NAP_NS: i64 = NANOS_PER_SECOND / 20;
/// Time with a full queue after which the interface is asked for its state.
const PATIENCE_NS: i64 = NANOS_PER_SECOND;

/// What all senders share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    stop: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Shared {
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Packets and bytes sent so far.
    pub(crate) fn sent(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// How packets are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) pace: Pace,
    pub(crate) rewrite: Rewrite,
    /// When the first packet of the first loop goes, since boot.
    pub(crate) start_ns: i64,
}

/// What a sender did.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderTally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) refusals: u64,
    pub(crate) unchanged: u64,
    pub(crate) lateness: Histogram,
    /// Before the first packet and after the last, since boot.
    pub(crate) span_ns: Option<(i64, i64)>,
}

/// Chunks to be sent so many times.
#[derive(Clone, Debug)]
pub(crate) struct Run<'c> {
    pub(crate) chunks: &'c [Chunk],
    pub(crate) loops: Range<u64>,
    /// The place where the first of these loops begins.
    pub(crate) base: u64,
    /// How far the beginnings of two loops are apart.
    pub(crate) end: u64,
}

/// A packet with its time.
#[derive(Clone, Copy, Debug)]
struct Due<'c> {
    frame: &'c [u8],
    loop_number: u64,
    /// From the start; `None` is at once.
    time_ns: Option<i64>,
}

impl<'c> Run<'c> {
    fn packets(&self, pace: Pace) -> impl Iterator<Item = Due<'c>> {
        let Self { chunks, loops: Range { start, end: last }, base, end } = self.clone();
        // Without a single frame endless loops would have no end, and nothing to look at either.
        let last = if chunks.iter().all(Chunk::is_empty) { start } else { last };
        (start..last).flat_map(move |loop_number| {
            let base = base.saturating_add((loop_number - start).saturating_mul(end));
            chunks.iter().flat_map(Chunk::frames).map(move |(place, frame)| {
                let time_ns = pace.due_ns(base.saturating_add(place));
                Due { frame, loop_number, time_ns }
            })
        })
    }
}

/// Sends packets on one outlet.
pub(crate) struct Sender<'a> {
    pub(crate) outlet: Box<dyn Outlet>,
    pub(crate) tally: SenderTally,
    clock: &'a dyn Sleep,
    order: Order,
    shared: &'a Shared,
    /// Copies of frames that are rewritten.
    scratch: Vec<u8>,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(
        outlet: Box<dyn Outlet>,
        clock: &'a dyn Sleep,
        order: Order,
        shared: &'a Shared,
    ) -> Self {
        let (tally, scratch) = (SenderTally::default(), Vec::new());
        Self { outlet, tally, clock, order, shared, scratch }
    }

    /// Sends everything, unless it is stopped.
    pub(crate) fn run(&mut self, run: &Run<'_>) -> Result<(), Error> {
        let mut packets = run.packets(self.order.pace).peekable();
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(next) = packets.peek() {
            let Some(now_ns) = self.wait(next.time_ns) else { break };
            let since_start = now_ns - self.order.start_ns;
            let is_due = |due: &Due<'_>| due.time_ns.is_none_or(|time_ns| time_ns <= since_start);
            batch.clear();
            batch.extend(iter::from_fn(|| packets.next_if(is_due)).take(BATCH));
            self.tally.span_ns.get_or_insert((now_ns, now_ns));
            self.send(&batch)?;
        }
        Ok(())
    }

    /// Waits for a time from the start and gives the time since boot; `None` when it was stopped.
    fn wait(&self, time_ns: Option<i64>) -> Option<i64> {
        let until_ns = self.order.start_ns.saturating_add(time_ns.unwrap_or(0));
        loop {
            if self.shared.is_stopped() {
                return None;
            }
            let now_ns = self.clock.boottime_ns();
            if now_ns >= until_ns {
                return Some(now_ns);
            }
            self.clock.sleep_until(until_ns.min(now_ns + NAP_NS));
        }
    }

    fn send(&mut self, batch: &[Due<'_>]) -> Result<(), Error> {
        if self.order.rewrite == Rewrite::Nothing {
            let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
            frames.iter_mut().zip(batch).for_each(|(frame, due)| *frame = due.frame);
            return self.offer(batch, &frames);
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        self.copy(batch, &mut scratch);
        let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
        let mut rest = &*scratch;
        for (frame, due) in frames.iter_mut().zip(batch) {
            (*frame, rest) = rest.split_at(due.frame.len());
        }
        let offered = self.offer(batch, &frames);
        self.scratch = scratch;
        offered
    }

    /// Copies frames one behind the other and rewrites them.
    fn copy(&mut self, batch: &[Due<'_>], scratch: &mut Vec<u8>) {
        scratch.clear();
        // All before have been sent: a batch is offered until it is taken.
        for (number, due) in (self.tally.packets..).zip(batch) {
            let start = scratch.len();
            scratch.extend_from_slice(due.frame);
            let frame = scratch.get_mut(start..).unwrap_or_default();
            let is_done = match self.order.rewrite {
                Rewrite::Addresses => due.loop_number == 0 || renumber(frame, due.loop_number),
                Rewrite::Stamps { key } => wire::stamp(frame, key, number),
                Rewrite::Nothing => true,
            };
            self.tally.unchanged += u64::from(!is_done);
        }
    }

    /// Offers the frames of a batch until all of them are taken.
    fn offer(&mut self, batch: &[Due<'_>], frames: &[&[u8]]) -> Result<(), Error> {
        let mut done = 0;
        let mut refused_since_ns = None;
        while let Some(rest) = frames.get(done..batch.len()).filter(|rest| !rest.is_empty()) {
            let taken = self.outlet.send(rest)?;
            let now_ns = self.clock.boottime_ns();
            let sent = batch.get(done..done + taken).expect("no more is taken than was offered");
            self.account(sent, now_ns);
            done += taken;
            if taken > 0 {
                refused_since_ns = None;
                continue;
            }
            self.tally.refusals += 1;
            let since_ns = *refused_since_ns.get_or_insert(now_ns);
            if now_ns - since_ns >= PATIENCE_NS {
                self.outlet.check()?;
                refused_since_ns = Some(now_ns);
            }
            if self.shared.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    fn account(&mut self, sent: &[Due<'_>], now_ns: i64) {
        let since_start = now_ns - self.order.start_ns;
        let tally = &mut self.tally;
        let mut bytes = 0;
        for due in sent {
            bytes += to_u64(due.frame.len());
            if let Some(time_ns) = due.time_ns {
                // Never early: a packet is offered when its time has come.
                tally.lateness.add(u64::try_from(since_start - time_ns).unwrap_or(0));
            }
        }
        let packets = to_u64(sent.len());
        tally.packets += packets;
        tally.bytes += bytes;
        if let Some((_, last)) = &mut tally.span_ns {
            *last = now_ns;
        }
        self.shared.packets.fetch_add(packets, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
