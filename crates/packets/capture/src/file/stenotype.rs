//! Packet files of Stenographer: blocks of the kernel ring as stenotype found them
//! (`TPACKET_V3`, `linux/if_packet.h`), 1 MiB each, one behind the other.
//!
//! What a block says of itself is not trusted: a packet that does not lie in its block, or over the
//! one behind it, is damage, and what lies behind the last packet is whatever the ring held before.
//! So a block gives no more bytes than it has.

use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

use super::intake::{Intake, Parsed, Refused, Stop};
use crate::live::OUTBOUND;
use crate::source::Record;
use crate::{Damage, Interface};

/// Stenographer reads no other size.
pub(super) const BLOCK_SIZE: usize = 1 << 20;
/// `struct tpacket_block_desc`.
const BLOCK_HEADER_SIZE: usize = 48;
/// `struct tpacket3_hdr`, behind which the link-level address stands.
const PACKET_HEADER_SIZE: usize = 48;
/// `TPACKET_V3` as the kernel writes it.
const VERSION: u32 = 2;

const VLAN_VALID: u32 = 1 << 4;
const VLAN_TPID_VALID: u32 = 1 << 6;
/// Two addresses stand before a VLAN tag.
const BEFORE_TAG: usize = 12;
/// `PACKET_OUTGOING` (`linux/if_packet.h`).
const OUTGOING: u8 = 4;

/// The first bytes of such a file.
pub(super) fn recognize(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) == VERSION
}

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Stenotype {
    interface: u32,
    /// The block before is not whole: what could be read of it is handed out.
    is_damaged: bool,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

fn size(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Stenotype {
    /// Begins a file whose first block header is there; `None` where that is none.
    pub(super) fn start(header: &[u8], intake: &mut Intake) -> Result<Option<Self>, Refused> {
        let private = word(header, 4).map(size);
        if private.is_none_or(|offset| !(BLOCK_HEADER_SIZE..BLOCK_SIZE).contains(&offset)) {
            return Ok(None);
        }
        let interface = Interface {
            name: "stenotype".to_owned(),
            description: None,
            link_type: LinkType::ETHERNET,
            snaplen: 0,
            filter: None,
            options: Vec::new(),
        };
        Ok(Some(Self { interface: intake.describe(0, interface)?, is_damaged: false }))
    }

    /// Reads the next block.
    pub(super) fn parse(&mut self, bytes: &[u8], intake: &mut Intake) -> Parsed {
        if self.is_damaged {
            return Parsed::refused(0, Damage::KernelBlock);
        }
        let Some(block) = bytes.get(..BLOCK_SIZE) else {
            return Parsed::more(0, "a block of stenotype", BLOCK_SIZE);
        };
        self.is_damaged = self.block(block, intake).is_none();
        Parsed { consumed: BLOCK_SIZE, stop: Stop::HandOut }
    }

    /// `None` where it is damaged.
    fn block(&self, block: &[u8], intake: &mut Intake) -> Option<()> {
        // Space that was taken ahead is zero.
        let (version, count) = (word(block, 0)?, word(block, 12)?);
        if version == 0 || count == 0 {
            return Some(());
        }
        if version != VERSION {
            return None;
        }
        let mut at = size(word(block, 16)?);
        for left in (0..count).rev() {
            // The last packet has no successor, and nothing where it would be (tp_next_offset).
            let next = size(word(block.get(at..)?, 0)?);
            let end = if left == 0 { block.len() } else { at.checked_add(next)? };
            self.packet(block.get(..end)?, at, intake)?;
            at = end;
        }
        Some(())
    }

    /// Takes the packet whose header is at `at` of what ends with it.
    fn packet(&self, block: &[u8], at: usize, intake: &mut Intake) -> Option<()> {
        let header = block.get(at..at.checked_add(PACKET_HEADER_SIZE)?)?;
        let [seconds, nanos, captured, original_len, status] =
            [4, 8, 12, 16, 20].map(|field| word(header, field).unwrap_or(0));
        let offset = usize::from(half(header, 24)?);
        let begin = at + offset;
        let bytes = begin..begin.checked_add(size(captured))?;
        block.get(bytes.clone()).filter(|_| offset >= PACKET_HEADER_SIZE)?;
        let can_be_tagged = status & VLAN_VALID != 0 && bytes.len() >= BEFORE_TAG;
        let tag = can_be_tagged.then(|| {
            let control = half(header, 32).unwrap_or(0);
            let kind = half(header, 36).filter(|_| status & VLAN_TPID_VALID != 0);
            let ([a, b], [c, d]) = (kind.unwrap_or(0x8100).to_be_bytes(), control.to_be_bytes());
            [a, b, c, d]
        });
        let is_outbound = block.get(at + PACKET_HEADER_SIZE + 10) == Some(&OUTGOING);
        let options = intake.options.len();
        if is_outbound {
            intake.options.extend(OUTBOUND);
        }
        let timestamp = i64::from(seconds) * NANOS_PER_SECOND + i64::from(nanos);
        let record = Record {
            timestamp: Timestamp(timestamp),
            interface: self.interface,
            original_len: original_len.saturating_add(if tag.is_some() { 4 } else { 0 }),
            outbound: Some(is_outbound),
            tag,
            bytes,
            options: options..intake.options.len(),
        };
        intake.push(block, record);
        Some(())
    }
}
