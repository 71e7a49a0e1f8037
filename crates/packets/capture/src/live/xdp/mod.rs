//! Network interfaces as a source, past the kernel's network stack: `AF_XDP`.
//!
//! A small program redirects the packets of each receive queue of an interface to a socket, whose
//! memory is shared with us; the host does not see them. A socket lies on one receive queue, so
//! every queue has one, and which packet is where the card decides. The sources are given the
//! queues in turn, and give their packets in the order of their times ([`order`](super::order)).
//!
//! Packets stay in that memory until the next call. The program counts those that it redirects, so
//! that what the kernel then drops has to add up: a packet that is in no other counter is missed
//! when the source ends.

mod bpf;
mod choice;
mod open;
mod program;
mod ring;
mod socket;
mod transmit;
mod umem;

use std::sync::Arc;
use std::time::Duration;

use filters::Program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};
use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};

use super::order::{Lane, Order, Patience};
use super::port::Port;
use super::{DRAIN_WAIT, DRAIN_WAITS, LiveOptions, State, now_ns};
use crate::source::Record;
use crate::{Batch, Counters, Error, Interface, Next, Source};
use program::Hook;
use socket::{Receiver, Taken};

pub use transmit::XdpTransmitter;

pub(crate) use umem::read_any_descriptors;

/// Packets that are taken from a queue at a time: few enough that their chunks are soon given back.
const BATCH: u32 = 256;
/// So many packets are worth waking up for.
const MANY: u32 = 1024;
/// Time that is given to fewer of them to become more. At 14.88 million packets a second, 10 Gbit/s
/// of the shortest, 7440 come meanwhile: a quarter of the smallest chunks in 64 MiB.
const NAP: Duration = Duration::from_micros(500);

/// A packet is in its ring when the driver's round of at most 64 packets ends, which a busy
/// processor may interrupt.
const PATIENCE: Patience =
    Patience { handover: Duration::from_millis(20), passing: Duration::from_millis(4) };
/// The share of the chunks that may wait for order. At 10 Gbit/s of 640-byte packets a quarter of
/// the smallest chunks in 64 MiB is what comes in 4.3 ms; the nap may take as much again.
const ORDER_SHARE: u32 = 4;

/// Captures from network interfaces by `AF_XDP`: some of their receive queues.
#[derive(Debug)]
pub struct XdpSource {
    interfaces: Vec<Interface>,
    /// By interface, as the counters.
    ports: Vec<Port>,
    counters: Vec<Counters>,
    queues: Vec<Queue>,
    filter: Option<Program>,
    snaplen: u32,
    busy_poll: Option<Duration>,
    /// Packets of each queue.
    lanes: Vec<Lane>,
    order: Order,
    notes: Vec<String>,
    /// What `CLOCK_TAI` is ahead of UTC.
    ahead_ns: i64,
    /// An interface that was removed, until it is reported.
    removed: Option<String>,
    state: State,
}

/// The socket of one receive queue.
#[derive(Debug)]
struct Queue {
    /// Position of its interface.
    interface: usize,
    /// Its number among the receive queues of the interface.
    number: u32,
    receiver: Receiver,
    /// Detached when the last queue is gone.
    hook: Arc<Hook>,
    /// Chunks of the batch that was handed out.
    lent: Vec<u64>,
    delivered: u64,
    rejected: u64,
}

impl XdpSource {
    /// Why a recorder that may choose takes packet sockets instead, in a few words: the host uses
    /// an interface, packets would be copied, or what is asked for would mean something else.
    /// `None` where nothing speaks for them.
    ///
    /// # Errors
    /// As [`LiveSource::open`](crate::LiveSource::open).
    pub fn why_not(options: &LiveOptions) -> Result<Option<String>, Error> {
        choice::why_not(options)
    }

    /// What makes this capture lose packets or see them otherwise than they were on the wire, one
    /// line each with the command that mends it.
    pub fn advice(&self) -> Vec<String> {
        self.ports.iter().flat_map(|port| port.card().advice()).collect()
    }

    fn new(
        interfaces: Vec<Interface>,
        ports: Vec<Port>,
        (filter, snaplen): (Option<Program>, u32),
        counters: Vec<Counters>,
        busy_poll: Option<Duration>,
    ) -> Self {
        Self {
            interfaces,
            ports,
            counters,
            queues: Vec::new(),
            filter,
            snaplen,
            busy_poll,
            lanes: Vec::new(),
            order: Order::new(PATIENCE),
            notes: Vec::new(),
            ahead_ns: tai_ahead_ns(),
            removed: None,
            state: State::Running,
        }
    }

    /// Looks at the rings; true where packets can be handed out.
    fn find(&mut self) -> bool {
        let now = Now {
            monotonic_ns: now_ns(ClockId::Monotonic),
            utc: Timestamp(now_ns(ClockId::Realtime)),
        };
        self.lanes.resize_with(self.queues.len(), Lane::default);
        for (queue, lane) in self.queues.iter_mut().zip(&mut self.lanes) {
            let (filter, snaplen, ahead_ns) = (self.filter.as_ref(), self.snaplen, self.ahead_ns);
            let admission = Admission { filter, snaplen, ahead_ns, longest: 0 };
            let longest = queue.look(admission, lane, now);
            if let Some(port) = self.ports.get_mut(queue.interface) {
                port.see_longest(longest);
            }
        }
        self.order.merge(&mut self.lanes, now.monotonic_ns);
        for part in &self.order.parts {
            let queue = self.queues.get_mut(part.lane).expect("every lane is a queue's");
            queue.delivered += to_u64(part.records.len());
        }
        !self.order.parts.is_empty()
    }

    /// The packets that were found.
    fn batch(&self) -> Option<Batch<'_>> {
        let runs = self.order.parts.iter().filter_map(|part| {
            let (queue, lane) = (self.queues.get(part.lane)?, self.lanes.get(part.lane)?);
            Some(queue.receiver.umem().run(lane.records(part)))
        });
        Batch::of_runs(&self.interfaces, &[], runs)
    }

    /// Waits for packets, or until some have waited for others; false when the time passed.
    fn wait(&mut self, time: Duration) -> Result<bool, Error> {
        if self.poll_busily() {
            return Ok(true);
        }
        let time = self.order.wait_at_most(time, now_ns(ClockId::Monotonic));
        let timeout = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        // A ring whose packets wait for others would not let it sleep.
        let events =
            |lane: &Lane| if lane.is_used_up() { PollFlags::IN } else { PollFlags::empty() };
        let sockets = self.queues.iter().zip(&self.lanes);
        let mut fds: Vec<PollFd<'_>> =
            sockets.map(|(queue, lane)| PollFd::new(&queue.receiver, events(lane))).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(source) => {
                let name = self.interfaces.first().map_or_else(String::new, |it| it.name.clone());
                return Err(Error::System { name, operation: "poll", source: source.into() });
            }
        }
        let waiting: u32 = self.queues.iter().map(Queue::waiting).sum();
        if self.state == State::Running && self.busy_poll.is_none() && waiting < MANY {
            nap();
        }
        Ok(true)
    }

    /// Looks for packets without sleeping, as long as that was asked for; true where some came.
    fn poll_busily(&self) -> bool {
        let Some(time) = self.busy_poll else { return false };
        let time = self.order.wait_at_most(time, now_ns(ClockId::Monotonic));
        let until_ns = now_ns(ClockId::Monotonic).saturating_add(units::nanos(time));
        loop {
            for (queue, lane) in self.queues.iter().zip(&self.lanes) {
                queue.receiver.look();
                if queue.waiting() > 0 && lane.is_used_up() {
                    return true;
                }
            }
            if now_ns(ClockId::Monotonic) >= until_ns {
                return false;
            }
        }
    }

    /// Says once that busy polling finds nothing to look at, where it is so.
    fn judge_busy_polling(&mut self) {
        let mut seen = self.queues.iter().filter(|queue| queue.delivered > 0).peekable();
        if self.busy_poll.is_some()
            && seen.peek().is_some()
            && !seen.any(|queue| queue.receiver.can_poll_busily())
        {
            let name = self.interfaces.first().map_or("", |interface| &interface.name);
            self.notes.push(format!(
                "interface {name}: its driver has no queue that could be polled busily; packets \
                 come by interrupts"
            ));
            self.busy_poll = None;
        }
    }

    /// One wait while the rings are emptied. The end is reached when the counters of the program,
    /// of the kernel and ours agree after a wait in which nothing came.
    fn drain(&mut self, waits: u32) -> Result<(), Error> {
        if self.wait(DRAIN_WAIT)? {
            return Ok(());
        }
        self.count_packets()?;
        let mut all = self.interfaces.iter().zip(&self.counters);
        let missing = all.find_map(|(interface, counters)| {
            let Counters { received, delivered, kernel_drops, .. } = *counters;
            let missing = received - kernel_drops - delivered;
            (missing > 0).then(|| Error::Undrained { name: interface.name.clone(), missing })
        });
        match missing {
            None => self.state = State::Ended,
            Some(error) if waits >= DRAIN_WAITS => {
                self.state = State::Ended;
                return Err(error);
            }
            Some(_) => self.state = State::Draining(waits + 1),
        }
        Ok(())
    }

    /// The step when nothing waits; true when the source has ended.
    fn idle(&mut self, wait: Duration) -> Result<bool, Error> {
        match self.state {
            State::Ended => return Ok(true),
            State::Draining(_) if self.order.again_ns.is_some() => {
                self.wait(DRAIN_WAIT)?;
            }
            State::Draining(waits) => self.drain(waits)?,
            State::Running => {
                self.wait(wait)?;
                if let Some(last) = self.ports.last()
                    && self.ports.iter().all(|port| port.is_gone)
                {
                    let name = last.name.clone();
                    self.begin_stop();
                    return Err(Error::InterfaceGone { name });
                }
                if let Some(name) = self.removed.take() {
                    return Err(Error::InterfaceRemoved { name });
                }
            }
        }
        Ok(false)
    }

    /// Takes over what the program, the kernel and the queues have counted.
    fn count_packets(&mut self) -> Result<(), Error> {
        for counters in &mut self.counters {
            let Counters { interface_drops, is_away, times_down, .. } = *counters;
            let filter_rejects = self.filter.is_some().then_some(0);
            *counters = Counters {
                interface_drops,
                filter_rejects,
                is_away,
                times_down,
                ..Counters::default()
            };
        }
        for queue in &self.queues {
            let statistics = queue.receiver.statistics().map_err(|source| Error::System {
                name: self
                    .interfaces
                    .get(queue.interface)
                    .map_or_else(String::new, |it| it.name.clone()),
                operation: "XDP_STATISTICS",
                source,
            })?;
            let counters = self.counters.get_mut(queue.interface);
            queue.add_to(counters.expect("every interface has counters"), &statistics);
        }
        Ok(())
    }
}

impl Source for XdpSource {
    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn next_batch(&mut self, wait: Duration) -> Result<Next<'_>, Error> {
        if !self.find() {
            if self.idle(wait)? {
                return Ok(Next::End);
            }
            self.find();
        }
        Ok(self.batch().map_or(Next::Idle, Next::Packets))
    }

    fn counters(&mut self) -> Vec<Counters> {
        self.ahead_ns = tai_ahead_ns();
        if let Err(error) = self.count_packets() {
            self.notes.push(error.to_string());
        }
        self.judge_busy_polling();
        let is_last = self.state != State::Running;
        for (port, counters) in self.ports.iter_mut().zip(&mut self.counters) {
            match port.notice_removal() {
                Ok(true) => self.removed = Some(port.name.clone()),
                Ok(false) => {}
                Err(error) => self.notes.push(error.to_string()),
            }
            let was_away = counters.is_away;
            port.count(counters, is_last);
            if counters.is_away && !was_away && !port.is_gone {
                port.goes_down();
                counters.times_down += 1;
            }
            port.findings(&mut self.notes);
        }
        self.counters.clone()
    }

    fn notes(&mut self) -> Vec<String> {
        core::mem::take(&mut self.notes)
    }

    fn begin_stop(&mut self) {
        if self.state != State::Running {
            return;
        }
        self.state = State::Draining(0);
        for queue in &self.queues {
            queue.hook.set_open(queue.number, false);
        }
    }
}

/// One moment by two clocks.
#[derive(Clone, Copy)]
struct Now {
    monotonic_ns: i64,
    utc: Timestamp,
}

/// How packets are taken out of a queue.
struct Admission<'a> {
    filter: Option<&'a Program>,
    snaplen: u32,
    ahead_ns: i64,
    longest: u32,
}

impl Queue {
    fn new(interface: usize, number: u32, receiver: Receiver, hook: Arc<Hook>) -> Self {
        let (lent, delivered, rejected) = (Vec::new(), 0, 0);
        Self { interface, number, receiver, hook, lent, delivered, rejected }
    }

    fn waiting(&self) -> u32 {
        self.receiver.waiting()
    }

    fn give_back(&mut self) {
        self.receiver.give_back(&self.lent);
        self.lent.clear();
    }

    /// Takes some of the packets that wait, where all others were used; gives the length of the
    /// longest.
    fn look(&mut self, admission: Admission<'_>, lane: &mut Lane, now: Now) -> Option<u32> {
        let mut longest = None;
        if lane.is_used_up() {
            self.give_back();
            let records = lane.refill();
            longest = self.take(admission, records, now.utc);
            // The program has stamped them on the way into the ring: nothing is held back there.
            let age_ns =
                records.last().map_or(0, |last| now.utc.0.saturating_sub(last.timestamp.0));
            lane.seen_ns = now.monotonic_ns.saturating_sub(age_ns.max(0));
            lane.is_quiet = true;
        }
        lane.is_full = self.waiting() > self.receiver.umem().chunks() / ORDER_SHARE;
        longest
    }

    fn take(
        &mut self,
        mut admission: Admission<'_>,
        records: &mut Vec<Record>,
        now: Timestamp,
    ) -> Option<u32> {
        self.receiver.clear();
        let has_times = self.hook.has_times(self.number);
        let mut left = self.waiting().min(BATCH);
        while left > 0 && self.receiver.umem().has_area() {
            let taken = self.receiver.take(&mut self.lent);
            let Some(Taken { bytes, stamp, parts }) = taken else { break };
            left = left.saturating_sub(parts);
            let original_len = u32::try_from(bytes.len()).expect("packets are short");
            admission.longest = admission.longest.max(original_len);
            let is_in = admission.filter.is_none_or(|filter| {
                filter.accepts(self.receiver.umem().bytes(bytes.clone()), original_len)
            });
            if !is_in {
                self.rejected += 1;
                continue;
            }
            let stamp = i64::try_from(stamp).unwrap_or(i64::MAX).saturating_sub(admission.ahead_ns);
            let kept = bytes.len().min(usize::try_from(admission.snaplen).unwrap_or(usize::MAX));
            records.push(Record {
                timestamp: if has_times { Timestamp(stamp) } else { now },
                interface: u32::try_from(self.interface).expect("few interfaces"),
                original_len,
                outbound: Some(false),
                tag: None,
                bytes: bytes.start..bytes.start + kept,
                options: 0..0,
            });
        }
        (admission.longest > 0).then_some(admission.longest)
    }

    /// The program counts a packet before it can be dropped or taken: read last, its count is the
    /// largest.
    fn add_to(&self, counters: &mut Counters, statistics: &rustix::net::xdp::XdpStatistics) {
        let drops = statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0);
        let freezes = statistics.rx_fill_ring_empty_descs.unwrap_or(0);
        counters.kernel_drops += drops;
        counters.ring_freezes += freezes + statistics.rx_ring_full.unwrap_or(0);
        counters.delivered += self.delivered;
        if let Some(rejects) = &mut counters.filter_rejects {
            *rejects += self.rejected;
        }
        let seen = self.delivered + self.rejected + drops;
        counters.received += self.hook.packets(self.number).max(seen) - self.rejected;
    }
}

/// What `CLOCK_TAI` is ahead of `CLOCK_REALTIME`: whole seconds, none where no program has told the
/// kernel.
fn tai_ahead_ns() -> i64 {
    let Ok(tai) = clock_gettime_dynamic(DynamicClockId::Tai) else { return 0 };
    let realtime = clock_gettime(ClockId::Realtime);
    // The moment between the two calls may lie in another second.
    let tai_ns = tai.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(tai.tv_nsec);
    let realtime_ns =
        realtime.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(realtime.tv_nsec);
    let half = NANOS_PER_SECOND / 2;
    (tai_ns - realtime_ns + half).div_euclid(NANOS_PER_SECOND) * NANOS_PER_SECOND
}

/// Sleeps for a moment.
fn nap() {
    let time = Timespec::try_from(NAP).expect("less than a second");
    // Woken early, there are fewer packets.
    poll(&mut [], Some(&time)).unwrap_or_default();
}
