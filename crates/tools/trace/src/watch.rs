//! From the first packet to the last.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use capture::{Next, Packet, Source};
use network::sockets::Owner;
use serde::{Serialize, Serializer};
use units::Clock;
use wire::{Decoded, FiveTuple, LinkType, Protocol, Transport, decode};

use crate::held::Held;
use crate::senders::Waiting;
use crate::{Belongings, Opened, Output, Seen, Sent, Whose};

/// One wait for packets, after which sockets are looked at: those of a question to a name server
/// live a few milliseconds.
const WAIT: Duration = Duration::from_millis(4);
/// A look is followed by so many times as long without one: where there are many processes it
/// takes long.
const REST: i64 = 10;
/// More than the headers of a packet need.
const HEAD_BYTES: usize = 512;

/// Why watching ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Packets could not be captured.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// Sockets could not be listed.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// Processes could not be looked at.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// Packets could not be written.
    #[error("cannot write the packets")]
    Output(#[source] io::Error),
}

/// What is watched, and how.
#[expect(missing_debug_implementations, reason = "closures")]
pub struct Watch<'a> {
    /// Looks at the sockets of the namespace.
    pub look: &'a mut dyn FnMut() -> Result<Seen, network::Error>,
    /// Packets that processes have sent since the last time, where the kernel says so.
    pub sent: &'a mut dyn FnMut() -> Vec<Sent>,
    /// Sockets that processes have opened since the last time, where the kernel says so.
    pub opened: &'a mut dyn FnMut() -> Vec<Opened>,
    /// Whether it is over; asked all the time.
    pub is_over: &'a mut dyn FnMut() -> Result<bool, host::Error>,
    /// Packets of processes that are not asked for are left out, and those whose process is not
    /// known after a while.
    pub only_known: bool,
}

/// What a process had of the packets. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Share {
    /// Whose they are; `None` where no socket says.
    #[serde(flatten, serialize_with = "serialize_owner")]
    pub owner: Option<Arc<Owner>>,
    /// Number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// The process and its name, both null where it is not known.
#[expect(clippy::ref_option, reason = "serde hands over references")]
fn serialize_owner<S: Serializer>(owner: &Option<Arc<Owner>>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Whose<'a> {
        process: Option<u32>,
        name: Option<&'a str>,
    }
    let owner = owner.as_deref();
    let process = owner.map(|owner| owner.process);
    Whose { process, name: owner.map(|owner| owner.name.as_str()) }.serialize(to)
}

/// Result of a trace. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// Packets written.
    pub packets: u64,
    /// Packets of other processes, or of none known, left out.
    pub left_out: u64,
    /// Of these, those of none known.
    pub of_nobody_known: u64,
    /// Packets that the kernel dropped.
    pub kernel_drops: u64,
    /// By process, those with the most bytes first.
    #[serde(rename = "processes")]
    pub shares: Vec<Share>,
    /// What an operator should know, one line each.
    pub notes: Vec<String>,
    /// The reader of the output went away.
    #[serde(skip)]
    pub is_broken_off: bool,
}

/// Writes packets until it is over. Gives back where they were written to, unless its reader went
/// away.
pub fn watch<W: Write>(
    source: &mut dyn Source,
    watch: Watch<'_>,
    output: Output<W>,
    clock: &dyn Clock,
) -> Result<(Report, Option<W>), Error> {
    let Watch { look, sent, opened, is_over, only_known } = watch;
    let mut state = State {
        output,
        known: Belongings::default(),
        waiting: Waiting::default(),
        held: Held::default(),
        only_known,
        link_types: source.interfaces().iter().map(|interface| interface.link_type).collect(),
        next_look_ns: i64::MIN,
        counts: BTreeMap::new(),
        report: Report::default(),
    };
    let mut is_stopping = false;
    // What is there already is known before the first packet.
    state.look(look, clock)?;
    loop {
        match source.next_batch(WAIT)? {
            Next::Packets(batch) => {
                state.waiting.extend(sent());
                state.learn(opened());
                for packet in batch {
                    state.take(&packet, look, clock)?;
                }
            }
            Next::Idle => {
                state.learn(opened());
                state.look(look, clock)?;
            }
            Next::Block(_) => {}
            Next::End => break,
        }
        state.release(clock.boottime_ns());
        match state.output.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                state.report.is_broken_off = true;
                break;
            }
            written => written.map_err(Error::Output)?,
        }
        if !is_stopping && is_over()? {
            is_stopping = true;
            source.begin_stop();
        }
    }
    state.learn(opened());
    // Nothing more will be known of those that wait.
    state.release(i64::MAX);
    state.finish(source, clock)
}

/// Whether a packet finds out about neighbours or joins groups, which the kernel does for itself.
fn is_of_kernel(decoded: &Decoded) -> bool {
    /// RFC 3376.
    const IGMP: Protocol = Protocol(2);
    /// Multicast listeners (RFC 2710), neighbours (RFC 4861), listeners again (RFC 3810).
    const KINDS: [RangeInclusive<u8>; 3] = [130..=132, 133..=137, 143..=143];
    match (decoded.tuple.proto, decoded.transport) {
        (Protocol::ARP | Protocol::RARP | IGMP, _) => true,
        (Protocol::ICMPV6, Transport::Icmp(header)) => {
            KINDS.iter().any(|kinds| kinds.contains(&header.kind))
        }
        _ => false,
    }
}

struct State<W: Write> {
    output: Output<W>,
    known: Belongings,
    waiting: Waiting,
    held: Held,
    only_known: bool,
    link_types: Vec<LinkType>,
    next_look_ns: i64,
    /// Packets and bytes by process.
    counts: BTreeMap<Option<Arc<Owner>>, (u64, u64)>,
    report: Report,
}

impl<W: Write> State<W> {
    fn learn(&mut self, opened: Vec<Opened>) {
        for one in opened {
            self.known.take(one);
        }
    }

    fn take(
        &mut self,
        packet: &Packet<'_>,
        look: &mut dyn FnMut() -> Result<Seen, network::Error>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let tuple = self.tuple(packet);
        if packet.outbound == Some(true)
            && let Some(sender) = self.waiting.take(packet.timestamp, packet.original_len)
            && let Some(tuple) = &tuple
            && !self.known.has_connection(tuple)
        {
            self.known.tell(tuple, sender);
        }
        if let Some(tuple) = &tuple
            && self.known.owner(tuple).is_none()
            && self.known.whose(tuple) != Whose::Others
        {
            self.look(look, clock)?;
        }
        let is_known = tuple.is_none_or(|tuple| self.known.whose(&tuple) != Whose::Unknown);
        if self.only_known && !(is_known && self.held.is_empty()) {
            self.held.push(packet, tuple, clock.boottime_ns());
        } else {
            self.decide(packet, tuple.as_ref());
        }
        Ok(())
    }

    /// Decides about packets that have waited.
    fn release(&mut self, now_ns: i64) {
        let Self { held, known, .. } = self;
        let mut ready = Vec::new();
        // Of a packet of the kernel's own nothing will be known.
        let is_ready =
            |it: Option<&FiveTuple>| it.is_none_or(|it| known.whose(it) != Whose::Unknown);
        while let Some(held) = held.next(now_ns, is_ready) {
            ready.push(held);
        }
        for held in &ready {
            self.decide(&held.packet(), held.tuple.as_ref());
        }
    }

    /// Writes a packet, or leaves it out.
    fn decide(&mut self, packet: &Packet<'_>, tuple: Option<&FiveTuple>) {
        let owner = match tuple.map_or(Whose::Unknown, |tuple| self.known.whose(tuple)) {
            Whose::Of(owner) => Some(Arc::clone(owner)),
            Whose::Others | Whose::Unknown if !self.only_known => None,
            whose => {
                self.report.left_out += 1;
                self.report.of_nobody_known += u64::from(whose == Whose::Unknown);
                return;
            }
        };
        self.output.packet(packet, owner.as_deref());
        self.report.packets += 1;
        let (packets, bytes) = self.counts.entry(owner).or_default();
        *packets += 1;
        *bytes += u64::from(packet.original_len);
    }

    /// Looks at the sockets, if it is time.
    fn look(
        &mut self,
        look: &mut dyn FnMut() -> Result<Seen, network::Error>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let begin_ns = clock.boottime_ns();
        if begin_ns < self.next_look_ns {
            return Ok(());
        }
        self.known.learn(&look()?);
        let end_ns = clock.boottime_ns();
        self.next_look_ns = end_ns + (end_ns - begin_ns) * REST;
        Ok(())
    }

    /// The ends of a packet; `None` where the kernel sends it for itself, while some process runs
    /// or none.
    fn tuple(&self, packet: &Packet<'_>) -> Option<FiveTuple> {
        let mut head = [0; HEAD_BYTES];
        let len = packet.copy_to(&mut head);
        let place = usize::try_from(packet.interface).unwrap_or(usize::MAX);
        let link_type = self.link_types.get(place).copied().unwrap_or(LinkType::ETHERNET);
        let decoded = decode(link_type, head.get(..len).unwrap_or_default(), packet.original_len);
        (!is_of_kernel(&decoded)).then_some(decoded.tuple)
    }

    fn finish(
        mut self,
        source: &mut dyn Source,
        clock: &dyn Clock,
    ) -> Result<(Report, Option<W>), Error> {
        let counters = source.counters();
        let to = match self.output.finish(&counters, clock.realtime()) {
            Err(_) if self.report.is_broken_off => None,
            written => Some(written.map_err(Error::Output)?),
        };
        self.report.kernel_drops = counters.iter().map(|counters| counters.kernel_drops).sum();
        self.report.notes = source.notes();
        let share = |(owner, (packets, bytes))| Share { owner, packets, bytes };
        self.report.shares = self.counts.into_iter().map(share).collect();
        self.report.shares.sort_by_key(|share| core::cmp::Reverse(share.bytes));
        Ok((self.report, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_neighbours_and_joins_groups_is_of_the_kernel() {
        let is_of_kernel = |kind: [u8; 2], packet: &[u8]| {
            let frame = [&[2; 12][..], &kind, packet].concat();
            let len = u32::try_from(frame.len()).unwrap();
            is_of_kernel(&decode(LinkType::ETHERNET, &frame, len))
        };
        let v4 = |protocol: u8| {
            let header = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            is_of_kernel([0x08, 0x00], &[&header[..], &[8; 20]].concat())
        };
        // Multicast reports come behind an extension header (RFC 3810).
        let v6 = |kind: u8| {
            let header = [&[0x60, 0, 0, 0, 0, 16, 0, 1][..], &[0x20; 32]].concat();
            let behind = [58, 0, 5, 2, 0, 0, 1, 0, kind, 0, 0, 0, 0, 0, 0, 0];
            is_of_kernel([0x86, 0xdd], &[&header[..], &behind].concat())
        };
        assert!(is_of_kernel([0x08, 0x06], &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(v4(2) && [131, 133, 135, 136, 143].into_iter().all(v6));
        assert!([1, 6, 17].into_iter().all(|protocol| !v4(protocol)));
        assert!([1, 3, 128, 129].into_iter().all(|kind| !v6(kind)), "of whoever has the socket");
    }
}
