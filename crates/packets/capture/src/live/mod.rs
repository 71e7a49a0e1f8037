//! Network interfaces as a source: one packet socket and kernel ring per interface and queue, one
//! loop over those of a queue.
//!
//! Of several queues each is a source of its own, for a thread of its own. They share the packets
//! of every interface by the addresses in them ([`fanout`]); the number of a queue is the same on
//! every interface, so a session that comes by two of them is on one queue too.
//!
//! A source gives the packets of its interfaces in the order of their times ([`order`]). They stay
//! in the kernel ring until the next call. A VLAN tag that the kernel took out of a
//! frame is handed out between the frame's parts, so that nothing has to be moved. A packet counts
//! as received when the kernel accepted it; after [`Source::begin_stop`] the rings are emptied
//! until every one of those was delivered or counted as dropped.

mod dedicated;
mod ethtool;
mod fanout;
mod keeping;
mod option;
mod order;
mod port;
mod question;
mod ring;
mod sender;
mod socket;
mod transmit;
mod xdp;

use core::num::NonZeroUsize;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use filters::{Instruction, LONGEST_PACKET, Libpcap};
use format::recorded::RecordedClock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use units::{ByteSize, NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

use crate::source::{Record, Run};
use crate::{Batch, Counters, Error, Interface, Next, Source};
use keeping::{Keeping, Lost};
use order::{Lane, Order, Patience};
use port::Port;
use ring::{Blocks, Cursor, KernelRing, RingPacket};
use socket::PacketSocket;
use units::number::to_u64;

pub use sender::FrameSender;
pub use transmit::{FrameLimits, Outlet, Transmitter, Unfit};
pub use xdp::{XdpSource, XdpTransmitter};

pub(crate) use ethtool::read_any_answer;
pub(crate) use ring::read_any_block;
pub(crate) use xdp::read_any_descriptors;

/// `epb_flags` in little endian: outbound.
pub(crate) const OUTBOUND: [u8; 8] = [2, 0, 4, 0, 2, 0, 0, 0];

/// Two addresses stand before a VLAN tag.
const BEFORE_TAG: usize = 12;
const TAG_SIZE: usize = 4;

/// While the rings are emptied, one wait for the kernel to hand over a block: longer than its
/// retire timeout.
const DRAIN_WAIT: Duration = Duration::from_millis(100);
/// Waits without a block after which what is missing will not come.
const DRAIN_WAITS: u32 = 20;

/// The kernel's timers are exact to 1 to 10 ms, and late on a busy machine; the rest is for that.
const PATIENCE: Patience =
    Patience { handover: Duration::from_millis(60), passing: Duration::from_millis(5) };

/// The smallest ring worth trying.
const SMALLEST_RING: usize = 256 << 10;

/// What is captured, and how.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Names of the interfaces; their order is that of [`Source::interfaces`].
    pub interfaces: Vec<String>,
    /// Filter expression in the words of pcap-filter(7), which the kernel applies.
    pub filter: Option<String>,
    /// Most bytes captured of a packet; 0 is all of it. A tag put back keeps at least the
    /// addresses before it.
    pub snaplen: u32,
    /// Whether packets for other hosts are received too.
    pub promiscuous: bool,
    /// Memory of the kernel ring of each interface and queue.
    pub ring_size: ByteSize,
    /// Who says when a packet came.
    pub timestamps: Timestamps,
    /// For how long an empty queue of [`XdpSource`] is looked at without sleeping; `None` sleeps
    /// at once. Packet sockets cannot do that.
    pub busy_poll: Option<Duration>,
}

/// Who says when a packet came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timestamps {
    /// The kernel, when it takes the packet from the driver.
    #[default]
    Kernel,
    /// The adapter, by a clock of its own that another program must keep right; the kernel where
    /// the adapter cannot, or leaves a packet out.
    Adapter,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            filter: None,
            snaplen: 0,
            promiscuous: true,
            ring_size: ByteSize(64 << 20),
            timestamps: Timestamps::Kernel,
            busy_poll: None,
        }
    }
}

/// Captures from network interfaces: all of their packets, or one queue's share of them.
#[derive(Debug)]
pub struct LiveSource {
    interfaces: Vec<Interface>,
    queues: Vec<Queue>,
    /// Packets of each queue.
    lanes: Vec<Lane>,
    order: Order,
    notes: Vec<String>,
    /// An interface that was removed, until it is reported.
    removed: Option<String>,
    state: State,
}

/// The socket and ring of one interface and queue.
#[derive(Debug)]
struct Queue {
    // The ring is unmapped before the port's socket is closed.
    ring: KernelRing,
    /// In the block that was taken last.
    cursor: Cursor,
    /// When the blocks that wait behind it were seen at first.
    seen: VecDeque<i64>,
    port: Port,
    link_type: LinkType,
    frames: Frames,
    counters: Counters,
    keeping: Keeping,
    /// What the socket lets in once it has started.
    program: Vec<Instruction>,
    /// The adapter was told to stamp packets.
    is_stamped_by_adapter: bool,
}

/// What must be known of an interface to read its frames.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// The number of the interface.
    interface: u32,
    is_loopback: bool,
    can_be_tagged: bool,
    snaplen: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// No new packets; so many waits have passed without a block.
    Draining(u32),
    Ended,
}

impl LiveSource {
    /// Opens the interfaces and starts to capture.
    ///
    /// # Panics
    /// No interface is named.
    pub fn open(options: &LiveOptions) -> Result<Self, Error> {
        let mut sources = Self::open_queues(options, NonZeroUsize::MIN)?;
        Ok(sources.pop().expect("one queue is one source"))
    }

    /// Opens the interfaces with so many queues and starts to capture. Every packet is given out by
    /// one of the sources, and both directions of a session by the same one. What the interface
    /// itself drops is counted by the first source; for the others it is none.
    ///
    /// # Panics
    /// No interface is named.
    pub fn open_queues(options: &LiveOptions, count: NonZeroUsize) -> Result<Vec<Self>, Error> {
        assert!(!options.interfaces.is_empty(), "a capture needs an interface");
        let sources = (0..count.get())
            .map(|number| Self::open_queue(options, number == 0))
            .collect::<Result<Vec<_>, _>>()?;
        for place in 0..options.interfaces.len() {
            let queues = sources.iter().filter_map(|source| source.queues.get(place));
            start(&queues.collect::<Vec<_>>())?;
        }
        for queue in sources.iter().flat_map(|source| &source.queues) {
            let attached = queue.port.socket.attach(&queue.program);
            attached.map_err(|source| queue.port.error("SO_ATTACH_FILTER", source))?;
        }
        Ok(sources)
    }

    /// What makes this capture lose packets or see them otherwise than they were on the wire, one
    /// line each with the command that mends it.
    pub fn advice(&self) -> Vec<String> {
        self.queues.iter().flat_map(|queue| queue.port.card().advice()).collect()
    }

    /// Who stamps packets: adapters that were told to, and said that they do, or the kernel.
    pub fn clock(&self) -> RecordedClock {
        let is_by = |adapter| self.queues.iter().any(|it| it.is_stamped_by_adapter == adapter);
        let (of_kernel, of_adapter) = (is_by(false), is_by(true));
        RecordedClock { of_kernel, of_adapter, ..RecordedClock::default() }
    }

    /// One queue of every interface, which receives nothing yet.
    fn open_queue(options: &LiveOptions, is_first: bool) -> Result<Self, Error> {
        let mut source = Self {
            interfaces: Vec::new(),
            queues: Vec::new(),
            lanes: Vec::new(),
            order: Order::new(PATIENCE),
            notes: Vec::new(),
            removed: None,
            state: State::Running,
        };
        for (number, name) in (0..).zip(&options.interfaces) {
            let queue = Queue::open((number, name), options, is_first, &mut source.notes)?;
            source.interfaces.push(Interface {
                name: name.clone(),
                description: None,
                link_type: queue.link_type,
                snaplen: options.snaplen,
                filter: options.filter.clone(),
                options: Vec::new(),
            });
            source.queues.push(queue);
            source.lanes.push(Lane::default());
        }
        Ok(source)
    }

    /// Looks at the rings; true where packets can be handed out.
    fn find(&mut self) -> bool {
        let now_ns = now_ns(ClockId::Monotonic);
        for (queue, lane) in self.queues.iter_mut().zip(&mut self.lanes) {
            if let Err(error) = queue.look(lane, now_ns) {
                self.notes.push(error.to_string());
            }
        }
        self.order.merge(&mut self.lanes, now_ns);
        for part in &self.order.parts {
            let queue = self.queues.get_mut(part.lane).expect("every lane is a queue's");
            let count = to_u64(part.records.len());
            queue.counters.delivered += count;
            queue.keeping.in_hand += count;
        }
        !self.order.parts.is_empty()
    }

    /// The packets that were found.
    fn batch(&self) -> Option<Batch<'_>> {
        let runs = self.order.parts.iter().filter_map(|part| {
            let (queue, lane) = (self.queues.get(part.lane)?, self.lanes.get(part.lane)?);
            Some(Run::new(queue.ring.lent_block(), lane.records(part)))
        });
        Batch::of_runs(&self.interfaces, &OUTBOUND, runs)
    }

    /// Waits for a block or a change of an interface, or until packets have waited for others;
    /// false when the time passed.
    fn wait(&mut self, time: Duration) -> Result<bool, Error> {
        let time = self.order.wait_at_most(time, now_ns(ClockId::Monotonic));
        let timeout = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        // A ring whose packets wait for others would not let it sleep.
        let packets =
            |lane: &Lane| if lane.is_used_up() { PollFlags::IN } else { PollFlags::empty() };
        let queues = self.queues.iter().zip(&self.lanes);
        let mut fds: Vec<PollFd<'_>> = queues
            .map(|(queue, lane)| PollFd::new(&queue.port.socket, packets(lane) | PollFlags::ERR))
            .collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(source) => {
                let name = self.interfaces.first().map_or_else(String::new, |it| it.name.clone());
                return Err(Error::System { name, operation: "poll", source: source.into() });
            }
        }
        let failed: Vec<bool> =
            fds.iter().map(|fd| fd.revents().contains(PollFlags::ERR)).collect();
        for (queue, _) in self.queues.iter_mut().zip(failed).filter(|(_, failed)| *failed) {
            if queue.port.learn_of_change()? {
                self.removed = Some(queue.port.name.clone());
            }
        }
        Ok(true)
    }

    /// One wait while the rings are emptied. The end is reached when the kernel's counters and ours
    /// agree after a wait in which nothing came: a packet that the old filter let in is in the
    /// ring by then.
    fn drain(&mut self, waits: u32) -> Result<(), Error> {
        if self.wait(DRAIN_WAIT)? {
            return Ok(());
        }
        let mut missing = None;
        for queue in &mut self.queues {
            queue.count(true)?;
            missing = missing.or(queue.missing());
        }
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

    /// The step when no block waits; true when the source has ended.
    fn idle(&mut self, wait: Duration) -> Result<bool, Error> {
        match self.state {
            State::Ended => return Ok(true),
            State::Draining(_) if self.order.again_ns.is_some() => {
                self.wait(DRAIN_WAIT)?;
            }
            State::Draining(waits) => self.drain(waits)?,
            State::Running => {
                self.wait(wait)?;
                if let Some(last) = self.queues.last()
                    && self.queues.iter().all(|queue| queue.port.is_gone)
                {
                    let name = last.port.name.clone();
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
}

impl Source for LiveSource {
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
        let is_last = self.state != State::Running;
        for queue in &mut self.queues {
            match queue.port.notice_removal() {
                Ok(true) => self.removed = Some(queue.port.name.clone()),
                Ok(false) => {}
                Err(error) => self.notes.push(error.to_string()),
            }
            if let Err(error) = queue.count(is_last) {
                self.notes.push(error.to_string());
            }
            queue.port.findings(&mut self.notes);
        }
        self.queues.iter().map(|queue| queue.keeping.shown(queue.counters)).collect()
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn begin_stop(&mut self) {
        if self.state != State::Running {
            return;
        }
        self.state = State::Draining(0);
        for queue in &mut self.queues {
            queue.keep_nothing();
            if let Err(source) = queue.port.socket.attach_nothing() {
                self.notes.push(queue.port.error("stop", source).to_string());
            }
        }
    }

    fn keep_from(&mut self, at: Timestamp) {
        self.queues.iter_mut().for_each(|queue| queue.keeping.keep_from(at));
    }

    fn rewind(&mut self) -> Vec<u64> {
        let notes = &mut self.notes;
        let queues = self.queues.iter_mut().zip(&mut self.lanes);
        let rewind = |(queue, lane): (&mut Queue, &mut Lane)| {
            notes.extend(queue.count(false).err().map(|error| error.to_string()));
            lane.forget();
            queue.rewind()
        };
        queues.map(rewind).collect()
    }
}

impl Queue {
    /// Opens one interface; reception starts later, when all of them are open.
    fn open(
        (interface, name): (u32, &str),
        options: &LiveOptions,
        is_first: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let error =
            |operation| move |source| Error::System { name: name.to_owned(), operation, source };
        let missing = || Error::NoInterface { name: name.to_owned() };
        let socket = open_socket(name)?;
        let hardware_type =
            socket.hardware_type().map_err(error("getsockname"))?.ok_or_else(missing)?;
        let link_type = link_type(hardware_type)
            .ok_or_else(|| Error::HardwareType { name: name.to_owned(), hardware_type })?;
        let is_loopback = hardware_type == libc::ARPHRD_LOOPBACK;
        if is_loopback {
            socket.ignore_outgoing().map_err(error("PACKET_IGNORE_OUTGOING (Linux 4.20)"))?;
        }
        let limit = if options.snaplen == 0 { LONGEST_PACKET } else { options.snaplen };
        let program = filter_program(name, link_type, options.filter.as_deref(), limit)?;
        socket.attach_nothing().map_err(error("SO_ATTACH_FILTER"))?;
        let mut is_stamped_by_adapter = false;
        if options.timestamps == Timestamps::Adapter {
            let taken = socket.take_adapter_timestamps(name);
            is_stamped_by_adapter = taken.is_ok();
            let note = taken.err().filter(|_| is_first).map(|source| {
                format!("interface {name}: the adapter gives no times ({source}), the kernel does")
            });
            notes.extend(note);
        }
        let is_alone = options.interfaces.len() == 1;
        let blocks = if is_alone { Blocks::OF_ONE } else { Blocks::OF_SEVERAL };
        let ring = map_ring((&socket, name), options.ring_size, blocks, notes)
            .map_err(error("setting up the kernel ring"))?;
        if options.promiscuous && !is_loopback {
            socket.be_promiscuous().map_err(error("promiscuous mode"))?;
        }
        let port = Port::new(name, socket, is_first)?;
        Ok(Self {
            ring,
            cursor: Cursor::default(),
            seen: VecDeque::new(),
            port,
            link_type,
            frames: Frames {
                interface,
                is_loopback,
                can_be_tagged: link_type == LinkType::ETHERNET,
                snaplen: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            counters: Counters::default(),
            keeping: Keeping::default(),
            program,
            is_stamped_by_adapter,
        })
    }

    /// Notes what waits in the ring, and finds its next packets where all others were used.
    fn look(&mut self, lane: &mut Lane, now_ns: i64) -> Result<(), Error> {
        while self.ring.is_waiting(self.seen.len()) {
            self.seen.push_back(now_ns);
        }
        if lane.is_used_up() {
            if self.cursor.is_at_end() {
                if self.keeping.keeps() {
                    self.ring.keep();
                } else {
                    self.ring.release();
                    self.keeping.in_hand = 0;
                }
                lane.is_quiet = self.seen.is_empty() && self.ring.holds_nothing_back();
                if let Some(seen_ns) = self.seen.pop_front() {
                    self.cursor = Cursor::new(self.ring.next_block().unwrap_or_default());
                    lane.seen_ns = seen_ns;
                }
            }
            if self.take_packets(lane) {
                // What was dropped up to here would not have been kept.
                self.count(false)?;
                self.keeping.begin();
            }
        }
        lane.is_full = self.ring.is_full(self.seen.len());
        Ok(())
    }

    /// Finds the next packets of the block; true where the first one is among them that is to be
    /// kept.
    fn take_packets(&mut self, lane: &mut Lane) -> bool {
        let (frames, records) = (self.frames, lane.refill());
        let packets = self.cursor.next_packets(self.ring.lent_block());
        records.extend(packets.map(|packet| frames.record(packet)));
        self.port.see_longest(records.iter().map(|record| record.original_len).max());
        self.keeping.is_first(records)
    }

    /// Adds what the kernel counted since the last time. This is the one place that reads those
    /// counters, because reading resets them.
    fn count(&mut self, is_last: bool) -> Result<(), Error> {
        let new = self.port.socket.statistics();
        let new = new.map_err(|source| self.port.error("PACKET_STATISTICS", source))?;
        self.counters.received += u64::from(new.packets);
        let lost = Lost { packets: new.drops.into(), freezes: new.freezes.into() };
        self.keeping.lose(&mut self.counters, lost);
        self.port.count(&mut self.counters, is_last);
        Ok(())
    }

    /// Gives back what was kept, and counts as if it had not been.
    fn keep_nothing(&mut self) {
        self.ring.forget();
        core::mem::take(&mut self.keeping).count_all(&mut self.counters);
    }

    /// Begins anew with what was kept; gives how many packets come once more.
    fn rewind(&mut self) -> u64 {
        self.ring.rewind();
        self.cursor = Cursor::default();
        self.seen.clear();
        self.port.count_anew(self.counters.interface_drops);
        core::mem::take(&mut self.keeping).rewind(&mut self.counters)
    }

    /// Packets that the kernel accepted and that have not come out of the ring.
    fn missing(&self) -> Option<Error> {
        let Counters { received, delivered, kernel_drops, .. } = self.counters;
        let missing = received
            .checked_sub(kernel_drops + delivered)
            .expect("what came out of the ring, or did not fit in, was accepted before");
        (missing > 0).then(|| Error::Undrained { name: self.port.name.clone(), missing })
    }
}

impl Frames {
    #[inline]
    fn record(self, packet: RingPacket) -> Record {
        let (mut bytes, mut original_len) = (packet.bytes, packet.original_len);
        let tag = packet.tag.filter(|_| self.can_be_tagged && bytes.len() >= BEFORE_TAG);
        if tag.is_some() {
            original_len = original_len.saturating_add(4);
            let room = self.snaplen.saturating_sub(TAG_SIZE).max(BEFORE_TAG);
            bytes.end = bytes.end.min(bytes.start + room);
        }
        Record {
            timestamp: packet.timestamp,
            interface: self.interface,
            original_len,
            outbound: (!self.is_loopback).then_some(packet.outbound),
            tag,
            bytes,
            options: if packet.outbound { 0..OUTBOUND.len() } else { 0..0 },
        }
    }
}

/// Starts the queues of one interface: as the members of a group, if there are several. What comes
/// meanwhile goes to all of them, so none lets anything in before the group is complete.
fn start(queues: &[&Queue]) -> Result<(), Error> {
    let mut group = None;
    for queue in queues {
        queue.port.socket.start().map_err(|source| queue.port.error("bind", source))?;
        if queues.len() > 1 {
            let joined = queue.port.socket.join(group, queue.frames.is_loopback);
            let joined = joined.map_err(|source| queue.port.error("PACKET_FANOUT", source))?;
            group = Some(joined);
        }
    }
    if let (Some(_), Some(first)) = (group, queues.first()) {
        let program = fanout::program(first.link_type == LinkType::ETHERNET);
        let chosen = first.port.socket.choose_by(&program);
        chosen.map_err(|source| first.port.error("PACKET_FANOUT_DATA", source))?;
    }
    Ok(())
}

/// The program that lets in what passes the filter, cut to `limit` bytes.
fn filter_program(
    name: &str,
    link_type: LinkType,
    filter: Option<&str>,
    limit: u32,
) -> Result<Vec<Instruction>, Error> {
    let mut program = match filter {
        None => socket::accept_all(limit),
        Some(filter) if link_type == LinkType::ETHERNET => {
            Libpcap::get()?.compile_live(name, filter)?.instructions().to_vec()
        }
        Some(filter) => {
            Libpcap::get()?.compile_for_kernel(link_type, filter)?.instructions().to_vec()
        }
    };
    socket::limit(&mut program, limit);
    Ok(program)
}

/// A packet socket bound to the interface of this name.
fn open_socket(name: &str) -> Result<PacketSocket, Error> {
    let owned = || name.to_owned();
    let ifindex = socket::ifindex_of(name);
    let ifindex = ifindex.ok_or_else(|| Error::NoInterface { name: owned() })?;
    PacketSocket::open(ifindex).map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::Permission { name: owned() },
        Some(libc::ENODEV | libc::ENXIO) => Error::NoInterface { name: owned() },
        _ => Error::System { name: owned(), operation: "opening a packet socket", source },
    })
}

/// The ring of the size wished for, or a smaller one where the kernel has not that much memory to
/// give.
fn map_ring(
    (socket, name): (&PacketSocket, &str),
    wished: ByteSize,
    blocks: Blocks,
    notes: &mut Vec<String>,
) -> io::Result<KernelRing> {
    let size = usize::try_from(wished.0).unwrap_or(usize::MAX).max(SMALLEST_RING);
    let map = |size| KernelRing::map(socket.as_fd(), size, blocks);
    let (ring, is_smaller) = halve_until(size, map)?;
    if is_smaller {
        let given = ByteSize(u64::try_from(ring.size()).unwrap_or(u64::MAX));
        notes.push(format!(
            "interface {name}: the kernel ring has {given} instead of {wished}: memory is short"
        ));
    }
    Ok(ring)
}

/// Tries sizes down to the smallest while memory is wanting; reports whether the first one was too
/// much.
fn halve_until<T>(
    first: usize,
    mut attempt: impl FnMut(usize) -> io::Result<T>,
) -> io::Result<(T, bool)> {
    let mut size = first;
    loop {
        match attempt(size) {
            Ok(value) => return Ok((value, size < first)),
            Err(error) if size > SMALLEST_RING && is_want_of_memory(&error) => {
                size = (size / 2).max(SMALLEST_RING);
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_want_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN))
}

fn now_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(time.tv_nsec)
}

/// The link type of a kind of interface. Where the kernel hands out packets without a link-level
/// header, IP comes first: on tunnels, and on PPP, whose header is taken off before packet sockets
/// see it.
fn link_type(hardware_type: u16) -> Option<LinkType> {
    const RAW_IP: LinkType = LinkType(101);
    /// `ARPHRD_RAWIP`, which libc does not name.
    const HARDWARE_RAW_IP: u16 = 519;
    match hardware_type {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        libc::ARPHRD_NONE
        | HARDWARE_RAW_IP
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT => Some(RAW_IP),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_too_large_for_the_kernel_is_halved_until_it_fits() {
        let fits = |limit: usize| {
            move |size: usize| {
                let error = io::Error::from_raw_os_error(libc::ENOMEM);
                if size <= limit { Ok(size) } else { Err(error) }
            }
        };
        assert_eq!(halve_until(64 << 20, fits(64 << 20)).unwrap(), (64 << 20, false));
        assert_eq!(halve_until(64 << 20, fits(20 << 20)).unwrap(), (16 << 20, true));
        assert_eq!(halve_until(300 << 10, fits(256 << 10)).unwrap(), (256 << 10, true));
        assert!(halve_until(64 << 20, fits(0)).is_err());
        let refuse = |_| Err::<(), _>(io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(halve_until(64 << 20, refuse).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
