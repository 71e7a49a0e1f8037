//! pcapng files: sections, interfaces and packets become records; other blocks are kept, noted or
//! passed over.

use core::mem;

use format::pcapng::{
    Block, BlockError, BlockHeader, ByteOrder, EnhancedPacket, InterfaceDescription, OptionCode,
    OptionScope, Options, Resolution, View, block_type, normalize_options, normalize_options_where,
    put_option,
};
use units::Timestamp;

use super::intake::{Intake, Parsed, Refused, Stop, largest_packet, too_large};
use crate::source::Record;
use crate::{Damage, Interface};

/// Larger blocks are refused by libpcap and Wireshark too.
const LARGEST_BLOCK: usize = 16 << 20;
/// The earliest time of a packet: a volume without a maximum age counts what is not later than
/// `Timestamp::MIN` as expired.
const EARLIEST_NS: i64 = i64::MIN + 1;
/// Interfaces of a section: a description takes 20 bytes in the file, and more in memory.
const SECTION_INTERFACES_MAX: usize = 1 << 16;

/// Type and total length before the body.
const BODY_OFFSET: usize = 8;
/// Interface, time and lengths before the packet data, in Enhanced and in obsolete Packet Blocks.
const PACKET_OFFSET: usize = BODY_OFFSET + 20;
/// The original length before the packet data.
const SIMPLE_PACKET_OFFSET: usize = BODY_OFFSET + 4;

/// The section under way.
#[derive(Debug)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Described>,
    /// The packet of a block with a wrong trailer was handed out: the error is next.
    trailer_pending: bool,
}

/// An interface of the section.
#[derive(Debug)]
struct Described {
    number: u32,
    resolution: Resolution,
    snaplen: u32,
    largest_packet: usize,
    /// Packets that its statistics report as lost when the file was captured.
    lost: u64,
}

/// A packet of any of the three block types, before its interface is looked up.
struct RawPacket<'a> {
    interface: u32,
    time: Option<u64>,
    original_len: u32,
    offset: usize,
    captured: usize,
    options: Options<'a>,
    /// Packets lost before this one, where the block has a field for that.
    drop_count: u16,
}

/// What a block leaves to do.
enum Done {
    Go,
    Keep(Vec<u8>),
}

impl Pcapng {
    /// Before the first block, whose section header will set the byte order.
    pub(super) fn new() -> Self {
        Self { order: ByteOrder::Little, interfaces: Vec::new(), trailer_pending: false }
    }

    /// Reads all blocks that are complete in `bytes`, up to one that is to be kept.
    pub(super) fn parse(&mut self, bytes: &[u8], intake: &mut Intake) -> Parsed {
        let mut at = 0;
        loop {
            if intake.is_full() {
                return Parsed { consumed: at, stop: Stop::HandOut };
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let header = match BlockHeader::read(rest, self.order) {
                Ok(header) => header,
                Err(BlockError::Incomplete { needed }) => {
                    return Parsed::more(at, "a block header", needed);
                }
                Err(error) => return Parsed::refused(at, error),
            };
            if header.size() > LARGEST_BLOCK {
                return Parsed::refused(at, too_large("a block", header.size(), LARGEST_BLOCK));
            }
            let Ok((block, verdict)) = header.split(rest) else {
                return Parsed::more(at, "a block", header.size());
            };
            if let Err(error) = verdict {
                // The packet lies before the damage, and its own length fields fit into the block.
                if is_packet(block.block_type) && !mem::replace(&mut self.trailer_pending, true) {
                    return match self.block(at, bytes, &block, intake) {
                        Ok(_) => Parsed { consumed: at, stop: Stop::HandOut },
                        Err(refused) => Parsed::refused(at, refused),
                    };
                }
                return Parsed::refused(at, error);
            }
            let keep = matches!(
                block.block_type,
                block_type::NAME_RESOLUTION | block_type::DECRYPTION_SECRETS
            );
            if keep && !intake.records.is_empty() {
                return Parsed { consumed: at, stop: Stop::HandOut };
            }
            match self.block(at, bytes, &block, intake) {
                Ok(Done::Go) => at += header.size(),
                Ok(Done::Keep(kept)) => {
                    return Parsed { consumed: at + header.size(), stop: Stop::Block(kept) };
                }
                Err(refused) => return Parsed::refused(at, refused),
            }
        }
    }

    /// Takes the block at `at` of `bytes`.
    fn block(
        &mut self,
        at: usize,
        bytes: &[u8],
        block: &Block<'_>,
        intake: &mut Intake,
    ) -> Result<Done, Refused> {
        match block.view()? {
            View::SectionHeader(section) => {
                if section.major != 1 {
                    let (major, minor) = (section.major, section.minor);
                    return Err(BlockError::Version { major, minor }.into());
                }
                self.end_section(intake);
                self.order = block.order;
            }
            View::InterfaceDescription(interface) => self.describe(&interface, intake)?,
            View::EnhancedPacket(packet) => {
                self.packet(bytes, enhanced(at, packet), intake)?;
            }
            View::Packet(packet) => {
                let packet = RawPacket {
                    interface: u32::from(packet.interface),
                    time: Some(packet.time),
                    original_len: packet.original_len,
                    offset: at + PACKET_OFFSET,
                    captured: packet.data.len(),
                    options: packet.options,
                    drop_count: packet.drop_count.unwrap_or(0),
                };
                self.packet(bytes, packet, intake)?;
            }
            View::SimplePacket(packet) => {
                let snaplen = self.interfaces.first().map_or(0, |interface| interface.snaplen);
                let data = packet
                    .data(snaplen)
                    .ok_or(BlockError::Body { block_type: block.block_type })?;
                let packet = RawPacket {
                    interface: 0,
                    time: None,
                    original_len: packet.original_len,
                    offset: at + SIMPLE_PACKET_OFFSET,
                    captured: data.len(),
                    options: Options::new(&[], block.order),
                    drop_count: 0,
                };
                self.packet(bytes, packet, intake)?;
            }
            View::InterfaceStatistics(statistics) => {
                let lost = |code| statistics.options.find_u64(code).unwrap_or(0);
                let index = usize::try_from(statistics.interface).unwrap_or(usize::MAX);
                if let Some(interface) = self.interfaces.get_mut(index) {
                    interface.lost = lost(OptionCode::STATISTICS_KERNEL_DROPS)
                        .saturating_add(lost(OptionCode::STATISTICS_INTERFACE_DROPS));
                }
            }
            View::NameResolution(_) | View::DecryptionSecrets(_) => {
                return Ok(block.to_little_endian()?.map_or(Done::Go, Done::Keep));
            }
            View::Custom { .. } | View::Unknown(_) => {}
        }
        Ok(Done::Go)
    }

    /// Adds a packet to the batch.
    #[inline]
    fn packet(
        &self,
        bytes: &[u8],
        packet: RawPacket<'_>,
        intake: &mut Intake,
    ) -> Result<(), Refused> {
        let index = usize::try_from(packet.interface).unwrap_or(usize::MAX);
        let interface = self.interfaces.get(index).ok_or(Damage::UnknownInterface {
            interface: packet.interface,
            described: self.interfaces.len(),
        })?;
        if packet.captured > interface.largest_packet {
            return Err(too_large("a packet", packet.captured, interface.largest_packet).into());
        }
        let options_start = intake.options.len();
        let mut outbound = None;
        if !packet.options.is_empty() {
            // epb_flags, bits 0 and 1: 1 is inbound, 2 is outbound.
            let flags = packet.options.find_u32(OptionCode::PACKET_FLAGS).unwrap_or(0);
            outbound = [None, Some(false), Some(true), None]
                .get(usize::try_from(flags & 3).unwrap_or(0))
                .copied()
                .flatten();
            normalize_options(OptionScope::Packet, packet.options, &mut intake.options);
        }
        if packet.drop_count > 0 {
            let count = u64::from(packet.drop_count).to_le_bytes();
            put_option(&mut intake.options, OptionCode::PACKET_DROP_COUNT, &count);
        }
        // A Simple Packet Block has no time: 1970 marks it, as in libpcap.
        let nanos = packet.time.map_or(0, |units| interface.resolution.to_nanos(units));
        let nanos = nanos.max(EARLIEST_NS);
        let record = Record {
            timestamp: Timestamp(nanos),
            interface: interface.number,
            original_len: packet.original_len,
            outbound,
            tag: None,
            bytes: packet.offset..packet.offset + packet.captured,
            options: options_start..intake.options.len(),
        };
        intake.push(bytes, record);
        Ok(())
    }

    /// Adds an interface to the section.
    fn describe(
        &mut self,
        description: &InterfaceDescription<'_>,
        intake: &mut Intake,
    ) -> Result<(), Refused> {
        let text = |code| {
            let value = description.options.find_value(code)?;
            let text = String::from_utf8_lossy(value);
            Some(text.trim_end_matches('\0').to_owned())
        };
        // The value's first byte 0 says that the rest is the expression.
        let filter = text(OptionCode::INTERFACE_FILTER)
            .and_then(|text| Some(text.strip_prefix('\0')?.to_owned()));
        let mut options = Vec::new();
        normalize_options_where(
            OptionScope::Interface,
            description.options.clone(),
            &mut options,
            |code| match code {
                OptionCode::INTERFACE_NAME
                | OptionCode::INTERFACE_DESCRIPTION
                | OptionCode::INTERFACE_RESOLUTION
                | OptionCode::INTERFACE_OFFSET => false,
                OptionCode::INTERFACE_FILTER => filter.is_none(),
                _ => true,
            },
        );
        let interface = Interface {
            name: text(OptionCode::INTERFACE_NAME).unwrap_or_default(),
            description: text(OptionCode::INTERFACE_DESCRIPTION),
            link_type: description.link_type,
            snaplen: description.snaplen,
            filter,
            options,
        };
        if self.interfaces.len() >= SECTION_INTERFACES_MAX {
            return Err(Damage::Interfaces { limit: SECTION_INTERFACES_MAX }.into());
        }
        let number = intake.describe(self.interfaces.len(), interface)?;
        self.interfaces.push(Described {
            number,
            resolution: description.resolution(),
            snaplen: description.snaplen,
            largest_packet: largest_packet(description.link_type),
            lost: 0,
        });
        Ok(())
    }

    /// Forgets the section's interfaces, and notes what was lost when they were captured.
    pub(super) fn end_section(&mut self, intake: &mut Intake) {
        for (position, interface) in self.interfaces.drain(..).enumerate() {
            if interface.lost > 0 {
                let (path, lost) = (intake.path.display().to_string(), interface.lost);
                intake.note(|| {
                    format!(
                        "{path}: by its own count, {lost} packets of its interface {position} \
                         were lost when it was captured"
                    )
                });
            }
        }
    }
}

fn enhanced(at: usize, packet: EnhancedPacket<'_>) -> RawPacket<'_> {
    RawPacket {
        interface: packet.interface,
        time: Some(packet.time),
        original_len: packet.original_len,
        offset: at + PACKET_OFFSET,
        captured: packet.data.len(),
        options: packet.options,
        drop_count: 0,
    }
}

fn is_packet(block_type: u32) -> bool {
    matches!(
        block_type,
        block_type::ENHANCED_PACKET | block_type::SIMPLE_PACKET | block_type::PACKET
    )
}
