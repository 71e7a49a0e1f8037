//! pcap files (draft-ietf-opsawg-pcap): microseconds and nanoseconds, both byte orders, and the
//! modified form with longer record headers.

use format::pcapng::ByteOrder;
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

use super::intake::{Intake, Parsed, Refused, Stop, largest_packet, too_large};
use crate::source::Record;
use crate::{Damage, Interface};

/// Magic, versions, zone, accuracy, snaplen, link type.
pub(super) const FILE_HEADER_SIZE: usize = 24;
/// Seconds, fraction, captured length, original length.
const RECORD_HEADER_SIZE: usize = 16;
/// Those, and interface index, protocol, packet type, padding.
const MODIFIED_RECORD_HEADER_SIZE: usize = 24;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// Reads the records behind the file header.
#[derive(Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    header_size: usize,
    nanos_per_unit: i64,
    lengths: Lengths,
    largest_packet: usize,
    interface: u32,
}

/// Which length comes first: that changed with version 2.3, whose writers did both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    SmallerIsCaptured,
}

/// The byte order, if these are the first bytes of a pcap file.
pub(super) fn recognize(magic: [u8; 4]) -> Option<(ByteOrder, u32)> {
    [ByteOrder::Little, ByteOrder::Big]
        .map(|order| (order, order.u32(magic)))
        .into_iter()
        .find(|&(_, magic)| matches!(magic, MICROSECONDS | NANOSECONDS | MODIFIED))
}

impl Pcap {
    /// Reads the file header; `None` until all of it is there.
    pub(super) fn start(
        (order, magic): (ByteOrder, u32),
        bytes: &[u8],
        intake: &mut Intake,
    ) -> Result<Option<(Self, usize)>, Refused> {
        let Some(header) = bytes.first_chunk::<FILE_HEADER_SIZE>() else { return Ok(None) };
        let &[_, _, _, _, m0, m1, n0, n1, _, _, _, _, _, _, _, _, s0, s1, s2, s3, l0, l1, l2, l3] =
            header;
        let (major, minor) = (order.u16([m0, m1]), order.u16([n0, n1]));
        let lengths = match (major, minor) {
            (2, 0..=2) | (543, _) => Lengths::OriginalFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            (2, _) => Lengths::CapturedFirst,
            _ => return Err(Damage::Version { major, minor }.into()),
        };
        // The upper half holds the length of the frame check sequence and bits that readers ignore.
        let network = order.u32([l0, l1, l2, l3]);
        let link_type = LinkType(u16::try_from(network & 0xffff).expect("16 bits were kept"));
        let interface = Interface {
            name: String::new(),
            description: None,
            link_type,
            snaplen: order.u32([s0, s1, s2, s3]),
            filter: None,
            options: Vec::new(),
        };
        let pcap = Self {
            order,
            header_size: if magic == MODIFIED {
                MODIFIED_RECORD_HEADER_SIZE
            } else {
                RECORD_HEADER_SIZE
            },
            nanos_per_unit: if magic == NANOSECONDS { 1 } else { 1000 },
            lengths,
            largest_packet: largest_packet(link_type),
            interface: intake.describe(0, interface)?,
        };
        Ok(Some((pcap, FILE_HEADER_SIZE)))
    }

    /// Reads all records that are complete in `bytes`.
    pub(super) fn parse(&mut self, bytes: &[u8], intake: &mut Intake) -> Parsed {
        let mut at = 0;
        loop {
            if intake.is_full() {
                return Parsed { consumed: at, stop: Stop::HandOut };
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((fields, _)) = rest.split_first_chunk::<RECORD_HEADER_SIZE>() else {
                return Parsed::more(at, "a record header", self.header_size);
            };
            let &[t0, t1, t2, t3, f0, f1, f2, f3, a0, a1, a2, a3, b0, b1, b2, b3] = fields;
            let seconds = i64::from(self.order.u32([t0, t1, t2, t3]));
            let fraction = i64::from(self.order.u32([f0, f1, f2, f3]));
            let first = self.order.u32([a0, a1, a2, a3]);
            let second = self.order.u32([b0, b1, b2, b3]);
            let swap = match self.lengths {
                Lengths::CapturedFirst => false,
                Lengths::OriginalFirst => true,
                Lengths::SmallerIsCaptured => first > second,
            };
            let (captured, original_len) = if swap { (second, first) } else { (first, second) };
            let captured = usize::try_from(captured).unwrap_or(usize::MAX);
            if captured > self.largest_packet {
                return Parsed::refused(at, too_large("a packet", captured, self.largest_packet));
            }
            let data = at + self.header_size..at + self.header_size + captured;
            if bytes.len() < data.end {
                return Parsed::more(at, "a packet", data.end - at);
            }
            let nanos = seconds * NANOS_PER_SECOND + fraction * self.nanos_per_unit;
            at = data.end;
            let record = Record {
                timestamp: Timestamp(nanos),
                interface: self.interface,
                original_len,
                outbound: None,
                tag: None,
                bytes: data,
                options: 0..0,
            };
            intake.push(bytes, record);
        }
    }
}
