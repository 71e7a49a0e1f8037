//! snoop files (RFC 1761), as Solaris writes them.

use format::pcapng::ByteOrder;
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

use super::intake::{Intake, Parsed, Refused, Stop, largest_packet, too_large};
use crate::source::Record;
use crate::{Damage, Interface};

/// Name, version, link type.
pub(super) const FILE_HEADER_SIZE: usize = 16;
/// Original length, captured length, length of the record, drops so far, seconds, microseconds.
const RECORD_HEADER_SIZE: usize = 24;
const VERSION: u32 = 2;
const NAME: &[u8; 8] = b"snoop\0\0\0";
/// Records end at multiples of four bytes; some writers leave more space.
const PADDING_MAX: usize = 4096;

/// Reads the records behind the file header.
#[derive(Debug)]
pub(super) struct Snoop {
    interface: u32,
    largest_packet: usize,
    /// Packets that the writer had lost by the last record.
    drops: u32,
}

/// Whether these are the first bytes of a snoop file.
pub(super) fn recognize(magic: [u8; 4]) -> bool {
    NAME.starts_with(&magic)
}

/// The link type that a number of snoop's stands for.
fn link_type(number: u32) -> Option<LinkType> {
    Some(LinkType(match number {
        // IEEE 802.3, Ethernet.
        0 | 4 => 1,
        // Token ring.
        2 => 6,
        // FDDI.
        8 => 10,
        // Raw IP with an IPNET header.
        26 => 226,
        _ => return None,
    }))
}

impl Snoop {
    /// Reads the file header; `None` until all of it is there.
    pub(super) fn start(
        bytes: &[u8],
        intake: &mut Intake,
    ) -> Result<Option<(Self, usize)>, Refused> {
        let Some(header) = bytes.first_chunk::<FILE_HEADER_SIZE>() else { return Ok(None) };
        let &[n0, n1, n2, n3, n4, n5, n6, n7, v0, v1, v2, v3, l0, l1, l2, l3] = header;
        if [n0, n1, n2, n3, n4, n5, n6, n7] != *NAME {
            let hint = ", although it begins like snoop's";
            return Err(crate::Error::NotACapture { path: intake.path.clone(), hint }.into());
        }
        let version = ByteOrder::Big.u32([v0, v1, v2, v3]);
        if version != VERSION {
            let [_, _, major, minor] = [v0, v1, v2, v3].map(u16::from);
            return Err(Damage::Version { major, minor }.into());
        }
        let Some(link_type) = link_type(ByteOrder::Big.u32([l0, l1, l2, l3])) else {
            let hint = ", but of snoop with a link layer that is not known";
            return Err(crate::Error::NotACapture { path: intake.path.clone(), hint }.into());
        };
        let interface = Interface {
            name: String::new(),
            description: None,
            link_type,
            snaplen: 0,
            filter: None,
            options: Vec::new(),
        };
        let interface = intake.describe(0, interface)?;
        let snoop = Self { interface, largest_packet: largest_packet(link_type), drops: 0 };
        Ok(Some((snoop, FILE_HEADER_SIZE)))
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
                return Parsed::more(at, "a record header", RECORD_HEADER_SIZE);
            };
            let field = |index: usize| {
                let four = fields.get(4 * index..).and_then(|rest| rest.first_chunk::<4>());
                ByteOrder::Big.u32(*four.expect("a header has six fields"))
            };
            let [original_len, captured, record_len] = [field(0), field(1), field(2)];
            let wide = |len: u32| usize::try_from(len).unwrap_or(usize::MAX);
            let (captured, record_len) = (wide(captured), wide(record_len));
            if captured > self.largest_packet {
                return Parsed::refused(at, too_large("a packet", captured, self.largest_packet));
            }
            let most = RECORD_HEADER_SIZE + captured + PADDING_MAX;
            if record_len > most || record_len < RECORD_HEADER_SIZE + captured {
                return Parsed::refused(at, too_large("a record", record_len, most));
            }
            if rest.len() < record_len {
                return Parsed::more(at, "a packet", record_len);
            }
            self.count_drops(field(3), intake);
            let nanos = i64::from(field(4)) * NANOS_PER_SECOND + i64::from(field(5)) * 1000;
            let data = at + RECORD_HEADER_SIZE..at + RECORD_HEADER_SIZE + captured;
            at += record_len;
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

    /// The writer counts what it lost; a note says once that it did.
    fn count_drops(&mut self, drops: u32, intake: &mut Intake) {
        if drops > 0 && self.drops == 0 {
            let path = intake.path.display().to_string();
            intake.note(|| {
                format!("{path}: packets were lost when it was written ({drops} at the first loss)")
            });
        }
        self.drops = self.drops.max(drops);
    }
}
