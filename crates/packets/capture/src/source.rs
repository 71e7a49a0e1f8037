//! The contract of a source, and the packets it hands out.

use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;
use core::time::Duration;
use std::vec;

use filters::PacketFilter;
use format::pcapng::{COMMENT_BYTES, OptionCode, put_option};
use units::{Timestamp, start_of};
use wire::LinkType;

use crate::Error;

/// A way in for packets.
///
/// `dyn` at batch rate only: the packets of a batch come without dynamic calls.
pub trait Source: Send {
    /// The interfaces met so far. The list only grows; a packet's `interface` is a position in it.
    fn interfaces(&self) -> &[Interface];

    /// The next packets: at most about one kernel block or one read buffer of them, so that the
    /// call is short. Where nothing is there yet, it waits for up to `wait`.
    ///
    /// After an error the source may be asked again: it goes on with what the error did not concern
    /// (the next file, the other interfaces), and ends with [`Next::End`].
    fn next_batch(&mut self, wait: Duration) -> Result<Next<'_>, Error>;

    /// Totals since the start, one per interface, in the order of [`Self::interfaces`].
    fn counters(&mut self) -> Vec<Counters>;

    /// Notes for the operator that were not given yet, one line each.
    fn notes(&mut self) -> Vec<String>;

    /// Ends the intake: no packet is accepted that comes from here on, those already accepted are
    /// still handed out, then comes [`Next::End`]. A file ends after what has been read of it.
    fn begin_stop(&mut self);

    /// Keeps packets in the kernel's memory, from the first of this time or later on, also when
    /// they were handed out: another process is to store them, and may fail to. Meanwhile counters
    /// have only what was handed out, and was dropped before. Sources that nobody takes over keep
    /// none.
    fn keep_from(&mut self, _at: Timestamp) {}

    /// Begins anew with the packets that were kept, and all that came since: counters, too. What
    /// found no room meanwhile is among them as dropped. Gives how many packets of each interface
    /// come once more.
    fn rewind(&mut self) -> Vec<u64> {
        vec![0; self.interfaces().len()]
    }
}

/// What a source had to give.
#[derive(Debug)]
pub enum Next<'a> {
    /// Packets, at least one.
    Packets(Batch<'a>),
    /// A Name Resolution or Decryption Secrets Block of the input with its framing, in little
    /// endian, to be kept.
    Block(Vec<u8>),
    /// Nothing came in the time given.
    Idle,
    /// Nothing will come any more.
    End,
}

/// A place that packets are captured from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Interface {
    /// Its name; empty where a file does not say.
    pub name: String,
    /// Description of the interface, if any.
    pub description: Option<String>,
    /// Meaning of the first byte of its packets.
    pub link_type: LinkType,
    /// Most bytes captured of a packet; 0 is all of it.
    pub snaplen: u32,
    /// The filter expression that its packets passed.
    pub filter: Option<String>,
    /// Further options of its Interface Description Block, in little endian, without
    /// `opt_endofopt`.
    pub options: Vec<u8>,
}

impl Interface {
    /// Appends the options that describe it in its Interface Description Block, but its name and
    /// the resolution of its times.
    pub fn put_options(&self, out: &mut Vec<u8>) {
        if let Some(description) = &self.description {
            let text = start_of(description, COMMENT_BYTES);
            put_option(out, OptionCode::INTERFACE_DESCRIPTION, text.as_bytes());
        }
        // A part of an expression means something else.
        if let Some(filter) = self.filter.as_ref().filter(|text| text.len() <= COMMENT_BYTES) {
            // The first byte says that a filter text follows (if_filter, pcapng section 4.2).
            let value = [&[0], filter.as_bytes()].concat();
            put_option(out, OptionCode::INTERFACE_FILTER, &value);
        }
        out.extend_from_slice(&self.options);
    }
}

/// Totals of one interface since the start.
///
/// `received == delivered + kernel_drops` once the source has ended; before that, the difference is
/// in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that passed the filter, those the kernel then dropped included.
    pub received: u64,
    /// Packets handed out in batches.
    pub delivered: u64,
    /// Packets that arrived while the kernel ring was full.
    pub kernel_drops: u64,
    /// Times the kernel ring was full.
    pub ring_freezes: u64,
    /// Packets lost in the card or its driver, at least; `None` where that is not known.
    pub interface_drops: Option<u64>,
    /// Packets seen and refused by the filter; `None` where that is not known.
    pub filter_rejects: Option<u64>,
    /// The interface is down or was removed: what passes meanwhile is neither seen nor counted.
    pub is_away: bool,
    /// How often the interface was found to have gone down, also where it was up again at once.
    pub times_down: u64,
}

/// One packet. The frame as it was on the wire is `head`, `tag`, `tail`, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Where it was captured: a position in [`Source::interfaces`].
    pub interface: u32,
    /// Its length on the wire.
    pub original_len: u32,
    /// Whether it was sent by the capturing host; `None` where that is not known. `options` say it
    /// too.
    pub outbound: Option<bool>,
    /// The captured bytes, or those before a VLAN tag that the kernel had taken out.
    pub head: &'a [u8],
    /// The VLAN tag that the kernel took out of the frame.
    pub tag: Option<[u8; 4]>,
    /// The captured bytes after that tag.
    pub tail: &'a [u8],
    /// Options of its Enhanced Packet Block, in little endian, without `opt_endofopt`; a writer
    /// adds none of its own.
    pub options: &'a [u8],
}

impl Packet<'_> {
    /// Bytes captured.
    #[inline]
    pub fn captured_len(&self) -> usize {
        self.head.len() + self.tail.len() + self.tag.map_or(0, |tag| tag.len())
    }

    /// The captured bytes, part by part; parts may be empty.
    #[inline]
    pub fn parts(&self) -> [&[u8]; 3] {
        [self.head, self.tag.as_ref().map_or(&[], |tag| tag), self.tail]
    }

    /// Copies the captured bytes, as many as there is space for; gives their number.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let mut len = 0;
        for part in self.parts() {
            let room = into.get_mut(len..).unwrap_or_default();
            let count = part.len().min(room.len());
            let (to, from) = (room.get_mut(..count), part.get(..count));
            to.unwrap_or_default().copy_from_slice(from.unwrap_or_default());
            len += count;
        }
        len
    }

    /// Whether it passes a filter. Where a VLAN tag was put back, the filter sees it, and the first
    /// 512 bytes.
    ///
    /// # Errors
    /// [`filters::Error::Wrong`] when the expression means nothing for the link type.
    pub fn passes(
        &self,
        filter: &mut PacketFilter,
        link_type: LinkType,
    ) -> Result<bool, filters::Error> {
        if self.tag.is_none() && self.tail.is_empty() {
            return filter.accepts(link_type, self.head, self.original_len);
        }
        let mut seen = [0; PacketFilter::SEEN_BYTES];
        let len = self.copy_to(&mut seen);
        let bytes = seen.get(..len).expect("no more was copied than fits");
        filter.accepts(link_type, bytes, self.original_len)
    }
}

/// Where one packet of a batch lies.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) timestamp: Timestamp,
    pub(crate) interface: u32,
    pub(crate) original_len: u32,
    pub(crate) outbound: Option<bool>,
    pub(crate) tag: Option<[u8; 4]>,
    /// The captured bytes in the batch's data, without the tag.
    pub(crate) bytes: Range<usize>,
    /// The options in the batch's options.
    pub(crate) options: Range<usize>,
}

/// Where the bytes of a batch lie.
///
/// Not a slice: of memory that is shared with the kernel, parts between the packets of a batch may
/// be written meanwhile. Only the packets themselves are ever slices.
#[derive(Clone, Copy, Debug)]
struct Memory<'a> {
    start: NonNull<u8>,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: it only reads what a shared slice might read.
unsafe impl Send for Memory<'_> {}

impl<'a> Memory<'a> {
    /// The bytes of a record; `None` where it does not lie in this memory.
    ///
    /// # Safety
    /// The memory is a slice, or the range that of a record of the run it was given for.
    #[inline]
    unsafe fn get(self, range: &Range<usize>) -> Option<&'a [u8]> {
        let len = range.end.checked_sub(range.start)?;
        if range.end > self.len {
            return None;
        }
        // SAFETY: the range is inside.
        let start = unsafe { self.start.add(range.start) };
        // SAFETY: a record's bytes are initialised, and not written during `'a`: a slice's never
        // are, for the others it was promised to `Run::shared`.
        Some(unsafe { slice::from_raw_parts(start.as_ptr(), len) })
    }
}

/// Packets that lie in one memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    data: Memory<'a>,
    records: &'a [Record],
}

impl<'a> Run<'a> {
    /// # Invariant
    /// The ranges of `records` lie in `data`, and those of their options in the batch's.
    pub(crate) fn new(data: &'a [u8], records: &'a [Record]) -> Self {
        let (start, len) = (NonNull::from(data).cast(), data.len());
        Self { data: Memory { start, len, bytes: PhantomData }, records }
    }

    /// Of packets in memory that other code may write to beside them.
    ///
    /// # Safety
    /// So many bytes are mapped there and initialised during `'a`, and no code writes into the
    /// range of any of the records meanwhile.
    pub(crate) unsafe fn shared((start, len): (NonNull<u8>, usize), records: &'a [Record]) -> Self {
        Self { data: Memory { start, len, bytes: PhantomData }, records }
    }
}

/// Packets that came together. They borrow the source until the next call.
#[derive(Debug)]
pub struct Batch<'a> {
    interfaces: &'a [Interface],
    options: &'a [u8],
    data: Memory<'a>,
    records: slice::Iter<'a, Record>,
    /// What follows those, and how many packets that are.
    runs: vec::IntoIter<Run<'a>>,
    behind: usize,
}

/// Both addresses of an Ethernet frame: a VLAN tag stands behind them (IEEE 802.1Q, 9.3).
const BEFORE_TAG: usize = 12;

impl<'a> Batch<'a> {
    /// # Invariant
    /// The ranges of `records` lie in `data` and `options`.
    pub(crate) fn new(
        interfaces: &'a [Interface],
        data: &'a [u8],
        options: &'a [u8],
        records: &'a [Record],
    ) -> Self {
        let first = Run::new(data, records);
        Self::of_runs(interfaces, options, core::iter::once(first)).expect("there is a run")
    }

    /// The packets of several memories, one run after the other; none where there is no run.
    pub(crate) fn of_runs(
        interfaces: &'a [Interface],
        options: &'a [u8],
        mut runs: impl Iterator<Item = Run<'a>>,
    ) -> Option<Self> {
        let Run { data, records } = runs.next()?;
        let runs: Vec<Run<'a>> = runs.collect();
        let behind = runs.iter().map(|run| run.records.len()).sum();
        let (records, runs) = (records.iter(), runs.into_iter());
        Some(Self { interfaces, options, data, records, runs, behind })
    }

    /// As [`Source::interfaces`], those of this batch included.
    pub fn interfaces(&self) -> &'a [Interface] {
        self.interfaces
    }

    /// The next record, in the memory that is then at hand.
    #[inline]
    fn next_record(&mut self) -> Option<&'a Record> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(record);
            }
            let Run { data, records } = self.runs.next()?;
            self.behind -= records.len();
            (self.data, self.records) = (data, records.iter());
        }
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let record = self.next_record()?;
        // SAFETY: the record is one of those that this memory was given with.
        let bytes = unsafe { self.data.get(&record.bytes) }.expect("a record lies in its batch");
        let options = self.options.get(record.options.clone());
        let (head, tail) = match record.tag {
            Some(_) => bytes.split_at_checked(BEFORE_TAG).unwrap_or((bytes, &[])),
            None => (bytes, &[][..]),
        };
        Some(Packet {
            timestamp: record.timestamp,
            interface: record.interface,
            original_len: record.original_len,
            outbound: record.outbound,
            head,
            tag: record.tag,
            tail,
            options: options.expect("a record's options lie in its batch"),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.records.len() + self.behind;
        (left, Some(left))
    }
}

/// Packets that were made in memory, for sources of simulations and tests.
#[derive(Clone, Debug, Default)]
pub struct MadePackets {
    bytes: Vec<u8>,
    records: Vec<Record>,
}

impl MadePackets {
    /// One more packet, of the interface at this place.
    ///
    /// # Panics
    /// When it is longer than 2^32 bytes.
    pub fn push(&mut self, timestamp: Timestamp, interface: u32, packet: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.records.push(Record {
            timestamp,
            interface,
            original_len: u32::try_from(packet.len()).expect("a packet is short"),
            outbound: None,
            tag: None,
            bytes: start..self.bytes.len(),
            options: 0..0,
        });
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// All of them, as a batch of a source with these interfaces.
    pub fn batch<'a>(&'a self, interfaces: &'a [Interface]) -> Batch<'a> {
        Batch::new(interfaces, &self.bytes, &[], &self.records)
    }
}

impl ExactSizeIterator for Batch<'_> {}
impl FusedIterator for Batch<'_> {}
